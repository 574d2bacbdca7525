//! The node socket: the abstract socket at which the tasks of one node meet, and its messages.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use regatta_connection::local_socket::{MAX_PASSED_DESCRIPTORS, readable, send};
use regatta_foreign::Step;
use regatta_wire::guardian::Answer;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType,
};

/// Maximum size of an answer, in bytes: sentences are short.
const MAX_ANSWER_BYTES: usize = 4096;
/// Maximum time for which a task that leaves waits for its guardian's acknowledgement.
const NOD_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of the node socket, as a task finds it.
pub(super) enum NodeSocket {
    /// There is a guardian. Contains the connection to it.
    Connected(OwnedFd),
    /// There was no socket. Contains the new one, which needs a guardian.
    Bound(OwnedFd),
    /// Another task is creating it.
    Busy,
}

/// Returns the name of the node socket of this step and this user on this node.
pub(super) fn name(step: &Step) -> Vec<u8> {
    let user = rustix::process::geteuid().as_raw();
    format!("regatta/{user}/{}/{}", step.id, step.node).into_bytes()
}

/// Connects to the node socket, or creates it.
pub(super) fn open(name: &[u8]) -> io::Result<NodeSocket> {
    let address = SocketAddrUnix::new_abstract_name(name)?;
    let caller = socket()?;
    match rustix::net::connect(&caller, &address) {
        Ok(()) => return Ok(NodeSocket::Connected(caller)),
        Err(Errno::INTR | Errno::AGAIN) => return Ok(NodeSocket::Busy),
        Err(Errno::CONNREFUSED) => {}
        Err(errno) => return Err(errno.into()),
    }
    let listener = socket()?;
    match rustix::net::bind(&listener, &address) {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => return Ok(NodeSocket::Busy),
        Err(errno) => return Err(errno.into()),
    }
    rustix::net::listen(&listener, libc::SOMAXCONN)?;
    Ok(NodeSocket::Bound(listener))
}

/// Creates a socket that preserves message boundaries, and on which the kernel names the peer's user.
fn socket() -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
}

/// Sends a message and waits for the answer, with the descriptors that came with it. Returns `None` if there is no answer.
pub(super) fn ask(line: &OwnedFd, said: &[u8], until: Instant) -> Option<(Answer, Vec<OwnedFd>)> {
    send(line, said, &[]).ok()?;
    if !readable(line.as_fd(), until) {
        return None;
    }
    let mut bytes = [0_u8; MAX_ANSWER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            line,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    })
    .ok()?;
    let descriptors = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    Some((Answer::decode(&bytes[..received.bytes])?, descriptors))
}

/// Closes this side for writing, and waits a moment for the other side's acknowledgement.
pub(super) fn part(line: &OwnedFd) {
    if rustix::net::shutdown(line, Shutdown::Write).is_ok() {
        readable(line.as_fd(), Instant::now() + NOD_TIMEOUT);
    }
}
