//! Collectives in time: started, or run by a caller that waits.
//!
//! The engine chooses how each is done, and does it as far as it can be done without waiting. The quickest ways of two tasks are in `pair.rs`.
//!
//! *Rules of small barriers and reductions to all:* one pass through the lock, no allocation, no system call unless a member sleeps. (docs/hot-paths.md names the
//! test.)

use std::mem::MaybeUninit;
use std::time::Duration;

use regatta_engine::{
    Awaits, Collective, GroupId, Handle, Kind, Need, Operation, Part, Parts, Reduction, Result,
    Round,
};
use regatta_memory::views::Views;

use crate::message::wait_for_collective;
use crate::pair::{PairBroadcast, pair_broadcast, run_pair_round};
use crate::state::{Held, Process, as_owner, enter};
use crate::wait::{Awaited, wait_for};

/// Number of polls of the collective buffer before the waiting policy takes over.
const POLLS_BEFORE_WAIT: u32 = 2000;

/// Time a round may take before the members' contributions are checked.
const CONTRIBUTIONS_CHECK_DELAY: Duration = Duration::from_millis(10);

/// Bytes of memory for contributions of the shortest rounds.
const STACK_WORK_BYTES: usize = 256;

/// A round that this task waits for.
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

impl Process {
    /// Number of polls for the others' contributions before this task waits.
    #[inline(always)]
    pub(crate) fn looks(&self) -> u32 {
        if self.pace.spins() {
            POLLS_BEFORE_WAIT
        } else {
            1
        }
    }

    /// Polls for a round to be complete, for about as long as that takes if all are on time.
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

    /// Combines what all have contributed to a round.
    #[inline(always)]
    fn fold_for_all(
        &self,
        round: &Round,
        place: (u32, u32),
        operands: (&Views, &Views),
        what: &Reduction,
    ) {
        let fold = |work: &Views| {
            let engine = &self.engine;
            engine.fold_for_all(round, place, operands, what, work);
        };
        if what.bytes() > STACK_WORK_BYTES {
            return with_work(what.element.size(), fold);
        }
        let mut few = MaybeUninit::<[u128; STACK_WORK_BYTES / 16]>::uninit();
        // SAFETY: the memory outlives the views, which do not leave this function.
        fold(&unsafe { Views::block(few.as_mut_ptr().cast(), STACK_WORK_BYTES) });
    }
}

/// Calls `work` with memory for contributions: what the engine asks for, and at least `element` bytes.
#[inline(never)]
fn with_work<R>(element: usize, work: impl FnOnce(&Views) -> R) -> R {
    let mut room = MaybeUninit::<[u128; Collective::WORK_BYTES / 16]>::uninit();
    // Elements of the user's can be longer.
    let is_longer = element > Collective::WORK_BYTES;
    let mut longer = vec![0u8; if is_longer { element } else { 0 }];
    let (start, len) = match is_longer {
        true => (longer.as_mut_ptr(), element),
        false => (room.as_mut_ptr().cast(), Collective::WORK_BYTES),
    };
    // SAFETY: the memory outlives the views, which do not leave the engine's calls.
    work(&unsafe { Views::block(start, len) })
}

/// How far a round of all has come without waiting.
enum Begun {
    /// There is nobody else.
    Alone,
    /// All have contributed, and it was read.
    Complete,
    /// Others are still to come.
    Open(Round),
}

/// A round in which all give `bytes` bytes, by the quickest way in. `Ok(false)`: nothing has been done, as there is more to it.
#[inline(always)]
fn run_round(
    group: GroupId,
    bytes: usize,
    gives: &Views,
    alone: impl FnOnce(),
    read: impl Fn(&Process, &Round, (u32, u32)),
) -> Result<bool> {
    let begun = as_owner(|process| {
        let place = process.engine.place(group)?;
        if process.engine.is_alone(group) {
            return Some(Begun::Alone);
        }
        if !process.engine.can_hold_round(group, bytes) {
            return None;
        }
        let mut round = process
            .engine
            .begin_round(group, Need::Everyone, Some(gives.clone()))
            .ok()?;
        if !process.look(&mut round) {
            return Some(Begun::Open(round));
        }
        read(process, &round, place);
        Some(Begun::Complete)
    });
    match begun {
        Some(Begun::Alone) => alone(),
        Some(Begun::Complete) => {}
        Some(Begun::Open(mut round)) => {
            wait_for(AwaitedRound(&mut round))?;
            let held = enter()?;
            let place = held.engine.place(group).unwrap_or((0, 0));
            read(&held, &round, place);
        }
        None => return Ok(false),
    }
    Ok(true)
}

// One function for the quick ways of each kind, with everything inlined into it. `run` itself is inlined into every C function, so it must stay small.
#[inline(never)]
fn run_barrier(group: GroupId) -> Result<bool> {
    let nothing = Views::none();
    Ok(
        run_pair_round(group, 0, |_| Views::none(), |_| (), |_, _, _| ())?
            || run_round(group, 0, &nothing, || (), |_, _, _| ())?,
    )
}

#[inline(never)]
fn run_allreduce(
    group: GroupId,
    input: Option<&Views>,
    output: &Views,
    what: &Reduction,
) -> Result<bool> {
    let (bytes, given) = (what.bytes(), input.unwrap_or(output));
    let read = |process: &Process, round: &Round, place| {
        process.fold_for_all(round, place, (given, output), what);
    };
    let read_pair = |process: &Process, round: &Round, rank| read(process, round, (rank, 2));
    let alone = || {
        given.copy_to(output);
    };
    Ok(
        run_pair_round(group, bytes, |_| given.clone(), |_| (), read_pair)?
            || run_round(group, bytes, given, alone, read)?,
    )
}

/// An allgather of a pair.
#[inline(never)]
fn run_allgather(
    group: GroupId,
    input: Option<&Views>,
    output: &Views,
    parts: &Parts,
) -> Result<bool> {
    run_pair_round(
        group,
        parts.longest(),
        |rank| match input {
            Some(input) => input.clone(),
            None => parts.cut(output, rank),
        },
        |rank| {
            if let Some(input) = input {
                input.copy_to(&parts.cut(output, rank));
            }
        },
        |process, round, rank| {
            let (other, offset) = (1 - rank, 0);
            let total = parts.of(other).0;
            let into = parts.cut(output, other);
            process
                .engine
                .collect(round, other, Part { offset, total }, &into);
        },
    )
}

/// A complete exchange of a pair, in parts of `len` bytes.
#[inline(never)]
fn run_alltoall(group: GroupId, input: &Views, output: &Views, len: usize) -> Result<bool> {
    let cut = |whole: &Views, rank: u32| whole.part(len * rank as usize, len);
    run_pair_round(
        group,
        len,
        |rank| cut(input, 1 - rank),
        |rank| {
            cut(input, rank).copy_to(&cut(output, rank));
        },
        |process, round, rank| {
            let (total, offset) = (len, 0);
            let into = cut(output, 1 - rank);
            process
                .engine
                .collect(round, 1 - rank, Part { offset, total }, &into);
        },
    )
}

/// Returns whether this task is the only member of a group in which calls still succeed.
fn is_alone(group: GroupId) -> bool {
    as_owner(|process| process.engine.is_alone(group).then_some(())).is_some()
}

/// Runs a collective; returns when it is complete for this task. Inlined: where `operation.kind` is a constant, the compiler drops the code of all other kinds.
#[inline(always)]
pub fn run(group: GroupId, operation: Operation) -> Result<()> {
    operation.check()?;
    // Taken apart, so that memory that a quick way does not use is neither written nor dropped.
    let Operation {
        kind,
        root,
        input,
        output,
        gives,
        gets,
        reduction,
    } = operation;
    let done = match (kind, &output, &reduction) {
        (Kind::Barrier, ..) => run_barrier(group)?,
        (Kind::Allreduce, Some(output), Some(what)) => {
            run_allreduce(group, input.as_ref(), output, what)?
        }
        (Kind::Broadcast, Some(buffer), _) => {
            let mut open = None;
            let done = pair_broadcast(group, root, buffer, &mut open);
            if let Some(message) = open {
                return finish_broadcast(group, root, buffer, message);
            }
            done.unwrap_or_else(|| root == 0 && is_alone(group))
        }
        (Kind::Allgather, Some(output), _) => run_allgather(group, input.as_ref(), output, &gets)?,
        (Kind::Alltoall, Some(output), _) => match (&input, &gives, &gets) {
            (Some(input), &Parts::Even(len), Parts::Even(_)) => {
                run_alltoall(group, input, output, len)?
            }
            _ => false,
        },
        _ => false,
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

/// Starts a collective, which completes later.
pub fn start(group: GroupId, operation: &Operation) -> Result<Handle> {
    enter()?.engine.start(group, operation)
}

#[inline(never)]
fn run_in_engine(group: GroupId, operation: Operation) -> Result<()> {
    let mut held = enter()?;
    let collective = held.engine.begin(group, operation)?;
    finish(held, collective)
}

/// A broadcast between two whose message did not go, or come, at once.
#[inline(never)]
fn finish_broadcast(group: GroupId, root: u32, buffer: &Views, pair: PairBroadcast) -> Result<()> {
    let operation = Operation {
        root,
        output: Some(buffer.clone()),
        ..Operation::of(Kind::Broadcast)
    };
    let mut held = enter()?;
    let message = (pair.peer, pair.context, pair.tag);
    let collective = held
        .engine
        .begin_message(group, operation, pair.rank, message)?;
    finish(held, collective)
}

/// Carries a collective on, and waits where it has to.
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
