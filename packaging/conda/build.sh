#!/usr/bin/env bash
# Called by the recipe in the source folder, with PREFIX and, when cross-compiling, conda's compilers.
set -euo pipefail
ARCHIVES=no PREFIX=$PREFIX DESTDIR='' scripts/install
# conda keeps its own list of files.
rm "$PREFIX/lib/regatta/installed"
# Fortran modules work with one compiler version only; mpifort makes them on demand.
rm -rf "$PREFIX/lib/regatta-mpi/modules"
