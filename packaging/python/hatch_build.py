"""Builds a wheel from an installed tree. A wheel cannot contain symbolic links, so each link is replaced by a file that serves the same
purpose.

`scripts/wheel` sets variables: the tree (REGATTA_TREE), the native module (REGATTA_NATIVE), the compiler for small libraries (REGATTA_CC),
and the wheel's tag.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

TOP = pathlib.Path(__file__).resolve().parents[2]

# Files that are useless in a Python environment: static libraries, modules of one Fortran compiler, and a tree of links
# for PVM's makefiles.
LEFT_OUT = re.compile(r"\.a$|^lib/libregatta\.so(\.\d+){3}$|^lib/regatta-mpi/modules/|^lib/regatta/(pvm3/|installed$)|^share/doc/")
# Other names of the command, and the subcommand that each runs.
SUBCOMMANDS = {"mpiexec": "mpiexec", "mpirun": "mpiexec", "pvm": "console", "pvmd": "pvmd", "pvmd3": "pvmd"}


class Metadata(MetadataHookInterface):
    """Sets the package's version to that of the crates."""

    def update(self, metadata):
        manifest = (TOP / "Cargo.toml").read_text()
        metadata["version"] = re.search(r'^version = "(.*)"', manifest, re.M)[1]


class Tree(BuildHookInterface):
    """Puts the installed files into the wheel, at the same paths below the prefix."""

    def initialize(self, version, build_data):
        tree = pathlib.Path(os.environ["REGATTA_TREE"])
        made = pathlib.Path(tempfile.mkdtemp(prefix="regatta-wheel-"))
        self.made = made
        files = {}
        for path in sorted(path for path in tree.rglob("*") if path.is_symlink() or path.is_file()):
            name = str(path.relative_to(tree))
            if LEFT_OUT.search(name):
                continue
            file = path if not path.is_symlink() else of_link(path, made / name, tree)
            if file is not None:
                files[str(file)] = name
        build_data["shared_data"].update(files)
        build_data["force_include"][os.environ["REGATTA_NATIVE"]] = "regatta_mpi/regatta_mpi_native.abi3.so"
        build_data["pure_python"] = False
        build_data["tag"] = os.environ["REGATTA_TAG"]

    def finalize(self, version, build_data, artifact):
        shutil.rmtree(self.made)


def of_link(link, file, tree):
    """Creates the file that replaces a link. Returns None if none is needed."""
    aim = os.readlink(link)
    file.parent.mkdir(parents=True, exist_ok=True)
    if link.name in SUBCOMMANDS and aim.endswith("bin/regatta"):
        above = "/".join([".."] * (len(link.relative_to(tree).parts) - 1))
        words = f'exec "$(dirname "$(readlink -f "$0")")/{above}/bin/regatta" {SUBCOMMANDS[link.name]} "$@"'
        file.write_text(f"#!/bin/sh\n{words}\n")
        file.chmod(0o755)
    elif link.name.endswith(".so"):
        # A linker script, because the loader needs the name in the link.
        file.write_text(f"INPUT({aim})\n")
        file.chmod(0o644)
    elif ".so." in link.name:
        return library(link, aim, file)
    else:
        shutil.copy(link, file)
    return file


def library(link, aim, file):
    """Creates the file for a library's other name."""
    own = link.resolve()
    if os.path.dirname(aim):
        # Libraries find libregatta.so.0 in the parent of their folder.
        return None
    if f"{link.name}." in own.name:
        # The file with the longer name is not in the wheel.
        shutil.copy(own, file)
        return file
    # The loader treats two files as two libraries, so the other name becomes a library that only loads the first.
    subprocess.run(
        [os.environ["REGATTA_CC"], "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(file), f"-Wl,-soname,{link.name}"]
        + ["-Wl,--no-as-needed", "-x", "none", str(own), "-Wl,-rpath,$ORIGIN"],
        check=True,
    )
    return file
