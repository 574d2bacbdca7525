"""Where the files of Regatta are: the command, its libraries and headers, compilers and launcher of programs of MPI.

The command `regatta` is installed where the other commands of this Python are. `python -m regatta_mpi` is the same command.
"""

__all__ = ["command", "libraries", "mpi_commands", "prefix", "version"]


def _installed():
    """The distribution, as Python knows it."""
    import importlib.metadata

    return importlib.metadata.distribution("regatta-mpi")


def version():
    """The version of Regatta, as a text."""
    return _installed().version


def command():
    """The path of the command `regatta`."""
    # What every start of Python would pay for stands here.
    import pathlib

    for file in _installed().files or ():
        if file.parts[-2:] == ("bin", "regatta"):
            return pathlib.Path(file.locate()).resolve()
    raise FileNotFoundError("regatta-mpi is installed without its command; install it anew: pip install --force-reinstall regatta-mpi")


def prefix():
    """The folder in which `bin`, `lib`, `include` and `share` are."""
    return command().parent.parent


def mpi_commands():
    """The folder of `mpicc`, `mpicxx`, `mpifort`, `mpiexec` and `mpirun`, which is in no PATH unless somebody puts it there."""
    return prefix() / "lib" / "regatta" / "mpi"


def libraries():
    """The libraries for programs of MPI by the name of their interface: `mpiabi`, the standard one, and `mpich`."""
    folder = prefix() / "lib"
    return {
        "mpiabi": folder / "regatta-mpi" / "libmpi_abi.so.1",
        "mpich": folder / "regatta" / "mpich" / "libmpi.so.12",
    }
