//! Recording of calls that have returned.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::{
    ERR_TRUNCATED, Group, IN_PLACE, MESSAGE_NULL, Message, OK, Request, Status, View,
};
use regatta_record::head;

use crate::map::{map, now};
use crate::span::Span;
use crate::{file, modules, peers, real, requests};

/// An empty status.
pub(super) const NO_STATUS: Status = Status {
    source: -1,
    tag: 0,
    length: 0,
    error: 0,
    reserved: 0,
};

/// Returns the length of the message of these views, in bytes.
///
/// # Safety
/// `views` must be NULL or point to `n` views if `n` is positive.
pub(super) unsafe fn length(views: *const View, n: c_int) -> usize {
    let Ok(n) = usize::try_from(n) else { return 0 };
    if views.is_null() {
        return 0;
    }
    // SAFETY: the caller guarantees that `views` points to `n` views.
    let views = unsafe { std::slice::from_raw_parts(views, n) };
    let bytes = views.iter().map(|view| view.block.wrapping_mul(view.count));
    bytes.fold(0, usize::wrapping_add)
}

/// Records the message of a receive, if the call has received one. Returns whether it has.
pub(super) fn received(span: &mut Span, result: c_int, group: Group, status: &Status) -> bool {
    let received = result == OK || result == ERR_TRUNCATED;
    if received {
        span.received(group, status);
    }
    received
}

/// Records the message of a receive after a matched probe. `found` is the message before the call, and its address.
///
/// # Safety
/// The address must be NULL or that of a message.
pub(super) unsafe fn received_of(
    span: &mut Span,
    result: c_int,
    found: (Message, *const Message),
    status: &Status,
) {
    // SAFETY: the caller guarantees that the address is NULL or valid.
    if let Some(group) = unsafe { group(found) } {
        received(span, result, group, status);
    }
}

/// Records the start of a receive.
///
/// # Safety
/// `request` must be NULL or valid.
pub(super) unsafe fn begun(result: c_int, request: *const Request, group: Group) {
    // SAFETY: the caller guarantees that `request` is NULL or valid.
    if let (OK, Some(request)) = (result, unsafe { request.as_ref() }) {
        requests::began(*request, group);
    }
}

/// Records the start of a receive after a matched probe; see [`received_of`] for `found`.
///
/// # Safety
/// `request` must be NULL or valid. The address must be NULL or that of a message.
pub(super) unsafe fn begun_of(
    result: c_int,
    request: *const Request,
    found: (Message, *const Message),
) {
    // SAFETY: the caller guarantees that the address is NULL or valid.
    if let Some(group) = unsafe { group(found) } {
        // SAFETY: the caller guarantees that `request` is NULL or valid.
        unsafe { begun(result, request, group) };
    }
}

/// Records the message that a matched probe has found. Returns `false` if there is none.
///
/// # Safety
/// `address` must be NULL or that of a message.
pub(super) unsafe fn found(address: *const Message, group: Group) -> bool {
    // SAFETY: the caller guarantees that `address` is NULL or valid.
    let message = unsafe { message(address) };
    requests::found(message, group);
    message != MESSAGE_NULL
}

/// Returns the message at an address, or `MESSAGE_NULL` if the address is NULL.
///
/// # Safety
/// `address` must be NULL or that of a message.
pub(super) unsafe fn message(address: *const Message) -> Message {
    // SAFETY: the caller guarantees that `address` is NULL or valid.
    unsafe { address.as_ref() }.copied().unwrap_or(MESSAGE_NULL)
}

/// Returns the group of a message that the call has received. Returns `None` if it has not received it.
///
/// # Safety
/// The address must be NULL or that of a message.
unsafe fn group((before, now): (Message, *const Message)) -> Option<Group> {
    // SAFETY: the caller guarantees that the address is NULL or valid.
    match unsafe { now.as_ref() }?.id {
        0 => requests::taken(before),
        _ => None,
    }
}

/// Records whether a test or a probe has found anything.
///
/// # Safety
/// `found` must be NULL or valid.
pub(super) unsafe fn looked(span: &mut Span, found: *const c_int) {
    // SAFETY: the caller guarantees that `found` is NULL or valid.
    if unsafe { found.as_ref() }.is_none_or(|found| *found == 0) {
        span.found_nothing();
    }
}

/// Returns the size of an element of this type, in bytes.
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

/// Returns the number of members of a group in which a call has just succeeded, or 0 if the group no longer exists.
pub(super) fn members(group: Group) -> usize {
    // SAFETY: the function accepts any handle.
    let size = unsafe { real::rg_size(group) };
    usize::try_from(size).unwrap_or_default()
}

/// Returns the sum of the lengths of the parts that this task sends, one to each member of a group.
///
/// # Safety
/// `lens` must be NULL or have a length for each member.
pub(super) unsafe fn given(lens: *const usize, group: Group) -> usize {
    if lens.is_null() {
        return 0;
    }
    // SAFETY: the caller guarantees a length for each member.
    let lens = unsafe { std::slice::from_raw_parts(lens, members(group)) };
    lens.iter().fold(0, |sum, len| sum.wrapping_add(*len))
}

/// Returns the number of bytes that this task contributes to a gather: `len`, or the length of its part of the output if its input is
/// in place.
///
/// # Safety
/// `lens` must be NULL or have a length for each member.
pub(super) unsafe fn own(
    input: *const c_void,
    len: usize,
    lens: *const usize,
    group: Group,
) -> usize {
    if input.addr() != IN_PLACE || lens.is_null() {
        return len;
    }
    // SAFETY: the function accepts any handle.
    match usize::try_from(unsafe { real::rg_rank(group) }) {
        // SAFETY: the caller guarantees a length for each member, and a rank is below their number.
        Ok(rank) => unsafe { *lens.add(rank) },
        Err(_) => len,
    }
}

/// Records that the process has become a task.
pub(super) fn joined() {
    // SAFETY: the function has no preconditions.
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

/// Records that the task has left the job.
pub(super) fn left() {
    let Some(map) = map() else { return };
    modules::note(map);
    file::note_processor(map);
    map[head::LEFT].store(now(), Relaxed);
}
