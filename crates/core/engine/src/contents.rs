//! What a member contributes to the rounds of a collective, and what it reads of the others' contributions. This code names no kind: everything
//! follows from the kind's row of the table in `kind`.
//!
//! An exchange of more bytes than fit into a contribution takes several rounds. Each round moves `n` bytes of every part, beginning at byte `from`
//! of the part.
//!
//! With two members, each contributes the part for the other. With more, each contributes one piece per member, including itself. The functions take
//! the kind as an argument besides the terms, so that callers that serve a single kind can pass a constant.
//!
//! *Rules:* code that runs in a one-round collective must not allocate, lock or make a system call.

use std::borrow::Cow;

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::kind::{Combined, Form, Kind};
use crate::operation::{Operation, Parts, Reduction};
use crate::round::{Need, Round};
use crate::transport::{Part, Transport};

/// Returns `n` bytes of `whole`, beginning at byte `from`. Memory that is not one block is only ever taken whole.
#[inline(always)]
fn stretch(whole: Cow<'_, Views>, (from, n): (usize, usize)) -> Cow<'_, Views> {
    match from == 0 && n >= whole.len() {
        true => whole,
        false => Cow::Owned(whole.part(from, n)),
    }
}

/// A borrowed [`Operation`] without its kind. A caller fills in only the fields that the kind needs.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Rank of the root, for kinds that have one.
    pub root: u32,
    /// The data that this member gives. `None` if it is in place, in the output.
    pub input: Option<&'a Views>,
    /// The memory for this member's result.
    pub output: Option<&'a Views>,
    /// Layout of the input, for kinds that give parts.
    pub gives: &'a Parts,
    /// Layout of the output, for kinds that get parts.
    pub gets: &'a Parts,
    /// How elements are combined, for kinds that combine.
    pub reduction: Option<&'a Reduction>,
}

impl Operation {
    /// Returns the operation's terms.
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

    /// Returns the members whose contributions member `rank` of `size` needs in a round, and whether it contributes before it has received them.
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
    /// Returns the memory for the result, empty if there is none.
    #[inline(always)]
    fn out(&self) -> Cow<'a, Views> {
        match self.output {
            Some(output) => Cow::Borrowed(output),
            None => Cow::Owned(Views::none()),
        }
    }

    /// Returns the input. If the operation is in place, that is the output memory.
    #[inline(always)]
    fn given(&self) -> Cow<'a, Views> {
        self.input.map_or_else(|| self.out(), Cow::Borrowed)
    }

    /// Returns the size by which all members choose the algorithm: of the operands, of the longest part, or of the message, in bytes.
    #[inline(always)]
    pub fn bytes(&self, kind: Kind) -> usize {
        if kind.combines() {
            return self.reduction.map_or(0, Reduction::bytes);
        }
        match (kind.gives(), kind.gets()) {
            (_, Form::Parts) => self.gets.longest(),
            (Form::Parts, _) => self.gives.longest(),
            _ => self.output.map_or(0, Views::len),
        }
    }

    /// Returns whether input and output both consist of parts of equal length.
    #[inline(always)]
    pub fn is_even(&self) -> bool {
        matches!((self.gives, self.gets), (Parts::Even(_), Parts::Even(_)))
    }

    /// Returns the data that this member, `rank`, gives member `other`.
    #[inline(always)]
    fn given_to(&self, kind: Kind, rank: u32, other: u32) -> Cow<'a, Views> {
        match (kind.gives(), self.input) {
            (Form::Empty, _) => Cow::Owned(Views::none()),
            (Form::Parts, _) => Cow::Owned(self.gives.cut(&self.given(), other)),
            (Form::Whole, Some(input)) => Cow::Borrowed(input),
            (Form::Whole, None) => self.got_from(kind, rank),
        }
    }

    /// Returns this member's memory for the data from member `other`.
    #[inline(always)]
    fn got_from(&self, kind: Kind, other: u32) -> Cow<'a, Views> {
        match kind.gets() {
            Form::Empty => Cow::Owned(Views::none()),
            Form::Parts => Cow::Owned(self.gets.cut(&self.out(), other)),
            Form::Whole => self.out(),
        }
    }

    /// Returns the contribution of member `rank` of `size`. In an exchange that is `n` bytes of each part, from byte `from` on.
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
                let (given, len) = (self.given(), self.gives.longest());
                match n == len && given.len() == len * size as usize {
                    true => given,
                    false => Cow::Owned(given.pieces(from, n, len, size as usize)),
                }
            }
            Form::Parts => {
                let (len, offset) = self.gives.of(other);
                let left = len.saturating_sub(from).min(n);
                Cow::Owned(self.given().part(offset + from, left))
            }
            // If the input is longer than this member's part, the rest is ignored, as in the other algorithms.
            Form::Whole if kind.gets() == Form::Parts => {
                let n = self.left(rank, (from, n));
                stretch(self.given_to(kind, rank, other), (from, n))
            }
            Form::Whole => self.given(),
        }
    }

    /// Returns how many bytes of member `rank`'s part a round moves from byte `from` on, for kinds that get parts: `n`, or fewer if the part ends
    /// earlier.
    #[inline(always)]
    fn left(&self, rank: u32, (from, n): (usize, usize)) -> usize {
        self.gets.of(rank).0.saturating_sub(from).min(n)
    }

    /// Copies the result of member `rank` of `size` if it depends on that member's own input only, unless the operation is in place.
    #[inline(always)]
    pub fn keep_own(&self, kind: Kind, (rank, size): (u32, u32)) {
        let hears_itself_alone = match kind.combined() {
            None => true,
            Some(Combined::All) => size == 1,
            Some(Combined::UpToOwn | Combined::BelowOwn) => rank == 0,
        };
        let is_in_place = self.input.is_none() || self.output.is_none();
        if hears_itself_alone && !is_in_place && kind.hears(self.root, rank, rank) {
            let own = self.given_to(kind, rank, rank);
            own.copy_to(&self.got_from(kind, rank));
        }
    }

    /// Returns the message that member `rank` sends in a one-way collective of two members. Returns the memory for the message as `Err` if `rank`
    /// receives it.
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
    /// Reads the result of a round for member `rank` of `size`. In an exchange that is `n` bytes of each part, from byte `from` on. `work` is as in
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

    /// Does the same as [`Engine::read_round`], for any kind, as a function that is not inlined. For callers that are not time-critical.
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

    /// Combines the input of member `rank`, one of two, with the contribution of the other member.
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

    /// Reads the data that member `other` gives member `rank` in a round.
    #[inline(always)]
    fn take_part(
        &self,
        (kind, terms): (Kind, Terms<'_>),
        (rank, size): (u32, u32),
        round: &Round,
        (from, n): (usize, usize),
        other: u32,
    ) {
        // Each view is cut only once: the compiler writes every cut to the stack and reads it again, which delays the other member.
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
