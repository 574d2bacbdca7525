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
//! for has not been delivered. A member's question lies behind its earlier messages, and a full buffer would keep
//! all of that outside: so members that leave read what the others have sent whatever the buffer holds (`Engine::let_in`).
//! It is not much, for these are blocked. They do so once the others have taken back what had not gone: there will be room for it.
//!
//! *Between hosts.* Each host has a table of its own, so a member asks those on other hosts how it is with them, and tells them
//! of the ring (the transport's `deadlock_probe`). Their answers are as old as the way is long, and more may be on the way: the
//! receiver of a blocked message may have made room, and the word of that not have come. So a look at a wait for another
//! host counts only when a question has gone there and its answer has come back since the last one that counted, with
//! nothing moved: behind an answer nothing is left on its way. And a ring counts from when all its members on other
//! hosts have answered questions asked after it was first seen: then there was a moment at which all were blocked in it, and
//! the looks that follow show that nothing was on its way then that would have ended it. No connection, no answer, no ring.
//!
//! The word: bits 0..32 task + 1; 32..61 changes with every wait; 61 its message has been taken back or asked for; 62 this wait is part of a
//! ring; 63 the wait is over. A task that finds a ring writes it down (`ring_next`) before it tells, since
//! members that have been told go on and may soon wait for somebody else.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use regatta_connection::last_thread;
use regatta_engine::{Error, Handle, Peer, Presence, Result, Status, Upkeep};
use regatta_segment::job::{ASKS, IN_RING, Job, OVER};

use crate::in_vain::HELP_AFTER;
use crate::state::Process;

/// Interval between two checks by a blocked sender, at first.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Number of times the interval doubles while nothing moves: whatever makes a sender part of a ring moves something first, and that
/// wakes it.
const MAX_DOUBLINGS: u32 = 3;
/// Interval between two checks by a blocked sender that could be part of a ring.
const CANDIDATE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Time a ring must stand before it is reported.
const MIN_RING_AGE: Duration = Duration::from_millis(30);
/// Number of checks by each member that a ring must outlast before it is reported.
const MIN_RING_CHECKS: u32 = 2;
/// Time to wait for other members to leave: one may have been stopped.
const MEMBERS_LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of answers that must have come: the last of these questions was asked after the first had been answered.
const MIN_ANSWERS: u32 = 2;

/// One blocked send.
pub(crate) struct DeadlockDetector {
    to: Peer,
    /// The memory is the caller's again after an error, so the message must be taken back.
    recalls: bool,
    word: u64,
    /// The engine's moves when this task last looked.
    moves: u64,
    /// Checks since something moved.
    quiet_checks: u32,
    /// The answers of a receiver on another host when a look last counted.
    answers: Option<u32>,
    seen: Option<Seen>,
    leaving: Option<Leaving>,
}

/// A ring, when it was first seen.
struct Seen {
    members: Vec<Standing>,
    at: Duration,
    /// All members on other hosts have said so since.
    sure: bool,
}

/// The wait that a member shows.
#[derive(Clone, Copy)]
struct Standing {
    word: u64,
    looks: u32,
    /// Of a task on another host: how many questions it has answered.
    answers: Option<u32>,
}

/// A ring this task is leaving.
struct Leaving {
    members: Vec<Peer>,
    /// Of those on other hosts: how many questions they had answered when this began.
    answers: Vec<Option<u32>>,
    step: Step,
    /// When this step began.
    since: Instant,
    /// Members whose messages are read although the buffer is full.
    let_in: Vec<Peer>,
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

/// The result of a wait for a send.
type Outcome = (Status, Option<Error>);

impl DeadlockDetector {
    /// `recalls`: an error ends the send as well as the wait.
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

    /// For whom it waits.
    pub(crate) fn receiver(&self) -> Peer {
        self.to
    }

    /// How long to sleep until the next look.
    pub(crate) fn patience(&self) -> Duration {
        match self.word {
            0 => CHECK_INTERVAL * (1 << self.quiet_checks.min(MAX_DOUBLINGS)),
            _ => CANDIDATE_CHECK_INTERVAL,
        }
    }

    /// Is the wait about to end with an error?
    #[inline(always)]
    pub(crate) fn is_told(&self, process: &Process) -> bool {
        self.leaving.is_some() || (self.word != 0 && told(&process.job, process.engine.me()))
    }

    /// Has this member said that the wait is over for it? From then on others may do what completes it.
    pub(crate) fn is_over(&self) -> bool {
        let leaving = self.leaving.as_ref();
        leaving.is_some_and(|leaving| leaving.step == Step::Over)
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
                    // It has been received after all, or its receiver is gone.
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

    /// Called now and then while the send waits.
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
            // Nobody else is here to receive it.
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

    /// Nothing has moved; and nothing is on its way here that would end the wait?
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

    /// There is a ring. Has it stood long enough? Then its members are told, this one among them.
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
        // First those who may not be told, and then nobody is.
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

    /// Something moved, so there is no ring, unless somebody has just found it: then it stands.
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

    /// The wait is for this task from now on, unless it is just ending as part of a ring.
    pub(crate) fn wait_for(&mut self, process: &Process, to: Peer) {
        if self.to != to {
            self.stop(process);
            if self.word == 0 {
                self.to = to;
            }
        }
    }

    /// The wait is for nobody at present, unless it is just ending as part of a ring.
    pub(crate) fn stop(&mut self, process: &Process) {
        if self.leaving.is_none() {
            self.moved_on(&process.job, process.engine.me());
        }
    }

    /// Awake again, perhaps because something has moved.
    pub(crate) fn awake(&mut self, process: &mut Process) {
        if !process.engine.may_block_senders() {
            self.stop(process);
        }
    }
}

impl Leaving {
    /// Tell the members on other hosts how far this one has come.
    fn send_state(&self, process: &mut Process) {
        for &member in &self.members {
            process.engine.transport_mut().send_state(member);
        }
    }

    /// Read what those members have sent that have taken back what had not gone. Earlier that would find room, and go.
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
    /// The wait is over, however it ended: nobody must find it in a ring, or wait for its leaving.
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
            // A member that is late may still have to ask this task, which must go on reading for it.
            let mut late = members;
            late.retain(|&member| member != me && is_leaving(&mut held, member));
            held.engine.let_in(&late);
        }
    }
}

/// The wait that a task shows; a task on another host is asked for the next time.
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

/// Has a task been asked for this since `then`? Tasks on this host show it themselves.
fn is_new(now: Option<u32>, then: Option<u32>) -> bool {
    match (now, then) {
        (Some(now), Some(then)) => now.wrapping_sub(then) >= MIN_ANSWERS,
        _ => true,
    }
}

/// Is this member of a ring that has been found still blocked, and has not been told?
fn is_untold(process: &mut Process, member: Peer, before: Option<u32>) -> bool {
    let Standing { word, answers, .. } = standing(process, member);
    // An earlier answer of a task on another host may be old.
    if !is_new(answers, before) {
        return process.engine.presence(member) == Presence::Here;
    }
    let next = process.job.ring_next(member).load(Ordering::SeqCst);
    word & IN_RING == 0 && word as u32 == next
}

/// Has it been told, and is it not over for it?
fn is_leaving(process: &mut Process, member: Peer) -> bool {
    standing(process, member).word & (IN_RING | OVER) == IN_RING
}

/// Is the calling thread the only one of this process that could call Regatta?
pub(crate) fn is_single(transport: &impl Upkeep) -> bool {
    has_single_caller(crate::notice::is_watching() as usize + transport.threads())
}

/// Whether one thread is left beside so many of the library's own, the watcher, and a first thread that has ended.
fn has_single_caller(own: usize) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let single = 1 + own + usize::from(last_thread::is_watching());
    threads <= single || threads == single + 1 && last_thread::has_first_thread_ended()
}

#[inline(always)]
fn told(job: &Job, me: Peer) -> bool {
    job.blocked_on(me).load(Ordering::SeqCst) & IN_RING != 0
}

/// The ring of blocked senders this task is in, from itself on.
fn ring(process: &mut Process, me: Peer) -> Option<Vec<Peer>> {
    let tasks = process.job.tasks();
    walk(tasks, me, |at| {
        let word = standing(process, at).word;
        if word & OVER == 0 { word as u32 } else { 0 }
    })
}

/// The ring another member has found and written down.
fn found_ring(job: &Job, me: Peer) -> Option<Vec<Peer>> {
    walk(job.tasks(), me, |at| {
        job.ring_next(at).load(Ordering::SeqCst)
    })
}

/// Follow `next` (task + 1, or 0) until it comes back.
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

    /// Waits until the kernel lists no thread any more that has been joined.
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

    /// The first thread of a process runs this.
    fn leave_a_single_thread() -> ! {
        let assert = |holds: bool, status: i32| match holds {
            true => {}
            // SAFETY: does not return.
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
            // SAFETY: ends this thread, and leaves all that it has as it is: the other one ends the process.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
    }

    /// In a child of a process that has no watcher yet, which other tests may have started here.
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
            // SAFETY: a child of this process; the status is written.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child's status as the kernel has it");
        }
    }
}
