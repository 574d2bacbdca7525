//! Connecting processes that have no communicator in common: by ports, by service names, or by a socket.

use std::ffi::{CStr, c_char, c_int};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::Arc;

use regatta_sys as rg;

use super::communicator_making::give;
use super::processes::check_root;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited, LeaderExchange, get, internal_messages};
use crate::error::{Error, Result, checked, not_null};
use crate::info::{self, Hints};
use crate::ports;
use crate::process;
use crate::tasks;
use crate::text;

/// Returns the name of a port that the caller passes.
unsafe fn port_of<'a>(name: *const c_char) -> Result<&'a CStr> {
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    unsafe { text::given(name, "port_name", MAX_PORT_NAME, ERR_PORT) }
}

/// Returns the name of a service that the caller passes.
unsafe fn service_of<'a>(name: *const c_char) -> Result<&'a CStr> {
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    unsafe { text::given(name, "service_name", MAX_PORT_NAME, ERR_SERVICE) }
}

pub unsafe fn open_port(info: Info, port_name: Out<c_char>) -> Result {
    process::require()?;
    info::optional(info)?;
    let name = ports::open()?;
    // SAFETY: the caller guarantees room for the longest name.
    unsafe { text::give(name.as_bytes(), port_name, MAX_PORT_NAME) };
    Ok(())
}

pub unsafe fn close_port(port_name: *const c_char) -> Result {
    process::require()?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    ports::close(unsafe { port_of(port_name)? })
}

/// Time in seconds that a process waits to be accepted unless a hint sets another.
const DEFAULT_CONNECT_TIMEOUT_SECONDS: f64 = 180.0;

/// Returns the time in seconds that a process waits to be accepted.
fn limit(hints: &Hints) -> Result<f64> {
    let Some(said) = hints.get(c"timeout") else {
        return Ok(DEFAULT_CONNECT_TIMEOUT_SECONDS);
    };
    let seconds = said
        .to_str()
        .ok()
        .and_then(|it| it.trim().parse::<f64>().ok());
    let seconds = seconds.filter(|it| it.is_finite() && *it >= 0.0);
    seconds.ok_or_else(|| {
        let text = format!("the hint timeout is {said:?}; it must be a number of seconds");
        Error::new(ERR_INFO_VALUE, text)
    })
}

/// Connects at a port by `ask`, which sends the given words to the other side and returns those of the other side.
/// `ask` also gets a check that fails if the connection is to be given up.
unsafe fn connected(
    ask: impl FnOnce(&CStr, &Hints, &[c_int], &dyn Fn() -> Result) -> Result<Vec<c_int>>,
    port_name: *const c_char,
    info: Info,
    root: c_int,
    comm: Arc<Communicator>,
    newcomm: *mut Comm,
) -> Result {
    check_root(&comm, root)?;
    let given = not_null(newcomm, "newcomm");
    let made = communicator::connect(&comm, root, given, || {
        let hints = info::optional(info)?;
        // SAFETY: the caller guarantees that the text is NUL-terminated at the root.
        let port = unsafe { port_of(port_name)? };
        // The other processes wait for this one outside the communicator, so it is checked here.
        let check = || comm.check_intact();
        LeaderExchange::agree(&comm, |words| ask(port, &hints, words, &check))
    })?;
    // SAFETY: the caller guarantees that the pointer is valid. It is not null: all processes have agreed on that.
    let newcomm = unsafe { Out::at(newcomm, "newcomm")? };
    give(Some(made), Inherited::of(&comm), newcomm)
}

pub unsafe fn comm_accept(
    port_name: *const c_char,
    info: Info,
    root: c_int,
    comm: Arc<Communicator>,
    newcomm: *mut Comm,
) -> Result {
    let accept = |port: &CStr, _: &Hints, words: &[c_int], check: &dyn Fn() -> Result| {
        ports::accept(port, words, check)
    };
    // SAFETY: the caller guarantees that the text is NUL-terminated and the pointer valid.
    unsafe { connected(accept, port_name, info, root, comm, newcomm) }
}

pub unsafe fn comm_connect(
    port_name: *const c_char,
    info: Info,
    root: c_int,
    comm: Arc<Communicator>,
    newcomm: *mut Comm,
) -> Result {
    let connect = |port: &CStr, hints: &Hints, words: &[c_int], check: &dyn Fn() -> Result| {
        ports::connect(port, words, limit(hints)?, check)
    };
    // SAFETY: the caller guarantees that the text is NUL-terminated and the pointer valid.
    unsafe { connected(connect, port_name, info, root, comm, newcomm) }
}

pub unsafe fn publish_name(
    service_name: *const c_char,
    info: Info,
    port_name: *const c_char,
) -> Result {
    process::require()?;
    info::optional(info)?;
    // SAFETY: the caller guarantees that the texts are NUL-terminated.
    unsafe { ports::publish(service_of(service_name)?, port_of(port_name)?) }
}

pub unsafe fn unpublish_name(
    service_name: *const c_char,
    info: Info,
    _port_name: *const c_char,
) -> Result {
    process::require()?;
    info::optional(info)?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    ports::unpublish(unsafe { service_of(service_name)? })
}

pub unsafe fn lookup_name(
    service_name: *const c_char,
    info: Info,
    port_name: Out<c_char>,
) -> Result {
    process::require()?;
    info::optional(info)?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let found = ports::lookup(unsafe { service_of(service_name)? })?;
    // SAFETY: the caller guarantees room for the longest name.
    unsafe { text::give(&found, port_name, MAX_PORT_NAME) };
    Ok(())
}

/// Sends all bytes on a socket. If the peer has closed it, returns an error instead of raising SIGPIPE.
fn say(socket: c_int, bytes: &[u8]) -> std::io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the memory has this many bytes.
        let said =
            unsafe { libc::send(socket, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(said) {
            Ok(said) => rest = &rest[said.min(rest.len())..],
            Err(_) => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Exchanges task and process id with the other end of a socket, and returns those of the peer.
fn introduce(fd: c_int) -> Result<[c_int; 2]> {
    if fd < 0 {
        let text = format!("fd is {fd}, which is not a file descriptor");
        return Err(Error::new(ERR_ARG, text));
    }
    // SAFETY: the call has no arguments and no preconditions.
    let own = unsafe { rg::rg_tid() };
    checked(own)?;
    let mine = [own, std::process::id() as c_int];
    // SAFETY: the caller guarantees that the descriptor is open. The caller keeps it: `ManuallyDrop` never closes the
    // file.
    let mut socket = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(fd) });
    let mut theirs = [0; 8];
    let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_be_bytes()).collect();
    let done = say(fd, &bytes).and_then(|()| socket.read_exact(&mut theirs));
    done.map_err(|error| {
        let text = format!("the socket {fd} cannot be used: {error}");
        Error::new(ERR_OTHER, text)
    })?;
    let word = |at: usize| {
        let bytes = [theirs[at], theirs[at + 1], theirs[at + 2], theirs[at + 3]];
        c_int::from_be_bytes(bytes)
    };
    Ok([word(0), word(4)])
}

/// Returns whether a task of this job is the process with this id: the other end of a socket may be in another job.
fn is_task(tid: c_int, pid: c_int) -> bool {
    let tasks = tasks::running().unwrap_or_default();
    tasks.iter().any(|task| task.tid == tid && task.pid == pid)
}

pub unsafe fn comm_join(fd: c_int, intercomm: Out<Comm>) -> Result {
    let own = get(COMM_SELF)?;
    let [tid, pid] = introduce(fd)?;
    if !is_task(tid, pid) {
        intercomm.put(COMM_NULL);
        return Ok(());
    }
    let made = communicator::connect(&own, 0, Ok(()), || {
        internal_messages::send(internal_messages::CHANNEL, tid, ports::JOIN, &[])?;
        internal_messages::receive(internal_messages::CHANNEL, tid, ports::JOIN)?;
        Ok(LeaderExchange::fresh(vec![tid]))
    })?;
    give(Some(made), Inherited::of(&own), intercomm)
}
