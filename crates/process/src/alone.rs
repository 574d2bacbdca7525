//! A launcher for a task that was started by hand: found and started when it is first needed.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regatta_engine::{Error, Result};

/// Under these numbers `regatta attend` finds the segment and the socket.
const SEGMENT: i32 = 60;
const CONTROL: i32 = 62;
/// Numbers from here on are nobody's.
const FREE: i32 = 64;

/// Start a launcher for the job of this segment; this task's end of the socket to it.
pub(crate) fn call_launcher(segment: BorrowedFd) -> Result<OwnedFd> {
    let failed = |error: io::Error| {
        Error::Launcher(format!(
            "this task was started by hand, and no launcher could be started for it: {error}. Start \
             it with `regatta run`, or put the command regatta where PATH finds it"
        ))
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let (segment, control) = (segment.as_raw_fd(), theirs.as_raw_fd());
    let mut command = Command::new(program());
    command
        .arg("attend")
        .arg(std::process::id().to_string())
        .stdin(Stdio::null());
    // SAFETY: between fork and exec only system calls are made, on descriptors that are open there.
    unsafe { command.pre_exec(move || hand_over(segment, control)) };
    let mut child = command.spawn().map_err(failed)?;
    // It ends at once and leaves a child of its own, which is then nobody's.
    match child.wait() {
        Ok(status) if !status.success() => {
            Err(failed(io::Error::other(format!("it ended with {status}"))))
        }
        // Or somebody else has asked how it ended: if it is not there, asking it will tell.
        _ => Ok(ours.into()),
    }
}

fn hand_over(segment: i32, control: i32) -> io::Result<()> {
    let checked = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    };
    // SAFETY: plain system calls on numbers; each result is checked.
    unsafe {
        // First out of the way of each other.
        let segment = checked(libc::fcntl(segment, libc::F_DUPFD_CLOEXEC, FREE))?;
        let control = checked(libc::fcntl(control, libc::F_DUPFD_CLOEXEC, FREE))?;
        checked(libc::dup2(segment, SEGMENT))?;
        checked(libc::dup2(control, CONTROL))?;
    }
    Ok(())
}

/// The command `regatta`: beside this library, where it is installed or was built; else by PATH.
pub(crate) fn program() -> PathBuf {
    let own = library().into_iter().chain(std::env::current_exe().ok());
    for path in own {
        let path = path.canonicalize().unwrap_or(path);
        let Some(folder) = path.parent() else {
            continue;
        };
        for place in ["regatta", "../regatta", "../bin/regatta"] {
            let command = folder.join(place);
            if command != path && command.is_file() {
                return command;
            }
        }
    }
    PathBuf::from("regatta")
}

/// The file this code is in.
fn library() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = call_launcher as fn(BorrowedFd<'static>) -> Result<OwnedFd>;
    // SAFETY: an address inside this library; the structure outlives the call.
    let found = unsafe { libc::dladdr(here as *const libc::c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a text of the dynamic linker's, which stays while the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}
