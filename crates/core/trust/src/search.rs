//! Searches that take only what the rule allows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::{Refused, check_program};

/// A search for one program, and what it has passed over.
#[derive(Debug, Default)]
pub struct Search {
    refused: Vec<String>,
}

impl Search {
    /// The first of these files that may be started.
    pub fn first(&mut self, candidates: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        candidates.into_iter().find_map(|path| self.take(&path))
    }

    fn take(&mut self, path: &Path) -> Option<PathBuf> {
        match check_program(path) {
            Ok(file) => Some(file),
            Err(Refused::Absent) => None,
            Err(Refused::Unsafe(why)) => {
                // A directory that others may write is of no interest as long as there is no such file in it.
                if path.is_file() {
                    self.refused
                        .push(format!("{} is not started, because {why}", path.display()));
                }
                None
            }
        }
    }

    /// A sentence about candidates that were there and were refused; empty when there was nothing.
    pub fn passed_over(&self) -> String {
        self.refused.join("; ")
    }
}

/// The directories of a PATH that begin at the root. Other entries mean another directory wherever one stands.
pub fn absolute_path(path: &OsStr) -> Vec<PathBuf> {
    let folders = std::env::split_paths(path);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// The command that runs here, as others can start it too: its own file while that can be only this one, or the kernel's link
/// to it.
pub fn own_command() -> PathBuf {
    let known = std::env::current_exe().ok();
    let known = known.and_then(|path| check_program(&path).ok());
    known.unwrap_or_else(|| PathBuf::from(format!("/proc/{}/exe", std::process::id())))
}

/// A program of the system, such as ssh, by the directories of PATH that begin at the root and that not everybody may write.
///
/// Its owner is not asked for: sites have accounts of their own for such programs, and the user's PATH names them.
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
    // Starting a file that is nowhere fails in the words of the system, without another search.
    found
        .next()
        .unwrap_or_else(|| Path::new("/nonexistent").join(name))
}

/// Whether everybody may put files into a directory.
fn is_open(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    folder
        .metadata()
        .is_ok_and(|found| found.mode() & 0o002 != 0)
}
