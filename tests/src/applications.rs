//! The applications (`programs/applications`), compiled for Regatta's libraries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::{Job, express, mpi, mpi_fortran, needs, nx, programs, pvm};

/// Folder of the applications, relative to `tests/programs`.
const FOLDER: &str = "../../programs/applications";

/// Interfaces in which each application is written; also the names of their folders.
pub const INTERFACES: [&str; 5] = ["regatta", "mpi", "pvm", "nx", "express"];

/// Interfaces of the applications that have Fortran sources.
pub const FORTRAN_INTERFACES: [&str; 4] = ["mpi", "pvm", "nx", "express"];

/// Returns the folder with the headers of an interface.
fn headers(interface: &str) -> PathBuf {
    let own = |name: &str| {
        let path = format!("../crates/interfaces/{name}/include");
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    };
    match interface {
        "mpi" => mpi::headers(),
        "regatta" => own("c"),
        other => own(other),
    }
}

/// Returns the libraries to link a program of `interface` with. A program finds its libraries in the folder of this
/// path.
fn libraries(interface: &str) -> Vec<PathBuf> {
    let (library, others): (_, &[&str]) = match interface {
        "mpi" => (mpi::library(), &[]),
        "nx" => (nx::library(), &[]),
        "express" => (express::library(), &[]),
        // libgpvm3 needs libpvm3, which is not in the program's own list of libraries.
        "pvm" => (pvm::library(), &["libgpvm3.so.3"]),
        "regatta" => (programs::library().join("libregatta.so.0"), &[]),
        other => panic!("there is no interface {other}"),
    };
    let folder = library
        .parent()
        .expect("a library is in a folder")
        .to_owned();
    let named = [PathBuf::from("-Wl,--no-as-needed")].into_iter();
    let others = others.iter().map(|name| folder.join(name));
    let regatta = [folder.join("libregatta.so.0"), PathBuf::from("-lm")];
    named
        .chain(others)
        .chain([library])
        .chain(regatta)
        .collect()
}

/// Compiles `programs/applications/FILE.c` for an interface, or without one (`serial`).
fn compile(file: &str, interface: &str) -> PathBuf {
    let name = format!("application-{}", file.replace('/', "-"));
    let (headers, libraries) = match interface {
        "serial" => (Vec::new(), vec![PathBuf::from("-lm")]),
        _ => (vec![headers(interface)], libraries(interface)),
    };
    // Without fused multiply-add, so that pictures agree to the last bit on every processor.
    let options = ["-std=gnu11", "-O2", "-ffp-contract=off"].map(PathBuf::from);
    let arguments = [&options[..], &libraries].concat();
    programs::compile_all(&name, &[&format!("{FOLDER}/{file}")], &headers, &arguments)
}

/// Returns the program of this file. The first call compiles it. The file's folder or name says which interface it
/// uses.
fn program(file: &str, interface: &str) -> PathBuf {
    static MADE: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(file.to_owned())
        .or_insert_with(|| compile(file, interface))
        .clone()
}

/// Creates a job of `tasks` tasks of a program. A PVM program is started once and spawns its tasks itself.
fn started(program: &Path, interface: &str, arguments: &[&str], tasks: u32) -> Job {
    match interface {
        "serial" => Job::at(program, arguments),
        "pvm" => Job::of(1, program, &[arguments, &[&tasks.to_string()]].concat()),
        _ => Job::of(tasks, program, arguments),
    }
}

fn job(file: &str, interface: &str, arguments: &[&str], tasks: u32) -> Job {
    started(&program(file, interface), interface, arguments, tasks)
}

/// Creates a job that runs a NAS benchmark (kernel) of the given class.
pub fn npb_job(kernel: &str, interface: &str, class: &str, tasks: u32) -> Job {
    npb_job_with(kernel, interface, &[class], tasks)
}

/// Creates a job that runs a NAS benchmark (kernel) with these arguments.
pub fn npb_job_with(kernel: &str, interface: &str, arguments: &[&str], tasks: u32) -> Job {
    job(
        &format!("npb/{interface}/{kernel}"),
        interface,
        arguments,
        tasks,
    )
}

/// Creates a job of a program in `tests/programs` that includes parts of the applications and uses no message-passing
/// interface.
pub fn part_job(name: &str) -> Job {
    let libraries = [PathBuf::from("-lm")];
    Job::at(&programs::compile_with(name, &[], &libraries), &[])
}

/// Returns the path of a file of the applications.
pub fn application_file(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/applications");
    folder.join(path).display().to_string()
}

/// Creates a job that runs an application other than the NAS benchmarks.
pub fn application_job(name: &str, interface: &str, arguments: &[&str], tasks: u32) -> Job {
    job(&format!("{name}/{interface}"), interface, arguments, tasks)
}

/// Returns the compiler options of a Fortran program of an interface: the Fortran library, which precedes those of C,
/// and the folder of modules.
fn fortran_options(interface: &str) -> Vec<PathBuf> {
    let beside = |library: PathBuf, name: &str| library.with_file_name(name);
    match interface {
        "mpi" => vec![
            format!("-I{}", mpi_fortran::modules().display()).into(),
            mpi_fortran::library(),
        ],
        "pvm" => vec![beside(pvm::library(), "libfpvm3.a")],
        "express" => vec![beside(express::library(), "libfexpress.a")],
        _ => Vec::new(),
    }
}

/// Returns the Fortran source files of an application, in the order of compilation.
fn fortran_texts(name: &str, interface: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let folder = folder.join(FOLDER);
    let free = folder.join(format!("{name}/{interface}.f90"));
    let own = if free.exists() {
        free
    } else {
        free.with_extension("f")
    };
    let tasks = folder.join(format!("tasks/{interface}.f"));
    let common = [
        folder.join("clock.f90"),
        folder.join(format!("{name}/{name}.f90")),
    ];
    let tasks = tasks.exists().then_some(tasks);
    common.into_iter().chain(tasks).chain([own]).collect()
}

/// Compiles a Fortran application for an interface, or without one (`serial`). Skips the test if gfortran is not
/// installed.
pub fn fortran_program(name: &str, interface: &str) -> PathBuf {
    static MADE: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);
    // Checked before the lock is taken: a skipped test must not poison it.
    let compiler = needs::program("gfortran", "gfortran");
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("application-{name}-{interface}-fortran");
    if let Some(program) = made.get(&key) {
        return program.clone();
    }
    let (headers, libraries) = match interface {
        "serial" => (None, Vec::new()),
        _ => (Some(headers(interface)), libraries(interface)),
    };
    let folder = programs::folder(&key);
    let program = folder.join(name);
    let output = Command::new(compiler)
        .current_dir(&folder)
        .args([
            "-O2",
            "-std=legacy",
            "-fallow-argument-mismatch",
            "-w",
            "-o",
        ])
        .arg(&program)
        .args(headers.map(|headers| format!("-I{}", headers.display())))
        .args(fortran_texts(name, interface))
        .args(fortran_options(interface))
        .args(libraries)
        .output()
        .expect("gfortran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} by {interface}: {said}");
    made.insert(key, program.clone());
    program
}

/// Creates a job that runs an application with Fortran sources.
pub fn fortran_job(name: &str, interface: &str, arguments: &[&str], tasks: u32) -> Job {
    let program = fortran_program(name, interface);
    started(&program, interface, arguments, tasks)
}
