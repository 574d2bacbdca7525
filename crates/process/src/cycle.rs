//! Blocked senders: helping each other on, and noticing when none can.
//!
//! A sender that is blocked does not leave others blocked on it: it takes messages in, small ones
//! always, large ones after a moment, as long as its buffer has room. If its buffer is full it
//! says in the task table whom it waits for. When those words form a ring that does not change,
//! nobody in it will ever move: every member gets an error that names the ring.
//!
//! The word: bits 0..32 task + 1; 32..62 changes with every wait; 62 this wait is part of a
//! ring; 63 the wait is over. Who finds a ring writes it down (`ring_next`) before it tells, since
//! members that have been told go on and may soon wait for somebody else.

use std::sync::atomic::Ordering;
use std::time::Duration;

use regatta_engine::{Error, Peer, Result};
use regatta_transport::job::Job;

use crate::state::{PROCESS, Process};

/// How often a blocked sender looks around.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// Blocked so long, a sender takes in large messages offered to it.
const HELP_AFTER: Duration = Duration::from_millis(1);
/// A ring must stand so long.
const STABLE: Duration = Duration::from_millis(30);

const IN_RING: u64 = 1 << 62;
const OVER: u64 = 1 << 63;

/// One blocked send.
pub(crate) struct Cycle {
    to: Peer,
    word: u64,
    /// The ring seen last, and when it was first seen.
    seen: Option<(Vec<u64>, Duration)>,
}

impl Cycle {
    pub(crate) fn new(to: Peer) -> Cycle {
        Cycle {
            to,
            word: 0,
            seen: None,
        }
    }

    /// Has another member found the ring?
    #[inline(always)]
    pub(crate) fn is_told(&self, process: &Process) -> bool {
        self.word != 0 && told(&process.job, process.engine.me())
    }

    /// The error of a member that has been told.
    pub(crate) fn error(&mut self, process: &Process) -> Error {
        let me = process.engine.me();
        let members = found_ring(&process.job, me);
        self.end(&process.job, me, members)
    }

    /// Called now and then while the send waits.
    pub(crate) fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        if waited < HELP_AFTER {
            return Ok(());
        }
        if self.to == process.engine.me() && !PROCESS.is_shared() {
            // Nobody else is here to receive it.
            return Err(Error::Cycle(vec![self.to]));
        }
        let moved = process.engine.progress();
        if moved || !process.engine.is_stuck() {
            self.awake(process);
            return Ok(());
        }
        let (job, me) = (process.job.clone(), process.engine.me());
        if self.word == 0 {
            let before = job.blocked_on(me).load(Ordering::Relaxed);
            let count = ((before >> 32) + 1) & 0x3fff_ffff;
            self.word = count << 32 | (self.to as u64 + 1);
            job.blocked_on(me).store(self.word, Ordering::SeqCst);
        }
        let Some(members) = ring(&job, me) else {
            self.seen = None;
            return Ok(());
        };
        let words: Vec<u64> = members
            .iter()
            .map(|&member| job.blocked_on(member).load(Ordering::SeqCst))
            .collect();
        match &self.seen {
            Some((before, since)) if *before == words => {
                if waited - *since < STABLE {
                    return Ok(());
                }
            }
            _ => {
                self.seen = Some((words, waited));
                return Ok(());
            }
        }
        for (at, &member) in members.iter().enumerate() {
            let next = members[(at + 1) % members.len()];
            job.ring_next(member).store(next + 1, Ordering::SeqCst);
        }
        // Tell the others; one that has moved meanwhile is not told.
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
        Err(self.end(&job, me, Some(members)))
    }

    /// The wait moved on, or is over.
    pub(crate) fn awake(&mut self, process: &mut Process) {
        if self.word != 0 && !process.engine.is_stuck() {
            let word = process.job.blocked_on(process.engine.me());
            // Not if somebody has just found the ring: then the error stands.
            let clear = self.word & !0xffff_ffff;
            let cleared =
                word.compare_exchange(self.word, clear, Ordering::SeqCst, Ordering::SeqCst);
            if cleared.is_ok() {
                self.word = 0;
                self.seen = None;
            }
        }
    }

    fn end(&mut self, job: &Job, me: Peer, members: Option<Vec<Peer>>) -> Error {
        job.blocked_on(me).fetch_or(OVER, Ordering::SeqCst);
        self.word = 0;
        Error::Cycle(members.unwrap_or_else(|| vec![me, self.to]))
    }
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
