//! Programs of NX on Regatta's library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::job::Job;

/// Name under which programs load the library of NX.
const SONAME: &str = "libnx.so.0";
/// Name under which the library of NX loads Regatta's.
const REGATTA: &str = "libregatta.so.0";

/// Folder in which programs find the library under its name.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libnx.so", "regatta-nx");
    crate::programs::link(&library, SONAME)
});

/// Returns the path of the library.
pub fn library() -> PathBuf {
    FOLDER.join(SONAME)
}

/// Returns a folder of the repository, given relative to its root.
fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn headers() -> [PathBuf; 2] {
    [
        folder("crates/interfaces/nx/include"),
        folder("crates/interfaces/c/include"),
    ]
}

/// Compiles `tests/programs/NAME.c` to a program called `made`, with these compiler options.
fn program(name: &str, made: &str, options: &[&str]) -> PathBuf {
    let options = options.iter().map(PathBuf::from);
    let libraries = [SONAME, REGATTA].map(|library| FOLDER.join(library));
    let all: Vec<PathBuf> = options.chain(libraries).collect();
    crate::programs::compile_all(made, &[name], &headers(), &all)
}

/// Creates a job of `tasks` nodes of the C program of this name.
pub fn job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    Job::of(tasks, &program(name, name, &[]), arguments)
}

/// Creates a job of a host program that is started by hand. Its nodes run the C program `NODE`, which lies beside it.
pub fn host_job(name: &str, node: &str, arguments: &[&str]) -> Job {
    program(node, node, &[]);
    Job::at(&program(name, name, &[]), arguments)
}

/// Creates a job whose only task is such a host program.
pub fn host_in_a_job(name: &str, node: &str, arguments: &[&str]) -> Job {
    program(node, node, &[]);
    Job::of(1, &program(name, name, &[]), arguments)
}

/// Creates a job of `tasks` nodes of a program with a fixed load address. It has copies of the library's data (copy
/// relocations).
pub fn fixed_job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    let made = format!("{name}_fixed");
    let program = program(name, &made, &["-fno-pie", "-no-pie"]);
    Job::of(tasks, &program, arguments)
}

/// Compiles the Fortran program `tests/programs/NAME.f`. Skips the test if gfortran is not installed.
fn fortran_program(name: &str) -> PathBuf {
    let program = FOLDER.join(name);
    let output = Command::new(crate::needs::program("gfortran", "gfortran"))
        .args(["-fallow-argument-mismatch", "-std=legacy", "-w"])
        .args(["-fallow-leading-underscore", "-o"])
        .arg(&program)
        .arg(folder(&format!("tests/programs/{name}.f")))
        .arg(format!("-I{}", headers()[0].display()))
        .args([SONAME, REGATTA].map(|library| FOLDER.join(library)))
        .output()
        .expect("gfortran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}.f: {said}");
    program
}

/// Creates a job of `tasks` nodes of the Fortran program of this name.
pub fn fortran_job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    Job::of(tasks, &fortran_program(name), arguments)
}

/// Creates a job of a Fortran program that starts an application itself, without a launcher.
pub fn fortran_application_job(name: &str) -> Job {
    Job::at(&fortran_program(name), &[])
}

/// A folder for the files of nodes. It is removed when dropped.
pub struct Folder(String);

impl Folder {
    /// Creates a folder named after `name` and this process.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nx-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path.display().to_string())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &str {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Creates a job of a Fortran host program. Its argument is the folder of the C program `NODE`.
pub fn fortran_host_job(name: &str, node: &str) -> Job {
    program(node, node, &[]);
    let folder = FOLDER.display().to_string();
    Job::at(&fortran_program(name), &[&folder])
}
