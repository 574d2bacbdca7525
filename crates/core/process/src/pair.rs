//! Small collectives of a pair, by the quickest way in.
//!
//! Two tasks need no member that leads and no list of members to look at: a round is a contribution, this task's own part while the other one's is on its way, and a look at
//! one word. A broadcast is a message.
//!
//! *Rules of this path:* no lock, no allocation, no system call unless the other one sleeps; a trial of footprints may allocate once.

use std::mem::MaybeUninit;

use regatta_engine::{GroupId, Part, Peer, Reduction, Result, Round};
use regatta_memory::prefetch::prefetch_to_read;
use regatta_memory::views::Views;

use crate::collective::{AwaitedRound, MAX_RANK_ORDER_BYTES, by_pieces, fold};
use crate::state::{Process, enter, quick};
use crate::wait::wait_for;

/// Maximum size that is prefetched before a function of the program goes through it, in bytes.
const MAX_PREFETCH_BYTES: usize = 1024;

/// A round of a pair, by the quickest way in: this task gives what `gives` says for its rank, does its own part `meanwhile`, and reads the other one's
/// contribution with `read`. `Ok(false)`: nothing has been done, as the group is no pair or there is more to it.
#[inline(always)]
pub(crate) fn run_pair_round(
    group: GroupId,
    bytes: usize,
    gives: impl FnOnce(u32) -> Views,
    meanwhile: impl FnOnce(u32),
    read: impl Fn(&Process, &Round, u32),
) -> Result<bool> {
    let begun = quick(|process| {
        let (rank, size) = process.engine.place(group)?;
        if size != 2 {
            return None;
        }
        let gives = gives(rank);
        let round = process.engine.begin_pair_round(group, bytes, &gives)?;
        meanwhile(rank);
        let complete = process.look_at_pair(&round);
        if complete {
            read(process, &round, rank);
        }
        Some((complete, round, rank))
    });
    let Some((complete, mut round, rank)) = begun else {
        return Ok(false);
    };
    if !complete {
        wait_for(AwaitedRound(&mut round))?;
        read(&*enter()?, &round, rank);
    }
    Ok(true)
}

impl Process {
    /// As [`Process::look`], in a pair's round.
    #[inline(always)]
    fn look_at_pair(&mut self, round: &Round) -> bool {
        let looks = self.looks();
        self.engine.look_at_pair_round(round, looks)
    }
}

/// The message of a broadcast between two; `done`: it was sent or received at once.
pub(crate) struct PairBroadcast {
    pub(crate) peer: Peer,
    pub(crate) context: u32,
    pub(crate) tag: i32,
    pub(crate) done: bool,
}

/// The broadcast of a group of two, as far as it goes without waiting long.
#[inline(always)]
pub(crate) fn pair_broadcast(group: GroupId, root: u32, buffer: &Views) -> Option<PairBroadcast> {
    quick(|process| {
        if root >= 2 {
            return None;
        }
        let (rank, peer, context, tag) = process.engine.pair_now(group)?;
        let done = if rank == root {
            process.engine.send_now(peer, context, tag, buffer)
        } else {
            let got = process.receive_soon(peer, context, tag, buffer);
            got.is_some()
        };
        Some(PairBroadcast {
            peer,
            context,
            tag,
            done,
        })
    })
}

/// Combines this task's few elements with those of the other one of a pair, in rank order.
#[inline(always)]
pub(crate) fn fold_few_of_pair(
    process: &Process,
    round: &Round,
    rank: u32,
    (input, output): (&Views, &Views),
    what: &Reduction,
) {
    let total = what.bytes();
    let mut few = MaybeUninit::<[u128; MAX_RANK_ORDER_BYTES / 16]>::uninit();
    // SAFETY: the memory outlives the views, which do not leave this function.
    let theirs = unsafe { Views::block(few.as_mut_ptr().cast(), total) };
    let part = Part { offset: 0, total };
    process.engine.collect(round, 1 - rank, part, &theirs);
    if !combine_in_rank_order(rank, &theirs, (input, output), what) {
        fold(process, round, 2, output, what);
    }
}

/// Combines two contributions by a built-in operation; whether it is one. Both tasks do so in one order, or the largest of two zeros with a sign would be another one here than there.
#[inline(always)]
fn combine_in_rank_order(
    rank: u32,
    theirs: &Views,
    (input, output): (&Views, &Views),
    what: &Reduction,
) -> bool {
    let operands = match rank {
        0 => (theirs, input),
        _ => (input, theirs),
    };
    what.operator
        .combine(what.element, operands, output, what.count)
}

/// Combines this task's elements with those of the other one of a pair, where these lie if that can be; in rank order, so that both have one result to the last bit.
#[inline(never)]
pub(crate) fn fold_pair(
    process: &Process,
    round: &Round,
    rank: u32,
    (input, output): (&Views, &Views),
    what: &Reduction,
) {
    let total = what.bytes();
    let (operator, element) = (&what.operator, what.element);
    let in_place = input.contiguous() == output.contiguous();
    // No other task reads that contribution: a function of the program that writes where it should only read does no harm.
    if let Some(theirs) = process.engine.contribution(round, 1 - rank, total) {
        if combine_in_rank_order(rank, &theirs, (input, output), what) {
            return;
        }
        if rank == 1 {
            if let Some(start) = theirs.contiguous().filter(|_| total <= MAX_PREFETCH_BYTES) {
                prefetch_to_read(start, total);
            }
            if !in_place {
                input.copy_to(output);
            }
            return operator.apply(element, &theirs, output, what.count);
        }
        if !in_place {
            theirs.copy_to(output);
            return operator.apply(element, input, output, what.count);
        }
    }
    by_pieces(what, |from, count, theirs| {
        let result = output.part(from, theirs.len());
        let part = Part {
            offset: from,
            total: what.bytes(),
        };
        process.engine.collect(round, 1 - rank, part, theirs);
        if !in_place {
            input.part(from, theirs.len()).copy_to(&result);
        }
        if rank == 0 {
            operator.apply(element, &result, theirs, count);
            theirs.copy_to(&result);
        } else {
            operator.apply(element, theirs, &result, count);
        }
    });
}
