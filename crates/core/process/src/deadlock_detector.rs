//! Blocked senders: they help each other to make progress, and detect when none can.
//!
//! A blocked sender does not leave other senders blocked on it: it receives messages as long as its buffer has space, small ones at once, large ones
//! after a moment. If its buffer is full, it writes into the task table for which task it waits. If these entries form a cycle that does not change,
//! no task in it will ever make progress: every member gets an error that names the cycle.
//!
//! A task that is only slow must not be mistaken for one that is stuck, however long it does not get a core. So a cycle counts only once every
//! member has polled several times since the cycle was first seen and has made no progress. A task with several threads is never part of a cycle:
//! another thread may do what one of them waits for.
//!
//! The members leave the cycle together. Each withdraws its message, which the next member confirms. Only when all have done so, each returns and
//! may receive. So all members get the error, and the message of each was not delivered. A member's request is queued behind its earlier messages,
//! and a full buffer would keep all of these in the transport. So members that are leaving receive what the others have sent even if the buffer is
//! full (`Engine::let_in`). That is not much, since the others are blocked. A member begins once the others have withdrawn their unsent messages,
//! which would otherwise find space.
//!
//! *Between hosts.* Each host has a table of its own. So a member asks members on other hosts whether they are blocked, and notifies them of the
//! cycle (the transport's `deadlock_probe`). Their answers are as old as the time they were in transit, and other messages may be in transit, too:
//! the receiver of a blocked message may have freed space, and the notice of that may not have arrived. So a check of a wait for another host counts
//! only if a question was sent there and answered since the last check that counted, without any progress: after an answer, nothing sent before it
//! is still in transit. And a cycle counts only from when all its members on other hosts have answered questions asked after it was first seen. Then
//! there was a moment at which all were blocked in it, and the following checks show that nothing was in transit then that would have ended it.
//! Without a connection there is no answer, and so no cycle.
//!
//! *The entry.* Bits 0..32: task + 1. Bits 32..61: change with every wait. Bit 61: the message was withdrawn or its withdrawal requested. Bit 62:
//! this wait is part of a cycle. Bit 63: the wait is over. A task that detects a cycle records it (`ring_next`) before it notifies the members,
//! since members that were notified continue and may soon wait for other tasks.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use regatta_connection::last_thread;
use regatta_engine::{Error, Handle, Peer, Presence, Result, Status, Upkeep};
use regatta_segment::job::{ASKS, IN_RING, Job, OVER};

use crate::in_vain::HELP_AFTER;
use crate::state::Process;

/// Initial interval between two checks by a blocked sender.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of times that the interval doubles while there is no progress. Whatever makes a sender part of a cycle causes some progress first,
/// which wakes the sender.
const MAX_DOUBLINGS: u32 = 3;
/// Interval between two checks by a blocked sender that could be part of a cycle.
const CANDIDATE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Minimum age of a cycle when it is reported.
const MIN_RING_AGE: Duration = Duration::from_millis(30);
/// Minimum number of checks by each member after the cycle was first seen, before it is reported.
const MIN_RING_CHECKS: u32 = 2;
/// Maximum time to wait for other members to leave: one may be stopped.
const MEMBERS_LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum number of answers: the last of these questions was asked after the first was answered.
const MIN_ANSWERS: u32 = 2;

/// One blocked send.
pub(crate) struct DeadlockDetector {
    to: Peer,
    /// Whether the memory belongs to the caller again after an error, so that the message must be withdrawn.
    recalls: bool,
    word: u64,
    /// The engine's progress counter at the last check.
    moves: u64,
    /// Number of checks since the last progress.
    quiet_checks: u32,
    /// Number of answers of a receiver on another host at the last check that counted.
    answers: Option<u32>,
    seen: Option<Seen>,
    leaving: Option<Leaving>,
}

/// A cycle, when it was first seen.
struct Seen {
    members: Vec<Standing>,
    at: Duration,
    /// All members on other hosts have confirmed the cycle since.
    sure: bool,
}

/// The wait that a member shows.
#[derive(Clone, Copy)]
struct Standing {
    word: u64,
    looks: u32,
    /// For a task on another host: the number of questions that it has answered.
    answers: Option<u32>,
}

/// A cycle that this task is leaving.
struct Leaving {
    members: Vec<Peer>,
    /// For members on other hosts: the number of questions that they had answered when the leaving began.
    answers: Vec<Option<u32>>,
    step: Step,
    /// Time at which this step began.
    since: Instant,
    /// Members whose messages are accepted although the buffer is full.
    let_in: Vec<Peer>,
}

/// The steps by which a member leaves a cycle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Waits until all members were notified: what the others do about the cycle must not make it look resolved.
    Told,
    /// The message is being withdrawn.
    Recalled,
    /// Waits until all members have come to this step.
    Over,
}

/// The result of the send.
type Outcome = (Status, Option<Error>);

impl DeadlockDetector {
    /// Creates a detector. `recalls` says whether an error also ends the send.
    pub(crate) fn new(to: Peer, recalls: bool) -> DeadlockDetector {
        DeadlockDetector {
            to,
            recalls,
            word: 0,
            moves: 0,
            quiet_checks: 0,
            answers: None,
            seen: None,
            leaving: None,
        }
    }

    /// Returns the task for which it waits.
    pub(crate) fn receiver(&self) -> Peer {
        self.to
    }

    /// Returns the time to sleep until the next check.
    pub(crate) fn patience(&self) -> Duration {
        match self.word {
            0 => CHECK_INTERVAL * (1 << self.quiet_checks.min(MAX_DOUBLINGS)),
            _ => CANDIDATE_CHECK_INTERVAL,
        }
    }

    /// Returns whether the wait is about to end with an error.
    #[inline(always)]
    pub(crate) fn is_told(&self, process: &Process) -> bool {
        self.leaving.is_some() || (self.word != 0 && told(&process.job, process.engine.me()))
    }

    /// Returns whether this member has reported that its wait is over. From then on, other members may do what completes the send.
    pub(crate) fn is_over(&self) -> bool {
        let leaving = self.leaving.as_ref();
        leaving.is_some_and(|leaving| leaving.step == Step::Over)
    }

    /// Continues to leave the cycle. To be called once `is_told` returns true, until this returns an outcome or an error. `handle` is the awaited
    /// request.
    #[cold]
    pub(crate) fn leave(
        &mut self,
        process: &mut Process,
        handle: Option<Handle>,
    ) -> Result<Option<Outcome>> {
        let (job, me) = (process.job.clone(), process.engine.me());
        let to = self.to;
        let leaving = self.leaving.get_or_insert_with(|| {
            let members = found_ring(&job, me).unwrap_or_else(|| vec![me, to]);
            let answers = members.iter().map(|&one| standing(process, one).answers);
            Leaving {
                answers: answers.collect(),
                members,
                step: Step::Told,
                since: Instant::now(),
                let_in: Vec::new(),
            }
        });
        process.engine.progress();
        if leaving.step == Step::Told {
            let mut answers = leaving.answers.iter().copied();
            let mut untold = |member| is_untold(process, member, answers.next().flatten());
            if leaving.waits_for(&mut untold) {
                return Ok(None);
            }
            leaving.begin(Step::Recalled);
            if let Some(handle) = handle.filter(|_| self.recalls) {
                process.engine.recall(handle)?;
            }
            job.blocked_on(me).fetch_or(ASKS, Ordering::SeqCst);
            leaving.send_state(process);
        }
        leaving.let_in(process, me);
        if leaving.step == Step::Recalled {
            if let Some(handle) = handle.filter(|_| self.recalls) {
                match process.engine.finish(handle)? {
                    None => return Ok(None),
                    Some((_, Some(Error::Cancelled))) => {}
                    // The message was received after all, or its receiver is gone.
                    Some(outcome) => return Ok(Some(outcome)),
                }
            }
            leaving.begin(Step::Over);
            job.blocked_on(me).fetch_or(OVER, Ordering::SeqCst);
            leaving.send_state(process);
        }
        if leaving.waits_for(|member| is_leaving(process, member)) {
            return Ok(None);
        }
        Err(Error::Cycle(leaving.members.clone()))
    }

    /// Checks for a cycle. Called from time to time while the send waits.
    pub(crate) fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        if waited < HELP_AFTER || self.leaving.is_some() {
            return Ok(());
        }
        process.engine.progress();
        let (job, me) = (process.job.clone(), process.engine.me());
        let own = self.to == me;
        let moved = std::mem::replace(&mut self.moves, process.engine.moves()) != self.moves;
        self.quiet_checks = if moved {
            0
        } else {
            self.quiet_checks.saturating_add(1)
        };
        let single = is_single(process.engine.transport());
        if moved || !(own || process.engine.may_block_senders()) || !single {
            self.moved_on(&job, me);
            return Ok(());
        }
        if own {
            // No other thread can receive the message.
            return Err(Error::Cycle(vec![me]));
        }
        if self.word == 0 {
            let before = job.blocked_on(me).load(Ordering::Relaxed);
            let count = ((before >> 32) + 1) & 0x1fff_ffff;
            self.word = count << 32 | (self.to as u64 + 1);
            job.blocked_on(me).store(self.word, Ordering::SeqCst);
        }
        if self.counts(process) {
            job.vain_looks(me).fetch_add(1, Ordering::SeqCst);
        }
        if let Some(members) = ring(process, me) {
            self.judge(process, waited, members);
        } else {
            self.seen = None;
        }
        Ok(())
    }

    /// Returns whether this check counts: nothing is in transit to this task that would end the wait.
    fn counts(&mut self, process: &mut Process) -> bool {
        let Some(answers) = standing(process, self.to).answers else {
            return true;
        };
        let base = *self.answers.get_or_insert(answers);
        let counts = answers.wrapping_sub(base) >= MIN_ANSWERS;
        if counts {
            self.answers = Some(answers);
        }
        counts
    }

    /// Decides whether a detected cycle has existed long enough. If so, notifies its members, including this one.
    fn judge(&mut self, process: &mut Process, waited: Duration, members: Vec<Peer>) {
        let now: Vec<Standing> = members
            .iter()
            .map(|&member| standing(process, member))
            .collect();
        let same = |seen: &&mut Seen| {
            let words =
                |list: &[Standing]| -> Vec<u64> { list.iter().map(|one| one.word).collect() };
            words(&seen.members) == words(&now)
        };
        let Some(seen) = self.seen.as_mut().filter(same) else {
            self.seen = Some(Seen {
                sure: now.iter().all(|member| member.answers.is_none()),
                members: now,
                at: waited,
            });
            return;
        };
        let mut both = now.iter().zip(&seen.members);
        if !seen.sure {
            if both.all(|(now, then)| is_new(now.answers, then.answers)) {
                (seen.sure, seen.members, seen.at) = (true, now, waited);
            }
            return;
        }
        let few =
            |now: &Standing, then: &Standing| now.looks.wrapping_sub(then.looks) < MIN_RING_CHECKS;
        if waited - seen.at < MIN_RING_AGE || both.any(|(now, then)| few(now, then)) {
            return;
        }
        let (job, me) = (process.job.clone(), process.engine.me());
        job.write_down_ring(&members);
        let all = || members.iter().copied().zip(now.iter().map(|one| one.word));
        // Notify first the members whose notification can fail; if it does, none is notified.
        for (member, word) in all().filter(|&(member, _)| !job.is_here(member)) {
            if !process
                .engine
                .transport_mut()
                .send_circle(member, word, &members)
            {
                return;
            }
        }
        for (member, word) in all().filter(|&(member, _)| job.is_here(member)) {
            if job.notify_in_ring(member, word) && member != me {
                job.bell(member).wake();
            }
        }
    }

    /// Records progress: there is no cycle, unless another task has just detected one, which then stands.
    fn moved_on(&mut self, job: &Job, me: Peer) {
        if self.word != 0 {
            let clear = self.word & !0xffff_ffff;
            let word = job.blocked_on(me);
            let cleared =
                word.compare_exchange(self.word, clear, Ordering::SeqCst, Ordering::SeqCst);
            if cleared.is_ok() {
                self.word = 0;
                self.answers = None;
                self.seen = None;
            }
        }
    }

    /// Makes this the task for which the detector waits, unless the wait is ending as part of a cycle.
    pub(crate) fn wait_for(&mut self, process: &Process, to: Peer) {
        if self.to != to {
            self.stop(process);
            if self.word == 0 {
                self.to = to;
            }
        }
    }

    /// Stops waiting for a task, unless the wait is ending as part of a cycle.
    pub(crate) fn stop(&mut self, process: &Process) {
        if self.leaving.is_none() {
            self.moved_on(&process.job, process.engine.me());
        }
    }

    /// Records that the task is awake again, possibly because of progress.
    pub(crate) fn awake(&mut self, process: &mut Process) {
        if !process.engine.may_block_senders() {
            self.stop(process);
        }
    }
}

impl Leaving {
    /// Sends the state of this member to the members on other hosts.
    fn send_state(&self, process: &mut Process) {
        for &member in &self.members {
            process.engine.transport_mut().send_state(member);
        }
    }

    /// Accepts messages of the members that have withdrawn their unsent messages. If accepted earlier, the unsent ones would find space and be sent.
    fn let_in(&mut self, process: &mut Process, me: Peer) {
        for &member in &self.members {
            if member == me || self.let_in.contains(&member) {
                continue;
            }
            let word = standing(process, member).word;
            if word & (IN_RING | ASKS | OVER) != IN_RING {
                self.let_in.push(member);
            }
        }
        process.engine.let_in(&self.let_in);
    }

    fn begin(&mut self, step: Step) {
        (self.step, self.since) = (step, Instant::now());
    }

    fn waits_for(&self, condition: impl FnMut(Peer) -> bool) -> bool {
        self.since.elapsed() < MEMBERS_LEAVE_TIMEOUT && self.members.iter().copied().any(condition)
    }
}

impl Drop for DeadlockDetector {
    /// Ends the wait: no other task must find it in a cycle, or wait for this task to leave one.
    fn drop(&mut self) {
        if self.word == 0 {
            return;
        }
        let Ok(mut held) = crate::state::enter() else {
            return;
        };
        let (job, me) = (held.job.clone(), held.engine.me());
        if self.leaving.is_none() {
            self.moved_on(&job, me);
        }
        if self.word != 0 {
            job.blocked_on(me).fetch_or(OVER, Ordering::SeqCst);
            let members = match self.leaving.take() {
                Some(leaving) => leaving.members,
                None => found_ring(&job, me).unwrap_or_default(),
            };
            // A member that is late may still have to send this task a request, so continue to accept its messages.
            let mut late = members;
            late.retain(|&member| member != me && is_leaving(&mut held, member));
            held.engine.let_in(&late);
        }
    }
}

/// Returns the wait that a task shows. Asks a task on another host again, for the next time.
fn standing(process: &mut Process, member: Peer) -> Standing {
    let job = &process.job;
    if job.is_here(member) {
        return Standing {
            word: job.blocked_on(member).load(Ordering::SeqCst),
            looks: job.vain_looks(member).load(Ordering::SeqCst),
            answers: None,
        };
    }
    let heard = process
        .engine
        .transport_mut()
        .inquire(member)
        .unwrap_or_default();
    Standing {
        word: heard.word,
        looks: heard.looks,
        answers: Some(heard.answers),
    }
}

/// Returns whether a task has answered a question asked after `then`. Tasks on this host show their state directly.
fn is_new(now: Option<u32>, then: Option<u32>) -> bool {
    match (now, then) {
        (Some(now), Some(then)) => now.wrapping_sub(then) >= MIN_ANSWERS,
        _ => true,
    }
}

/// Returns whether a member of a detected cycle is still blocked and was not notified.
fn is_untold(process: &mut Process, member: Peer, before: Option<u32>) -> bool {
    let Standing { word, answers, .. } = standing(process, member);
    // An earlier answer of a task on another host may be old.
    if !is_new(answers, before) {
        return process.engine.presence(member) == Presence::Here;
    }
    let next = process.job.ring_next(member).load(Ordering::SeqCst);
    word & IN_RING == 0 && word as u32 == next
}

/// Returns whether a member was notified and its wait is not over.
fn is_leaving(process: &mut Process, member: Peer) -> bool {
    standing(process, member).word & (IN_RING | OVER) == IN_RING
}

/// Returns whether the calling thread is the only one of this process that could call Regatta.
pub(crate) fn is_single(transport: &impl Upkeep) -> bool {
    has_single_caller(crate::notice::is_watching() as usize + transport.threads())
}

/// Returns whether there is only one thread besides `own` threads of this library, the watcher, and a first thread that has ended.
fn has_single_caller(own: usize) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let single = 1 + own + usize::from(last_thread::is_watching());
    threads <= single || threads == single + 1 && last_thread::has_first_thread_ended()
}

#[inline(always)]
fn told(job: &Job, me: Peer) -> bool {
    job.blocked_on(me).load(Ordering::SeqCst) & IN_RING != 0
}

/// Returns the cycle of blocked senders that this task is in, beginning with this task.
fn ring(process: &mut Process, me: Peer) -> Option<Vec<Peer>> {
    let tasks = process.job.tasks();
    walk(tasks, me, |at| {
        let word = standing(process, at).word;
        if word & OVER == 0 { word as u32 } else { 0 }
    })
}

/// Returns the cycle that another member has detected and recorded.
fn found_ring(job: &Job, me: Peer) -> Option<Vec<Peer>> {
    walk(job.tasks(), me, |at| {
        job.ring_next(at).load(Ordering::SeqCst)
    })
}

/// Follows `next` (task + 1, or 0) until it returns to this task. Returns `None` if it does not.
fn walk(tasks: u32, me: Peer, mut next: impl FnMut(Peer) -> u32) -> Option<Vec<Peer>> {
    let mut members = vec![me];
    let mut at = me;
    loop {
        at = next(at).checked_sub(1)?;
        if at == me {
            return Some(members);
        }
        if at >= tasks || members.contains(&at) {
            return None;
        }
        members.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TIME_LIMIT: Duration = Duration::from_secs(20);

    /// Waits until the kernel does not list joined threads any more.
    fn becomes_single() -> bool {
        let begun = Instant::now();
        while !has_single_caller(0) {
            if begun.elapsed() > TIME_LIMIT {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Runs in the first thread of a process.
    fn leave_a_single_thread() -> ! {
        let assert = |holds: bool, status: i32| match holds {
            true => {}
            // SAFETY: `_exit` takes no pointers and does not return.
            false => unsafe { libc::_exit(status) },
        };
        assert(becomes_single(), 2);
        let leaves = std::thread::spawn(last_thread::notice_end);
        assert(leaves.join().is_ok() && last_thread::is_watching(), 3);
        assert(becomes_single(), 4);
        std::thread::spawn(move || {
            assert(becomes_single() && last_thread::has_first_thread_ended(), 5);
            assert(false, 0);
        });
        loop {
            // SAFETY: ends this thread only, without running destructors. The other thread ends the process.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
    }

    /// Runs in a child of a process without a watcher, which other tests may have started in this one.
    #[test]
    fn a_thread_is_single_beside_the_watcher_and_a_first_thread_that_has_ended() {
        const IS_OWN_PROGRAM: &str = "IS_OWN_PROGRAM_OF_TEST";
        const NAME: &str = "deadlock_detector::tests::a_thread_is_single_beside_the_watcher_and_a_first_thread_that_has_ended";
        if std::env::var_os(IS_OWN_PROGRAM).is_none() {
            let program = std::env::current_exe().expect("a program");
            let output = Command::new(program)
                .args([NAME, "--exact", "--nocapture"])
                .env(IS_OWN_PROGRAM, "1")
                .output()
                .expect("it runs");
            assert!(output.status.success(), "{output:?}");
        } else {
            // SAFETY: the C library keeps its memory usable in the child, which needs nothing else of other threads.
            let child = unsafe { libc::fork() };
            if child == 0 {
                leave_a_single_thread();
            }
            let mut status = -1;
            // SAFETY: the child belongs to this process, and `status` is valid for the write.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child's status as the kernel has it");
        }
    }
}
