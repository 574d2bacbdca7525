//! A launcher for a task that was started by hand: found and started when it is first needed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use regatta_engine::{Error, Result};
use regatta_trust::{Search, absolute_path};

/// The descriptor numbers under which `regatta attend` finds the segment and the socket.
const SEGMENT: i32 = 60;
const CONTROL: i32 = 62;
/// Numbers from here on are not used.
const FREE: i32 = 64;

/// Starts a launcher for the job of this segment. Returns this task's end of the socket to it.
pub(crate) fn call_launcher(segment: BorrowedFd) -> Result<OwnedFd> {
    let failed = |error: io::Error| {
        Error::Launcher(format!(
            "this task was started without `regatta run`, and no launcher could be started for it: {error}. Start it with `regatta run`, or put the command regatta in a directory of PATH"
        ))
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let (segment, control) = (segment.as_raw_fd(), theirs.as_raw_fd());
    let mut command = Command::new(program().map_err(failed)?);
    command
        .arg("attend")
        .arg(std::process::id().to_string())
        .stdin(Stdio::null());
    // SAFETY: between fork and exec the closure only makes system calls, on descriptors that are open there.
    unsafe { command.pre_exec(move || hand_over(segment, control)) };
    let mut child = command.spawn().map_err(failed)?;
    // The command exits at once. It leaves a child of its own, which continues as an orphan.
    match child.wait() {
        Ok(status) if !status.success() => {
            Err(failed(io::Error::other(format!("it ended with {status}"))))
        }
        // Or another thread has reaped the child: if there is no launcher, the first request will fail.
        _ => Ok(ours.into()),
    }
}

fn hand_over(segment: i32, control: i32) -> io::Result<()> {
    let checked = |result: i32| match result {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number),
    };
    // SAFETY: the system calls take numbers only; each result is checked.
    unsafe {
        // First move both descriptors to numbers that do not conflict with the final ones.
        let segment = checked(libc::fcntl(segment, libc::F_DUPFD_CLOEXEC, FREE))?;
        let control = checked(libc::fcntl(control, libc::F_DUPFD_CLOEXEC, FREE))?;
        checked(libc::dup2(segment, SEGMENT))?;
        checked(libc::dup2(control, CONTROL))?;
    }
    Ok(())
}

/// Finds the command `regatta`: beside this library or this program, where they are installed or were built; else in PATH. It is used only where no
/// other user can have put it (`regatta_trust`); otherwise the error says what was passed over.
pub(crate) fn program() -> io::Result<PathBuf> {
    let mut search = Search::default();
    let beside = library().into_iter().chain(std::env::current_exe().ok());
    let beside = beside.filter_map(|path| Some((path.parent()?.to_owned(), path)));
    let beside = beside.flat_map(|(folder, path)| {
        let places = ["regatta", "../regatta", "../bin/regatta"].map(|place| folder.join(place));
        places.into_iter().filter(move |place| *place != path)
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = absolute_path(&path).into_iter();
    let in_path = in_path.map(|folder| folder.join("regatta"));
    search.first(beside.chain(in_path)).ok_or_else(|| {
        let mut sentence =
            "the command regatta was not found beside the library or in PATH".to_owned();
        let passed_over = search.passed_over();
        if !passed_over.is_empty() {
            sentence += &format!(" in a place that is safe to start it from: {passed_over}");
        }
        io::Error::new(io::ErrorKind::NotFound, sentence)
    })
}

/// Returns the file that contains this code, according to the kernel: the name by which the program was called is not trusted.
fn library() -> Option<PathBuf> {
    let here = program as fn() -> io::Result<PathBuf> as usize;
    let maps = std::fs::read("/proc/self/maps").ok()?;
    maps.split(|&byte| byte == b'\n')
        .find_map(|line| mapped_file(line, here))
}

/// Returns the file of a line of `/proc/self/maps`, if the address is in its range: `BEGIN-END MODE OFFSET DEVICE INODE   FILE`.
fn mapped_file(line: &[u8], address: usize) -> Option<PathBuf> {
    let file = line.iter().position(|&byte| byte == b'/')?;
    let (begin, end) = str::from_utf8(line.split(|&byte| byte == b' ').next()?)
        .ok()?
        .split_once('-')?;
    let bound = |text| usize::from_str_radix(text, 16).ok();
    let within = (bound(begin)?..bound(end)?).contains(&address);
    within.then(|| PathBuf::from(OsStr::from_bytes(&line[file..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_this_code_is_that_of_the_kernel() {
        let own = std::env::current_exe().expect("a file");
        assert_eq!(library(), Some(own));
        let line = b"1000-2000 r-xp 00000000 fe:01 77    /usr/lib/a b.so";
        assert_eq!(mapped_file(line, 0x1fff), Some("/usr/lib/a b.so".into()));
        assert_eq!(mapped_file(line, 0x2000), None);
        assert_eq!(
            mapped_file(b"1000-2000 rw-p 00000000 00:00 0 ", 0x1000),
            None
        );
    }
}
