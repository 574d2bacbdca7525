"""Regatta for Python: messages, collectives and dynamic tasks. Errors name the task that has died.

    import regatta_mpi as rg
    total = rg.world.allreduce(rg.world.rank)

`regatta run -n 4 python program.py` starts four tasks of a program. A program that is started without `regatta run` is a world of one task.
A process joins the job at the first use of `world`, or by `init()`.

Other functions return the paths of the package's files: the command, its libraries, and the compilers and launcher for MPI programs. The
command `regatta` is installed beside the other commands of this Python. `python -m regatta_mpi` runs the same command.
"""

# Every start of Python imports this (regatta_mpi.pth), so slow imports are deferred until first use.

_HOMES = {
    ".errors": (
        "Cancelled Deadlock Error GroupRevoked LauncherError NoSuchName SpawnError TaskDied TaskLeft Truncated WorkerDied"
    ),
    ".groups": "ANY NONE SUM PRODUCT MAX MIN AND OR XOR BAND BOR BXOR Group Request Status channel finalize init job wait_all wait_any world",
    ".events": (
        "Event Host Task Watch abort hosts kill notify parent signal spawn task tasks time watch_hosts watch_task watch_tasks"
    ),
    ".executor": "Executor",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF) + ["command", "libraries", "mpi_commands", "prefix", "version"]


def __getattr__(name):
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__


def _installed():
    """Returns the installed distribution."""
    import importlib.metadata

    return importlib.metadata.distribution("regatta-mpi")


def version():
    """Returns the version of Regatta as a string."""
    return _installed().version


def command():
    """Returns the path of the command `regatta`."""
    import pathlib

    for file in _installed().files or ():
        if file.parts[-2:] == ("bin", "regatta"):
            return pathlib.Path(file.locate()).resolve()
    raise FileNotFoundError("regatta-mpi is installed without its command; reinstall it: pip install --force-reinstall regatta-mpi")


def prefix():
    """Returns the folder that has `bin`, `lib`, `include` and `share`."""
    return command().parent.parent


def mpi_commands():
    """Returns the folder of `mpicc`, `mpicxx`, `mpifort`, `mpiexec` and `mpirun`, which is not in PATH by default."""
    return prefix() / "lib" / "regatta" / "mpi"


def libraries():
    """Returns the libraries for MPI programs by their ABI: `mpiabi`, the standard one, and `mpich`."""
    folder = prefix() / "lib"
    return {
        "mpiabi": folder / "regatta-mpi" / "libmpi_abi.so.1",
        "mpich": folder / "regatta" / "mpich" / "libmpi.so.12",
    }
