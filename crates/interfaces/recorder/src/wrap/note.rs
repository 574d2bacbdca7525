//! What is noted of calls that have returned.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::{
    ERR_TRUNCATED, Group, IN_PLACE, MESSAGE_NULL, Message, OK, Request, Status, View,
};
use regatta_record::head;

use crate::map::{map, now};
use crate::span::Span;
use crate::{file, modules, peers, real, requests};

/// A status to which nothing has been written.
pub(super) const NO_STATUS: Status = Status {
    source: -1,
    tag: 0,
    length: 0,
    error: 0,
    reserved: 0,
};

/// Returns the bytes of views.
///
/// # Safety
/// There are `n` of them, if it is positive.
pub(super) unsafe fn length(views: *const View, n: c_int) -> usize {
    let Ok(n) = usize::try_from(n) else { return 0 };
    if views.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    let views = unsafe { std::slice::from_raw_parts(views, n) };
    let bytes = views.iter().map(|view| view.block.wrapping_mul(view.count));
    bytes.fold(0, usize::wrapping_add)
}

/// Notes the message of a receive, if the call has received one; returns whether it has.
pub(super) fn received(span: &mut Span, result: c_int, group: Group, status: &Status) -> bool {
    let received = result == OK || result == ERR_TRUNCATED;
    if received {
        span.received(group, status);
    }
    received
}

/// Notes the message of a receive of what a probe had found: the message before the call, and where it was.
///
/// # Safety
/// The address is NULL or that of a message.
pub(super) unsafe fn received_of(
    span: &mut Span,
    result: c_int,
    found: (Message, *const Message),
    status: &Status,
) {
    // SAFETY: as the caller promises.
    if let Some(group) = unsafe { group(found) } {
        received(span, result, group, status);
    }
}

/// Notes a receive that was begun.
///
/// # Safety
/// `request` is NULL or was written.
pub(super) unsafe fn begun(result: c_int, request: *const Request, group: Group) {
    // SAFETY: as the caller promises.
    if let (OK, Some(request)) = (result, unsafe { request.as_ref() }) {
        requests::began(*request, group);
    }
}

/// Notes a receive of what a probe had found, as for [`received_of`].
///
/// # Safety
/// `request` is NULL or was written; the other address is NULL or that of a message.
pub(super) unsafe fn begun_of(
    result: c_int,
    request: *const Request,
    found: (Message, *const Message),
) {
    // SAFETY: as the caller promises.
    if let Some(group) = unsafe { group(found) } {
        // SAFETY: likewise.
        unsafe { begun(result, request, group) };
    }
}

/// Notes what a probe has found; false: nothing.
///
/// # Safety
/// `address` is NULL or that of a message.
pub(super) unsafe fn found(address: *const Message, group: Group) -> bool {
    // SAFETY: as the caller promises.
    let message = unsafe { message(address) };
    requests::found(message, group);
    message != MESSAGE_NULL
}

/// Returns the message at an address.
///
/// # Safety
/// It is NULL or that of a message.
pub(super) unsafe fn message(address: *const Message) -> Message {
    // SAFETY: as the caller promises.
    unsafe { address.as_ref() }.copied().unwrap_or(MESSAGE_NULL)
}

/// Returns the group of a message that was there before the call and is gone now.
///
/// # Safety
/// The address is NULL or that of a message.
unsafe fn group((before, now): (Message, *const Message)) -> Option<Group> {
    // SAFETY: as the caller promises.
    match unsafe { now.as_ref() }?.id {
        0 => requests::taken(before),
        _ => None,
    }
}

/// Notes whether a look has found anything.
///
/// # Safety
/// `found` is NULL, or the call has written it.
pub(super) unsafe fn looked(span: &mut Span, found: *const c_int) {
    // SAFETY: as the caller promises.
    if unsafe { found.as_ref() }.is_none_or(|found| *found == 0) {
        span.found_nothing();
    }
}

/// Returns the bytes of an element of this type.
pub(super) fn size(kind: c_int) -> usize {
    match kind {
        1 | 5 => 1,
        2 | 6 => 2,
        3 | 7 | 9 => 4,
        4 | 8 | 10 => 8,
        11 => 16,
        _ => usize::try_from(kind - 0x10000).unwrap_or_default(),
    }
}

/// Returns the number of members of a group, of which a call has just succeeded; 0: there is no such group any more.
pub(super) fn members(group: Group) -> usize {
    // SAFETY: the function takes whatever handle.
    let size = unsafe { real::rg_size(group) };
    usize::try_from(size).unwrap_or_default()
}

/// Returns the bytes that a task gives to all members of a group, where each gets its own.
///
/// # Safety
/// `lens` has a length for each member, as a call that succeeded has found them.
pub(super) unsafe fn given(lens: *const usize, group: Group) -> usize {
    if lens.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    let lens = unsafe { std::slice::from_raw_parts(lens, members(group)) };
    lens.iter().fold(0, |sum, len| sum.wrapping_add(*len))
}

/// Returns the number of bytes that this task gives to all in a call that has succeeded: `len`, or the length of its own part of the output if it gives in place.
///
/// # Safety
/// `lens` has a length for each member.
pub(super) unsafe fn own(
    input: *const c_void,
    len: usize,
    lens: *const usize,
    group: Group,
) -> usize {
    if input.addr() != IN_PLACE || lens.is_null() {
        return len;
    }
    // SAFETY: the function takes whatever handle.
    match usize::try_from(unsafe { real::rg_rank(group) }) {
        // SAFETY: as the caller promises, and a rank is below the number of members.
        Ok(rank) => unsafe { *lens.add(rank) },
        Err(_) => len,
    }
}

/// Notes that the process is a task, if it was none.
pub(super) fn joined() {
    // SAFETY: takes nothing.
    let task = unsafe { real::rg_tid() };
    if task < 0 {
        return;
    }
    peers::joined();
    let Some(map) = map() else { return };
    modules::note(map);
    if map[head::JOINED].load(Relaxed) == 0 {
        map[head::JOINED].store(now(), Relaxed);
    }
    map[head::TASK].store(task as u64 + 1, Relaxed);
    map[head::LEFT].store(0, Relaxed);
}

/// Notes that the task has left.
pub(super) fn left() {
    let Some(map) = map() else { return };
    modules::note(map);
    file::note_processor(map);
    map[head::LEFT].store(now(), Relaxed);
}
