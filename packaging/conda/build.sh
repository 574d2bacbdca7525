#!/usr/bin/env bash
# What the recipe calls, in the sources, with PREFIX and, while it cross-compiles, the compilers of conda.
set -euo pipefail
ARCHIVES=no PREFIX=$PREFIX DESTDIR='' scripts/install
# conda has its own list of files.
rm "$PREFIX/lib/regatta/installed"
# Modules of one version of a compiler; mpifort makes them where they are wanted.
rm -rf "$PREFIX/lib/regatta-mpi/modules"
