//! Ports: names by which processes of one job that have no communicator in common connect.
//!
//! An open port is a named entry at the job's launcher that belongs to the process that has opened it. A process that
//! connects sends a message to that process, with the port's number in its tag. It also puts an entry, which the
//! accepting process takes. When its time is over, the connecting process takes the entry back. So both always agree
//! whether they are connected.

use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::internal_messages;
use crate::error::{Error, Result, checked};
use crate::numbers::Numbers;

/// The lowest tag of messages that request a connection. An answer has the next tag.
const TAGS: c_int = 0x1000_0000;
const LAST: c_int = 0x0fff_ffff / 2;
/// Numbers of the ports that this process has open.
static NUMBERS: Numbers = Numbers::below(LAST as u32 + 1);
/// The tag of messages between the two ends of a socket.
pub const JOIN: c_int = 2;

/// Time in seconds after which a waiting process checks whether to go on, for instance whether the port is still open:
/// it is not notified of that.
const LOOK: f64 = 0.5;

/// The task that has opened a port, and the port's number in that task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    task: c_int,
    number: c_int,
}

impl Port {
    fn name(self) -> String {
        format!("regatta:{}:{}", self.task, self.number)
    }

    fn parse(name: &CStr) -> Result<Port> {
        let parts = || {
            let text = name.to_str().ok()?.strip_prefix("regatta:")?;
            let (task, number) = text.split_once(':')?;
            Some(Port {
                task: task.parse().ok()?,
                number: number.parse().ok().filter(|it| (0..=LAST).contains(it))?,
            })
        };
        parts().ok_or_else(|| {
            let text = format!("{name:?} is not the name of a port");
            Error::new(ERR_PORT, text)
        })
    }

    fn tag(self) -> c_int {
        TAGS + 2 * self.number
    }
}

/// Returns the task number of this process.
fn own() -> Result<c_int> {
    // SAFETY: the call has no arguments and no preconditions.
    let own = unsafe { rg::rg_tid() };
    checked(own)?;
    Ok(own)
}

/// Returns the name of an entry of MPI at the launcher.
fn entry(kind: &str, name: &[u8]) -> CString {
    let text = [b"mpi.", kind.as_bytes(), b".", name].concat();
    CString::new(text).unwrap_or_default()
}

fn put(entry: &CStr, value: &[u8], flags: c_int) -> c_int {
    let mut placed = 0;
    // SAFETY: the name is NUL-terminated, and the value has this length.
    unsafe {
        rg::rg_put(
            entry.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
            flags,
            &mut placed,
        )
    }
}

/// Returns the value of an entry, or `None` if there is none. With RG_TAKE only one process gets it.
fn look(entry: &CStr, flags: c_int) -> Result<Option<Vec<u8>>> {
    let mut value = vec![0; MAX_PORT_NAME as usize];
    let (mut length, mut found) = (0, 0);
    // SAFETY: the name is NUL-terminated, the buffer has this length, and the other pointers may be written.
    let code = unsafe {
        rg::rg_get(
            entry.as_ptr(),
            0,
            flags,
            value.as_mut_ptr().cast(),
            value.len(),
            &mut length,
            &mut found,
        )
    };
    if code == rg::ERR_NAME {
        return Ok(None);
    }
    checked(code)?;
    value.truncate(length);
    Ok(Some(value))
}

/// Opens a port and returns its name.
pub fn open() -> Result<String> {
    let task = own()?;
    let taken = NUMBERS.take().ok_or_else(|| {
        let text = "this process has too many ports open: close some (MPI_Close_port)";
        Error::new(ERR_NO_MEM, text)
    })?;
    let number = taken as c_int;
    let name = Port { task, number }.name();
    let opened = checked(put(&entry("port", name.as_bytes()), &[], 0));
    if opened.is_err() {
        NUMBERS.give_back(taken);
    }
    opened.map(|()| name)
}

/// Closes a port of this process.
pub fn close(name: &CStr) -> Result {
    let port = own_port(name)?;
    let entry = entry("port", name.to_bytes());
    // SAFETY: the name is NUL-terminated.
    let closed = checked(unsafe { rg::rg_delete(entry.as_ptr(), 0) });
    NUMBERS.give_back(port.number as u32);
    closed
}

fn own_port(name: &CStr) -> Result<Port> {
    let port = Port::parse(name)?;
    match port.task == own()? && NUMBERS.is_used(port.number as u32) {
        true => Ok(port),
        false => Err(Error::new(
            ERR_PORT,
            format!("{name:?} is not an open port of this process"),
        )),
    }
}

/// Waits until a process connects to a port of this process. Sends it these words and returns those of that process.
/// Fails if `check` does before that.
pub fn accept(name: &CStr, words: &[c_int], check: &dyn Fn() -> Result) -> Result<Vec<c_int>> {
    let port = own_port(name)?;
    let channel = internal_messages::CHANNEL;
    loop {
        let asked = internal_messages::receive_within(channel, rg::ANY, port.tag(), LOOK)?;
        let Some((from, theirs)) = asked else {
            check()?;
            continue;
        };
        let Some((&number, theirs)) = theirs.split_first() else {
            continue;
        };
        // The process may no longer wait.
        if look(&asking(from, number), rg::TAKE)?.is_some() {
            internal_messages::send(channel, from, port.tag() + 1, words)?;
            return Ok(theirs.to_vec());
        }
    }
}

/// Returns the name of the entry of a process that waits to be accepted.
fn asking(task: c_int, number: c_int) -> CString {
    entry("asking", format!("{task}.{number}").as_bytes())
}

/// Connects to a port: sends these words to the accepting process and returns its words. Fails after this many seconds,
/// or when `check` fails.
pub fn connect(
    name: &CStr,
    words: &[c_int],
    seconds: f64,
    check: &dyn Fn() -> Result,
) -> Result<Vec<c_int>> {
    let port = Port::parse(name)?;
    if look(&entry("port", name.to_bytes()), 0)?.is_none() {
        let text = format!("no process of this job has the port {name:?} open");
        return Err(Error::new(ERR_PORT, text));
    }
    static ASKED: AtomicI32 = AtomicI32::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let asking = asking(own()?, number);
    checked(put(&asking, &[], rg::OVERWRITABLE))?;
    let words = [&[number], words].concat();
    let outcome = await_acceptance(&port, name, &asking, &words, seconds, check);
    if outcome.is_err() {
        // After an error of a message, for instance because the port's owner has died, the entry is left.
        let _ = look(&asking, rg::TAKE);
    }
    outcome
}

/// Sends the words of [`connect`] to the owner of a port and waits for the answer. Gives up only if it can take back
/// the entry `asking`.
fn await_acceptance(
    port: &Port,
    name: &CStr,
    asking: &CStr,
    words: &[c_int],
    seconds: f64,
    check: &dyn Fn() -> Result,
) -> Result<Vec<c_int>> {
    internal_messages::send(internal_messages::CHANNEL, port.task, port.tag(), words)?;
    let answer = port.tag() + 1;
    let began = Instant::now();
    loop {
        let left = seconds - began.elapsed().as_secs_f64();
        let patience = left.clamp(0.0, LOOK);
        if let Some((_, theirs)) = internal_messages::receive_within(
            internal_messages::CHANNEL,
            port.task,
            answer,
            patience,
        )? {
            return Ok(theirs);
        }
        let is_open = look(&entry("port", name.to_bytes()), 0)?.is_some();
        let allowed = check();
        if is_open && left > LOOK && allowed.is_ok() {
            continue;
        }
        if look(asking, rg::TAKE)?.is_none() {
            return Ok(
                internal_messages::receive(internal_messages::CHANNEL, port.task, answer)?.1,
            );
        }
        allowed?;
        let text = match is_open {
            true => format!(
                "no process accepted a connection at the port {name:?} within {seconds} s (set the hint \"timeout\" to wait longer)"
            ),
            false => {
                format!("the port {name:?} was closed before a process accepted a connection there")
            }
        };
        return Err(Error::new(ERR_PORT, text));
    }
}

/// Publishes a port under the name of a service.
pub fn publish(service: &CStr, port: &CStr) -> Result {
    let entry = entry("service", service.to_bytes());
    // `put` would replace an entry of this process.
    let code = match look(&entry, 0)? {
        Some(_) => rg::ERR_EXISTS,
        None => put(&entry, port.to_bytes(), 0),
    };
    match code {
        rg::ERR_EXISTS => Err(Error::new(
            ERR_SERVICE,
            format!("a service called {service:?} is already published"),
        )),
        code => checked(code),
    }
}

/// Returns the port of a service.
pub fn lookup(service: &CStr) -> Result<Vec<u8>> {
    let found = look(&entry("service", service.to_bytes()), 0)?;
    found.ok_or_else(|| not_published(service, ERR_NAME))
}

fn not_published(service: &CStr, class: c_int) -> Error {
    let text = format!("no service called {service:?} is published in this job");
    Error::new(class, text)
}

/// Unpublishes a service that this process has published.
pub fn unpublish(service: &CStr) -> Result {
    let entry = entry("service", service.to_bytes());
    // SAFETY: the name is NUL-terminated.
    match unsafe { rg::rg_delete(entry.as_ptr(), 0) } {
        rg::ERR_NAME => Err(not_published(service, ERR_SERVICE)),
        rg::ERR_DENIED => Err(Error::new(
            ERR_SERVICE,
            format!("the service {service:?} was published by another process"),
        )),
        code => checked(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports_are_checked() {
        let port = Port { task: 3, number: 7 };
        let name = CString::new(port.name()).expect("a text");
        assert_eq!(Port::parse(&name).expect("a port"), port);
        for name in [
            c"",
            c"regatta:1",
            c"regatta:x:1",
            c"regatta:1:-1",
            c"tcp:1:1",
        ] {
            assert_eq!(Port::parse(name).expect_err("no port").class(), ERR_PORT);
        }
    }
}
