//! Collectives that block; those that are started are in `started_collective.rs`.
//!
//! Small blocking ones are rounds in shared memory; everything else runs as a schedule of messages.
//! Which of the two is decided from sizes all members know to be equal, so they decide alike.

use std::mem::MaybeUninit;
use std::time::Duration;

use regatta_engine::{
    COLLECTIVE_BUFFER_DEPTH, Error, GroupId, Handle, LED_FROM, Mode, Need, Part, Parts, Reduction,
    Result, Round, Select, TagSelect,
};
use regatta_memory::views::Views;

use crate::across::across;
use crate::message::wait_or_forget;
use crate::pair::{PairBroadcast, fold_few_of_pair, fold_pair, pair_broadcast, run_pair_round};
use crate::started_collective::{
    start_allgather, start_allreduce, start_alltoall, start_barrier, start_broadcast, start_exscan,
    start_gather, start_reduce, start_reduce_scatter, start_scan, start_scatter,
};
use crate::state::{Process, enter, quick};
use crate::wait::{Awaited, wait_for};

/// Number of polls of the collective buffer before the waiting policy takes over.
const POLLS_BEFORE_WAIT: u32 = 2000;

/// Time a round may take before the members' contributions are checked.
const CONTRIBUTIONS_CHECK_DELAY: Duration = Duration::from_millis(10);

/// A round that this task waits for.
pub(crate) struct AwaitedRound<'a>(pub(crate) &'a mut Round);

impl Awaited for AwaitedRound<'_> {
    type Output = ();
    const PROGRESSES: bool = false;
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

/// A whole round: contribute `gives`, wait for the contributions needed, and read them with `read`.
#[inline(always)]
fn run_round<R>(
    group: GroupId,
    need: Need,
    gives: Option<Views>,
    read: impl FnOnce(&Process, &Round) -> R,
) -> Result<R> {
    let mut held = enter()?;
    let mut round = held.engine.begin_round(group, need, gives)?;
    if !held.look(&mut round) {
        drop(held);
        wait_for(AwaitedRound(&mut round))?;
        held = enter()?;
    }
    let result = read(&held, &round);
    held.engine.end_round(round);
    Ok(result)
}

impl Process {
    /// How often this task looks for the others' contributions before it waits.
    #[inline(always)]
    pub(crate) fn looks(&self) -> u32 {
        if self.pace.spins() {
            POLLS_BEFORE_WAIT
        } else {
            1
        }
    }

    /// Look whether a round is complete, for about as long as that takes if all are on time.
    #[inline(always)]
    pub(crate) fn look(&mut self, round: &mut Round) -> bool {
        for _ in 0..self.looks() {
            if self.engine.round_complete(round) {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }
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

/// A round in which all give `bytes` bytes, by the quickest way in. A group of one has no rounds: `alone` is its collective. `Ok(false)`:
/// this group cannot hold a round with so many.
#[inline(always)]
fn run_round_of_all(
    group: GroupId,
    bytes: usize,
    gives: &Views,
    alone: impl FnOnce(),
    read: impl Fn(&Process, &Round, u32, u32),
) -> Result<bool> {
    let begun = quick(|process| {
        let (rank, size) = process.engine.place(group)?;
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
        read(process, &round, rank, size);
        Some(Begun::Complete)
    });
    match begun {
        Some(Begun::Alone) => {
            alone();
            Ok(true)
        }
        Some(Begun::Complete) => Ok(true),
        Some(Begun::Open(mut round)) => {
            wait_for(AwaitedRound(&mut round))?;
            let held = enter()?;
            let (rank, size) = held.engine.place(group).unwrap_or((0, 0));
            read(&held, &round, rank, size);
            Ok(true)
        }
        None => {
            let (rank, size) = shape(group)?;
            if !can_hold_round(group, bytes)? {
                return Ok(false);
            }
            run_round(
                group,
                Need::Everyone,
                Some(gives.clone()),
                |process, round| {
                    read(process, round, rank, size);
                },
            )?;
            Ok(true)
        }
    }
}

fn can_hold_round(group: GroupId, bytes: usize) -> Result<bool> {
    Ok(enter()?.engine.can_hold_round(group, bytes))
}

/// Is this task the only member of a group, in which calls still succeed?
fn is_alone(group: GroupId) -> bool {
    quick(|process| process.engine.is_alone(group).then_some(())).is_some()
}

/// Rank and size.
fn shape(group: GroupId) -> Result<(u32, u32)> {
    let held = enter()?;
    let group = held.engine.closed(group)?;
    Ok((group.rank, group.size()))
}

pub(crate) fn outcome(handle: Handle) -> Result<()> {
    match wait_or_forget(handle)?.1 {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Wait until all members have come.
#[inline(always)]
pub fn barrier(group: GroupId) -> Result<()> {
    let nothing = Views::none();
    if run_pair_round(group, 0, |_| Views::none(), |_| (), |_, _, _| ())?
        || run_round_of_all(group, 0, &nothing, || (), |_, _, _, _| ())?
        || across(group, &nothing, &nothing, None)?
    {
        return Ok(());
    }
    outcome(start_barrier(group)?)
}

/// The root's bytes to all.
#[inline(always)]
pub fn broadcast(group: GroupId, root: u32, buffer: Views) -> Result<()> {
    let pair = pair_broadcast(group, root, &buffer);
    if pair.as_ref().is_some_and(|pair| pair.done) {
        return Ok(());
    }
    if root == 0 && pair.is_none() && is_alone(group) {
        return Ok(());
    }
    broadcast_slowly(group, root, buffer, pair)
}

#[inline(never)]
fn broadcast_slowly(
    group: GroupId,
    root: u32,
    buffer: Views,
    pair: Option<PairBroadcast>,
) -> Result<()> {
    let (rank, size) = shape(group)?;
    if root >= size {
        return Err(Error::Task(root as i64));
    }
    if size == 2 {
        let mut held = enter()?;
        let (peer, context, tag) = match pair {
            Some(pair) => (pair.peer, pair.context, pair.tag),
            None => held.engine.pair(group)?,
        };
        let handle = if rank == root {
            let mode = Mode::Standard;
            held.engine.start_send(peer, context, tag, buffer, mode)?
        } else {
            let select = Select {
                context,
                source: Some(peer),
                tag: TagSelect::Exactly(tag),
            };
            held.engine.start_receive(select, buffer)?
        };
        drop(held);
        return outcome(handle);
    }
    let total = buffer.len();
    if !can_hold_round(group, total)? {
        return outcome(start_broadcast(group, root, buffer)?);
    }
    if rank == root {
        return run_round(group, Need::Nobody, Some(buffer), |_, _| ());
    }
    run_round(group, Need::From(root), None, |process, round| {
        let part = Part { offset: 0, total };
        process.engine.collect(round, root, part, &buffer);
    })
}

/// Maximum size of a reduction, in bytes, that all members combine in rank order.
pub(crate) const MAX_RANK_ORDER_BYTES: usize = 256;
/// Fold the contributions of ranks `0 .. upto` into `output`, in rank order.
#[inline(always)]
pub(crate) fn fold(process: &Process, round: &Round, upto: u32, output: &Views, what: &Reduction) {
    let total = what.bytes();
    let part = Part { offset: 0, total };
    process.engine.collect(round, 0, part, output);
    fold_others(process, round, upto, output, what);
}

/// Fold the contributions of ranks `1 .. upto` into `output`, where the contribution of rank 0 is in `output` already.
#[inline(always)]
pub(crate) fn fold_others(
    process: &Process,
    round: &Round,
    upto: u32,
    output: &Views,
    what: &Reduction,
) {
    let total = what.bytes();
    if total > MAX_RANK_ORDER_BYTES {
        return fold_by_pieces(process, round, 1..upto, output, what);
    }
    let mut few = MaybeUninit::<[u128; MAX_RANK_ORDER_BYTES / 16]>::uninit();
    // SAFETY: the memory outlives the views, which do not leave this function.
    let theirs = unsafe { Views::block(few.as_mut_ptr().cast(), total) };
    let part = Part { offset: 0, total };
    for rank in 1..upto {
        process.engine.collect(round, rank, part, &theirs);
        combine_into(output, &theirs, what, what.count, true);
    }
}

/// `output = output op theirs` in rank order, where `theirs` are of a higher rank or not.
#[inline(always)]
fn combine_into(output: &Views, theirs: &Views, what: &Reduction, count: usize, higher: bool) {
    if what.operator.commutative() || !higher {
        what.operator.apply(what.element, theirs, output, count);
    } else {
        what.operator.apply(what.element, output, theirs, count);
        theirs.copy_to(output);
    }
}

/// Bytes that are taken from a contribution at a time: they stay in the nearest cache until they are combined.
const PIECE: usize = 4096;

/// Folds the contributions of these ranks into `output`, where that of the ranks before is already.
#[inline(never)]
fn fold_by_pieces(
    process: &Process,
    round: &Round,
    ranks: std::ops::Range<u32>,
    output: &Views,
    what: &Reduction,
) {
    by_pieces(what, |from, count, theirs| {
        let output = output.part(from, theirs.len());
        let part = Part {
            offset: from,
            total: what.bytes(),
        };
        for rank in ranks.clone() {
            process.engine.collect(round, rank, part, theirs);
            combine_into(&output, theirs, what, count, true);
        }
    });
}

/// Calls `fold` with each piece of the elements: its first byte, how many there are, and room for so many.
#[inline(always)]
pub(crate) fn by_pieces(what: &Reduction, mut fold: impl FnMut(usize, usize, &Views)) {
    let width = what.element.size().max(1);
    let mut large = MaybeUninit::<[u128; PIECE / 16]>::uninit();
    // Elements of the user's can be longer than a piece.
    let mut longer = vec![0u8; if width > PIECE { width } else { 0 }];
    let (room, each) = match width > PIECE {
        true => (longer.as_mut_ptr(), 1),
        false => (large.as_mut_ptr().cast(), PIECE / width),
    };
    let mut done = 0;
    while done < what.count {
        let count = each.min(what.count - done);
        // SAFETY: the memory outlives the views, which do not leave this function.
        let theirs = unsafe { Views::block(room, count * width) };
        fold(done * width, count, &theirs);
        done += count;
    }
}

pub(crate) fn check_reduction(what: &Reduction) -> Result<()> {
    if what.count.checked_mul(what.element.size()).is_none() {
        return Err(Error::Argument(format!(
            "{} elements do not fit into memory",
            what.count
        )));
    }
    if !what.operator.suits(what.element) {
        return Err(Error::Argument(format!(
            "the operator is not defined on elements of type {:?}",
            what.element
        )));
    }
    Ok(())
}

/// Combine all members' elements; the result to all. `input` and `output` may be the same.
#[inline(always)]
pub fn allreduce(group: GroupId, input: Views, output: Views, what: Reduction) -> Result<()> {
    check_reduction(&what)?;
    let bytes = what.bytes();
    let met = run_pair_round(
        group,
        bytes,
        |_| input.clone(),
        |_| (),
        |process, round, rank| match bytes > MAX_RANK_ORDER_BYTES {
            true => fold_pair(process, round, rank, (&input, &output), &what),
            false => fold_few_of_pair(process, round, rank, (&input, &output), &what),
        },
    )?;
    let met = met
        || run_round_of_all(
            group,
            bytes,
            &input,
            || {
                input.copy_to(&output);
            },
            |process, round, rank, size| match size == 2 && bytes > MAX_RANK_ORDER_BYTES {
                true => fold_pair(process, round, rank, (&input, &output), &what),
                false => fold(process, round, size, &output, &what),
            },
        )?;
    if met || across(group, &input, &output, Some(&what))? {
        return Ok(());
    }
    outcome(start_allreduce(group, input, output, what)?)
}

/// Combine all members' elements; the result to the root.
pub fn reduce(
    group: GroupId,
    root: u32,
    input: Views,
    output: Views,
    what: Reduction,
) -> Result<()> {
    check_reduction(&what)?;
    let (rank, size) = shape(group)?;
    if root >= size {
        return Err(Error::Task(root as i64));
    }
    if size == 1 && is_alone(group) {
        input.copy_to(&output);
        return Ok(());
    }
    if !can_hold_round(group, what.bytes())? {
        return outcome(start_reduce(group, root, input, output, what)?);
    }
    if rank != root {
        return run_round(group, Need::Nobody, Some(input), |_, _| ());
    }
    run_round(group, Need::All, Some(input), |process, round| {
        fold(process, round, size, &output, &what);
    })
}

/// Combine the elements of all ranks up to this one.
pub fn scan(group: GroupId, input: Views, output: Views, what: Reduction) -> Result<()> {
    check_reduction(&what)?;
    let (rank, size) = shape(group)?;
    if size == 1 && is_alone(group) {
        input.copy_to(&output);
        return Ok(());
    }
    if can_hold_round(group, what.bytes())? {
        return run_round(group, Need::Everyone, Some(input), |process, round| {
            fold(process, round, rank + 1, &output, &what);
        });
    }
    outcome(start_scan(group, input, output, what)?)
}

/// Combine the elements of all ranks below this one; the output of rank 0 is left alone.
pub fn exscan(group: GroupId, input: Views, output: Views, what: Reduction) -> Result<()> {
    check_reduction(&what)?;
    let (rank, size) = shape(group)?;
    if size == 1 && is_alone(group) {
        return Ok(());
    }
    if can_hold_round(group, what.bytes())? {
        return run_round(group, Need::Everyone, Some(input), |process, round| {
            if rank > 0 {
                fold(process, round, rank, &output, &what);
            }
        });
    }
    outcome(start_exscan(group, input, output, what)?)
}

/// Combine all members' elements; to each its part of the result. `parts` are those of the input, in bytes; the output is
/// this member's, and may be the front of the input.
pub fn reduce_scatter(
    group: GroupId,
    input: Views,
    output: Views,
    parts: &Parts,
    what: Reduction,
) -> Result<()> {
    check_reduction(&what)?;
    let (rank, size) = shape(group)?;
    if size == 1 && is_alone(group) {
        let (own, first) = parts.of(0);
        input.part(first, own).copy_to(&output);
        return Ok(());
    }
    if !can_hold_round(group, what.bytes())? {
        return outcome(start_reduce_scatter(group, input, output, parts, what)?);
    }
    let (own, first) = parts.of(rank);
    let part = Reduction {
        count: own / what.element.size().max(1),
        ..what
    };
    run_round(group, Need::Everyone, Some(input), |process, round| {
        by_pieces(&part, |from, count, theirs| {
            let output = output.part(from, theirs.len());
            let part = Part {
                offset: first + from,
                total: what.bytes(),
            };
            process.engine.collect(round, 0, part, &output);
            for other in 1..size {
                process.engine.collect(round, other, part, theirs);
                combine_into(&output, theirs, &what, count, true);
            }
        });
    })
}

/// Rounds a larger exchange may take in the collective buffer before messages do it better.
const ROUNDS: usize = 16;

/// The bytes each member can give in a round when it gives `shares` of them, so that `len` of
/// each take at most [`ROUNDS`]; `None` if messages do it better.
fn rounds(group: GroupId, size: u32, len: usize, shares: usize) -> Result<Option<usize>> {
    // Two exchange a message each, straight from memory to memory.
    let most = if size == 2 { 1 } else { ROUNDS };
    let held = enter()?;
    for count in 1..=most {
        let each = len.div_ceil(count).max(1);
        if held.engine.can_hold_round(group, each * shares) {
            return Ok(Some(each));
        }
    }
    Ok(None)
}

/// Rounds to which a member contributes before it waits for the others. With the one that it waits for they are half of those that a
/// collective buffer keeps: those of the next exchange fit beside them, and need not wait until these are read.
const AHEAD: usize = COLLECTIVE_BUFFER_DEPTH as usize / 2 - 1;

/// An exchange of everybody with everybody, in rounds of `each` of `len` bytes. `gives` are this task's contribution from some byte on, so
/// many of them; `take` reads those bytes of all others. Members wait for each other once in several rounds.
#[inline(always)]
fn run_rounds(
    (group, size): (GroupId, u32),
    (len, each): (usize, usize),
    gives: impl Fn(usize, usize) -> Views,
    take: impl Fn(&Process, &Round, (usize, usize)),
) -> Result<()> {
    let ahead = if size > LED_FROM { 0 } else { AHEAD };
    let mut from = 0;
    loop {
        let mut given: [Option<(Round, usize)>; AHEAD] = Default::default();
        for round in given.iter_mut().take(ahead) {
            if from + each >= len {
                break;
            }
            *round = Some((give_ahead(group, gives(from, each))?, from));
            from += each;
        }
        let n = each.min(len - from);
        let last = gives(from, n);
        run_round_of_all(
            group,
            last.len(),
            &last,
            || (),
            |process, round, _, _| {
                for (round, from) in given.iter().flatten() {
                    take(process, round, (*from, each));
                }
                take(process, round, (from, n));
            },
        )?;
        from += n;
        if from >= len {
            return Ok(());
        }
    }
}

/// Contributes to a round, and does not wait for the others.
#[inline(never)]
fn give_ahead(group: GroupId, gives: Views) -> Result<Round> {
    let mut held = enter()?;
    let mut round = held.engine.begin_round(group, Need::Later, Some(gives))?;
    if !held.engine.round_complete(&mut round) {
        drop(held);
        wait_for(AwaitedRound(&mut round))?;
    }
    Ok(round)
}

/// All members' bytes to all. `None` as input: it lies in its place in the output. Parts that are not alike take as many rounds as
/// the longest of them.
pub fn allgather(group: GroupId, input: Option<Views>, output: Views, parts: Parts) -> Result<()> {
    let len = parts.longest();
    let done = run_pair_round(
        group,
        len,
        |rank| match &input {
            Some(input) => input.clone(),
            None => parts.cut(&output, rank),
        },
        |rank| {
            if let Some(input) = &input {
                input.copy_to(&parts.cut(&output, rank));
            }
        },
        |process, round, rank| {
            let other = 1 - rank;
            let total = parts.of(other).0;
            let part = Part { offset: 0, total };
            let into = parts.cut(&output, other);
            process.engine.collect(round, other, part, &into);
        },
    )?;
    if done {
        return Ok(());
    }
    let (rank, size) = shape(group)?;
    if size == 1 && is_alone(group) {
        if let Some(input) = &input {
            input.copy_to(&parts.cut(&output, 0));
        }
        return Ok(());
    }
    let Some(each) = rounds(group, size, len, 1)? else {
        return outcome(start_allgather(group, input, output, &parts)?);
    };
    let own = parts.cut(&output, rank);
    let gives = input.clone().unwrap_or_else(|| own.clone());
    // Bytes of a member's part from some byte on; a part may end before the others.
    let left = |rank: u32, from: usize, n| parts.of(rank).0.saturating_sub(from).min(n);
    run_rounds(
        (group, size),
        (len, each),
        |from, n| gives.part(from, left(rank, from, n)),
        |process, round, (from, n)| {
            for other in (0..size).filter(|&other| other != rank) {
                let part = Part {
                    offset: 0,
                    total: left(other, from, n),
                };
                let into = parts.cut(&output, other).part(from, part.total);
                process.engine.collect(round, other, part, &into);
            }
        },
    )?;
    if let Some(input) = input {
        input.copy_to(&own);
    }
    Ok(())
}

/// To each member its own bytes from each.
pub fn alltoall(
    group: GroupId,
    input: Views,
    gives: Parts,
    output: Views,
    gets: Parts,
) -> Result<()> {
    let (&Parts::Even(len), Parts::Even(_)) = (&gives, &gets) else {
        return outcome(start_alltoall(group, input, &gives, output, &gets)?);
    };
    let done = run_pair_round(
        group,
        len,
        |rank| gives.cut(&input, 1 - rank),
        |rank| {
            gives.cut(&input, rank).copy_to(&gets.cut(&output, rank));
        },
        |process, round, rank| {
            let part = Part {
                offset: 0,
                total: len,
            };
            let into = gets.cut(&output, 1 - rank);
            process.engine.collect(round, 1 - rank, part, &into);
        },
    )?;
    match done {
        true => Ok(()),
        false => alltoall_in_rounds(group, len, input, gives, output, gets),
    }
}

/// As [`alltoall`], of `len` bytes each, for groups that are no pairs, or have no room for such a round.
fn alltoall_in_rounds(
    group: GroupId,
    len: usize,
    input: Views,
    gives: Parts,
    output: Views,
    gets: Parts,
) -> Result<()> {
    let (rank, size) = shape(group)?;
    if size == 1 && is_alone(group) {
        gives.cut(&input, 0).copy_to(&gets.cut(&output, 0));
        return Ok(());
    }
    // Of two each gives what the other one gets. Of more each gives a piece for everybody, for itself as well.
    let is_pair = size == 2;
    let (shares, mine) = match is_pair {
        true => (1, 0),
        false => (size as usize, rank as usize),
    };
    let Some(each) = rounds(group, size, len, shares)? else {
        return outcome(start_alltoall(group, input, &gives, output, &gets)?);
    };
    run_rounds(
        (group, size),
        (len, each),
        |from, n| match is_pair {
            true => gives.cut(&input, 1 - rank).part(from, n),
            false => input.pieces(from, n, len, shares),
        },
        |process, round, (from, n)| {
            let part = Part {
                offset: n * mine,
                total: n * shares,
            };
            for other in (0..size).filter(|&other| other != rank) {
                let into = gets.cut(&output, other).part(from, n);
                process.engine.collect(round, other, part, &into);
            }
        },
    )?;
    gives.cut(&input, rank).copy_to(&gets.cut(&output, rank));
    Ok(())
}

/// All members' bytes to the root.
pub fn gather(
    group: GroupId,
    root: u32,
    input: Option<Views>,
    output: Views,
    parts: &Parts,
) -> Result<()> {
    if root == 0 && is_alone(group) {
        if let Some(input) = input {
            input.copy_to(&parts.cut(&output, 0));
        }
        return Ok(());
    }
    outcome(start_gather(group, root, input, output, parts)?)
}

/// To each member its bytes from the root.
pub fn scatter(
    group: GroupId,
    root: u32,
    input: Views,
    parts: &Parts,
    output: Option<Views>,
) -> Result<()> {
    if root == 0 && is_alone(group) {
        if let Some(output) = output {
            parts.cut(&input, 0).copy_to(&output);
        }
        return Ok(());
    }
    outcome(start_scatter(group, root, input, parts, output)?)
}
