//! Nonblocking sends and receives, which are completed by their ids.
//!
//! One id can stand for several operations, which form a linked list (`isendrecv`, `msgmerge`, a send to all nodes).

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQMID, EQNOMID, Fault, check, fault};
use crate::forms::{c_forms, fortran_forms};
use crate::inbox;
use crate::info::{self, InfoArray};
use crate::left;
use crate::life::enrolled;
use crate::mids::from_program;
use crate::receive::{Buffer, NO_STATUS, tag_and_channel};
use crate::rg;
use crate::send::{Message, others};
use crate::state::{To, library, or_successor};
use crate::types::{self, TypeSelect};

/// End of the list.
const LAST: c_int = 0;
/// In `msgmerge`: no operation.
const NO_MID: c_long = -1;

/// A send or a receive in progress.
pub struct Started {
    pub work: Work,
    /// Id of the next operation in the list, or `LAST`.
    next: c_int,
    /// Whether another id stands for this operation: then the program cannot name it any more.
    merged: bool,
}

/// The state of an operation.
pub enum Work {
    Send(rg::Request),
    Receive(rg::Request, InfoArray),
    /// A receive that waits in the inbox for a message.
    Waiting(InfoArray),
    /// A receive that got its message from the inbox.
    Came(Result<rg::Status, Fault>, InfoArray),
    /// A complete operation.
    Done,
}

/// Fails unless there is room for this many ids. Called before anything is started.
fn check_room(ids: c_int) -> Result<(), Fault> {
    match library().started.room() >= ids as usize {
        true => Ok(()),
        false => Err(Fault::plain(EQNOMID)),
    }
}

/// Returns how many ids a send needs.
fn ids_of(to: To) -> c_int {
    match to {
        To::Task(_) => 1,
        // One for each message, and the one that stands for them.
        To::Others(_) => library().nodes + 1,
    }
}

fn enter(work: Work) -> Result<c_int, Fault> {
    let started = Started {
        work,
        next: LAST,
        merged: false,
    };
    let mid = library().started.insert(started);
    mid.ok_or(Fault::plain(EQNOMID))
}

/// Inserts the list that begins with `more` after `mid`, the first operation of its list.
fn join(mid: c_int, more: c_int) {
    let library = library();
    let rest = library.started.get(mid).map_or(LAST, |first| first.next);
    let mut last = more;
    while let Some(started) = library.started.get(last) {
        started.merged = true;
        match started.next {
            LAST => {
                started.next = rest;
                break;
            }
            next => last = next,
        }
    }
    if let Some(first) = library.started.get(mid) {
        first.next = more;
    }
}

fn start_send(message: Message, to: To) -> Result<c_int, Fault> {
    let task = match to {
        To::Task(task) => task,
        To::Others(ptype) => return start_send_to_all(message, ptype),
    };
    let request = message.start(task)?;
    enter(Work::Send(request))
}

fn start_send_to_all(message: Message, ptype: c_long) -> Result<c_int, Fault> {
    let tasks = others(library(), ptype)?;
    let mid = enter(Work::Done)?;
    let mut first = Ok(mid);
    // A node that is gone does not keep the message from the others.
    for task in tasks {
        match start_send(message, To::Task(task)) {
            Ok(more) => join(mid, more),
            Err(fault) => first = first.and(Err(fault)),
        }
    }
    if first.is_err() {
        ignore_all(mid)?;
    }
    first
}

fn start_receive(
    select: TypeSelect,
    source: c_int,
    buffer: Buffer,
    place: InfoArray,
) -> Result<c_int, Fault> {
    if library().inbox.concerns(select) {
        return match inbox::receive_now(select, source, buffer) {
            Ok(None) => {
                let mid = enter(Work::Waiting(place))?;
                library().inbox.wait(mid, select, source, buffer);
                Ok(mid)
            }
            Ok(Some(status)) => enter(Work::Came(Ok(status), place)),
            Err(fault) => enter(Work::Came(Err(fault), place)),
        };
    }
    let (tag, channel) = tag_and_channel(select);
    let mut request = rg::REQUEST_NULL;
    // SAFETY: by the C contract the memory has this length, and stays valid until the receive is complete.
    check(unsafe {
        rg::rg_irecv(
            buffer.memory,
            buffer.capacity,
            source,
            tag,
            channel,
            &mut request,
        )
    })?;
    enter(Work::Receive(request, place))
}

/// # Safety
/// `memory` has `count` bytes until the send is complete.
unsafe fn send(
    kind: c_long,
    memory: *const c_void,
    count: c_long,
    node: c_long,
    ptype: c_long,
) -> Answer {
    let library = enrolled()?;
    let message = Message::new(kind, memory, count)?;
    let to = library.destination(node, ptype)?;
    check_room(ids_of(to))?;
    start_send(message, to).map(c_long::from)
}

/// # Safety
/// `memory` has `count` bytes until the receive is complete.
unsafe fn receive(selector: c_long, memory: *mut c_void, count: c_long) -> Answer {
    enrolled()?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    check_room(1)?;
    start_receive(select, rg::ANY, buffer, InfoArray::Global).map(c_long::from)
}

fn receive_selected(
    (selector, nodesel, ptypesel): (c_long, c_long, c_long),
    memory: *mut c_void,
    count: c_long,
    place: InfoArray,
) -> Answer {
    let library = enrolled()?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    let source = library.source(nodesel, ptypesel)?;
    check_room(1)?;
    start_receive(select, source, buffer, place)
        .or_else(|why| {
            or_successor(source, why, |next| {
                start_receive(select, next, buffer, place)
            })
        })
        .map(c_long::from)
}

unsafe fn receive_x(
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_long,
) -> Answer {
    let selection = (selector, nodesel, ptypesel);
    receive_selected(selection, memory, count, InfoArray::C(array))
}

unsafe fn receive_x_of_fortran(
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_int,
) -> Answer {
    let selection = (selector, nodesel, ptypesel);
    receive_selected(selection, memory, count, InfoArray::Fortran(array))
}

/// Starts a receive and a send. The id stands for both.
///
/// # Safety
/// The memories have the given lengths until both operations are complete.
#[allow(clippy::too_many_arguments)]
pub unsafe fn exchange(
    kind: c_long,
    from: *const c_void,
    length: c_long,
    node: c_long,
    ptype: c_long,
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
) -> Answer {
    let library = enrolled()?;
    // Check everything before anything is started.
    let message = Message::new(kind, from, length)?;
    let to = library.destination(node, ptype)?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    check_room(1 + ids_of(to))?;
    let mid = start_receive(select, rg::ANY, buffer, InfoArray::Global)?;
    match start_send(message, to) {
        Ok(more) => join(mid, more),
        Err(fault) => {
            // SAFETY: `mid` is a valid id.
            unsafe { cancel(c_long::from(mid)) }?;
            return Err(fault);
        }
    }
    Ok(c_long::from(mid))
}

/// Returns the first operation of an id. Fails if the id is not valid.
fn known(mid: c_long) -> Result<c_int, Fault> {
    let is_known = |mid: &c_int| library().started.get(*mid).is_some_and(|one| !one.merged);
    let first = from_program(mid).filter(is_known);
    first.ok_or(Fault::of(EQMID, "id", mid))
}

/// Converts the result of a complete receive.
fn received(code: c_int, status: &rg::Status) -> Result<rg::Status, Fault> {
    match code {
        rg::OK => Ok(*status),
        rg::ERR_TRUNCATED => {
            let memory = std::ptr::null_mut();
            Err(Buffer {
                memory,
                capacity: 0,
            }
            .too_short(status.length))
        }
        code => Err(fault(code)),
    }
}

/// A function that tries to complete a request. Returns Regatta's code, and whether the request is complete.
type End = unsafe fn(&mut rg::Request, &mut rg::Status) -> (c_int, bool);

/// Waits for a request. Returns Regatta's code, and whether the request is complete.
///
/// # Safety
/// The request's memory is still valid.
unsafe fn by_waiting(request: &mut rg::Request, status: &mut rg::Status) -> (c_int, bool) {
    // SAFETY: the caller guarantees that the memory is valid.
    let code = unsafe { rg::rg_wait(request, status) };
    // After some errors the request continues.
    (code, request.id == rg::REQUEST_NULL.id)
}

/// Tests a request. Returns Regatta's code, and whether the request is complete.
///
/// # Safety
/// The same as for `by_waiting`.
unsafe fn by_looking(request: &mut rg::Request, status: &mut rg::Status) -> (c_int, bool) {
    let mut done = 0;
    // SAFETY: the caller guarantees that the memory is valid.
    let code = unsafe { rg::rg_test(request, &mut done, status) };
    (code, done != 0)
}

/// Tries to complete an operation, and sets the description of a received message. Returns `false` if the operation is
/// not complete. No reference into the table is held during the call, because handlers may run.
fn end_by(end: End, mid: c_int) -> Result<bool, Fault> {
    let Some(started) = library().started.get(mid) else {
        return Ok(true);
    };
    let work = std::mem::replace(&mut started.work, Work::Done);
    let mut status = NO_STATUS;
    let (place, result) = match work {
        Work::Send(mut request) => {
            // SAFETY: by the contract of `isend` the memory is valid until the send is complete.
            let (code, over) = unsafe { end(&mut request, &mut status) };
            if !over {
                set_work(mid, Work::Send(request));
            }
            return check(code).map(|()| over);
        }
        Work::Receive(mut request, place) => {
            // SAFETY: by the contract of `irecv` the memory is valid until the receive is complete.
            let (code, over) = unsafe { end(&mut request, &mut status) };
            if !over {
                set_work(mid, Work::Receive(request, place));
                return check(code).map(|()| false);
            }
            (place, received(code, &status))
        }
        Work::Came(result, place) => (place, result),
        Work::Waiting(place) => {
            set_work(mid, Work::Waiting(place));
            return Ok(false);
        }
        Work::Done => return Ok(true),
    };
    info::tell(library(), place, &result?);
    Ok(true)
}

fn set_work(mid: c_int, work: Work) {
    if let Some(started) = library().started.get(mid) {
        started.work = work;
    }
}

fn waits_in_the_inbox(mid: c_int) -> bool {
    let started = library().started.get(mid);
    started.is_some_and(|started| matches!(started.work, Work::Waiting(_)))
}

fn is_receive(mid: c_int) -> bool {
    let started = library().started.get(mid);
    started.is_some_and(|started| matches!(started.work, Work::Receive(..)))
}

/// Waits until an operation is complete. A fault may leave it in progress.
fn finish(mid: c_int) -> Result<(), Fault> {
    if waits_in_the_inbox(mid) {
        inbox::await_delivery(mid)?;
    }
    if library().cube.is_some() && is_receive(mid) {
        return left::until(|| end_by(by_looking, mid).map(|over| over.then_some(())));
    }
    end_by(by_waiting, mid).map(|_| ())
}

/// Tests whether an operation is complete.
fn look(mid: c_int) -> Result<bool, Fault> {
    if waits_in_the_inbox(mid) {
        inbox::take_in()?;
    }
    end_by(by_looking, mid)
}

/// Waits for all operations of an id, and releases it. An operation that is still in progress after a fault keeps its
/// id.
pub fn wait(mid: c_long) -> Answer {
    let mut next = known(mid)?;
    while next != LAST {
        let finished = finish(next);
        if finished.is_err() && !is_over(next) {
            return finished.map(|()| 0);
        }
        let Some(started) = library().started.remove(next) else {
            break;
        };
        if finished.is_err() {
            // The other operations of the id continue without it.
            ignore_all(started.next)?;
            return finished.map(|()| 0);
        }
        next = started.next;
    }
    Ok(0)
}

fn is_over(mid: c_int) -> bool {
    let started = library().started.get(mid);
    started.is_none_or(|started| matches!(started.work, Work::Done))
}

unsafe fn wait_for(mid: c_long) -> Answer {
    enrolled()?;
    wait(mid)
}

/// If all operations of an id are complete, releases it and returns 1, else returns 0.
unsafe fn done(mid: c_long) -> Answer {
    enrolled()?;
    let mut next = known(mid)?;
    while next != LAST {
        if !look(next)? {
            return Ok(0);
        }
        next = library().started.get(next).map_or(LAST, |one| one.next);
    }
    wait(mid)?;
    Ok(1)
}

/// Cancels receives that have no message yet, and waits for the completion of everything else.
unsafe fn cancel(mid: c_long) -> Answer {
    enrolled()?;
    let mut next = known(mid)?;
    while next != LAST {
        let Some(mut started) = library().started.remove(next) else {
            break;
        };
        library().inbox.forget(next);
        if let Work::Receive(request, _) = &mut started.work {
            // SAFETY: the request is valid, and the result may be NULL.
            unsafe { rg::rg_cancel(*request, std::ptr::null_mut()) };
        }
        if let Work::Receive(request, _) | Work::Send(request) = &mut started.work {
            // SAFETY: the memory is valid until this returns. The result does not matter.
            unsafe { rg::rg_wait(request, std::ptr::null_mut()) };
        }
        next = started.next;
    }
    Ok(0)
}

/// Releases an id. Its operations continue, and their completion is not reported.
unsafe fn ignore(mid: c_long) -> Answer {
    enrolled()?;
    ignore_all(known(mid)?)?;
    Ok(0)
}

fn ignore_all(first: c_int) -> Result<(), Fault> {
    let mut next = first;
    while let Some(mut started) = library().started.remove(next) {
        if let Work::Receive(request, _) | Work::Send(request) = &mut started.work {
            // SAFETY: `nothing` ignores its arguments.
            check(unsafe { rg::rg_on_complete(request, Some(nothing), std::ptr::null_mut()) })?;
        }
        next = started.next;
    }
    Ok(())
}

unsafe extern "C" fn nothing(_: *const rg::Status, _: *mut c_void) {}

/// Merges two ids into one. -1 stands for no operation.
unsafe fn merge(one: c_long, other: c_long) -> Answer {
    enrolled()?;
    if one == NO_MID || other == NO_MID {
        let rest = if one == NO_MID { other } else { one };
        if rest != NO_MID {
            known(rest)?;
        }
        return Ok(rest);
    }
    let (first, more) = (known(one)?, known(other)?);
    if first == more {
        return Err(Fault::of(EQMID, "id", other));
    }
    join(first, more);
    Ok(one)
}

c_forms! {
    isend, _isend: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long) = send;
    irecv, _irecv: (selector: c_long, memory: *mut c_void, count: c_long) = receive;
    irecvx, _irecvx: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_long) = receive_x;
    isendrecv, _isendrecv: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long) = exchange;
    msgwait, _msgwait: (mid: c_long) = wait_for;
    msgdone, _msgdone: (mid: c_long) = done;
    msgcancel, _msgcancel: (mid: c_long) = cancel;
    msgignore, _msgignore: (mid: c_long) = ignore;
    msgmerge, _msgmerge: (one: c_long, other: c_long) = merge;
}

fortran_forms! {
    isend_, _isend_: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long) = send;
    irecv_, _irecv_: (selector: c_long, memory: *mut c_void, count: c_long) = receive;
    irecvx_, _irecvx_: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_int) = receive_x_of_fortran;
    isendrecv_, _isendrecv_: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long) = exchange;
    msgwait_, _msgwait_: (mid: c_long) = wait_for;
    msgdone_, _msgdone_: (mid: c_long) = done;
    msgcancel_, _msgcancel_: (mid: c_long) = cancel;
    msgignore_, _msgignore_: (mid: c_long) = ignore;
    msgmerge_, _msgmerge_: (one: c_long, other: c_long) = merge;
}
