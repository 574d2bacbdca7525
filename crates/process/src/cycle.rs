//! Blocked senders: helping each other on, and noticing when none can.
//!
//! A sender that is blocked does not leave others blocked on it: it takes messages in, small ones
//! always, large ones after a moment, as long as its buffer has room. If its buffer is full it
//! says in the task table whom it waits for. When those words form a ring that does not change,
//! nobody in it will ever move: every member gets an error that names the ring.
//!
//! A task that is only slow must not look like one that is stuck, however long it does not get a
//! core: a ring counts when every member has looked around again and again since it was first seen,
//! and none has found anything to move. A task with several threads is never in a ring: what one of
//! them waits for another may do.
//!
//! The members leave together. Each takes its message back, which the next member confirms; only
//! when all have, any of them returns and may receive. So all get the error, and what it was given
//! for has not been delivered.
//!
//! The word: bits 0..32 task + 1; 32..62 changes with every wait; 62 this wait is part of a
//! ring; 63 the wait is over. Who finds a ring writes it down (`ring_next`) before it tells, since
//! members that have been told go on and may soon wait for somebody else.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use regatta_engine::{Error, Handle, Peer, Result, Status};
use regatta_transport::job::Job;

use crate::state::Process;

/// How often a blocked sender looks around, and how often one that could be part of a ring does.
const SELDOM: Duration = Duration::from_millis(50);
const OFTEN: Duration = Duration::from_millis(10);
/// Blocked so long, a sender takes in large messages offered to it.
const HELP_AFTER: Duration = Duration::from_millis(1);
/// A ring must stand so long, and for so many looks of each member.
const STABLE: Duration = Duration::from_millis(30);
const LOOKS: u32 = 2;
/// Wait no longer for other members to leave: one may have been stopped.
const TOGETHER: Duration = Duration::from_secs(1);

const IN_RING: u64 = 1 << 62;
const OVER: u64 = 1 << 63;

/// One blocked send.
pub(crate) struct Cycle {
    to: Peer,
    /// The memory is the caller's again after an error, so the message must be taken back.
    recalls: bool,
    word: u64,
    /// The engine's moves when this task last looked.
    moves: u64,
    seen: Option<Seen>,
    leaving: Option<Leaving>,
}

/// A ring, when it was first seen.
struct Seen {
    words: Vec<u64>,
    looks: Vec<u32>,
    at: Duration,
}

/// A ring this task is leaving.
struct Leaving {
    members: Vec<Peer>,
    step: Step,
    /// When this step began.
    since: Instant,
}

/// The way out of a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Until all have been told: what the others do about it must not look as if nothing was wrong.
    Told,
    /// The message is being taken back.
    Recalled,
    /// Until all have come so far.
    Over,
}

/// What the wait for a send comes to.
type Outcome = (Status, Option<Error>);

impl Cycle {
    /// `recalls`: an error ends the send as well as the wait.
    pub(crate) fn new(to: Peer, recalls: bool) -> Cycle {
        Cycle {
            to,
            recalls,
            word: 0,
            moves: 0,
            seen: None,
            leaving: None,
        }
    }

    /// How long to sleep until the next look.
    pub(crate) fn patience(&self) -> Duration {
        match self.word {
            0 => SELDOM,
            _ => OFTEN,
        }
    }

    /// Is the wait about to end with an error?
    #[inline(always)]
    pub(crate) fn is_told(&self, process: &Process) -> bool {
        self.leaving.is_some() || (self.word != 0 && told(&process.job, process.engine.me()))
    }

    /// Once told: the way out, to be called until it yields something. `handle`: what is waited for.
    #[cold]
    pub(crate) fn leave(
        &mut self,
        process: &mut Process,
        handle: Option<Handle>,
    ) -> Result<Option<Outcome>> {
        let (job, me) = (process.job.clone(), process.engine.me());
        let to = self.to;
        let leaving = self.leaving.get_or_insert_with(|| Leaving {
            members: found_ring(&job, me).unwrap_or_else(|| vec![me, to]),
            step: Step::Told,
            since: Instant::now(),
        });
        process.engine.progress();
        if leaving.step == Step::Told {
            if leaving.waits_for(|member| is_untold(&job, member)) {
                return Ok(None);
            }
            leaving.begin(Step::Recalled);
            if let Some(handle) = handle.filter(|_| self.recalls) {
                process.engine.recall(handle)?;
            }
        }
        if leaving.step == Step::Recalled {
            if let Some(handle) = handle.filter(|_| self.recalls) {
                match process.engine.finish(handle)? {
                    None => return Ok(None),
                    Some((_, Some(Error::Cancelled))) => {}
                    // It has been received after all, or its receiver is gone.
                    Some(outcome) => return Ok(Some(outcome)),
                }
            }
            leaving.begin(Step::Over);
            job.blocked_on(me).fetch_or(OVER, Ordering::SeqCst);
        }
        if leaving.waits_for(|member| is_leaving(&job, member)) {
            return Ok(None);
        }
        Err(Error::Cycle(leaving.members.clone()))
    }

    /// Called now and then while the send waits.
    pub(crate) fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        if waited < HELP_AFTER || self.leaving.is_some() {
            return Ok(());
        }
        process.engine.progress();
        let (job, me) = (process.job.clone(), process.engine.me());
        let own = self.to == me;
        let moved = std::mem::replace(&mut self.moves, process.engine.moves()) != self.moves;
        if moved || !(own || process.engine.is_stuck()) || !is_single() {
            self.moved_on(&job, me);
            return Ok(());
        }
        if own {
            // Nobody else is here to receive it.
            return Err(Error::Cycle(vec![me]));
        }
        if self.word == 0 {
            let before = job.blocked_on(me).load(Ordering::Relaxed);
            let count = ((before >> 32) + 1) & 0x3fff_ffff;
            self.word = count << 32 | (self.to as u64 + 1);
            job.blocked_on(me).store(self.word, Ordering::SeqCst);
        }
        job.vain_looks(me).fetch_add(1, Ordering::SeqCst);
        if let Some(members) = ring(&job, me) {
            self.judge(&job, me, waited, members);
        } else {
            self.seen = None;
        }
        Ok(())
    }

    /// There is a ring. Has it stood long enough? Then its members are told, this one among them.
    fn judge(&mut self, job: &Job, me: Peer, waited: Duration, members: Vec<Peer>) {
        let words = members.iter().map(|&member| job.blocked_on(member));
        let words: Vec<u64> = words.map(|word| word.load(Ordering::SeqCst)).collect();
        let looks = members.iter().map(|&member| job.vain_looks(member));
        let looks: Vec<u32> = looks.map(|looks| looks.load(Ordering::SeqCst)).collect();
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.words == words) else {
            self.seen = Some(Seen {
                words,
                looks,
                at: waited,
            });
            return;
        };
        let mut since = looks.iter().zip(&seen.looks);
        if waited - seen.at < STABLE || since.any(|(now, then)| now.wrapping_sub(*then) < LOOKS) {
            return;
        }
        for (at, &member) in members.iter().enumerate() {
            let next = members[(at + 1) % members.len()];
            job.ring_next(member).store(next + 1, Ordering::SeqCst);
        }
        // One that has moved meanwhile is not told.
        for (&member, &word) in members.iter().zip(&words) {
            let told = job.blocked_on(member).compare_exchange(
                word,
                word | IN_RING,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            if told.is_ok() && member != me {
                job.bell(member).wake();
            }
        }
    }

    /// Something moved, so there is no ring, unless somebody has just found it: then it stands.
    fn moved_on(&mut self, job: &Job, me: Peer) {
        if self.word != 0 {
            let clear = self.word & !0xffff_ffff;
            let word = job.blocked_on(me);
            let cleared =
                word.compare_exchange(self.word, clear, Ordering::SeqCst, Ordering::SeqCst);
            if cleared.is_ok() {
                self.word = 0;
                self.seen = None;
            }
        }
    }

    /// Awake again, perhaps because something has moved.
    pub(crate) fn awake(&mut self, process: &mut Process) {
        if self.leaving.is_none() && !process.engine.is_stuck() {
            self.moved_on(&process.job, process.engine.me());
        }
    }
}

impl Leaving {
    fn begin(&mut self, step: Step) {
        (self.step, self.since) = (step, Instant::now());
    }

    fn waits_for(&self, condition: impl Fn(Peer) -> bool) -> bool {
        self.since.elapsed() < TOGETHER && self.members.iter().any(|&member| condition(member))
    }
}

impl Drop for Cycle {
    /// The wait is over, however it ended: nobody must find it in a ring, or wait for its leaving.
    fn drop(&mut self) {
        if self.word == 0 {
            return;
        }
        let Ok(held) = crate::state::enter() else {
            return;
        };
        let (job, me) = (held.job.clone(), held.engine.me());
        drop(held);
        if self.leaving.is_none() {
            self.moved_on(&job, me);
        }
        if self.word != 0 {
            job.blocked_on(me).fetch_or(OVER, Ordering::SeqCst);
        }
    }
}

/// Is this member of a ring that has been found still blocked, and has not been told?
fn is_untold(job: &Job, member: Peer) -> bool {
    let word = job.blocked_on(member).load(Ordering::SeqCst);
    word & IN_RING == 0 && word as u32 == job.ring_next(member).load(Ordering::SeqCst)
}

/// Has it been told, and is it not over for it?
fn is_leaving(job: &Job, member: Peer) -> bool {
    job.blocked_on(member).load(Ordering::SeqCst) & (IN_RING | OVER) == IN_RING
}

/// Is the calling thread the only one of this process that could call Regatta?
fn is_single() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    threads <= 1 + crate::notice::is_watching() as usize
}

#[inline(always)]
fn told(job: &Job, me: Peer) -> bool {
    job.blocked_on(me).load(Ordering::SeqCst) & IN_RING != 0
}

/// The ring of blocked senders this task is in, from itself on.
fn ring(job: &Job, me: Peer) -> Option<Vec<Peer>> {
    walk(job, me, |at| {
        let word = job.blocked_on(at).load(Ordering::SeqCst);
        if word & OVER == 0 { word as u32 } else { 0 }
    })
}

/// The ring another member has found and written down.
fn found_ring(job: &Job, me: Peer) -> Option<Vec<Peer>> {
    walk(job, me, |at| job.ring_next(at).load(Ordering::SeqCst))
}

/// Follow `next` (task + 1, or 0) until it comes back.
fn walk(job: &Job, me: Peer, next: impl Fn(Peer) -> u32) -> Option<Vec<Peer>> {
    let mut members = vec![me];
    let mut at = me;
    loop {
        at = next(at).checked_sub(1)?;
        if at == me {
            return Some(members);
        }
        if at >= job.tasks() || members.contains(&at) {
            return None;
        }
        members.push(at);
    }
}
