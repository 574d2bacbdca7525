# Copyright Regatta's developers.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Regatta(MakefilePackage):
    """Regatta is a message-passing environment: MPI by its standard ABI and by MPICH's, PVM, NX, Express, and an interface of its own in C
    and Rust, over one engine whose failures are errors with a name."""

    # Until there is a public archive, `spack develop --path CLONE regatta@main` takes the sources from a clone.
    homepage = "https://crates.io/crates/regatta"
    has_code = True

    license("Apache-2.0 OR MIT", checked_by="regatta")

    version("main")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    provides("mpi@:5.0")
    # Programs that Spack has built with MPICH can run with this library instead.
    can_splice("mpich@3.4:5", when="@main")

    requires("platform=linux")

    def build(self, spec, prefix):
        """`make install` builds everything."""

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")
        # The names by which other programs look for an MPI. In a separate prefix they hide no other program.
        for name in ("mpicc", "mpicxx", "mpic++", "mpifort", "mpif77", "mpif90", "mpiexec", "mpirun"):
            symlink(join_path("..", "lib", "regatta", "mpi", name), join_path(prefix.bin, name))
        # Spliced programs look for MPICH's library in its folder lib.
        symlink(join_path("regatta", "mpich", "libmpi.so.12"), join_path(prefix.lib, "libmpi.so.12"))

    @property
    def headers(self):
        return find_headers("mpi", root=self.prefix.include.join("regatta-mpi"))

    @property
    def libs(self):
        names = ["libmpi_abi"]
        if "fortran" in self.spec.last_query.extra_parameters:
            names.insert(0, "libregatta_mpifort")
        return find_libraries(names, root=self.prefix.lib.join("regatta-mpi"), shared=True)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        for variable, name in (("MPICC", "mpicc"), ("MPICXX", "mpicxx"), ("MPIF77", "mpif77"), ("MPIF90", "mpif90")):
            env.set(variable, join_path(self.prefix.bin, name))

    def setup_dependent_build_environment(self, env: EnvironmentModifications, dependent_spec: Spec) -> None:
        module = dependent_spec.package.module
        for variable, name in (("MPICC_CC", "spack_cc"), ("MPICXX_CXX", "spack_cxx"), ("MPIFORT_FC", "spack_fc")):
            if hasattr(module, name):
                env.set(variable, getattr(module, name))

    def setup_dependent_package(self, module, dependent_spec):
        for attribute, name in (("mpicc", "mpicc"), ("mpicxx", "mpicxx"), ("mpifc", "mpif90"), ("mpif77", "mpif77")):
            setattr(self.spec, attribute, join_path(self.prefix.bin, name))
