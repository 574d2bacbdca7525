//! The collectives of groups (gather, scatter, reduce) and broadcast.
//!
//! As in PVM only a member that gets data waits: when the call of another member returns, its contribution may still be
//! on its way to the root.

use std::cell::OnceCell;
use std::ffi::{c_char, c_int, c_void};

use super::{Group, answer, named};
use crate::arrival::failure;
use crate::life::enrol;
use crate::message::{self, codes};
use crate::state::library;
use crate::trace::calls::{self, Call};
use crate::trace::{self, Value, traced};
use crate::{receive, rg, send, tid};

/// Channel of collectives, beside that of announcements.
const CHANNEL: rg::Group = rg::channel((1 << 28) - 3);

/// PVM's reduction function. Arguments: type, accumulator (in and out), operand, number of items, error (out).
type Combine = unsafe extern "C" fn(*mut c_int, *mut c_void, *mut c_void, *mut c_int, *mut c_int);

/// Returns the size of `count` items in bytes. A string counts as single bytes.
fn bytes(count: c_int, datatype: c_int) -> Result<usize, i32> {
    let width = match datatype {
        codes::datatype::STR => 1,
        datatype => message::datatype_size(datatype).ok_or(codes::BAD_PARAM)?,
    };
    let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
    width.checked_mul(count).ok_or(codes::BAD_PARAM)
}

/// Sends bytes to a member. The memory can be reused when this returns.
unsafe fn give(task: i32, tag: c_int, data: *const c_void, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller guarantees that `data` is valid for `bytes` bytes.
    send::outcome(unsafe { rg::rg_bsend(data, bytes, task, tag & i32::MAX, CHANNEL) })
}

/// Waits for a message of exactly `bytes` bytes from a member.
unsafe fn get(task: i32, tag: c_int, data: *mut c_void, bytes: usize) -> Result<(), i32> {
    let mut status = rg::Status::default();
    let tag = tag & i32::MAX;
    // SAFETY: the caller guarantees room for `bytes` bytes.
    let code = unsafe { rg::rg_recv_within(data, bytes, task, tag, CHANNEL, -1.0, &mut status) };
    match code {
        rg::OK if status.length == bytes => Ok(()),
        rg::OK | rg::ERR_TRUNCATED => Err(codes::MISMATCH),
        code => match failure(code) {
            // As in PVM, a call that waits for a member that has ended waits forever.
            codes::NO_TASK => receive::wait_for_nobody(),
            code => Err(code),
        },
    }
}

/// A collective: the members of the group, and which of them are the root and this task.
struct Round {
    /// Tasks by instance number.
    tasks: Vec<Option<i32>>,
    root: usize,
    ours: usize,
}

impl Round {
    fn new(group: &mut Group, root: c_int) -> Result<Round, i32> {
        let ours = group.ours()? as usize;
        let tasks = group.members()?;
        let root = usize::try_from(root).map_err(|_| codes::NO_INST)?;
        match tasks.get(root) {
            Some(Some(_)) => Ok(Round { tasks, root, ours }),
            _ => Err(codes::NO_INST),
        }
    }

    /// Like [`Round::new`], but fails if an instance number is free.
    fn without_gaps(group: &mut Group, root: c_int) -> Result<Round, i32> {
        let round = Round::new(group, root)?;
        match round.has_gaps() {
            false => Ok(round),
            true => Err(codes::NO_INST),
        }
    }

    fn has_gaps(&self) -> bool {
        self.tasks.iter().any(Option::is_none)
    }

    fn root(&self) -> i32 {
        self.tasks[self.root].unwrap_or(rg::NONE)
    }

    fn is_ours(&self) -> bool {
        self.root == self.ours
    }

    /// Returns the members' instance numbers and tasks.
    fn members(&self) -> impl Iterator<Item = (usize, i32)> {
        let all = self.tasks.iter().copied().enumerate();
        all.filter_map(|(instance, task)| Some((instance, task?)))
    }

    /// Returns all members except this task.
    fn others(&self) -> impl Iterator<Item = (usize, i32)> {
        self.members()
            .filter(|(instance, _)| *instance != self.ours)
    }
}

/// # Safety
/// The same as for `pvm_reduce`.
unsafe fn reduce(
    group: &mut Group,
    combine: Option<Combine>,
    data: *mut c_void,
    (count, datatype): (c_int, c_int),
    tag: c_int,
    root: c_int,
) -> Result<i32, i32> {
    let bytes = bytes(count, datatype)?;
    let round = Round::new(group, root)?;
    if !round.is_ours() {
        // SAFETY: the caller guarantees that `data` is valid for `bytes` bytes.
        return unsafe { give(round.root(), tag, data, bytes) }.map(|()| 0);
    }
    let blocks = [message::spare(bytes)?, message::spare(bytes)?];
    let [first, next] = [&blocks[0], &blocks[1]].map(|block| block.body().cast::<c_void>());
    // Like PVM, combine in ascending order of tasks, so that of equal operands the first one stays.
    let mut all: *mut c_void = std::ptr::null_mut();
    let mut failed = 0;
    let mut tasks: Vec<i32> = round.tasks.iter().copied().flatten().collect();
    tasks.sort_unstable();
    for task in tasks {
        let place = match task == round.root() {
            true => data,
            false if all.is_null() => first,
            false => next,
        };
        // SAFETY: the blocks have room for `bytes` bytes, and the caller guarantees that `data` has, too.
        unsafe {
            if place != data {
                get(task, tag, place, bytes)?;
            }
            if all.is_null() {
                all = place;
                continue;
            }
            let combine = combine.ok_or(codes::BAD_PARAM)?;
            let (mut datatype, mut count, mut info) = (datatype, count, 0);
            combine(&mut datatype, all, place, &mut count, &mut info);
            failed = failed.min(info);
        }
    }
    if all != data {
        // SAFETY: both are valid for `bytes` bytes, and a block does not overlap the caller's memory.
        unsafe { data.cast::<u8>().copy_from(all.cast(), bytes) };
    }
    blocks.into_iter().for_each(message::give_back);
    match failed {
        0 => Ok(0),
        code => Err(code),
    }
}

/// # Safety
/// The same as for `pvm_gather`.
unsafe fn gather(
    group: &mut Group,
    (result, data): (*mut c_void, *const c_void),
    bytes: usize,
    tag: c_int,
    root: c_int,
) -> Result<i32, i32> {
    let round = Round::new(group, root)?;
    if !round.is_ours() {
        // The root refuses a group with gaps, so do not send what it would not receive.
        if round.has_gaps() {
            return Ok(0);
        }
        // SAFETY: the caller guarantees that `data` is valid for `bytes` bytes.
        return unsafe { give(round.root(), tag, data, bytes) }.map(|()| 0);
    }
    if round.has_gaps() {
        return Err(codes::NO_INST);
    }
    if result.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the caller guarantees room in `result` for the items of all members, ordered by instance.
    unsafe {
        result
            .byte_add(round.ours * bytes)
            .cast::<u8>()
            .copy_from(data.cast(), bytes);
        for (instance, task) in round.others() {
            get(task, tag, result.byte_add(instance * bytes), bytes)?;
        }
    }
    Ok(0)
}

/// # Safety
/// The same as for `pvm_scatter`.
unsafe fn scatter(
    group: &mut Group,
    (result, data): (*mut c_void, *const c_void),
    bytes: usize,
    tag: c_int,
    root: c_int,
) -> Result<i32, i32> {
    let round = Round::without_gaps(group, root)?;
    if !round.is_ours() {
        // SAFETY: the caller guarantees room in `result` for `bytes` bytes.
        return unsafe { get(round.root(), tag, result, bytes) }.map(|()| 0);
    }
    if data.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the caller guarantees that `data` holds the items of all members, ordered by instance.
    unsafe {
        for (instance, task) in round.others() {
            give(task, tag, data.byte_add(instance * bytes), bytes)?;
        }
        result
            .cast::<u8>()
            .copy_from(data.byte_add(round.ours * bytes).cast(), bytes);
    }
    Ok(0)
}

/// Sends the current send buffer to all other members, and returns their tids.
fn broadcast(group: &mut Group, tag: c_int) -> Result<Vec<c_int>, i32> {
    let me = library().task;
    let members = group.members()?;
    let others = members.iter().flatten().filter(|&&task| task != me);
    let others: Vec<c_int> = others.filter_map(|&task| tid::of_task(task)).collect();
    if others.is_empty() {
        return Err(codes::NO_INST);
    }
    if message::current().0 == 0 {
        return Err(codes::NO_BUF);
    }
    for &to in &others {
        send::send_buffer(0, to, tag, library().context)?;
    }
    message::sent(0, send::SEVERAL, tag, library().context);
    Ok(others)
}

/// Runs a collective, reports it to a tracer, and returns its result as the program gets it.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
#[inline(always)]
unsafe fn told(
    (call, function): (&'static Call, &str),
    name: *const c_char,
    tag: c_int,
    run: impl FnOnce() -> Result<i32, i32>,
) -> c_int {
    // SAFETY: the caller guarantees that `name` is a string or NULL.
    let entry = || [unsafe { trace::text(name) }, Value::Int(tag)];
    traced(call, entry, || answer(function, run()), trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_reduce(
    combine: Option<Combine>,
    data: *mut c_void,
    count: c_int,
    datatype: c_int,
    tag: c_int,
    name: *const c_char,
    root: c_int,
) -> c_int {
    let reduced = || -> Result<i32, i32> {
        enrol()?;
        if data.is_null() || count <= 0 {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract `name` is a string or NULL, and `data` holds `count` items.
        unsafe { reduce(named(name)?, combine, data, (count, datatype), tag, root) }
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    unsafe { told((calls::REDUCE, "pvm_reduce"), name, tag, reduced) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_gather(
    result: *mut c_void,
    data: *const c_void,
    count: c_int,
    datatype: c_int,
    tag: c_int,
    name: *const c_char,
    root: c_int,
) -> c_int {
    let gathered = || -> Result<i32, i32> {
        enrol()?;
        let bytes = bytes(count, datatype)?;
        if data.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract `name` is a string or NULL, `data` holds `count` items, and the root has room for
        // all.
        unsafe { gather(named(name)?, (result, data), bytes, tag, root) }
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    unsafe { told((calls::GATHER, "pvm_gather"), name, tag, gathered) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_scatter(
    result: *mut c_void,
    data: *const c_void,
    count: c_int,
    datatype: c_int,
    tag: c_int,
    name: *const c_char,
    root: c_int,
) -> c_int {
    let scattered = || -> Result<i32, i32> {
        enrol()?;
        let bytes = bytes(count, datatype)?;
        if result.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract `name` is a string or NULL, `result` has room for `count` items, and the root has
        // all.
        unsafe { scatter(named(name)?, (result, data), bytes, tag, root) }
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    unsafe { told((calls::SCATTER, "pvm_scatter"), name, tag, scattered) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_bcast(name: *const c_char, tag: c_int) -> c_int {
    let others = OnceCell::new();
    let sent = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let sent = unsafe { named(name) }.and_then(|group| broadcast(group, tag));
        answer("pvm_bcast", sent.map(|to| others.set(to).map_or(0, |()| 0)))
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let entry = || [unsafe { trace::text(name) }, Value::Int(tag)];
    let exit = |code| {
        let to = others.get().map_or(&[][..], Vec::as_slice);
        [Value::Int(code), Value::Ints(to)]
    };
    traced(calls::BCAST, entry, sent, exit)
}
