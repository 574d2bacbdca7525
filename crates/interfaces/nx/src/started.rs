//! Sends and receives that are begun, and completed by their ids.
//!
//! One id can stand for several of them: each names the next one (`isendrecv`, `msgmerge`, a send to all nodes).

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

/// No further one.
const LAST: c_int = 0;
/// In `msgmerge`: no message.
const NO_MID: c_long = -1;

/// One send or receive.
pub struct Started {
    pub work: Work,
    /// The id of the next one that this id stands for, or `LAST`.
    next: c_int,
    /// Another id stands for it: the program cannot name it any more.
    merged: bool,
}

/// How it is carried out.
pub enum Work {
    Send(rg::Request),
    Receive(rg::Request, InfoArray),
    /// A receive to which the inbox gives its message.
    Waiting(InfoArray),
    /// A receive that has got its message from the inbox.
    Came(Result<rg::Status, Fault>, InfoArray),
    /// It is over.
    Done,
}

/// Before anything is begun: there have to be ids for all of it.
fn check_room(ids: c_int) -> Result<(), Fault> {
    match library().started.room() >= ids as usize {
        true => Ok(()),
        false => Err(Fault::plain(EQNOMID)),
    }
}

/// How many ids a send needs.
fn ids_of(to: To) -> c_int {
    match to {
        To::Task(_) => 1,
        // And the one that stands for them.
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

/// Appends the list that begins with `more` behind the first of `mid`.
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
    // A node that has gone does not keep the message from the others.
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
    // SAFETY: the program's memory is as long as it says, and stays until the receive is over.
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
/// `memory` has `count` bytes until the send is over.
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
/// `memory` has `count` bytes until the receive is over.
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

/// Begins to receive, and to send. The id stands for both.
///
/// # Safety
/// The memories have as many bytes as are said until both are over.
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
    // All is checked before anything is begun.
    let message = Message::new(kind, from, length)?;
    let to = library.destination(node, ptype)?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    check_room(1 + ids_of(to))?;
    let mid = start_receive(select, rg::ANY, buffer, InfoArray::Global)?;
    match start_send(message, to) {
        Ok(more) => join(mid, more),
        Err(fault) => {
            // SAFETY: an id of ours.
            unsafe { cancel(c_long::from(mid)) }?;
            return Err(fault);
        }
    }
    Ok(c_long::from(mid))
}

/// The first of what an id stands for. An id that names nothing is a fault.
fn known(mid: c_long) -> Result<c_int, Fault> {
    let is_known = |mid: &c_int| library().started.get(*mid).is_some_and(|one| !one.merged);
    let first = from_program(mid).filter(is_known);
    first.ok_or(Fault::of(EQMID, "id", mid))
}

/// The result of a receive that is over, by Regatta's code.
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

/// How one of what an id stands for is ended.
type End = unsafe fn(&mut rg::Request, &mut rg::Status) -> (c_int, bool);

/// Waits: Regatta's code, and that it is over.
///
/// # Safety
/// The program's memory is still there.
unsafe fn by_waiting(request: &mut rg::Request, status: &mut rg::Status) -> (c_int, bool) {
    // SAFETY: the caller's.
    let code = unsafe { rg::rg_wait(request, status) };
    // After some errors it goes on.
    (code, request.id == rg::REQUEST_NULL.id)
}

/// Looks: Regatta's code, and whether it is over.
///
/// # Safety
/// As of `by_waiting`.
unsafe fn by_looking(request: &mut rg::Request, status: &mut rg::Status) -> (c_int, bool) {
    let mut done = 0;
    // SAFETY: the caller's.
    let code = unsafe { rg::rg_test(request, &mut done, status) };
    (code, done != 0)
}

/// Ends one, and tells of its message if it is a receive. False: it is not over yet. No reference into the table is held
/// meanwhile, because functions of the program may run.
fn end_by(end: End, mid: c_int) -> Result<bool, Fault> {
    let Some(started) = library().started.get(mid) else {
        return Ok(true);
    };
    let work = std::mem::replace(&mut started.work, Work::Done);
    let mut status = NO_STATUS;
    let (place, result) = match work {
        Work::Send(mut request) => {
            // SAFETY: the contract of `isend`.
            let (code, over) = unsafe { end(&mut request, &mut status) };
            if !over {
                set_work(mid, Work::Send(request));
            }
            return check(code).map(|()| over);
        }
        Work::Receive(mut request, place) => {
            // SAFETY: the contract of `irecv`.
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

/// Waits until one is over. After a fault that leaves it under way it is not.
fn finish(mid: c_int) -> Result<(), Fault> {
    if waits_in_the_inbox(mid) {
        inbox::await_delivery(mid)?;
    }
    if library().cube.is_some() && is_receive(mid) {
        return left::until(|| end_by(by_looking, mid).map(|over| over.then_some(())));
    }
    end_by(by_waiting, mid).map(|_| ())
}

/// Looks whether one is over.
fn look(mid: c_int) -> Result<bool, Fault> {
    if waits_in_the_inbox(mid) {
        inbox::take_in()?;
    }
    end_by(by_looking, mid)
}

/// Waits for all that an id stands for, and releases it. An operation that is still under way after a fault keeps its id.
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
            // Others that the id stood for go on by themselves.
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

/// 1, and the id is released, when all that it stands for is over; else 0.
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

/// Takes back a receive that has no message yet, and waits for the end of everything else.
unsafe fn cancel(mid: c_long) -> Answer {
    enrolled()?;
    let mut next = known(mid)?;
    while next != LAST {
        let Some(mut started) = library().started.remove(next) else {
            break;
        };
        library().inbox.forget(next);
        if let Work::Receive(request, _) = &mut started.work {
            // SAFETY: a request of ours; a place that nobody needs.
            unsafe { rg::rg_cancel(*request, std::ptr::null_mut()) };
        }
        if let Work::Receive(request, _) | Work::Send(request) = &mut started.work {
            // SAFETY: the program's memory is still there until this returns. How it ended does not matter any more.
            unsafe { rg::rg_wait(request, std::ptr::null_mut()) };
        }
        next = started.next;
    }
    Ok(0)
}

/// Releases an id. The operation goes on, and nobody is told of its end.
unsafe fn ignore(mid: c_long) -> Answer {
    enrolled()?;
    ignore_all(known(mid)?)?;
    Ok(0)
}

fn ignore_all(first: c_int) -> Result<(), Fault> {
    let mut next = first;
    while let Some(mut started) = library().started.remove(next) {
        if let Work::Receive(request, _) | Work::Send(request) = &mut started.work {
            // SAFETY: a function that does nothing with the null pointer it is given.
            check(unsafe { rg::rg_on_complete(request, Some(nothing), std::ptr::null_mut()) })?;
        }
        next = started.next;
    }
    Ok(())
}

unsafe extern "C" fn nothing(_: *const rg::Status, _: *mut c_void) {}

/// One id for what two stand for. -1 stands for nothing.
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
