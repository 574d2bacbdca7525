//! Searches that accept only files allowed by the rule.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::{Refused, check_program};

/// A search for one program, and the candidates that it has refused.
#[derive(Debug, Default)]
pub struct Search {
    refused: Vec<String>,
}

impl Search {
    /// Returns the first of these files that may be started.
    pub fn first(&mut self, candidates: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        candidates.into_iter().find_map(|path| self.take(&path))
    }

    fn take(&mut self, path: &Path) -> Option<PathBuf> {
        match check_program(path) {
            Ok(file) => Some(file),
            Err(Refused::Absent) => None,
            Err(Refused::Unsafe(why)) => {
                // A directory that others may write to does not matter unless it contains such a file.
                if path.is_file() {
                    self.refused
                        .push(format!("{} was not started, because {why}", path.display()));
                }
                None
            }
        }
    }

    /// Returns a sentence about the candidates that exist and were refused; empty if there were none.
    pub fn passed_over(&self) -> String {
        self.refused.join("; ")
    }
}

/// Returns the absolute directories of a PATH. Relative entries would depend on the working directory.
pub fn absolute_path(path: &OsStr) -> Vec<PathBuf> {
    let folders = std::env::split_paths(path);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// Returns a path with which other processes can start the running command: its own file if [`check_program`] accepts
/// that, otherwise the kernel's link to it in /proc.
pub fn own_command() -> PathBuf {
    let known = std::env::current_exe().ok();
    let known = known.and_then(|path| check_program(&path).ok());
    known.unwrap_or_else(|| PathBuf::from(format!("/proc/{}/exe", std::process::id())))
}

/// Returns the path of a program of the system, such as ssh, from those directories of PATH that are absolute and not
/// world-writable.
///
/// The owner of the file is not checked: sites have special accounts for such programs, and the user's PATH names
/// them.
pub fn tool(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = absolute_path(&path).into_iter();
    let mut found = folders
        .filter(|folder| !is_open(folder))
        .filter_map(|folder| {
            let file = folder.join(name);
            let runs = rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok();
            (runs && file.is_file()).then_some(file)
        });
    // Starting a file that does not exist fails with the system's error, without another search.
    found
        .next()
        .unwrap_or_else(|| Path::new("/nonexistent").join(name))
}

/// Returns whether everybody may put files into a directory.
fn is_open(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    folder
        .metadata()
        .is_ok_and(|found| found.mode() & 0o002 != 0)
}
