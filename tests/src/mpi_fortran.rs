//! Programs of MPI in Fortran, compiled with the generated header and modules.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::job::Job;
use crate::{mpi, programs};

/// Name under which programs load the library.
const SONAME: &str = "libregatta_mpifort.so.0";

/// Path of the library under that name.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = programs::built("libregatta_mpifort.so", "regatta-mpi-fortran");
    programs::link(&library, SONAME).join(SONAME)
});

/// Folder of `mpif.h` and the compiled modules.
static MODULES: LazyLock<PathBuf> = LazyLock::new(|| {
    let text = regatta_mpi_table::fortran_include();
    let folder = programs::file("mpif.h", text.as_bytes());
    for name in ["mpi", "mpi_f08"] {
        let file = format!("{name}.f90");
        programs::file(&file, regatta_mpi_table::fortran_module(name).as_bytes());
        compile(&folder, &["-fsyntax-only".as_ref(), file.as_ref()]);
    }
    folder
});

/// Returns the path of the library.
pub fn library() -> PathBuf {
    LIBRARY.clone()
}

/// Returns the folder of `mpif.h` and the compiled modules.
pub fn modules() -> PathBuf {
    MODULES.clone()
}

/// Runs gfortran. Skips the test if it is not installed.
fn compile(folder: &Path, arguments: &[&std::ffi::OsStr]) {
    let output = Command::new(crate::needs::program("gfortran", "gfortran"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("gfortran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Compiles these files of `tests/programs/mpi` into one program, with these compiler options.
fn program(name: &str, files: &[&str], options: &[&str]) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/mpi");
    // Checked before anything is created that all tests share: a skipped test must not create it.
    crate::needs::program("gfortran", "gfortran");
    let folder = modules();
    let program = folder.join(name);
    let mut arguments: Vec<std::ffi::OsString> = options.iter().map(Into::into).collect();
    arguments.extend(["-g", "-fallow-argument-mismatch", "-w", "-I."].map(Into::into));
    arguments.push(format!("-I{}", mpi::headers().display()).into());
    arguments.extend(["-o".into(), program.clone().into_os_string()]);
    arguments.extend(files.iter().map(|file| sources.join(file).into_os_string()));
    arguments.extend([library(), mpi::library()].map(PathBuf::into_os_string));
    let arguments: Vec<_> = arguments.iter().map(|it| it.as_os_str()).collect();
    compile(&folder, &arguments);
    program
}

/// Creates a job of `tasks` processes of the program of these files, compiled with these options.
pub fn job(tasks: u32, name: &str, files: &[&str], options: &[&str], arguments: &[&str]) -> Job {
    Job::of(tasks, &program(name, files, options), arguments)
}
