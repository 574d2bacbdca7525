//! Sends, receives, probes, and completion, in groups and ranks.
//!
//! Small messages that can be sent at once, or have arrived, use a faster path ([`fast`](crate::fast)).

use std::time::Duration;

use regatta_engine::{
    Engine, Error, GroupId, Handle, Mode, Peer, Result, Select, Status, TagSelect,
};
use regatta_memory::views::Views;
use regatta_transport::paths::Paths;

use crate::deadlock_detector::{DeadlockDetector, is_single};
use crate::fast::POLLS_BEFORE_REQUEST;
pub use crate::state::{ANY, NONE};
use crate::state::{Callback, Held, Process, enter, progress_and_look, progress_and_look_at};
use crate::wait::{Awaited, wait_for, wake_other_threads};

/// Time for which a wait may depend on tasks from which nothing was received, while messages of others fill the buffer.
const UNHEARD_SENDERS_TIMEOUT: Duration = Duration::from_secs(10);

#[inline(always)]
pub(crate) fn check_tag(tag: i32) -> Result<()> {
    if tag < 0 {
        return Err(Error::Tag(tag as i64));
    }
    Ok(())
}

#[inline(always)]
pub(crate) fn selection(
    process: &Process,
    group: GroupId,
    from: i32,
    tag: TagSelect,
) -> Result<Select> {
    if let TagSelect::Exactly(tag) = tag {
        check_tag(tag)?;
    }
    if from == ANY {
        return Ok(Select {
            context: process.context(group)?,
            source: None,
            tag,
        });
    }
    let (peer, context) = match process.address(group, from) {
        // Messages that a dead member has sent before can still be received.
        Err(Error::Dead(peer)) => (peer, process.context(group)?),
        address => address?,
    };
    Ok(Select {
        context,
        source: Some(peer),
        tag,
    })
}

/// Returns the selection for a tag as callers pass it: exact, or any.
#[inline(always)]
pub fn tag_select(tag: i32) -> TagSelect {
    if tag == ANY {
        TagSelect::Any
    } else {
        TagSelect::Exactly(tag)
    }
}

/// Sends a message. Blocks until its memory may be reused or, if synchronous, until the receiver has begun.
#[inline(never)]
pub fn send(message: Views, to: i32, tag: i32, group: GroupId, mode: Mode) -> Result<()> {
    let mut held = enter()?;
    check_tag(tag)?;
    if to == NONE {
        held.check_open(group)?;
        return Ok(());
    }
    let (peer, context) = held.address(group, to)?;
    let handle = held.engine.start_send(peer, context, tag, message, mode)?;
    drop(held);
    if handle == Handle::COMPLETE {
        wake_other_threads();
        return Ok(());
    }
    finish_send(handle, peer)
}

/// Waits for a send whose handle no caller has. After an error the message is not in transfer any more.
fn finish_send(handle: Handle, to: Peer) -> Result<()> {
    let waited = wait_for(Completion {
        handle,
        detector: Some(DeadlockDetector::new(to, true)),
        crosses: false,
    });
    match waited {
        Ok((_, None)) => Ok(()),
        Ok((_, Some(error))) => Err(error),
        Err(error) => {
            enter()?.engine.forget(handle);
            Err(error)
        }
    }
}

/// Waits for a send. Its memory belongs to the caller again afterwards, even after an error.
pub fn end_send(handle: Handle) -> Result<()> {
    let to = enter()?.engine.destination(handle);
    match to {
        Some(to) => finish_send(handle, to),
        None => wait_or_forget(handle)?.1.map_or(Ok(()), Err),
    }
}

/// Starts a send.
#[inline(never)]
pub fn start_send(message: Views, to: i32, tag: i32, group: GroupId, mode: Mode) -> Result<Handle> {
    let mut held = enter()?;
    check_tag(tag)?;
    if to == NONE {
        held.check_open(group)?;
        return Ok(Handle::COMPLETE);
    }
    let (peer, context) = held.address(group, to)?;
    let engine = &mut held.engine;
    let handle = match engine.start_send(peer, context, tag, message, mode) {
        Ok(handle) => handle,
        Err(error) => engine.start_stranded(context, error)?,
    };
    drop(held);
    if handle == Handle::COMPLETE {
        wake_other_threads();
    }
    Ok(handle)
}

/// Fails if a receive with these arguments would not be accepted.
pub fn check_receive(from: i32, tag: TagSelect, group: GroupId) -> Result<()> {
    let held = enter()?;
    if from != NONE {
        selection(&held, group, from, tag)?;
    }
    Ok(())
}

/// Receives a message. Blocks until one has arrived. The error beside the status is that of the operation: for example, a truncated message has
/// arrived in part.
#[inline(never)]
pub fn receive(
    into: Views,
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<(Status, Option<Error>)> {
    let mut held = enter()?;
    if from == NONE {
        held.check_open(group)?;
        return Ok((Status::EMPTY, None));
    }
    let select = selection(&held, group, from, tag)?;
    let handle = held.engine.start_receive(select, into)?;
    drop(held);
    wait_or_forget(handle)
}

/// Receives the next message, whatever its length, into memory that `room` returns for this number of bytes. Blocks until one has arrived. `room` is
/// called under the lock, so no other thread can take that message meanwhile. If `room` fails, the message stays.
pub fn receive_sized(
    from: i32,
    tag: TagSelect,
    group: GroupId,
    mut room: impl FnMut(usize) -> Result<Views>,
) -> Result<(Status, Option<Error>)> {
    if from == NONE {
        enter()?.check_open(group)?;
        return Ok((Status::EMPTY, None));
    }
    loop {
        probe(from, tag, group)?;
        let mut held = enter()?;
        let select = selection(&held, group, from, tag)?;
        // Another thread may have taken the message meanwhile.
        let Some(seen) = held.engine.probe(&select)? else {
            continue;
        };
        let into = room(seen.length)?;
        let handle = held.engine.start_receive(just(&seen), into)?;
        drop(held);
        return wait_or_forget(handle);
    }
}

/// Selects the message that the engine has just found, while the lock is still held.
pub(crate) fn just(seen: &Status) -> Select {
    Select {
        context: seen.context,
        source: Some(seen.source as Peer),
        tag: TagSelect::Exactly(seen.tag),
    }
}

/// Starts a receive.
#[inline(never)]
pub fn start_receive(into: Views, from: i32, tag: TagSelect, group: GroupId) -> Result<Handle> {
    let mut held = enter()?;
    if from == NONE {
        held.check_open(group)?;
        return Ok(Handle::COMPLETE);
    }
    let select = selection(&held, group, from, tag)?;
    held.engine.start_receive(select, into)
}

/// Returns the status of a message that could be received now, without receiving it.
pub fn probe_now(from: i32, tag: TagSelect, group: GroupId) -> Result<Option<Status>> {
    if from == NONE {
        enter_after_callbacks()?.check_open(group)?;
        return Ok(Some(Status::EMPTY));
    }
    progress_and_look(|process| {
        let select = selection(process, group, from, tag)?;
        Probe(select).look(process)
    })
}

/// Blocks until there is a message that could be received, and returns its status.
pub fn probe(from: i32, tag: TagSelect, group: GroupId) -> Result<Status> {
    if from == NONE {
        enter()?.check_open(group)?;
        return Ok(Status::EMPTY);
    }
    let select = selection(&*enter()?, group, from, tag)?;
    let probe = Probe(select);
    if let Some(found) = look_before_waiting(&select, |process| probe.look(process))? {
        return Ok(found);
    }
    wait_for(probe)
}

/// Polls for a message before a call waits for it, if possibly none can arrive any more: the wait itself would notice that only at the next
/// departure.
pub(crate) fn look_before_waiting<T>(
    select: &Select,
    look: impl FnOnce(&mut Process) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut held = enter()?;
    if held.engine.is_nobody_gone() {
        return Ok(None);
    }
    let found = look(&mut held)?;
    if found.is_none() {
        held.engine.check_hope(select, is_alone)?;
    }
    Ok(found)
}

/// Returns whether no other thread of this task could send to the task itself.
fn is_alone(engine: &Engine<Paths>) -> bool {
    is_single(engine.transport())
}

struct Probe(Select);

impl Probe {
    fn look(&self, process: &mut Process) -> Result<Option<Status>> {
        let found = process.engine.probe(&self.0)?;
        Ok(found.map(|status| process.in_ranks(status)))
    }
}

impl Awaited for Probe {
    type Output = Status;
    const PROGRESSES: bool = false;
    const INTERRUPTIBLE: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Status>> {
        self.look(process)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        check_wait(process, &self.0, waited)
    }
}

/// Waits for the completion of a request.
struct Completion {
    handle: Handle,
    /// For sends, which may be part of a cycle of blocked senders.
    detector: Option<DeadlockDetector>,
    /// Whether the request is of a collective whose members are on several hosts.
    crosses: bool,
}

impl Awaited for Completion {
    type Output = (Status, Option<Error>);
    const PROGRESSES: bool = true;
    const INTERRUPTIBLE: bool = true;

    #[inline(always)]
    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>> {
        // Check before progress, which could change the state of the ring and so hide that there was a cycle.
        if let Some(detector) = &mut self.detector
            && detector.is_told(process)
        {
            return detector.leave(process, Some(self.handle));
        }
        process.engine.progress();
        let finished = process.engine.finish(self.handle)?;
        Ok(finished.map(|(status, error)| (process.in_ranks(status), error)))
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        if end_hopeless(process, &[self.handle]) {
            return Ok(());
        }
        match &mut self.detector {
            Some(detector) => detector.check(process, waited),
            None => buffer_check(process, &[self.handle], waited),
        }
    }

    fn patience(&self) -> Duration {
        match &self.detector {
            Some(detector) => detector.patience(),
            None => crate::wait::MAX_SLEEP,
        }
    }

    fn is_worth_patience(&self) -> bool {
        self.crosses
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if let (false, Some(detector)) = (asleep, &mut self.detector) {
            detector.awake(process);
        }
        true
    }
}

/// Fails one of these requests if none of them can complete any more. Returns whether one has failed.
fn end_hopeless(process: &mut Process, handles: &[Handle]) -> bool {
    let handles = handles.iter().copied();
    process.engine.end_hopeless(handles, is_alone)
}

/// Fails if the awaited message may never arrive because the buffer is full of other messages.
fn buffer_check(process: &mut Process, handles: &[Handle], waited: Duration) -> Result<()> {
    let kept_out = |&handle: &Handle| {
        let source = process.engine.source(handle);
        is_kept_out(process, source, waited)
    };
    if handles.iter().all(kept_out) {
        return Err(kept_out_error(process));
    }
    process.check_launcher(waited)
}

/// Fails if the awaited message may never arrive: no task is left to send it, or the buffer is full of other messages.
pub(crate) fn check_wait(process: &mut Process, select: &Select, waited: Duration) -> Result<()> {
    process.engine.check_hope(select, is_alone)?;
    match is_kept_out(process, select.source, waited) {
        true => Err(kept_out_error(process)),
        false => process.check_launcher(waited),
    }
}

fn kept_out_error(process: &Process) -> Error {
    let engine = &process.engine;
    // Offers and loans take no bytes of the buffer, but their number is limited.
    let full = match engine.buffered() >= engine.settings().buffer {
        true => format!("{} bytes of messages", engine.buffered()),
        false => format!("{} messages", engine.waiting()),
    };
    Error::Memory(format!(
        "{full} wait for receives that have not been posted; this is the limit of this task, so the expected message cannot arrive. Receive the waiting messages first, or raise REGATTA_BUFFER"
    ))
}

/// Returns whether the awaited message cannot arrive while the buffer is full. This is certain if it must come from one task whose frames are held
/// up. Otherwise it may depend on other tasks, which are given time.
fn is_kept_out(process: &mut Process, source: Option<Peer>, waited: Duration) -> bool {
    if !process.engine.buffer_is_full() {
        return false;
    }
    // Frames that can be accepted are not held up.
    process.engine.progress();
    match source {
        Some(source) => process.engine.holds_up(source),
        None => waited > UNHEARD_SENDERS_TIMEOUT && process.engine.holds_up_some(),
    }
}

/// Enters after running callbacks that are due. A program may wait for a callback by calls that have nothing to wait for themselves.
#[inline(always)]
fn enter_after_callbacks() -> Result<Held> {
    let held = enter()?;
    if !held.engine.has_due_callbacks() {
        return Ok(held);
    }
    drop(held);
    crate::state::run_callbacks()?;
    enter()
}

/// Returns the outcome of a request. Blocks until it is complete. The handle becomes invalid.
#[inline(always)]
pub fn wait(handle: Handle) -> Result<(Status, Option<Error>)> {
    let mut held = enter_after_callbacks()?;
    // An answer often arrives soon: poll a few times before reading the clock.
    let looks = if held.pace.spins() {
        POLLS_BEFORE_REQUEST / 10
    } else {
        1
    };
    for _ in 0..looks {
        if let Some((status, error)) = held.engine.finish(handle)? {
            return Ok((held.in_ranks(status), error));
        }
        held.engine.progress();
        if held.engine.has_due_callbacks() {
            break;
        }
    }
    end_hopeless(&mut held, &[handle]);
    let to = held.engine.destination(handle);
    drop(held);
    let detector = to.map(|to| DeadlockDetector::new(to, false));
    wait_for(Completion {
        handle,
        detector,
        crosses: false,
    })
}

/// Does the same as `wait_or_forget`, for a request of a collective. `crosses` says whether its members are on several hosts.
pub(crate) fn wait_for_collective(handle: Handle, crosses: bool) -> Result<()> {
    if !crosses {
        return wait_or_forget(handle)?.1.map_or(Ok(()), Err);
    }
    let to = enter()?.engine.destination(handle);
    let waited = wait_for(Completion {
        handle,
        detector: to.map(|to| DeadlockDetector::new(to, false)),
        crosses,
    });
    if waited.is_err() {
        forget(handle)?;
    }
    waited?.1.map_or(Ok(()), Err)
}

/// Does the same as `wait`, for blocking calls: if waiting itself fails, the operation is given up, because its memory belongs to the caller again.
#[inline(always)]
pub(crate) fn wait_or_forget(handle: Handle) -> Result<(Status, Option<Error>)> {
    let waited = wait(handle);
    if waited.is_err() {
        forget(handle)?;
    }
    waited
}

/// Gives an operation up: its memory is not accessed again. A message that has not been sent is not sent, a receive takes no message, and a
/// collective cannot complete at the other members. Does nothing for a stale handle.
#[cold]
pub fn forget(handle: Handle) -> Result<()> {
    enter()?.engine.forget(handle);
    Ok(())
}

/// Blocks until all of many requests are complete, and passes their outcomes to `each`, in order.
#[inline(always)]
pub fn wait_all(
    handles: impl Iterator<Item = Handle>,
    mut each: impl FnMut(usize, Status, Option<Error>),
) -> Result<()> {
    let mut held = enter_after_callbacks()?;
    for (index, handle) in handles.enumerate() {
        let outcome = match held.engine.finish(handle)? {
            Some((status, error)) => (held.in_ranks(status), error),
            None => {
                drop(held);
                let outcome = wait(handle)?;
                held = enter()?;
                outcome
            }
        };
        each(index, outcome.0, outcome.1);
    }
    Ok(())
}

/// Makes progress, and returns the outcome of a request if it is complete. The handle then becomes invalid.
pub fn test(handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
    progress_and_look(|process| {
        let finished = process.engine.finish(handle)?;
        Ok(finished.map(|(status, error)| (process.in_ranks(status), error)))
    })
}

/// Does the same as [`test()`], without releasing the request.
pub fn look_at(handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
    progress_and_look_at(handle, |process| {
        let seen = process.engine.look_at_request(handle)?;
        Ok(seen.map(|(status, error)| (process.in_ranks(status), error)))
    })
}

/// Makes progress, and returns whether all requests are complete. Releases none.
pub fn all_done(mut handles: impl Iterator<Item = Handle>) -> Result<bool> {
    let done = progress_and_look(|process| {
        for handle in handles.by_ref() {
            if !process.engine.is_done(handle)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    Ok(done.is_some())
}

struct AnyOf<F> {
    requests: Several<F>,
    /// Present if all are sends to one task.
    detector: Option<DeadlockDetector>,
}

impl<F: Fn(usize) -> Option<Handle>> Awaited for AnyOf<F> {
    type Output = usize;
    const PROGRESSES: bool = true;
    const INTERRUPTIBLE: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<usize>> {
        if let Some(detector) = &mut self.detector
            && detector.is_told(process)
        {
            if !detector.is_over()
                && let Some(done) = self.requests.any_done(process)?
            {
                return Ok(Some(done));
            }
            return detector.leave(process, None).map(|_| None);
        }
        process.engine.progress();
        self.requests.any_done(process)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        let open: Vec<Handle> = self.requests.open().collect();
        if end_hopeless(process, &open) {
            return Ok(());
        }
        match &mut self.detector {
            Some(detector) => detector.check(process, waited),
            None => buffer_check(process, &open, waited),
        }
    }

    fn patience(&self) -> Duration {
        match &self.detector {
            Some(detector) => detector.patience(),
            None => crate::wait::MAX_SLEEP,
        }
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if let (false, Some(detector)) = (asleep, &mut self.detector) {
            detector.awake(process);
        }
        true
    }
}

/// Several requests. `of` returns the request at an index, or `None` if there is none.
struct Several<F> {
    count: usize,
    of: F,
}

impl<F: Fn(usize) -> Option<Handle>> Several<F> {
    fn open(&self) -> impl Iterator<Item = Handle> {
        (0..self.count).filter_map(&self.of)
    }

    fn any_done(&self, process: &Process) -> Result<Option<usize>> {
        for index in 0..self.count {
            if let Some(handle) = (self.of)(index)
                && process.engine.is_done(handle)?
            {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// Blocks until one of `count` requests is complete, and returns its index. Releases none. `of` returns the request at an index, or `None` if there
/// is none.
pub fn wait_any(count: usize, of: impl Fn(usize) -> Option<Handle>) -> Result<usize> {
    let requests = Several { count, of };
    let mut held = enter()?;
    if let Some(done) = requests.any_done(&held)? {
        return Ok(done);
    }
    if !held.engine.is_nobody_gone() {
        let open: Vec<Handle> = requests.open().collect();
        end_hopeless(&mut held, &open);
    }
    let mut open = requests.open();
    let mut to = open.next().and_then(|one| held.engine.destination(one));
    for other in open {
        to = to.filter(|&to| held.engine.destination(other) == Some(to));
        if to.is_none() {
            break;
        }
    }
    drop(held);
    let detector = to.map(|to| DeadlockDetector::new(to, false));
    wait_for(AnyOf { requests, detector })
}

/// Makes progress, and returns the index of a request that is complete, if any, as [`wait_any`] does. Releases none.
pub fn test_any(count: usize, of: impl Fn(usize) -> Option<Handle>) -> Result<Option<usize>> {
    let requests = Several { count, of };
    progress_and_look(|process| requests.any_done(process))
}

/// Registers a callback for completion, which runs in a later call of any thread. The handle becomes invalid.
pub fn on_complete(handle: Handle, callback: Callback) -> Result<()> {
    enter()?.call_back(handle, callback)
}

/// Cancels a receive that has no message yet: it completes as cancelled. Also accepts a handle whose completion calls back.
pub fn cancel(handle: Handle) -> Result<bool> {
    enter()?.engine.cancel(handle)
}

/// Cancels a receive that has no message yet. Returns whether the request was one. Sends are not affected.
pub fn cancel_receive(handle: Handle) -> Result<bool> {
    enter()?.engine.cancel_receive(handle)
}
