//! Probes, and matched probes, which take a message out of matching until it is received by its handle.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use regatta_sys as rg;

use super::receive::wanted_tag;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{Route, route};
use crate::datatype::Staging;
use crate::error::{Error, Object, Result, checked};
use crate::objects::{Kind, Table};
use crate::progress;
use crate::requests::{self, Operation, Single, State};

/// Messages that have been taken out of matching.
static MESSAGES: Table<Arc<Taken>> = Table::new(Kind::Message);

/// A message, and the communicator in which it was found.
struct Taken {
    message: rg::Message,
    comm: Comm,
}

pub unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    route: &Route,
    flag: Out<c_int>,
    status: *mut Status,
) -> Result {
    let (from, tag) = (route.source(source)?, wanted_tag(tag)?);
    if !progress::is_idle() {
        progress::advance();
    }
    let mut got = rg::Status::default();
    // SAFETY: the caller guarantees that the pointers are valid; the call may write `got`.
    unsafe {
        checked(rg::rg_iprobe(
            from,
            tag,
            route.group(),
            flag.address(),
            &mut got,
        ))?;
        if flag.get() != 0 {
            route.status(&got).store(status);
        }
    }
    Ok(())
}

pub unsafe fn probe(source: c_int, tag: c_int, route: &Route, status: *mut Status) -> Result {
    let (from, wanted) = (route.source(source)?, wanted_tag(tag)?);
    let mut got = rg::Status::default();
    loop {
        if progress::is_idle() {
            // SAFETY: the call may write `got`.
            checked(unsafe { rg::rg_probe(from, wanted, route.group(), &mut got) })?;
            break;
        }
        let mut found = 0;
        // SAFETY: the call may write `got`.
        unsafe {
            checked(rg::rg_iprobe(
                from,
                wanted,
                route.group(),
                &mut found,
                &mut got,
            ))?;
        }
        if found != 0 {
            break;
        }
        progress::advance();
        std::thread::yield_now();
    }
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { route.status(&got).store(status) };
    Ok(())
}

/// Returns the handle of a message that was found.
fn hand_out(found: rg::Message, comm: Comm, message: Out<Message>) -> Result {
    let handle = if found == rg::MESSAGE_NONE {
        Some(MESSAGE_NO_PROC.0)
    } else {
        let taken = Taken {
            message: found,
            comm,
        };
        MESSAGES.insert(Arc::new(taken))
    };
    let handle = handle.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many messages"))?;
    message.put(Message(handle));
    Ok(())
}

pub unsafe fn mprobe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    message: Out<Message>,
    status: *mut Status,
) -> Result {
    loop {
        let mut flag = 0;
        if progress::is_idle() {
            let route = route(comm)?;
            let (from, wanted) = (route.source(source)?, wanted_tag(tag)?);
            let (mut found, mut got) = (rg::MESSAGE_NULL, rg::Status::default());
            // SAFETY: the call may write both.
            checked(unsafe { rg::rg_mprobe(from, wanted, route.group(), &mut found, &mut got) })?;
            // SAFETY: the caller guarantees that the pointer is valid.
            unsafe { route.status(&got).store(status) };
            return hand_out(found, comm, message);
        }
        // SAFETY: the caller guarantees that the pointers are valid.
        unsafe { improbe(source, tag, comm, (&mut flag).into(), message, status)? };
        if flag != 0 {
            return Ok(());
        }
        std::thread::yield_now();
    }
}

pub unsafe fn improbe(
    source: c_int,
    tag: c_int,
    comm: Comm,
    flag: Out<c_int>,
    message: Out<Message>,
    status: *mut Status,
) -> Result {
    let route = route(comm)?;
    let (from, wanted) = (route.source(source)?, wanted_tag(tag)?);
    if !progress::is_idle() {
        progress::advance();
    }
    let (mut found, mut got) = (rg::MESSAGE_NULL, rg::Status::default());
    // SAFETY: the caller guarantees that the pointers are valid; the call may write the other arguments.
    unsafe {
        checked(rg::rg_improbe(
            from,
            wanted,
            route.group(),
            flag.address(),
            &mut found,
            &mut got,
        ))?;
        if flag.get() != 0 {
            route.status(&got).store(status);
            hand_out(found, comm, message)?;
        }
    }
    Ok(())
}

/// Takes a message by its handle, which is null afterwards. Returns `None` for MPI_MESSAGE_NO_PROC.
fn take(message: &mut Message) -> Result<Option<Arc<Taken>>> {
    let taken = match *message {
        MESSAGE_NO_PROC => None,
        MESSAGE_NULL => {
            return Err(Error::new(ERR_REQUEST, "the message is MPI_MESSAGE_NULL"));
        }
        Message(handle) => Some(MESSAGES.remove(handle).ok_or_else(|| {
            let text = format!("{handle:#x} is not a valid message; it may have been received");
            Error::new(ERR_REQUEST, text)
        })?),
    };
    *message = MESSAGE_NULL;
    Ok(taken)
}

pub unsafe fn imrecv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    message: &mut Message,
    request: Out<Request>,
) -> Result {
    let into = Staging::output(buf, count, datatype)?;
    let Some(taken) = take(message)? else {
        let done = Single::complete(Status::empty(PROC_NULL));
        let done = requests::of_operation(Box::new(done), COMM_SELF)?;
        request.put(done);
        return Ok(());
    };
    let (mut from, mut begun) = (taken.message, rg::REQUEST_NULL);
    let on = |error: Error| error.on(Object::Comm(taken.comm));
    // SAFETY: the caller guarantees that the buffer is valid, or memory that lives as long as the operation.
    checked(unsafe { rg::rg_imrecv(&mut from, into.address(), into.length(), &mut begun) })
        .map_err(on)?;
    let made = if into.is_in_place() {
        requests::plain(begun, taken.comm)?
    } else {
        let single = Single::new(begun, taken.comm);
        requests::of_operation(Box::new(Unpacking { single, into }), taken.comm)?
    };
    request.put(made);
    Ok(())
}

pub unsafe fn mrecv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    message: &mut Message,
    status: *mut Status,
) -> Result {
    let mut request = REQUEST_NULL;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { imrecv(buf, count, datatype, message, (&mut request).into())? };
    let (found, result) = super::completion::wait_for(&mut request)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { found.store(status) };
    result
}

/// A receive into contiguous memory that is unpacked to the elements on completion.
struct Unpacking {
    single: Single,
    into: Staging,
}

impl Operation for Unpacking {
    fn state(&self) -> State {
        self.single.state()
    }

    fn waits_for(&self) -> &[rg::Request] {
        self.single.waits_for()
    }

    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int) {
        self.single.completed(index, status, code);
    }

    fn finish(&mut self) -> (Status, Result) {
        let outcome = self.single.finish();
        // SAFETY: the caller guarantees that the buffer is valid until the request is complete, and its completion is
        // only being reported.
        unsafe { self.into.finish(outcome.0.bytes() as usize) };
        outcome
    }

    fn look(&self) -> Status {
        self.single.look()
    }
}
