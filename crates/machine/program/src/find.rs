//! Finds the program that the user named, and explains why it cannot be executed.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND};

/// Returns the file that `name` means: itself if it contains a slash, otherwise the first executable file of that name
/// in `search` (the value of `PATH`).
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
        format!("{shown} is not in PATH, but it exists in this directory: write ./{shown}")
    } else {
        format!(
            "{shown} was not found in PATH, nor in this directory; give the path of the program"
        )
    };
    Refusal::new(STATUS_NOT_FOUND, sentence)
}

/// Checks that `path` can be executed.
fn examine(path: &Path) -> Result<(), Refusal> {
    let shown = path.display();
    let status = match path.metadata() {
        Ok(status) => status,
        Err(error) => {
            let sentence = match error.kind() {
                std::io::ErrorKind::NotFound => format!("{shown} does not exist"),
                std::io::ErrorKind::PermissionDenied => {
                    format!(
                        "{shown} cannot be reached: permission is denied for a directory in its path"
                    )
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

/// Explains why `execve` refused a program that [`find`] had found.
pub fn explain(path: &Path, errno: Errno) -> Refusal {
    let shown = path.display();
    let sentence = match errno {
        Errno::NOEXEC => format!(
            "{shown} is neither a program for this machine ({}) nor a script that begins with #!",
            std::env::consts::ARCH
        ),
        Errno::NOENT => match interpreter(path) {
            Some(name) => format!("{shown} names the interpreter {name}, which does not exist"),
            None => format!(
                "{shown} cannot be started: it, or the loader that it names, does not exist on this host"
            ),
        },
        Errno::ACCESS => format!(
            "{shown} may not be executed: its file system may be mounted noexec, or its interpreter is not executable"
        ),
        Errno::TXTBSY => {
            format!("{shown} is being written by another process; wait until it is complete")
        }
        Errno::TOOBIG => {
            format!("the arguments and the environment of {shown} exceed the kernel's limit")
        }
        _ => format!("{shown} cannot be executed: {errno}"),
    };
    Refusal::new(STATUS_NOT_EXECUTABLE, sentence)
}

/// Returns the interpreter on a script's first line.
pub(crate) fn interpreter(path: &Path) -> Option<String> {
    first_line(path)?.into_iter().next()
}

/// Returns the words after `#!` on a script's first line.
pub(crate) fn first_line(path: &Path) -> Option<Vec<String>> {
    let mut first = [0_u8; 256];
    let length = std::fs::File::open(path).ok()?.read(&mut first).ok()?;
    let line = first[..length]
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    Some(line.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary directory of this test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = format!("regatta-program-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&path).expect("a directory");
            Scratch(path)
        }

        fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
            let path = self.0.join(name);
            let folder = path.parent().expect("its directory");
            std::fs::create_dir_all(folder).expect("a directory");
            std::fs::write(&path, text).expect("a file");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("its mode");
            path
        }

        fn search(&self, folders: &[&str]) -> std::ffi::OsString {
            let folders = folders.iter().map(|folder| self.0.join(folder));
            std::env::join_paths(folders).expect("a search path")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_first_file_of_that_name_that_can_be_executed_is_meant() {
        let scratch = Scratch::new("first");
        scratch.file("one/tool", "", 0o644);
        std::fs::create_dir_all(scratch.0.join("two/tool")).expect("a directory");
        let third = scratch.file("three/tool", "", 0o755);
        scratch.file("four/tool", "", 0o755);
        let search = scratch.search(&["none", "one", "two", "three", "four"]);
        assert_eq!(find("tool".as_ref(), Some(&search)), Ok(third));
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_named_where_there_is_no_other() {
        let scratch = Scratch::new("only");
        let only = scratch.file("one/tool", "", 0o640);
        let refused = find("tool".as_ref(), Some(&scratch.search(&["one", "none"])));
        let refused = refused.expect_err("it is not executable");
        assert_eq!(refused.status, STATUS_NOT_EXECUTABLE);
        let remedy = format!("its mode is 640): chmod +x {}", only.display());
        assert!(refused.sentence.ends_with(&remedy), "{refused}");
        let refused = find("tool".as_ref(), Some(&scratch.search(&["none"])));
        assert_eq!(refused.expect_err("there is none").status, STATUS_NOT_FOUND);
    }

    #[test]
    fn a_name_with_a_slash_is_a_path_and_is_not_searched_for() {
        let scratch = Scratch::new("slash");
        let file = scratch.file("one/tool", "", 0o755);
        let search = scratch.search(&["one"]);
        assert_eq!(find(file.as_os_str(), None), Ok(file.clone()));
        let refused = find("./tool".as_ref(), Some(&search)).expect_err("not here");
        assert_eq!(refused.status, STATUS_NOT_FOUND);
        let folder = find(scratch.0.as_os_str(), None).expect_err("a directory");
        assert_eq!(folder.status, STATUS_NOT_EXECUTABLE);
    }

    #[test]
    fn a_script_whose_interpreter_is_missing_is_not_said_to_be_missing_itself() {
        let scratch = Scratch::new("script");
        let script = scratch.file("script", "#! /no/such/shell -e\nexit\n", 0o755);
        assert_eq!(interpreter(&script).as_deref(), Some("/no/such/shell"));
        let said = explain(&script, Errno::NOENT).sentence;
        assert!(
            said.ends_with("names the interpreter /no/such/shell, which does not exist"),
            "{said}"
        );
        let other = scratch.file("other", "no script", 0o755);
        assert_eq!(interpreter(&other), None);
        let said = explain(&other, Errno::NOENT).sentence;
        assert!(said.contains("the loader that it names"), "{said}");
    }
}
