//! Finding the program that the user named, and explaining why it cannot be executed.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND};

/// The file that `name` means: itself when it contains a slash, otherwise the first of that name in `search` (the
/// value of `PATH`) that can be executed.
pub fn find(name: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(
            STATUS_NOT_FOUND,
            "the name of the program is empty",
        ));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return examine(&path).map(|()| path);
    }
    let folders = search.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut unusable = None;
    for folder in std::env::split_paths(folders) {
        let path = folder.join(name);
        match examine(&path) {
            Ok(()) => return Ok(path),
            Err(refusal) if refusal.status == STATUS_NOT_EXECUTABLE && path.is_file() => {
                unusable.get_or_insert(refusal);
            }
            Err(_) => {}
        }
    }
    Err(unusable.unwrap_or_else(|| not_in_path(name)))
}

fn not_in_path(name: &OsStr) -> Refusal {
    let shown = name.to_string_lossy();
    let here = Path::new(".").join(name);
    let sentence = if here.is_file() {
        format!("{shown} is not in PATH, but it exists in this directory: say ./{shown}")
    } else {
        format!(
            "{shown} was not found in PATH, nor in this directory; give the path of the program"
        )
    };
    Refusal::new(STATUS_NOT_FOUND, sentence)
}

/// Whether `path` is something that can be executed.
fn examine(path: &Path) -> Result<(), Refusal> {
    let shown = path.display();
    let status = match path.metadata() {
        Ok(status) => status,
        Err(error) => {
            let sentence = match error.kind() {
                std::io::ErrorKind::NotFound => format!("{shown} does not exist"),
                std::io::ErrorKind::PermissionDenied => {
                    format!("{shown} cannot be reached: a directory above it may not be entered")
                }
                _ => format!("{shown} cannot be examined: {error}"),
            };
            return Err(Refusal::new(STATUS_NOT_FOUND, sentence));
        }
    };
    if status.is_dir() {
        return Err(Refusal::new(
            STATUS_NOT_EXECUTABLE,
            format!("{shown} is a directory, not a program"),
        ));
    }
    if access(path, Access::EXEC_OK).is_err() {
        let mode = status.permissions().mode() & 0o777;
        let sentence =
            format!("{shown} is not executable (its mode is {mode:03o}): chmod +x {shown}");
        return Err(Refusal::new(STATUS_NOT_EXECUTABLE, sentence));
    }
    Ok(())
}

/// Why `execve` refused a program that [`find`] had found.
pub(crate) fn explain(path: &Path, errno: Errno) -> Refusal {
    let shown = path.display();
    let sentence = match errno {
        Errno::NOEXEC => format!(
            "{shown} is neither a program for this machine ({}) nor a script that begins with #!",
            std::env::consts::ARCH
        ),
        Errno::NOENT => match interpreter(path) {
            Some(name) => format!("{shown} asks for the interpreter {name}, which does not exist"),
            None => format!(
                "{shown} cannot be started: it, or the loader it asks for, does not exist here"
            ),
        },
        Errno::ACCESS => format!(
            "{shown} may not be executed: its file system may be mounted noexec, or its interpreter is not executable"
        ),
        Errno::TXTBSY => {
            format!("{shown} is being written by another process; wait until it is complete")
        }
        Errno::TOOBIG => format!(
            "the arguments and the environment of {shown} are longer than the kernel allows"
        ),
        _ => format!("{shown} cannot be executed: {errno}"),
    };
    Refusal::new(STATUS_NOT_EXECUTABLE, sentence)
}

/// The interpreter on a script's first line.
pub(crate) fn interpreter(path: &Path) -> Option<String> {
    let mut first = [0_u8; 256];
    let length = std::fs::File::open(path).ok()?.read(&mut first).ok()?;
    let line = first[..length]
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}
