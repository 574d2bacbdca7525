//! The process's engine and its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use regatta_engine::{Engine, Error, GroupId, Handle, Peer, Result, Status, Upkeep};
use regatta_memory::bell::Fencing;
use regatta_memory::biased::{Biased, Guard, Refusal};
use regatta_segment::job::Job;
use regatta_transport::paths::Paths;
use rustc_hash::FxHashMap;

use crate::in_vain::InVain;
use crate::launcher_socket::Control;
use crate::pace::Pace;

/// A completion callback. The status contains the source as a rank.
pub type Callback = Box<dyn FnOnce(Status, Option<Error>) + Send>;

/// The state of a task.
pub(crate) struct Process {
    pub(crate) engine: Engine<Paths>,
    pub(crate) job: Arc<Job>,
    /// The number of the first task of this task's world.
    pub(crate) first: Peer,
    /// How the task waits.
    pub(crate) pace: Pace,
    /// The memory fences by which it sleeps.
    pub(crate) fencing: Fencing,
    pub(crate) callbacks: FxHashMap<u64, Callback>,
    pub(crate) next_callback: u64,
    /// Successive unsuccessful polls of nonblocking calls.
    pub(crate) in_vain: InVain,
    /// The sender of the last message received from any source: it may get the next answer.
    pub(crate) last_source: Peer,
    /// Unreachable tasks for which this one has stopped waiting, with the launcher's sentence.
    pub(crate) given_up: FxHashMap<Peer, String>,
    /// Number of times that messages of the launcher were received.
    pub(crate) heard: u64,
    /// Number of loans being sent to other hosts as copies, for which no caller waits.
    pub(crate) copies: u32,
    /// Memory of the last copy of a large message, kept for the next one.
    pub(crate) spare: Vec<u8>,
    /// The connection to the launcher, if it accepts requests.
    pub(crate) control: Option<Control>,
    /// The task was started by hand: it starts a launcher when it needs one.
    pub(crate) alone: bool,
}

pub(crate) static PROCESS: Biased<Option<Process>> = Biased::new(None);

/// Number of threads of this process that sleep on its bell.
pub(crate) static SLEEPERS: AtomicUsize = AtomicUsize::new(0);

pub use regatta_abi::{ANY, NONE};

/// The held lock, which gives access to the engine.
///
/// While the lock is held, a message may be received for which another thread sleeps. No further wake will be sent for that message, so dropping
/// this wakes the other threads.
pub(crate) struct Held {
    guard: Guard<'static, Option<Process>>,
    /// The counter of arrivals when the lock was taken.
    moves: u64,
}

impl std::ops::Deref for Held {
    type Target = Process;
    #[inline(always)]
    fn deref(&self) -> &Process {
        match &*self.guard {
            Some(process) => process,
            // Only `enter` creates a `Held`.
            None => unreachable!("entered without an engine"),
        }
    }
}

impl std::ops::DerefMut for Held {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Process {
        match &mut *self.guard {
            Some(process) => process,
            None => unreachable!("entered without an engine"),
        }
    }
}

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        if PROCESS.is_shared()
            && let Some(process) = &*self.guard
            && process.moves() != self.moves
        {
            process.wake_sleepers();
        }
    }
}

#[cold]
pub(crate) fn outside() -> Error {
    Error::State(
        c"Regatta is not running in this process: call rg_init (in Rust: regatta::init) first, and no other function after rg_finalize",
    )
}

/// Returns the error of a call that is refused the lock.
#[cold]
pub fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Shut => Error::State(
            c"this process was forked by a task and is not a task itself: it cannot call Regatta, only exec another program or exit. Call fork before rg_init, or call Regatta in the parent only",
        ),
        Refusal::Reentered => Error::State(
            c"this thread is already inside a call of Regatta: a signal handler that interrupted that call, or an operator of a reduction, made another one, which had no effect. Only rg_abort may be called there; let the handler set a flag, and make the call later",
        ),
    }
}

/// Takes the lock. Fails outside init .. finalize, in a forked child, and inside another call of this thread.
#[inline(always)]
pub(crate) fn enter() -> Result<Held> {
    let guard = PROCESS.lock().map_err(refused)?;
    match &*guard {
        Some(process) => {
            let moves = process.moves();
            Ok(Held { guard, moves })
        }
        None => Err(outside()),
    }
}

/// Runs `work` in the engine if the lock is biased to this thread. Otherwise returns `None`: the caller must then use the general path, which also
/// finds the error, if any.
#[inline(always)]
pub(crate) fn as_owner<R>(work: impl FnOnce(&mut Process) -> Option<R>) -> Option<R> {
    PROCESS.as_owner(|process| process.as_mut().and_then(work))?
}

/// Enters the engine if it is running and the lock is available at no cost by this function ([`fast`](crate::fast)). A macro, so that the code
/// becomes part of the caller: a separate function would cost a dozen stores.
macro_rules! enter_or {
    ($enter:ident, $process:ident, $otherwise:expr) => {
        let mut inside = $crate::state::PROCESS.$enter();
        let running = inside.as_mut().and_then(|inside| inside.as_mut());
        let $process = match running {
            Some(process) => process,
            None => return $otherwise,
        };
    };
}
pub(crate) use enter_or;

impl Process {
    /// Returns whether this is a rank of the world that needs no further check. Its peer is then `first + rank`, and its context 0.
    #[inline(always)]
    pub(crate) fn is_world_rank(&self, group: GroupId, rank: i32) -> bool {
        group == GroupId::WORLD && self.engine.is_open_rank(rank)
    }

    /// Returns peer and context of a rank. Returns `None` if there is no such rank or group, or if the group is revoked.
    #[inline(always)]
    pub(crate) fn address_now(&self, group: GroupId, rank: i32) -> Option<(Peer, u32)> {
        if self.is_world_rank(group, rank) {
            return Some((self.first + rank as u32, 0));
        }
        if let Some(context) = group.channel() {
            return ((rank as u32) < self.job.tasks()).then_some((rank as Peer, context));
        }
        let group = self.engine.live_group(group)?;
        let rank = u32::try_from(rank).ok()?;
        Some((group.open_peer(rank)?, group.context))
    }

    /// Returns the context of a group's messages. Fails if the group is revoked.
    #[inline(always)]
    pub(crate) fn context(&self, group: GroupId) -> Result<u32> {
        if let Some(context) = group.channel() {
            return Ok(context);
        }
        let group = self.engine.group(group)?;
        match group.is_revoked() {
            false => Ok(group.context),
            true => Err(Error::Revoked),
        }
    }

    /// Returns peer and context of a rank. Fails with `Revoked` if the group is revoked, and with `Dead` if the member was reported dead.
    #[inline(always)]
    pub(crate) fn address(&self, group: GroupId, rank: i32) -> Result<(Peer, u32)> {
        if self.is_world_rank(group, rank) {
            return Ok((self.first + rank as u32, 0));
        }
        self.address_slowly(group, rank)
    }

    /// Returns the peer of a rank, in any group.
    pub(crate) fn peer(&self, group: GroupId, rank: i32) -> Result<Peer> {
        let found = u32::try_from(rank)
            .ok()
            .and_then(|rank| match group.channel() {
                Some(_) => Ok((rank < self.job.tasks()).then_some(rank)).transpose(),
                None => self
                    .engine
                    .group(group)
                    .map(|group| group.peer(rank))
                    .transpose(),
            });
        found.unwrap_or(Err(Error::Task(rank as i64)))
    }

    /// Fails if the group is revoked: then operations without a peer fail, too.
    pub(crate) fn check_open(&self, group: GroupId) -> Result<()> {
        match self.engine.is_revoked(group) {
            Ok(true) => Err(Error::Revoked),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn address_slowly(&self, group: GroupId, rank: i32) -> Result<(Peer, u32)> {
        if let Some(context) = group.channel() {
            let known = u32::try_from(rank)
                .ok()
                .filter(|&task| task < self.job.tasks());
            return Ok((known.ok_or(Error::Task(rank as i64))?, context));
        }
        let group = self.engine.group(group)?;
        let member = u32::try_from(rank).ok();
        if let Some(peer) = member.and_then(|rank| group.open_peer(rank)) {
            return Ok((peer, group.context));
        }
        match member.and_then(|rank| group.peer(rank)) {
            _ if group.is_revoked() => Err(Error::Revoked),
            None => Err(Error::Task(rank as i64)),
            Some(peer) if group.is_reported_dead(peer) => Err(Error::Dead(peer)),
            Some(peer) => Ok((peer, group.context)),
        }
    }

    /// Returns a status with its source converted to a rank of its group.
    #[inline(always)]
    pub(crate) fn in_ranks(&self, mut status: Status) -> Status {
        if status.context >= 2 || self.first > 0 {
            status.source = self.engine.rank_in(&status);
        }
        status
    }

    /// Records a poll of a nonblocking call, and whether it `found` something. A caller that polls repeatedly without success is as good as blocked:
    /// other tasks may be waiting until it receives what they send.
    #[inline(always)]
    pub(crate) fn looked(&mut self, found: bool) {
        match found {
            true => self.in_vain.end(),
            false => self.looked_in_vain(),
        }
    }

    #[inline(never)]
    fn looked_in_vain(&mut self) {
        let (keeps, moves) = (self.pace.keeps_core(), self.moves());
        if self.in_vain.looked(keeps, moves, Instant::now) {
            self.engine.take_in_offers();
        }
    }

    /// Returns a counter that increases whenever any call or thread has received something.
    #[inline(always)]
    pub(crate) fn moves(&self) -> u64 {
        self.engine.moves() + self.heard
    }

    /// Wakes sleeping threads of this task, so that they poll again.
    #[cold]
    pub(crate) fn wake_sleepers(&self) {
        if SLEEPERS.load(Ordering::SeqCst) > 0 {
            self.job.bell(self.engine.me()).wake();
        }
    }

    /// Registers a callback for the completion of a request.
    pub(crate) fn call_back(&mut self, handle: Handle, callback: Callback) -> Result<()> {
        let number = self.next_callback;
        self.engine.on_complete(handle, number)?;
        self.next_callback += 1;
        self.callbacks.insert(number, callback);
        Ok(())
    }

    /// Removes and returns the callbacks that are due. The caller must release the lock before it calls them.
    pub(crate) fn due(&mut self) -> Vec<(Callback, Status, Option<Error>)> {
        let called = self.engine.take_due_callbacks();
        let due = called.into_iter().filter_map(|(number, status, error)| {
            let callback = self.callbacks.remove(&number)?;
            Some((callback, self.in_ranks(status), error))
        });
        due.collect()
    }
}

/// Enters for a poll of a nonblocking call. Yields the core first if this task has polled without success.
#[inline(always)]
pub(crate) fn enter_to_look() -> Result<Held> {
    let held = enter()?;
    match held.in_vain.yields() {
        false => Ok(held),
        true => yield_and_enter(held),
    }
}

#[cold]
fn yield_and_enter(held: Held) -> Result<Held> {
    drop(held);
    std::thread::yield_now();
    let mut held = enter()?;
    held.in_vain.has_yielded(Instant::now());
    Ok(held)
}

/// Makes progress once, runs the callbacks that are due, and then polls. Returns the result of the poll.
#[inline(always)]
pub(crate) fn progress_and_look<T>(
    look: impl FnOnce(&mut Process) -> Result<Option<T>>,
) -> Result<Option<T>> {
    progress_and_look_in(enter_to_look()?, true, look)
}

/// Does the same as [`progress_and_look`], for a poll of one request. A caller may poll many requests in turn, so polls count as unsuccessful only
/// when it returns to the same request.
pub(crate) fn progress_and_look_at<T>(
    handle: Handle,
    look: impl FnOnce(&mut Process) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut held = enter()?;
    let counts = held.in_vain.comes_round(handle);
    if counts && held.in_vain.yields() {
        held = yield_and_enter(held)?;
    }
    progress_and_look_in(held, counts, look)
}

#[inline(always)]
fn progress_and_look_in<T>(
    mut held: Held,
    counts: bool,
    look: impl FnOnce(&mut Process) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut moved = held.handle_news() | held.engine.progress();
    if held.engine.has_due_callbacks() {
        held = call_back(held)?;
        moved = true;
    }
    let found = look(&mut held)?;
    let finds = moved || found.is_some();
    if finds || counts {
        held.looked(finds);
    }
    Ok(found)
}

/// Runs the callbacks that are due, without the lock.
#[inline(never)]
fn call_back(mut held: Held) -> Result<Held> {
    let due = held.due();
    drop(held);
    for (callback, status, error) in due {
        callback(status, error);
    }
    enter()
}

/// Makes progress once and runs the callbacks that are due.
pub fn progress() -> Result<()> {
    progress_and_look(|_| Ok(None::<()>)).map(|_| ())
}

/// Runs the callbacks that are due, in a blocking call.
#[cold]
pub(crate) fn run_callbacks() -> Result<()> {
    let mut held = enter()?;
    held.handle_news();
    held.engine.progress();
    call_back(held).map(|_| ())
}

/// Completes work that a call has left unfinished, instead of the task's next call. Callbacks are left to that next call.
pub(crate) fn go_on() {
    let mut place = PROCESS.visit();
    let Some(process) = place.as_deref_mut().and_then(Option::as_mut) else {
        return;
    };
    // A thread that sleeps in a call does the work, and must not miss an arrival.
    match SLEEPERS.load(Ordering::SeqCst) {
        0 => process.engine.transport_mut().go_on(),
        _ => process.wake_sleepers(),
    }
    process.report_reaches();
}
