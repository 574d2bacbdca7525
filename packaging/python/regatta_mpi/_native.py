"""Imports the native module, which needs a Python whose stable ABI has the buffer protocol."""

import sys

if sys.version_info < (3, 11):
    raise ImportError(
        "regatta_mpi's own interface needs Python 3.11 or later, but this is "
        + sys.version.split()[0]
        + "; programs that use mpi4py also run with this version"
    )

from .regatta_mpi_native import *  # noqa: E402, F403
