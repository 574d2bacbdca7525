//! What a member contributes to the rounds of a collective, and what it reads of the others' contributions. Nothing here knows a kind by name: its row of the
//! table in `kind` says it all.
//!
//! An exchange of more bytes than a contribution holds takes several rounds. Each round moves `n` bytes of every part, from byte `from` of the part on.
//!
//! Two members contribute only what the other one gets. The functions take the kind beside the operation, whose kind it is: callers that serve one kind pass a constant.
//!
//! *Rules:* all of a collective that takes one round: no allocation, no lock, no system call.

use std::borrow::Cow;

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::kind::{Combined, Form, Kind};
use crate::operation::{Operation, Parts, Reduction};
use crate::round::{Need, Round};
use crate::transport::{Part, Transport};

/// Returns `n` bytes of `whole` from byte `from` on; memory that is not one block has no part but the whole.
#[inline(always)]
fn stretch(whole: Cow<'_, Views>, (from, n): (usize, usize)) -> Cow<'_, Views> {
    match from == 0 && n >= whole.len() {
        true => whole,
        false => Cow::Owned(whole.part(from, n)),
    }
}

/// An [`Operation`] without its kind, borrowed: a caller writes no more of it to memory than the kind needs.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Rank of the root, if it has one.
    pub root: u32,
    /// What this member gives.
    pub input: Option<&'a Views>,
    /// Where it gets the result.
    pub output: Option<&'a Views>,
    /// The parts of the input, of a kind that gives parts.
    pub gives: &'a Parts,
    /// The parts of the output, of a kind that gets parts.
    pub gets: &'a Parts,
    /// How elements are combined, of a kind that does.
    pub reduction: Option<&'a Reduction>,
}

impl Operation {
    /// Returns what it says of memory.
    #[inline(always)]
    pub fn terms(&self) -> Terms<'_> {
        Terms {
            root: self.root,
            input: self.input.as_ref(),
            output: self.output.as_ref(),
            gives: &self.gives,
            gets: &self.gets,
            reduction: self.reduction.as_ref(),
        }
    }

    /// Returns whose contributions member `rank` of `size` needs in a round of it, and whether it contributes before it has them.
    pub(crate) fn needs(&self, (rank, size): (u32, u32)) -> (Need, bool) {
        let (kind, root) = (self.kind, self.root);
        if size == 2 {
            let need = match kind.hears(root, rank, 1 - rank.min(1)) {
                true => Need::All,
                false => Need::Nobody,
            };
            return (need, true);
        }
        match (kind.is_rooted(), rank == root) {
            (true, true) if kind.has_one_giver() => (Need::Nobody, true),
            (true, true) => (Need::All, true),
            (true, false) if kind.has_one_giver() => (Need::From(root), false),
            (true, false) => (Need::Nobody, true),
            (false, _) => (Need::Everyone, true),
        }
    }
}

impl<'a> Terms<'a> {
    /// Returns the memory of the result; none is empty.
    #[inline(always)]
    fn out(&self) -> Cow<'a, Views> {
        match self.output {
            Some(output) => Cow::Borrowed(output),
            None => Cow::Owned(Views::none()),
        }
    }

    /// Returns what is given: operands that are in place are where the result goes.
    #[inline(always)]
    fn given(&self) -> Cow<'a, Views> {
        self.input.map_or_else(|| self.out(), Cow::Borrowed)
    }

    /// Returns the bytes by which all members choose how to do it: of the operands, of the longest part, or of the message.
    #[inline(always)]
    pub fn bytes(&self, kind: Kind) -> usize {
        if kind.combines() {
            return self.reduction.map_or(0, Reduction::bytes);
        }
        match kind.gets() {
            Form::Parts => self.gets.longest(),
            Form::Whole | Form::Empty => self.output.map_or(0, Views::len),
        }
    }

    /// Returns whether both its lists of parts are even ones.
    #[inline(always)]
    pub fn is_even(&self) -> bool {
        matches!((self.gives, self.gets), (Parts::Even(_), Parts::Even(_)))
    }

    /// Returns what member `rank`, this one, gives member `other`.
    #[inline(always)]
    fn given_to(&self, kind: Kind, rank: u32, other: u32) -> Cow<'a, Views> {
        match (kind.gives(), self.input) {
            (Form::Empty, _) => Cow::Owned(Views::none()),
            (Form::Parts, _) => Cow::Owned(self.gives.cut(&self.given(), other)),
            (Form::Whole, Some(input)) => Cow::Borrowed(input),
            (Form::Whole, None) => self.got_from(kind, rank),
        }
    }

    /// Returns where this member gets what member `other` gives it.
    #[inline(always)]
    fn got_from(&self, kind: Kind, other: u32) -> Cow<'a, Views> {
        match kind.gets() {
            Form::Empty => Cow::Owned(Views::none()),
            Form::Parts => Cow::Owned(self.gets.cut(&self.out(), other)),
            Form::Whole => self.out(),
        }
    }

    /// Returns what member `rank` of `size` contributes: of an exchange `n` bytes of each part from byte `from` on.
    #[inline(always)]
    pub fn contribution(
        &self,
        kind: Kind,
        (rank, size): (u32, u32),
        (from, n): (usize, usize),
    ) -> Cow<'a, Views> {
        let other = 1 - rank.min(1);
        match kind.gives() {
            Form::Empty => Cow::Owned(Views::none()),
            _ if size == 2 && !kind.hears(self.root, other, rank) => Cow::Owned(Views::none()),
            Form::Parts if size > 2 && kind.combines() => self.given(),
            Form::Parts if size > 2 => {
                let len = self.gives.longest();
                Cow::Owned(self.given().pieces(from, n, len, size as usize))
            }
            Form::Parts => {
                let (len, offset) = self.gives.of(other);
                let left = len.saturating_sub(from).min(n);
                Cow::Owned(self.given().part(offset + from, left))
            }
            // What is given beyond the own part is left out, as on other ways.
            Form::Whole if kind.gets() == Form::Parts => {
                let n = self.left(rank, (from, n));
                stretch(self.given_to(kind, rank, other), (from, n))
            }
            Form::Whole => self.given(),
        }
    }

    /// Returns how many bytes of member `rank`'s part a round moves to those that get parts, from byte `from` on: `n`, or fewer if the part ends earlier.
    #[inline(always)]
    fn left(&self, rank: u32, (from, n): (usize, usize)) -> usize {
        self.gets.of(rank).0.saturating_sub(from).min(n)
    }

    /// Copies what member `rank` of `size` gets from itself alone.
    #[inline(always)]
    pub fn keep_own(&self, kind: Kind, (rank, size): (u32, u32)) {
        let hears_itself_alone = match kind.combined() {
            None => true,
            Some(Combined::All) => size == 1,
            Some(Combined::UpToOwn | Combined::BelowOwn) => rank == 0,
        };
        let is_in_place = self.input.is_none() || self.output.is_none();
        if hears_itself_alone && !is_in_place && kind.is_getter(self.root, rank) {
            let own = self.given_to(kind, rank, rank);
            own.copy_to(&self.got_from(kind, rank));
        }
    }

    /// Returns the message of a one-way collective of two that member `rank` sends; `Err`: the memory for the one that it receives.
    #[inline(always)]
    pub fn message(
        &self,
        kind: Kind,
        rank: u32,
    ) -> std::result::Result<Cow<'a, Views>, Cow<'a, Views>> {
        let other = 1 - rank.min(1);
        match kind.hears(self.root, other, rank) {
            true => Ok(self.given_to(kind, rank, other)),
            false => Err(self.got_from(kind, other)),
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Takes what member `rank` of `size` gets from a round: of an exchange `n` bytes of each part from byte `from` on. `work` is as in
    /// [`Engine::poll`].
    #[inline(always)]
    pub fn read_round(
        &self,
        (kind, terms): (Kind, Terms<'_>),
        (rank, size): (u32, u32),
        round: &Round,
        stretch: (usize, usize),
        work: &Views,
    ) {
        if kind.gets() == Form::Empty || !kind.is_getter(terms.root, rank) {
            return;
        }
        let place = (rank, size);
        match (terms.reduction, kind.combined()) {
            (Some(what), Some(_)) if size == 2 => {
                self.combine_with_other((kind, terms), rank, round, what, work);
            }
            (Some(what), Some(ranks)) => {
                let out = terms.out();
                let upto = match ranks {
                    Combined::All => size,
                    Combined::UpToOwn => rank + 1,
                    Combined::BelowOwn => rank,
                };
                match kind.gives() {
                    Form::Parts => {
                        let (own, first) = terms.gives.of(rank);
                        let (part, whole) = (what.of_bytes(own), what.bytes());
                        self.fold_part(round, upto, (first, whole), &out, &part, work);
                    }
                    _ => self.fold(round, upto, &out, what, work),
                }
            }
            _ if size == 2 => {
                let other = 1 - rank.min(1);
                if kind.hears(terms.root, rank, other) {
                    self.take_part((kind, terms), place, round, stretch, other);
                }
            }
            _ => {
                let heard = |&other: &u32| kind.hears(terms.root, rank, other);
                for other in (0..size).filter(|&other| other != rank).filter(heard) {
                    self.take_part((kind, terms), place, round, stretch, other);
                }
            }
        }
    }

    /// As [`Engine::read_round`], for whatever kind: callers of which not every instruction counts share it.
    #[inline(never)]
    pub fn read_any_round(
        &self,
        what: (Kind, Terms<'_>),
        place: (u32, u32),
        round: &Round,
        stretch: (usize, usize),
        work: &Views,
    ) {
        self.read_round(what, place, round, stretch, work);
    }

    /// Combines what member `rank` of two has given with what the other one has contributed.
    #[inline(always)]
    fn combine_with_other(
        &self,
        (kind, terms): (Kind, Terms<'_>),
        rank: u32,
        round: &Round,
        what: &Reduction,
        work: &Views,
    ) {
        let (other, out) = (1 - rank.min(1), terms.out());
        if !kind.hears(terms.root, rank, other) {
            return;
        }
        if kind.combined() == Some(Combined::BelowOwn) {
            let (total, offset) = (what.bytes(), 0);
            return self.collect(round, other, Part { offset, total }, &out);
        }
        let own = terms.given_to(kind, rank, rank);
        match kind.gives() {
            Form::Parts => {
                let part = what.of_bytes(own.len());
                self.fold_pair(round, rank, (&own, &out), &part, work);
            }
            _ => self.fold_pair(round, rank, (&own, &out), what, work),
        }
    }

    /// Takes what member `other` gives this one in a round.
    #[inline(always)]
    fn take_part(
        &self,
        (kind, terms): (Kind, Terms<'_>),
        (rank, size): (u32, u32),
        round: &Round,
        (from, n): (usize, usize),
        other: u32,
    ) {
        // No memory is cut twice: each cut is written and read again, in front of what the other one waits for.
        let out = terms.out();
        let (len, offset) = match kind.gets() {
            Form::Parts => terms.gets.of(other),
            Form::Whole | Form::Empty => (out.len(), 0),
        };
        let left = len.saturating_sub(from).min(n);
        let part = match kind.gives() {
            Form::Parts if size > 2 => Part {
                offset: n * rank as usize,
                total: n * size as usize,
            },
            _ => Part {
                offset: 0,
                total: left,
            },
        };
        match left == out.len() {
            true => self.collect(round, other, part, &out),
            false => self.collect(round, other, part, &out.part(offset + from, left)),
        }
    }
}
