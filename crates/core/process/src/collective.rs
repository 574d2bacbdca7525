//! Blocking and nonblocking collectives.
//!
//! The engine chooses the algorithm, and runs it as far as possible without waiting. The fastest paths of two tasks are in `pair.rs`.
//!
//! *Rules for small barriers and allreduces:* one passage through the lock, no allocation, and no system call unless a member sleeps.
//! (docs/hot-paths.md names the test.)

use std::mem::MaybeUninit;
use std::time::Duration;

use regatta_engine::{
    Awaits, Collective, ForKind, GroupId, Handle, Kind, Need, Operation, Parts, Reduction, Result,
    Round, Terms,
};
use regatta_memory::views::Views;

use crate::message::wait_for_collective;
use crate::pair::{PairMessage, pair_message, run_pair_round};
use crate::state::{Held, Process, as_owner, enter};
use crate::wait::{Awaited, wait_for};

/// Number of polls of the collective buffer before the waiting policy takes over.
const POLLS_BEFORE_WAIT: u32 = 2000;

/// Time that a round may take before the members' contributions are checked.
const CONTRIBUTIONS_CHECK_DELAY: Duration = Duration::from_millis(10);

/// Size of the memory for contributions of the shortest rounds, in bytes.
const STACK_WORK_BYTES: usize = 256;

/// A round for which this task waits.
pub(crate) struct AwaitedRound<'a>(pub(crate) &'a mut Round);

impl Awaited for AwaitedRound<'_> {
    type Output = ();
    const PROGRESSES: bool = false;
    const INTERRUPTIBLE: bool = true;
    const HEEDS_MOVES: bool = true;

    #[inline(always)]
    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        Ok(process.engine.round_complete(self.0).then_some(()))
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        process.engine.announce_wait(self.0, asleep)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        process.engine.check_round(self.0)?;
        if waited >= CONTRIBUTIONS_CHECK_DELAY {
            process.engine.check_contributions(self.0)?;
        }
        process.check_launcher(waited)
    }

    fn is_worth_patience(&self) -> bool {
        self.0.crosses()
    }
}

/// Waits for a round. Not inlined into the functions of each kind, which have already polled for it.
#[inline(never)]
pub(crate) fn await_round(round: &mut Round) -> Result<()> {
    wait_for(AwaitedRound(round))
}

impl Process {
    /// Returns the number of polls for the others' contributions before this task waits.
    #[inline(always)]
    pub(crate) fn looks(&self) -> u32 {
        if self.pace.spins() {
            POLLS_BEFORE_WAIT
        } else {
            1
        }
    }

    /// Polls for a round to be complete, for about as long as that takes if all members are on time. Returns whether it is.
    #[inline(always)]
    fn look(&mut self, round: &mut Round) -> bool {
        for _ in 0..self.looks() {
            if self.engine.round_complete(round) {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Reads the result of member `place` from a round that moves all data.
    #[inline(always)]
    pub(crate) fn read_round(
        &self,
        kind: Kind,
        terms: Terms<'_>,
        place: (u32, u32),
        round: &Round,
    ) {
        let (what, stretch) = ((kind, terms), (0, terms.bytes(kind)));
        let engine = &self.engine;
        if !kind.combines() {
            return engine.read_round(what, place, round, stretch, &Views::none());
        }
        if stretch.1 > STACK_WORK_BYTES {
            return self.read_any_round(kind, terms, place, round);
        }
        let mut few = MaybeUninit::<[u128; STACK_WORK_BYTES / 16]>::uninit();
        // SAFETY: the memory outlives the views, which do not leave this function.
        let work = unsafe { Views::block(few.as_mut_ptr().cast(), STACK_WORK_BYTES) };
        engine.read_round(what, place, round, stretch, &work);
    }

    /// Does the same as [`Process::read_round`], for any kind and length.
    #[inline(never)]
    pub(crate) fn read_any_round(
        &self,
        kind: Kind,
        terms: Terms<'_>,
        place: (u32, u32),
        round: &Round,
    ) {
        let (what, stretch) = ((kind, terms), (0, terms.bytes(kind)));
        let element = terms.reduction.map_or(0, |what| what.element.size());
        with_work(element, |work| {
            let engine = &self.engine;
            engine.read_any_round(what, place, round, stretch, work);
        });
    }
}

/// Calls `work` with memory for contributions: of the size that the engine requires, and at least `element` bytes.
#[inline(never)]
fn with_work<R>(element: usize, work: impl FnOnce(&Views) -> R) -> R {
    let mut room = MaybeUninit::<[u128; Collective::WORK_BYTES / 16]>::uninit();
    // User-defined elements can be longer.
    let is_longer = element > Collective::WORK_BYTES;
    let mut longer = vec![0u8; if is_longer { element } else { 0 }];
    let (start, len) = match is_longer {
        true => (longer.as_mut_ptr(), element),
        false => (room.as_mut_ptr().cast(), Collective::WORK_BYTES),
    };
    // SAFETY: the memory outlives the views, which do not leave the engine's calls.
    work(&unsafe { Views::block(start, len) })
}

/// The state of a round after the first polls.
enum Begun {
    /// All members have contributed, and the result was read.
    Complete,
    /// Some members have not contributed.
    Open(Round),
}

/// Runs a round in which all members give and get the same, on the fast path. Returns `Ok(false)`, without effect, if the fast path does not apply.
#[inline(always)]
fn run_round(kind: Kind, group: GroupId, terms: Terms<'_>) -> Result<bool> {
    let bytes = terms.bytes(kind);
    let begun = as_owner(|process| {
        let place = process.engine.place(group)?;
        if process.engine.is_alone(group) {
            terms.keep_own(kind, place);
            return Some(Begun::Complete);
        }
        if !process.engine.can_hold_round(group, bytes) {
            return None;
        }
        let gives = terms.contribution(kind, place, (0, bytes));
        let mut round = process
            .engine
            .begin_round(group, Need::Everyone, Some(gives.into_owned()))
            .ok()?;
        if !process.look(&mut round) {
            return Some(Begun::Open(round));
        }
        process.read_round(kind, terms, place, &round);
        Some(Begun::Complete)
    });
    match begun {
        Some(Begun::Complete) => {}
        Some(Begun::Open(mut round)) => {
            await_round(&mut round)?;
            if kind.moves_data() {
                let held = enter()?;
                let place = held.engine.place(group).unwrap_or((0, 0));
                held.read_any_round(kind, terms, place, &round);
            }
        }
        None => return Ok(false),
    }
    Ok(true)
}

/// Runs rounds of the kind with number `KIND`, on the fast path. Returns `Ok(false)`, without effect, if the fast path does not apply.
// One function for each kind, with everything inlined into it. `run` itself is inlined into every C function, so it must stay small. Data that a
// kind does not need is not passed, so that callers do not write it to memory.
#[inline(never)]
fn run_rounds<const KIND: usize>(
    group: GroupId,
    root: u32,
    (input, output): (Option<&Views>, Option<&Views>),
    gives: &Parts,
    gets: &Parts,
    reduction: Option<&Reduction>,
) -> Result<bool> {
    let kind = Kind::ALL[KIND];
    let terms = Terms {
        root,
        input,
        output,
        gives,
        gets,
        reduction,
    };
    Ok(run_pair_round(kind, group, terms)?
        || (kind.is_same_for_all() && run_round(kind, group, terms)?))
}

/// Runs a barrier as [`run_rounds`] does. A function with a name of its own, so that the linker script can place it with what an idle task runs.
#[inline(never)]
fn run_barrier(group: GroupId) -> Result<bool> {
    let none = &Parts::Even(0);
    let terms = Terms {
        root: 0,
        input: None,
        output: None,
        gives: none,
        gets: none,
        reduction: None,
    };
    Ok(run_pair_round(Kind::Barrier, group, terms)? || run_round(Kind::Barrier, group, terms)?)
}

/// A call of [`run_rounds`] for a kind.
struct Rounds<'a>(GroupId, Terms<'a>);

impl ForKind for Rounds<'_> {
    type Output = Result<bool>;

    #[inline(always)]
    fn run<const KIND: usize>(self) -> Result<bool> {
        let Rounds(group, terms) = self;
        let memory = (terms.input, terms.output);
        run_rounds::<KIND>(
            group,
            terms.root,
            memory,
            terms.gives,
            terms.gets,
            terms.reduction,
        )
    }
}

/// Runs a one-way collective of one or two members, on the fast path. Returns `Ok(false)`, without effect, if the fast path does not apply.
#[inline(always)]
fn run_message(kind: Kind, group: GroupId, terms: Terms<'_>) -> Result<bool> {
    let mut open = None;
    let done = pair_message(kind, group, terms, &mut open);
    if let Some(pair) = open {
        return finish_message(group, kind, terms, pair).map(|()| true);
    }
    if let Some(done) = done {
        return Ok(done);
    }
    let is_alone = terms.root == 0 && is_alone(group);
    if is_alone {
        terms.keep_own(kind, (0, 1));
    }
    Ok(is_alone)
}

/// Returns whether this task is the only member of a group that is not broken.
fn is_alone(group: GroupId) -> bool {
    as_owner(|process| process.engine.is_alone(group).then_some(())).is_some()
}

/// Runs a collective. Blocks until it is complete for this task. Inlined, so that where `operation.kind` is a constant, the compiler drops the code
/// of all other kinds.
#[inline(always)]
pub fn run(group: GroupId, operation: Operation) -> Result<()> {
    operation.check()?;
    // Destructured, so that memory that a fast path does not use is neither written nor dropped.
    let Operation {
        kind,
        root,
        input,
        output,
        gives,
        gets,
        reduction,
    } = operation;
    let none = &Parts::Even(0);
    let terms = Terms {
        root,
        input: input.as_ref(),
        output: output.as_ref(),
        gives: if kind.gives_parts() { &gives } else { none },
        gets: if kind.gets_parts() { &gets } else { none },
        reduction: reduction.as_ref().filter(|_| kind.combines()),
    };
    let done = match kind {
        Kind::Barrier => run_barrier(group)?,
        _ if kind.is_one_way() => run_message(kind, group, terms)?,
        _ => kind.with_constant(Rounds(group, terms))?,
    };
    if done {
        return Ok(());
    }
    let operation = Operation {
        kind,
        root,
        input,
        output,
        gives,
        gets,
        reduction,
    };
    run_in_engine(group, operation)
}

/// Starts a collective and returns its request.
pub fn start(group: GroupId, operation: &Operation) -> Result<Handle> {
    enter()?.engine.start(group, operation)
}

#[inline(never)]
fn run_in_engine(group: GroupId, operation: Operation) -> Result<()> {
    let mut held = enter()?;
    let collective = held.engine.begin(group, operation)?;
    finish(held, collective)
}

/// Sends or receives the message of a one-way collective of two members, after the attempt to do it at once has failed.
#[inline(never)]
fn finish_message(group: GroupId, kind: Kind, terms: Terms<'_>, pair: PairMessage) -> Result<()> {
    let mut held = enter()?;
    let message = terms.message(kind, pair.rank);
    let way = (pair.peer, pair.context, pair.tag);
    let collective = held.engine.begin_message(group, kind, message, way)?;
    if pair.keeps_own {
        terms.keep_own(kind, (pair.rank, 2));
    }
    finish(held, collective)
}

/// Drives a collective to completion, waiting where necessary.
fn finish(mut held: Held, mut collective: Collective) -> Result<()> {
    with_work(collective.element(), |work| {
        loop {
            let waited = match held.engine.poll(&mut collective, work) {
                Ok(Awaits::Nothing) => return Ok(()),
                Ok(Awaits::Request(request)) => {
                    drop(held);
                    wait_for_collective(request, collective.crosses())
                }
                Ok(Awaits::Round) => {
                    let Some(round) = collective.round() else {
                        continue;
                    };
                    if held.look(round) {
                        continue;
                    }
                    drop(held);
                    wait_for(AwaitedRound(round))
                }
                Err(error) => {
                    drop(held);
                    Err(error)
                }
            };
            if let Err(error) = waited {
                enter()?.engine.give_up(&collective, &error);
                return Err(error);
            }
            held = enter()?;
            collective.request_ended();
        }
    })
}
