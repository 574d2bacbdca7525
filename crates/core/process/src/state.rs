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

/// A completion callback; the status has the source as a rank.
pub type Callback = Box<dyn FnOnce(Status, Option<Error>) + Send>;

/// Everything a task has.
pub(crate) struct Process {
    pub(crate) engine: Engine<Paths>,
    pub(crate) job: Arc<Job>,
    /// The number of the first task of this one's world.
    pub(crate) first: Peer,
    /// How it waits.
    pub(crate) pace: Pace,
    /// With what it sleeps.
    pub(crate) fencing: Fencing,
    pub(crate) callbacks: FxHashMap<u64, Callback>,
    pub(crate) next_callback: u64,
    /// Looks in vain, one after the other, of calls that do not wait.
    pub(crate) in_vain: InVain,
    /// The task from which the last message of a receive from any came: it may get the next answer.
    pub(crate) last_source: Peer,
    /// Tasks that this one has stopped waiting for, because they could not be reached, and the launcher's sentence.
    pub(crate) given_up: FxHashMap<Peer, String>,
    /// How often the launcher has been heard.
    pub(crate) heard: u64,
    /// Loans being sent to other hosts as copies: nobody else waits for them.
    pub(crate) copies: u32,
    /// Memory of the last copy of a large message, for the next one.
    pub(crate) spare: Vec<u8>,
    /// The way to the launcher, if it takes requests.
    pub(crate) control: Option<Control>,
    /// The task was started by hand: it starts a launcher when it needs one.
    pub(crate) alone: bool,
}

pub(crate) static PROCESS: Biased<Option<Process>> = Biased::new(None);

/// Threads of this process that sleep on its bell.
pub(crate) static SLEEPERS: AtomicUsize = AtomicUsize::new(0);

pub use regatta_abi::{ANY, NONE};

/// The lock, held, with the engine in it.
///
/// Another thread may sleep for a message that is taken in under it, and nobody rings for that any more: so letting go of it
/// wakes them.
pub(crate) struct Held {
    guard: Guard<'static, Option<Process>>,
    /// The count of arrivals before.
    moves: u64,
}

impl std::ops::Deref for Held {
    type Target = Process;
    #[inline(always)]
    fn deref(&self) -> &Process {
        match &*self.guard {
            Some(process) => process,
            // `enter` is the only maker of `Held`.
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
        c"Regatta is not running in this process: call rg_init (in Rust: regatta::init) first, and \
         nothing after rg_finalize",
    )
}

/// Returns the error of a call that does not get the lock.
#[cold]
pub fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Shut => Error::State(
            c"this process was forked by a task and is not that task: it cannot call Regatta, only exec \
              another program or end. Call fork before rg_init, or let the parent do the messages",
        ),
        Refusal::Reentered => Error::State(
            c"this thread is inside another call of Regatta: this one comes from a signal handler that has interrupted that, or \
              from an operator of a reduction. Nothing has happened. Only rg_abort may be called there; let a handler note what it \
              has to say, and say it after the call",
        ),
    }
}

/// Takes the lock; an error outside init .. finalize, in a forked child, and inside another call of this thread.
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

/// Runs `work` in the engine if the lock is biased to this thread. `None` sends the caller the
/// long way round, which also finds out why.
#[inline(always)]
pub(crate) fn as_owner<R>(work: impl FnOnce(&mut Process) -> Option<R>) -> Option<R> {
    PROCESS.as_owner(|process| process.as_mut().and_then(work))?
}

/// Goes into the engine, if it is running and the lock can be had in this way at no cost ([`fast`](crate::fast)). What is done inside
/// becomes part of the caller's code, where a function of its own would cost it a dozen stores.
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
    /// Returns whether this is a rank of the world: then it is that of the peer `first + rank`, and the context is 0.
    #[inline(always)]
    pub(crate) fn is_world_rank(&self, group: GroupId, rank: i32) -> bool {
        group == GroupId::WORLD && self.engine.is_open_rank(rank)
    }

    /// Returns peer and context of a rank. `None`: there is no such rank, no such group, or it is revoked.
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

    /// Returns the context of the messages of a group that is not revoked.
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

    /// Returns peer and context of a rank, in a group that is not revoked. A member that is reported dead is the error `Dead`.
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

    /// Fails if the group is revoked: nothing is done in it, with nobody either.
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

    /// Returns a status with its source as a rank of its group.
    #[inline(always)]
    pub(crate) fn in_ranks(&self, mut status: Status) -> Status {
        if status.context >= 2 || self.first > 0 {
            status.source = self.engine.rank_in(&status);
        }
        status
    }

    /// Notes that a call that does not wait has looked, and `found` something or not. A caller that looks in vain again and
    /// again is as good as blocked: others may be waiting for it to take in what they send.
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

    /// Counts what has been taken in, by whichever call and thread.
    #[inline(always)]
    pub(crate) fn moves(&self) -> u64 {
        self.engine.moves() + self.heard
    }

    /// Threads of this task that sleep look again.
    #[cold]
    pub(crate) fn wake_sleepers(&self) {
        if SLEEPERS.load(Ordering::SeqCst) > 0 {
            self.job.bell(self.engine.me()).wake();
        }
    }

    /// Has a request's completion call back.
    pub(crate) fn call_back(&mut self, handle: Handle, callback: Callback) -> Result<()> {
        let number = self.next_callback;
        self.engine.on_complete(handle, number)?;
        self.next_callback += 1;
        self.callbacks.insert(number, callback);
        Ok(())
    }

    /// Callbacks that are due, to be called without the lock.
    pub(crate) fn due(&mut self) -> Vec<(Callback, Status, Option<Error>)> {
        let called = self.engine.take_due_callbacks();
        let due = called.into_iter().filter_map(|(number, status, error)| {
            let callback = self.callbacks.remove(&number)?;
            Some((callback, self.in_ranks(status), error))
        });
        due.collect()
    }
}

/// Enters for a look of a call that does not wait. Before that, others have the core if this task has looked in vain for them.
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

/// Makes progress once, runs the callbacks that are due, and looks then. Returns what the look has found.
#[inline(always)]
pub(crate) fn progress_and_look<T>(
    look: impl FnOnce(&mut Process) -> Result<Option<T>>,
) -> Result<Option<T>> {
    progress_and_look_in(enter_to_look()?, true, look)
}

/// As [`progress_and_look`], for a look at one request. A caller may look at many, one after the other: only when it comes round to the
/// same one again it has looked in vain.
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

/// Runs the callbacks that are due, in a call that waits.
#[cold]
pub(crate) fn run_callbacks() -> Result<()> {
    let mut held = enter()?;
    held.handle_news();
    held.engine.progress();
    call_back(held).map(|_| ())
}

/// Gets out what a call has left behind, in place of the task's next one. Callbacks are left to that.
pub(crate) fn go_on() {
    let mut place = PROCESS.visit();
    let Some(process) = place.as_deref_mut().and_then(Option::as_mut) else {
        return;
    };
    // A thread that sleeps in a call does it, and must not miss an arrival.
    match SLEEPERS.load(Ordering::SeqCst) {
        0 => process.engine.transport_mut().go_on(),
        _ => process.wake_sleepers(),
    }
    process.report_reaches();
}
