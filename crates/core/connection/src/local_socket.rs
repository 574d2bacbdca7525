//! Sockets between processes of one host: the identity of the peer process, and messages that carry descriptors.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::ready;

/// Maximum number of descriptors that [`send`] passes with a message.
pub const MAX_PASSED_DESCRIPTORS: usize = 2;

/// Returns the process id and user id of the peer. The process id is 0 if the peer has none in this namespace.
pub fn peer(socket: impl AsFd) -> Option<(u32, u32)> {
    let mut found = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `found`, which consists of integers. The process id
    // may be 0, which rustix's type for it cannot hold.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &mut length,
        )
    };
    (result == 0).then_some((found.pid as u32, found.uid))
}

/// The error for a socket whose peer process belongs to another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherUser {
    /// The user id of the peer; `None` if the kernel does not report it.
    pub user: Option<u32>,
}

impl fmt::Display for OtherUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user {
            Some(user) => write!(f, "the process at the other end belongs to the user {user}"),
            None => {
                f.write_str("the kernel does not report the user of the process at the other end")
            }
        }
    }
}

impl std::error::Error for OtherUser {}

/// Fails unless the peer process belongs to this user. Every socket within a host, connected or accepted, is checked
/// here before anything is sent or received.
pub fn check_user(socket: impl AsFd) -> Result<(), OtherUser> {
    let user = peer(socket).map(|(_, user)| user);
    match user == Some(rustix::process::geteuid().as_raw()) {
        true => Ok(()),
        false => Err(OtherUser { user }),
    }
}

/// Returns a descriptor of the peer process that is readable once the process has ended. It refers to the process that
/// [`peer`] names, never to a later one with the same process id.
///
/// Fails if the process has ended, or has no process id in this namespace, as in another container.
pub fn peer_process(socket: impl AsFd) -> io::Result<OwnedFd> {
    let socket = socket.as_fd();
    let number = number_of_peer(socket)?;
    let process = match peer_pidfd(socket) {
        // Kernels before 6.5 do not know the option.
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            opened_by_number(socket, || pidfd_open(number, PidfdFlags::empty()))
        }
        opened => opened,
    }?;
    // Since Linux 6.16 the kernel also returns a descriptor of a process that has ended and was waited for.
    match has_ended(&process) {
        true => Err(io::ErrorKind::NotFound.into()),
        false => Ok(process),
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    ready::poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn number_of_peer(socket: BorrowedFd) -> io::Result<Pid> {
    let number = peer(socket).and_then(|(pid, _)| Pid::from_raw(i32::try_from(pid).ok()?));
    number.ok_or(io::ErrorKind::NotFound.into())
}

/// Returns the descriptor that the kernel makes from its own record of the peer.
fn peer_pidfd(socket: BorrowedFd) -> io::Result<OwnedFd> {
    let mut found: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, a file descriptor, to `found`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if found < 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: the kernel has just opened this descriptor for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

/// Opens the peer process by its process id. Between connecting and `open` the process can have ended and its id been
/// reused. Then the other end is closed by now, unless a child of the process holds it.
fn opened_by_number(
    socket: BorrowedFd,
    open: impl FnOnce() -> rustix::io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let process = open()?;
    match has_hung_up(socket) {
        true => Err(io::ErrorKind::NotFound.into()),
        false => Ok(process),
    }
}

/// Returns whether the other end is closed, even if bytes are left to read.
pub fn has_hung_up(socket: impl AsFd) -> bool {
    let socket = socket.as_fd();
    let mut fds = [PollFd::new(&socket, PollFlags::RDHUP)];
    ready::poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Waits until the socket is readable or the other end is closed. Returns `false` if neither happens before `until`.
pub fn readable(socket: BorrowedFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match ready::poll(&mut [PollFd::new(&socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

/// Sends a message with at most [`MAX_PASSED_DESCRIPTORS`] descriptors. Blocks while the peer's queue is full.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd]) -> io::Result<()> {
    // The space below is rounded up, so it would accept more descriptors than the receiver expects.
    if descriptors.len() > MAX_PASSED_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let socket = socket.as_fd();
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    use rustix::process::WaitOptions;

    use super::*;

    #[test]
    fn the_other_end_is_named_by_the_kernel() {
        let (here, _there) = UnixStream::pair().expect("a pair");
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(peer(&here), Some((std::process::id(), user)));
        let file = std::fs::File::open("/dev/null").expect("no socket");
        assert_eq!(peer(&file), None);
    }

    #[test]
    fn only_a_socket_of_this_user_is_let_pass() {
        let (here, there) = UnixStream::pair().expect("a pair");
        assert_eq!(check_user(&here), Ok(()));
        assert_eq!(check_user(&there), Ok(()));
        let file = std::fs::File::open("/dev/null").expect("no socket");
        assert_eq!(check_user(&file), Err(OtherUser { user: None }));
    }

    #[test]
    fn the_process_at_the_other_end_is_opened() {
        let (here, _there) = UnixStream::pair().expect("a pair");
        let process = peer_process(&here).expect("this process");
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd()));
        let own = format!("Pid:\t{}\n", std::process::id());
        assert!(info.expect("a descriptor").contains(&own));
        let file = std::fs::File::open("/dev/null").expect("no socket");
        assert!(peer_process(&file).is_err());
    }

    #[test]
    fn a_process_that_has_got_the_number_of_the_caller_is_not_taken_for_it() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let other = || pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
        opened_by_number(here.as_fd(), other).expect("the other end is held");
        // The caller has sent a byte, and ends while its process id is being opened.
        send(&there, b"x", &[]).expect("room");
        let reused = opened_by_number(here.as_fd(), || {
            drop(there);
            other()
        });
        assert_eq!(
            reused.map(drop).map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn a_caller_that_has_ended_is_not_opened_though_the_kernel_still_knows_it() {
        let name = format!("regatta-local-socket-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let listener = UnixListener::bind_addr(&address).expect("a socket");
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
        let call = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
        let call = call.expect("a socket");
        // SAFETY: the child makes one system call and exits; it touches no memory that another thread could have been
        // changing.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let failed = rustix::net::connect(&call, &address).is_err();
            // SAFETY: `_exit` ends the child at once.
            unsafe { libc::_exit(failed.into()) };
        }
        let (here, _) = listener.accept().expect("a call");
        let child = Pid::from_raw(child).expect("a child");
        let ended = rustix::process::waitpid(Some(child), WaitOptions::empty());
        let (_, status) = ended.expect("its end").expect("a child");
        assert_eq!(status.exit_status(), Some(0));
        assert_eq!(
            peer(&here).map(|(pid, _)| pid),
            Some(child.as_raw_pid() as u32)
        );
        assert!(peer_process(&here).is_err());
    }

    #[test]
    fn an_end_that_was_closed_has_hung_up_whatever_is_left_to_read() {
        let (here, there) = UnixStream::pair().expect("a pair");
        send(&there, b"x", &[]).expect("room");
        assert!(!has_hung_up(&here));
        drop(there);
        assert!(has_hung_up(&here));
    }

    #[test]
    fn a_socket_is_readable_when_something_has_come_or_nobody_is_left() {
        let (here, there) = UnixStream::pair().expect("a pair");
        assert!(!readable(here.as_fd(), Instant::now()));
        send(&there, b"x", &[]).expect("room");
        let until = Instant::now() + Duration::from_secs(60);
        assert!(readable(here.as_fd(), until));
        assert_eq!((&here).read(&mut [0; 9]).expect("a byte"), 1);
        assert!(!readable(here.as_fd(), Instant::now()));
        drop(there);
        assert!(readable(here.as_fd(), until));
    }

    #[test]
    fn more_descriptors_than_fit_are_refused_and_nothing_is_sent() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let many = [here.as_fd(); MAX_PASSED_DESCRIPTORS + 1];
        let refused = send(&there, b"x", &many).expect_err("too many");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(!readable(here.as_fd(), Instant::now()));
        send(&there, b"x", &many[..MAX_PASSED_DESCRIPTORS]).expect("they fit");
        assert!(readable(here.as_fd(), Instant::now()));
    }
}
