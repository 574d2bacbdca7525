//! Decides which files that the user has not named may be executed.
//!
//! A program that needs a launcher searches for the command `regatta`, and a host is searched for an agent. A user who
//! can put a file where such a search looks could have it executed by another user. So a search accepts a file only if
//! nobody except root and the user could have put it there:
//!
//! - its path begins at the root
//! - the file, each directory on its path, and each symbolic link on its path belong to root or to the user
//! - the file is a regular file that neither its group nor others may write
//! - neither group nor others may write to a directory on its path, before or after symbolic links are resolved. A
//!   *sticky* directory, such as `/tmp`, may be on the path: others can create entries in it, but cannot replace a
//!   directory of the user. It may not contain the file or a link itself, because others can move or link a file of the
//!   user into it
//!
//! A file that passes can only be replaced by root or the user, so it does not change between the check and its start.
//!
//! In a user namespace that does not map root, the kernel shows all unmapped owners as one user id. There that id
//! counts as root's if the root directory has it.
//!
//! [`SHELL`] is the same rule for shells on other hosts.

#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

mod search;
mod shell;

pub use search::{Search, absolute_path, own_command, tool};
pub use shell::{SHELL, SHORT};

/// Maximum number of symbolic links on one path; the kernel has the same limit.
const MAX_LINKS: usize = 40;
/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// The file with the user id that the kernel shows for owners that a user namespace does not map.
const OVERFLOW: &str = "/proc/sys/kernel/overflowuid";

/// Reason why a file is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is no such file.
    Absent,
    /// Another user could have put it there. Carries how, as the end of a sentence.
    Unsafe(String),
}

/// Returns the path with symbolic links resolved, if nobody except root and this user could have put the file there.
pub fn check(path: &Path) -> Result<PathBuf, Refused> {
    Walk::new().follow(path)
}

/// Does what [`check`] does, and also checks that this user may execute the file.
pub fn check_program(path: &Path) -> Result<PathBuf, Refused> {
    let file = check(path)?;
    let executable = rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok();
    executable.then_some(file).ok_or(Refused::Absent)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A walk along one path, component by component, as the kernel would follow it.
struct Walk {
    owners: Vec<u32>,
    /// The directory that has been reached.
    here: PathBuf,
    /// Whether others may create entries in it.
    shared: bool,
    links: usize,
}

impl Walk {
    fn new() -> Walk {
        let mut owners = vec![0, rustix::process::geteuid().as_raw()];
        let top = std::fs::symlink_metadata("/").map(|found| found.uid()).ok();
        let overflow = std::fs::read_to_string(OVERFLOW).ok();
        let overflow = overflow.and_then(|text| text.trim().parse().ok());
        owners.extend(overflow.filter(|_| top == overflow));
        Walk {
            owners,
            here: PathBuf::from("/"),
            shared: false,
            links: 0,
        }
    }

    fn follow(mut self, path: &Path) -> Result<PathBuf, Refused> {
        if !path.is_absolute() {
            return Err(Refused::Unsafe("its path is relative".to_owned()));
        }
        self.enter(PathBuf::from("/"))?;
        let mut left = parts(path);
        while let Some(part) = left.pop() {
            if part == ".." {
                let parent = self.here.parent().unwrap_or(Path::new("/")).to_owned();
                self.enter(parent)?;
                continue;
            }
            let next = self.here.join(part);
            let found = self.look(&next)?;
            let kind = found.file_type();
            if kind.is_dir() {
                self.enter_known(next, &found)?;
                continue;
            }
            if self.shared {
                return Err(Refused::Unsafe(format!(
                    "every user may create files in the directory {}",
                    shown(&self.here)
                )));
            }
            if kind.is_symlink() {
                let target = self.read_link(&next)?;
                if target.is_absolute() {
                    self.enter(PathBuf::from("/"))?;
                }
                left.extend(parts(&target));
                continue;
            }
            return match left.is_empty() && kind.is_file() {
                false => Err(Refused::Absent),
                true if found.mode() & OTHERS_WRITE != 0 => {
                    Err(Refused::Unsafe(writable("the file", &next, found.mode())))
                }
                true => Ok(next),
            };
        }
        // The path leads to a directory.
        Err(Refused::Absent)
    }

    fn read_link(&mut self, link: &Path) -> Result<PathBuf, Refused> {
        self.links += 1;
        match std::fs::read_link(link) {
            Ok(target) if self.links <= MAX_LINKS => Ok(target),
            _ => Err(Refused::Absent),
        }
    }

    fn enter(&mut self, directory: PathBuf) -> Result<(), Refused> {
        let found = self.look(&directory)?;
        self.enter_known(directory, &found)
    }

    fn enter_known(&mut self, directory: PathBuf, found: &Metadata) -> Result<(), Refused> {
        let open = found.mode() & OTHERS_WRITE != 0;
        if open && found.mode() & STICKY == 0 {
            return Err(Refused::Unsafe(writable(
                "the directory",
                &directory,
                found.mode(),
            )));
        }
        self.shared = open;
        self.here = directory;
        Ok(())
    }

    /// Returns the metadata of an entry, and fails if its owner could replace the file and is neither root nor this
    /// user.
    fn look(&self, path: &Path) -> Result<Metadata, Refused> {
        let found = std::fs::symlink_metadata(path).map_err(|_| Refused::Absent)?;
        match self.owners.contains(&found.uid()) {
            true => Ok(found),
            false => Err(Refused::Unsafe(format!(
                "{} belongs to the user {}, who is neither you nor root",
                shown(path),
                found.uid()
            ))),
        }
    }
}

fn writable(what: &str, path: &Path, mode: u32) -> String {
    let (path, mode) = (shown(path), mode & 0o7777);
    format!("others may write to {what} {path} (its mode is {mode:03o}); run `chmod go-w {path}`")
}

/// Returns the components of a path that are names or `..`, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

#[cfg(test)]
mod tests;
