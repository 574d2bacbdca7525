//! Python programs that use `regatta_mpi` (`tests/programs/python`): an interpreter with numpy, and the package from
//! this source tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::needs::leave_out;
use crate::{Job, programs};

/// Packages from PyPI that the programs import.
const PACKAGES: [&str; 1] = ["numpy>=2,<3"];
/// Checks for the oldest version whose stable ABI has the buffer protocol.
const OLDEST: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// Interpreter of an environment with the packages, or the reason why there is none.
static INTERPRETER: LazyLock<Result<PathBuf, String>> = LazyLock::new(environment);
static PACKAGE: LazyLock<PathBuf> = LazyLock::new(package);

/// Creates a job of `tasks` tasks of a program in `tests/programs/python`.
pub fn job(tasks: u32, program: &str, arguments: &[&str]) -> Job {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/python");
    job_of(tasks, &path.join(program), arguments)
}

/// Creates a job of `tasks` tasks of the Python program at this path.
pub fn job_of(tasks: u32, program: &Path, arguments: &[&str]) -> Job {
    let program = program.display().to_string();
    let words = [&[&*program], arguments].concat();
    at_home(Job::of(tasks, interpreter(), &words))
}

/// Creates a job of a program in `tests/programs/python` that runs without a launcher.
pub fn alone(program: &str, arguments: &[&str]) -> Job {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/python");
    let program = path.join(program).display().to_string();
    let words = [&[&*program], arguments].concat();
    let path = std::env::var("PATH").unwrap_or_default();
    let beside = programs::command();
    let folder = beside.parent().expect("the command's folder");
    at_home(Job::at(interpreter(), &words)).env("PATH", &format!("{}:{path}", folder.display()))
}

fn at_home(job: Job) -> Job {
    job.env("PYTHONPATH", &PACKAGE.display().to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

fn interpreter() -> &'static Path {
    match &*INTERPRETER {
        Ok(path) => path,
        Err(reason) => leave_out(reason),
    }
}

fn environment() -> Result<PathBuf, String> {
    let quietly = |command: &mut Command| -> Result<(), String> {
        let output = command.stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!(
                "{command:?} fails: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
            Err(error) => Err(format!("{command:?}: {error}")),
        }
    };
    quietly(Command::new("python3").args(["-c", OLDEST]))
        .map_err(|_| "programs of regatta_mpi need Python 3.11 or later".to_owned())?;
    let folder = programs::built("libregatta.so", "regatta-capi").with_file_name("python");
    let python = folder.join("bin/python");
    if quietly(Command::new(&python).args(["-c", "import numpy"])).is_err() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet"];
        quietly(Command::new(&python).args(pip).args(PACKAGES))?;
    }
    Ok(python)
}

/// Creates a folder with the package: its Python files, and the native module and the library that were just built.
fn package() -> PathBuf {
    let native = programs::built("libregatta_mpi_native.so", "regatta-python");
    let folder = programs::folder("package");
    let package = folder.join("regatta_mpi");
    std::fs::create_dir(&package).expect("a folder");
    let link = |from: &Path, name: &str| {
        std::os::unix::fs::symlink(from, package.join(name)).expect("a link");
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/python/regatta_mpi");
    for entry in std::fs::read_dir(&sources).expect("the package") {
        let path = entry.expect("a file").path();
        if path.is_file() {
            link(&path, &path.file_name().expect("a name").to_string_lossy());
        }
    }
    link(&native, "regatta_mpi_native.abi3.so");
    let library = programs::built("libregatta.so", "regatta-capi");
    link(&library, "libregatta.so.0");
    folder
}
