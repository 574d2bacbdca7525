"""`python -m regatta_mpi`: runs the command `regatta`."""

import os
import sys

import regatta_mpi

path = str(regatta_mpi.command())
os.execv(path, [path, *sys.argv[1:]])
