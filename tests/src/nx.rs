//! Programs of NX, on Regatta's library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::job::Job;

/// The name by which programs look for the library.
const SONAME: &str = "libnx.so.0";
/// The name by which it looks for Regatta's.
const REGATTA: &str = "libregatta.so.0";

/// The folder in which programs find the library under its name.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libnx.so", "regatta-nx");
    crate::programs::link(&library, SONAME)
});

/// The library itself.
pub fn library() -> PathBuf {
    FOLDER.join(SONAME)
}

/// A folder of the repository, from its top.
fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn headers() -> [PathBuf; 2] {
    [
        folder("crates/interfaces/nx/include"),
        folder("crates/interfaces/c/include"),
    ]
}

/// The C program `tests/programs/NAME.c`, under another name with these options of the compiler.
fn program(name: &str, made: &str, options: &[&str]) -> PathBuf {
    let options = options.iter().map(PathBuf::from);
    let libraries = [SONAME, REGATTA].map(|library| FOLDER.join(library));
    let all: Vec<PathBuf> = options.chain(libraries).collect();
    crate::programs::compile_all(made, &[name], &headers(), &all)
}

/// `tasks` nodes of the C program of this name.
pub fn job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    Job::of(tasks, &program(name, name, &[]), arguments)
}

/// A host program, started by hand, whose nodes run the C program `NODE`, which lies beside it.
pub fn host_job(name: &str, node: &str, arguments: &[&str]) -> Job {
    program(node, node, &[]);
    Job::at(&program(name, name, &[]), arguments)
}

/// Such a host program as the only task of a job.
pub fn host_in_a_job(name: &str, node: &str, arguments: &[&str]) -> Job {
    program(node, node, &[]);
    Job::of(1, &program(name, name, &[]), arguments)
}

/// `tasks` nodes of the program at a fixed address, whose data are its own copies of the library's.
pub fn fixed_job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    let made = format!("{name}_fixed");
    let program = program(name, &made, &["-fno-pie", "-no-pie"]);
    Job::of(tasks, &program, arguments)
}

/// The Fortran program `tests/programs/NAME.f`. Where gfortran is not installed, the test is left out.
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

/// `tasks` nodes of the Fortran program of this name.
pub fn fortran_job(tasks: u32, name: &str, arguments: &[&str]) -> Job {
    Job::of(tasks, &fortran_program(name), arguments)
}

/// A program in Fortran that begins an application.
pub fn fortran_application_job(name: &str) -> Job {
    Job::at(&fortran_program(name), &[])
}

/// A folder for the files of nodes, which goes with the test.
pub struct Folder(String);

impl Folder {
    /// One of this name and process.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nx-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path.display().to_string())
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A host program in Fortran, whose argument is the folder of the C program `NODE`.
pub fn fortran_host_job(name: &str, node: &str) -> Job {
    program(node, node, &[]);
    let folder = FOLDER.display().to_string();
    Job::at(&fortran_program(name), &[&folder])
}
