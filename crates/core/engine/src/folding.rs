//! Combines the contributions to a round: always in rank order, so that all members get the same result, bit for bit.
//!
//! `work` is memory of the caller, at least one element long, that holds a contribution until it is combined. Contributions that are longer are
//! combined piece by piece.

use regatta_memory::prefetch::prefetch_to_read;
use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::operation::Reduction;
use crate::round::Round;
use crate::transport::{Part, Transport};

/// Maximum size of an operand that is prefetched before a user-defined operator reads it, in bytes.
const MAX_PREFETCH_BYTES: usize = 1024;
/// Maximum size of the operands of two members that are copied before they are combined, in bytes.
const MAX_COPIED_BYTES: usize = 256;

/// Computes `output = output op theirs`, in rank order. `theirs` has the higher rank.
#[inline(always)]
fn combine_into(output: &Views, theirs: &Views, what: &Reduction, count: usize) {
    if what.operator.commutative() {
        what.operator.apply(what.element, theirs, output, count);
    } else {
        what.operator.apply(what.element, output, theirs, count);
        theirs.copy_to(output);
    }
}

/// Calls `fold` for each piece of the elements, with its first byte, its number of elements, and memory for that number.
#[inline(always)]
fn by_pieces(what: &Reduction, work: &Views, mut fold: impl FnMut(usize, usize, &Views)) {
    let width = what.element.size().max(1);
    let each = (work.len() / width).max(1);
    let mut done = 0;
    while done < what.count {
        let count = each.min(what.count - done);
        fold(done * width, count, &work.part(0, count * width));
        done += count;
    }
}

/// Combines two contributions with a built-in operator. Returns false, without effect, if the operator is not built in or its memory is not one
/// block. Both tasks take the operands in rank order: otherwise the maximum of +0.0 and -0.0 could differ between them.
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

impl<T: Transport> Engine<T> {
    /// Combines the contributions of ranks `0 .. upto` into `output`.
    #[inline(always)]
    pub(crate) fn fold(
        &self,
        round: &Round,
        upto: u32,
        output: &Views,
        what: &Reduction,
        work: &Views,
    ) {
        let total = what.bytes();
        self.collect(round, 0, Part { offset: 0, total }, output);
        self.fold_others(round, upto, output, what, work);
    }

    /// Combines the contributions of ranks `1 .. upto` into `output`, which already contains that of rank 0.
    #[inline(always)]
    pub(crate) fn fold_others(
        &self,
        round: &Round,
        upto: u32,
        output: &Views,
        what: &Reduction,
        work: &Views,
    ) {
        let total = what.bytes();
        if total > work.len() {
            return self.fold_by_pieces(round, upto, output, what, work);
        }
        let theirs = work.part(0, total);
        for rank in 1..upto {
            self.collect(round, rank, Part { offset: 0, total }, &theirs);
            combine_into(output, &theirs, what, what.count);
        }
    }

    #[inline(never)]
    fn fold_by_pieces(
        &self,
        round: &Round,
        upto: u32,
        output: &Views,
        what: &Reduction,
        work: &Views,
    ) {
        let total = what.bytes();
        by_pieces(what, work, |offset, count, theirs| {
            let output = output.part(offset, theirs.len());
            for rank in 1..upto {
                self.collect(round, rank, Part { offset, total }, theirs);
                combine_into(&output, theirs, what, count);
            }
        });
    }

    /// Combines into `output` the elements from byte `first` on of the contributions of `size` members. `part` contains the number of elements,
    /// `total` the length of a whole contribution in bytes.
    pub(crate) fn fold_part(
        &self,
        round: &Round,
        size: u32,
        (first, total): (usize, usize),
        output: &Views,
        part: &Reduction,
        work: &Views,
    ) {
        by_pieces(part, work, |from, count, theirs| {
            let output = output.part(from, theirs.len());
            let offset = first + from;
            self.collect(round, 0, Part { offset, total }, &output);
            for other in 1..size {
                self.collect(round, other, Part { offset, total }, theirs);
                combine_into(&output, theirs, part, count);
            }
        });
    }

    /// Combines this task's elements, `input`, with those that the other of two members has contributed. Only the latter are read from the round.
    #[inline(always)]
    pub(crate) fn fold_pair(
        &self,
        round: &Round,
        rank: u32,
        (input, output): (&Views, &Views),
        what: &Reduction,
        work: &Views,
    ) {
        match what.bytes() > MAX_COPIED_BYTES {
            true => self.fold_many_of_pair(round, rank, (input, output), what, work),
            false => self.fold_few_of_pair(round, rank, (input, output), what, work),
        }
    }

    /// Combines this task's elements with those of the other of two members. The latter are copied first.
    #[inline(always)]
    fn fold_few_of_pair(
        &self,
        round: &Round,
        rank: u32,
        (input, output): (&Views, &Views),
        what: &Reduction,
        work: &Views,
    ) {
        let total = what.bytes();
        let theirs = work.part(0, total);
        self.collect(round, 1 - rank, Part { offset: 0, total }, &theirs);
        if !combine_in_rank_order(rank, &theirs, (input, output), what) {
            self.fold_many_of_pair(round, rank, (input, output), what, work);
        }
    }

    /// Combines this task's elements with those of the other of two members. The latter are read in place if possible.
    #[inline(never)]
    fn fold_many_of_pair(
        &self,
        round: &Round,
        rank: u32,
        (input, output): (&Views, &Views),
        what: &Reduction,
        work: &Views,
    ) {
        let total = what.bytes();
        let (operator, element) = (&what.operator, what.element);
        let in_place = input.contiguous() == output.contiguous();
        // No other task reads that contribution, so a user-defined operator that writes to its read-only operand does no harm.
        if let Some(theirs) = self.contribution(round, 1 - rank, total) {
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
        by_pieces(what, work, |offset, count, theirs| {
            let result = output.part(offset, theirs.len());
            self.collect(round, 1 - rank, Part { offset, total }, theirs);
            if !in_place {
                input.part(offset, theirs.len()).copy_to(&result);
            }
            if rank == 0 {
                operator.apply(element, &result, theirs, count);
                theirs.copy_to(&result);
            } else {
                operator.apply(element, theirs, &result, count);
            }
        });
    }
}
