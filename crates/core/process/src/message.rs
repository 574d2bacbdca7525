//! Sends, receives, probes, and completion, in groups and ranks.
//!
//! Names: `_alone` works where only one thread has ever called; `_now` for any thread, if the lock is free. Both do nothing where they cannot.
//!
//! *Rules of small blocking sends and receives whose message can go or is there:* one pass
//! through the lock, no request, no allocation, no clock, no system call unless the receiver sleeps. (docs/hot-paths.md names the test.)

use std::time::Duration;

pub use regatta_engine::SentLine;
use regatta_engine::{
    Engine, Error, Frames, GroupId, Handle, Mode, Peer, Result, Select, Status, TagSelect,
};
use regatta_memory::views::Views;
use regatta_transport::paths::Paths;

use crate::deadlock_detector::{DeadlockDetector, is_single};
pub use crate::state::{ANY, NONE};
use crate::state::{
    Callback, Held, Process, enter, inside_or, progress_and_look, progress_and_look_at,
};
use crate::wait::{Awaited, wait_for, wake_other_threads};
pub use regatta_memory::ring::INLINE as LINE;

/// Number of polls of a blocking receive before it becomes a request: about as long as an answer takes.
pub(crate) const POLLS_BEFORE_REQUEST: u32 = 1000;
/// Time for which a wait may depend on tasks that have not been heard, while others fill the buffer.
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
        // Messages that it had sent are received all the same.
        Err(Error::Dead(peer)) => (peer, process.context(group)?),
        address => address?,
    };
    Ok(Select {
        context,
        source: Some(peer),
        tag,
    })
}

/// A tag as callers write it: exact, or any.
#[inline(always)]
pub fn tag_select(tag: i32) -> TagSelect {
    if tag == ANY {
        TagSelect::Any
    } else {
        TagSelect::Exactly(tag)
    }
}

/// Send a small message at once. False: nothing has happened; `send` does it or says why not.
#[inline(always)]
pub fn send_now(message: &Views, to: i32, tag: i32, group: GroupId) -> bool {
    inside_or!(enter_now, process, false);
    let Some((to, context)) = process.address_now(group, to) else {
        return false;
    };
    tag >= 0 && process.engine.send_now(to, context, tag, message)
}

/// Send at once, as [`send_now`] does, a message that fits into a line of a ring, [`LINE`] bytes, to a rank of the world, by the thread that the lock is biased to: the first, as long as no second one has called. It does not wake a sleeper ([`wake_receiver`]).
///
/// Each store of this path waits in line with those to shared memory, which take as long as a line takes from core to core: the more of them a
/// message has, the fewer messages are on their way at once. So it is one leaf: all that would be a call is left to others.
#[inline(always)]
pub fn send_line_alone(message: &Views, to: i32, tag: i32, group: GroupId) -> SentLine {
    if group != GroupId::WORLD {
        return SentLine::No;
    }
    inside_or!(enter_alone, process, SentLine::No);
    // To look a task up among those that are gone would be a call.
    if tag < 0 || !process.is_world_rank(group, to) || !process.engine.is_nobody_gone() {
        return SentLine::No;
    }
    let to = process.first + to as u32;
    process.engine.send_line_now(to, 0, tag, message)
}

/// As [`send_line_alone`], in any group and by any thread; it wakes a sleeper itself. False: nothing has happened.
#[inline(always)]
pub fn send_line_now(message: &Views, to: i32, tag: i32, group: GroupId) -> bool {
    inside_or!(enter_now, process, false);
    let Some((to, context)) = process.address_now(group, to) else {
        return false;
    };
    if tag < 0 {
        return false;
    }
    let sent = process.engine.send_line_now(to, context, tag, message);
    if sent == SentLine::ToSleeper {
        process.engine.transport.wake(to);
    }
    sent != SentLine::No
}

/// A line has gone to a sleeper ([`SentLine::ToSleeper`]), who is this rank of the world: it is woken.
#[cold]
pub fn wake_receiver(to: i32) {
    if let Ok(mut held) = enter() {
        let peer = held.first + to as u32;
        held.engine.transport.wake(peer);
    }
}

/// Send; blocks until the memory may be reused (or, synchronous, until the receiver has begun).
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

/// Wait for a send that no caller knows of: after an error its message is not on its way any more.
fn finish_send(handle: Handle, to: Peer) -> Result<()> {
    let waited = wait_for(Completion {
        handle,
        detector: Some(DeadlockDetector::new(to, true)),
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

/// Wait for a send whose memory is its caller's again, also after an error.
pub fn end_send(handle: Handle) -> Result<()> {
    let to = enter()?.engine.destination(handle);
    match to {
        Some(to) => finish_send(handle, to),
        None => wait_or_forget(handle)?.1.map_or(Ok(()), Err),
    }
}

/// Start a send.
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

/// Would a receive with these arguments be accepted?
pub fn check_receive(from: i32, tag: TagSelect, group: GroupId) -> Result<()> {
    let held = enter()?;
    if from != NONE {
        selection(&held, group, from, tag)?;
    }
    Ok(())
}

/// Receive a small message of this source and tag if it comes soon: its length. `None`: nothing
/// has happened; `receive` waits for it or says why not.
#[inline(always)]
pub fn receive_alone(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<usize> {
    inside_or!(enter_alone, process, None);
    if tag < 0 {
        return None;
    }
    let (from, context) = process.address_now(group, from)?;
    process.receive_soon(from, context, tag, into)
}

impl Process {
    /// Receive a small message of this peer if it is the next one there, or soon is; `None`: it is not, and nothing has happened.
    #[inline(always)]
    pub(crate) fn receive_soon(
        &mut self,
        from: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        let engine = &mut self.engine;
        let looks = if self.pace.spins() {
            POLLS_BEFORE_REQUEST
        } else {
            1
        };
        for look in 0..looks {
            let got = engine.receive_now(from, context, tag, into);
            if got.is_some() {
                return got;
            }
            if engine.must_start(from) {
                // It may be the message itself, which has come between the two looks.
                return engine.receive_now(from, context, tag, into);
            }
            if look == 0 {
                engine.prepare(from);
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// Receive; blocks until a message has come. The error is the operation's own and comes with the
/// status (a truncated message has arrived, in part).
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

/// Receive the next message, whatever its length, into memory that `room` makes for so many bytes; blocks until one has come.
/// No other thread can take that message meanwhile: `room` is called under the lock. When it fails, the message stays.
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
        // Another thread may have taken it meanwhile.
        let Some(seen) = held.engine.probe(&select)? else {
            continue;
        };
        let into = room(seen.length)?;
        let handle = held.engine.start_receive(just(&seen), into)?;
        drop(held);
        return wait_or_forget(handle);
    }
}

/// Selects the message that the engine has just seen, under the lock of that look.
pub(crate) fn just(seen: &Status) -> Select {
    Select {
        context: seen.context,
        source: Some(seen.source as Peer),
        tag: TagSelect::Exactly(seen.tag),
    }
}

/// As [`post_receive_now`], of a rank of the world, by the only thread that calls: a leaf, as [`send_line_alone`] is.
#[inline(always)]
pub fn post_receive_alone(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<Handle> {
    if group != GroupId::WORLD {
        return None;
    }
    inside_or!(enter_alone, process, None);
    if tag < 0 || !process.is_world_rank(group, from) || !process.engine.is_nobody_gone() {
        return None;
    }
    let from = process.first + from as u32;
    process.engine.post_now(from, 0, tag, into)
}

/// Start to receive a message of this source and tag, if nothing else is being waited for, without a look whether it is there. `None`:
/// nothing has happened.
#[inline(always)]
pub fn post_receive_now(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<Handle> {
    inside_or!(enter_now, process, None);
    if tag < 0 {
        return None;
    }
    let (from, context) = process.address_now(group, from)?;
    process.engine.post_now(from, context, tag, into)
}

/// Start a receive.
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

/// A message that could be received now, without receiving it.
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

/// Blocks until there is a message that could be received.
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

/// Looks for a message before a call waits for it, if perhaps none can come any more: the wait itself would notice only at the next departure.
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

/// Whether no other thread of this task could send to the task itself.
fn is_alone(engine: &Engine<Paths>) -> bool {
    is_single(&engine.transport)
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

    fn poll(&mut self, process: &mut Process) -> Result<Option<Status>> {
        self.look(process)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        check_wait(process, &self.0, waited)
    }
}

/// A request's completion.
struct Completion {
    handle: Handle,
    /// Sends may be part of a cycle of blocked senders.
    detector: Option<DeadlockDetector>,
}

impl Awaited for Completion {
    type Output = (Status, Option<Error>);
    const PROGRESSES: bool = true;

    #[inline(always)]
    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>> {
        // Before progress: what the others do about the ring must not make it look as if
        // nothing had been wrong.
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

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if let (false, Some(detector)) = (asleep, &mut self.detector) {
            detector.awake(process);
        }
        true
    }
}

/// Ends one of these requests if nobody can complete any of them any more; whether one has ended.
fn end_hopeless(process: &mut Process, handles: &[Handle]) -> bool {
    let handles = handles.iter().copied();
    process.engine.end_hopeless(handles, is_alone)
}

/// Waiting for a message while the buffer is full of others nobody receives: it may never come.
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

/// A task waits for a message that may never come: nobody is left to send it, or the buffer is full of others.
pub(crate) fn check_wait(process: &mut Process, select: &Select, waited: Duration) -> Result<()> {
    process.engine.check_hope(select, is_alone)?;
    match is_kept_out(process, select.source, waited) {
        true => Err(kept_out_error(process)),
        false => process.check_launcher(waited),
    }
}

fn kept_out_error(process: &Process) -> Error {
    let engine = &process.engine;
    // Offers and loans hold none of the buffer's bytes, but there may only be so many.
    let full = match engine.buffered() >= engine.settings().buffer {
        true => format!("{} bytes of messages", engine.buffered()),
        false => format!("{} messages", engine.waiting()),
    };
    Error::Memory(format!(
        "{full} wait for receives that have not been made, which is the limit of this task, so the \
         message waited for cannot come in; receive them first, or raise REGATTA_BUFFER"
    ))
}

/// Can what is waited for not come while the buffer is full? A message that must come from one task surely
/// cannot when that task's messages are held up; anything else may depend on others, which are given
/// time.
fn is_kept_out(process: &mut Process, source: Option<Peer>, waited: Duration) -> bool {
    if !process.engine.buffer_is_full() {
        return false;
    }
    // Frames that can come in are not held up.
    process.engine.progress();
    match source {
        Some(source) => process.engine.holds_up(source),
        None => waited > UNHEARD_SENDERS_TIMEOUT && process.engine.holds_up_some(),
    }
}

/// Enters; callbacks that are due have been run. A program may wait for one by calls that have nothing to wait for themselves.
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

/// The outcome of a request; blocks until it is complete. The handle is then used up.
#[inline(always)]
pub fn wait(handle: Handle) -> Result<(Status, Option<Error>)> {
    let mut held = enter_after_callbacks()?;
    // An answer is often on its way: look a few times before taking the time of day.
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
    wait_for(Completion { handle, detector })
}

/// As `wait`, for blocking calls: after an error of waiting itself the operation must not go on,
/// because its memory is its caller's again.
#[inline(always)]
pub(crate) fn wait_or_forget(handle: Handle) -> Result<(Status, Option<Error>)> {
    let waited = wait(handle);
    if waited.is_err() {
        forget(handle)?;
    }
    waited
}

/// Give an operation up: its memory is not touched again. A message that has not been sent is not sent, a
/// receive takes no message, and the other members of a collective wait in vain. Of a stale
/// handle there is nothing to give up.
#[cold]
pub fn forget(handle: Handle) -> Result<()> {
    enter()?.engine.forget(handle);
    Ok(())
}

/// The outcomes of many requests, in their order, each passed to `each`; blocks until all are
/// complete.
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

/// The outcome of a request if it is complete now; makes progress.
pub fn test(handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
    progress_and_look(|process| {
        let finished = process.engine.finish(handle)?;
        Ok(finished.map(|(status, error)| (process.in_ranks(status), error)))
    })
}

/// As [`test()`], and the request stays.
pub fn look_at(handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
    progress_and_look_at(handle, |process| {
        let seen = process.engine.look_at_request(handle)?;
        Ok(seen.map(|(status, error)| (process.in_ranks(status), error)))
    })
}

/// Are all complete now? Makes progress; consumes nothing.
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

struct AnyOf<'a> {
    handles: &'a [Option<Handle>],
    /// All are sends to one task.
    detector: Option<DeadlockDetector>,
}

impl Awaited for AnyOf<'_> {
    type Output = usize;
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<usize>> {
        if let Some(detector) = &mut self.detector
            && detector.is_told(process)
        {
            if !detector.is_over()
                && let Some(done) = any_done(process, self.handles)?
            {
                return Ok(Some(done));
            }
            return detector.leave(process, None).map(|_| None);
        }
        process.engine.progress();
        any_done(process, self.handles)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        let open: Vec<Handle> = self.handles.iter().copied().flatten().collect();
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

fn any_done(process: &Process, handles: &[Option<Handle>]) -> Result<Option<usize>> {
    for (index, handle) in handles.iter().enumerate() {
        if let Some(handle) = handle
            && process.engine.is_done(*handle)?
        {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Which of these requests is complete; blocks until one is. Consumes nothing.
pub fn wait_any(handles: &[Option<Handle>]) -> Result<usize> {
    let mut held = enter()?;
    if let Some(done) = any_done(&held, handles)? {
        return Ok(done);
    }
    if !held.engine.is_nobody_gone() {
        let open: Vec<Handle> = handles.iter().copied().flatten().collect();
        end_hopeless(&mut held, &open);
    }
    let mut open = handles.iter().flatten();
    let mut to = open.next().and_then(|&one| held.engine.destination(one));
    for &other in open {
        to = to.filter(|&to| held.engine.destination(other) == Some(to));
    }
    drop(held);
    let detector = to.map(|to| DeadlockDetector::new(to, false));
    wait_for(AnyOf { handles, detector })
}

/// Which of these requests is complete now; makes progress, consumes nothing.
pub fn test_any(handles: &[Option<Handle>]) -> Result<Option<usize>> {
    progress_and_look(|process| any_done(process, handles))
}

/// Call back at completion, from a later call of some thread. The handle is then used up.
pub fn on_complete(handle: Handle, callback: Callback) -> Result<()> {
    enter()?.call_back(handle, callback)
}

/// Cancel a receive that has no message yet; it then completes as cancelled. Also when its
/// completion calls back.
pub fn cancel(handle: Handle) -> Result<bool> {
    enter()?.engine.cancel(handle)
}

/// Cancels a receive that has not matched yet, and says whether it was one. Sends go on.
pub fn cancel_receive(handle: Handle) -> Result<bool> {
    enter()?.engine.cancel_receive(handle)
}
