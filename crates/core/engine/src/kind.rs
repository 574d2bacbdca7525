//! The kinds of collectives. Which members give and get what, and what is combined, stands in one table: all that a kind means in a
//! round, in the message of a pair, or to one member alone follows from its row.
//!
//! A new kind is a row here, a row of the choice in `algorithm`, and its steps in `steps`.
//!
//! Callers that serve one kind pass a constant, so that what is for others is compiled away.

/// The collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody goes on until all have come.
    Barrier,
    /// The root's bytes to all.
    Broadcast,
    /// All members' elements combined, for the root.
    Reduce,
    /// All members' elements combined, for all.
    Allreduce,
    /// The elements of all ranks up to this one combined.
    Scan,
    /// The elements of all ranks below this one combined; the output of rank 0 is left alone.
    Exscan,
    /// All members' elements combined; to each its part of the result.
    ReduceScatter,
    /// All members' bytes to the root.
    Gather,
    /// To each member its bytes from the root.
    Scatter,
    /// All members' bytes to all.
    Allgather,
    /// To each member its own bytes from each.
    Alltoall,
}

/// Members that give, or get, something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    Root,
    /// All but rank 0.
    AboveFirst,
}

/// What lies in a member's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing.
    Empty,
    /// One message, or one vector of elements.
    Whole,
    /// A part for each member, or of each.
    Parts,
}

/// The ranks whose elements are combined for a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combined {
    All,
    /// Up to its own.
    UpToOwn,
    /// Below its own.
    BelowOwn,
}

/// Something to be done for a kind.
pub trait ForKind {
    /// What comes of it.
    type Output;

    /// Does it for the kind with this number.
    fn run<const KIND: usize>(self) -> Self::Output;
}

/// A kind's row of the table.
#[derive(Clone, Copy)]
struct Row {
    /// In the C interface, without `rg_`.
    name: &'static str,
    givers: Members,
    gives: Form,
    getters: Members,
    gets: Form,
    combined: Option<Combined>,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 11] = [
        Kind::Barrier,
        Kind::Broadcast,
        Kind::Reduce,
        Kind::Allreduce,
        Kind::Scan,
        Kind::Exscan,
        Kind::ReduceScatter,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::Alltoall,
    ];

    #[rustfmt::skip]
    #[inline(always)]
    const fn row(self) -> Row {
        use Combined::{BelowOwn, UpToOwn};
        use Form::{Empty, Parts, Whole};
        use Members::{AboveFirst, All, Root};
        let (name, (givers, gives), (getters, gets), combined) = match self {
            Kind::Barrier       => ("barrier",        (All,  Empty), (All,        Empty), None),
            Kind::Broadcast     => ("broadcast",      (Root, Whole), (All,        Whole), None),
            Kind::Reduce        => ("reduce",         (All,  Whole), (Root,       Whole), Some(Combined::All)),
            Kind::Allreduce     => ("allreduce",      (All,  Whole), (All,        Whole), Some(Combined::All)),
            Kind::Scan          => ("scan",           (All,  Whole), (All,        Whole), Some(UpToOwn)),
            Kind::Exscan        => ("exscan",         (All,  Whole), (AboveFirst, Whole), Some(BelowOwn)),
            Kind::ReduceScatter => ("reduce_scatter", (All,  Parts), (All,        Whole), Some(Combined::All)),
            Kind::Gather        => ("gather",         (All,  Whole), (Root,       Parts), None),
            Kind::Scatter       => ("scatter",        (Root, Parts), (All,        Whole), None),
            Kind::Allgather     => ("allgather",      (All,  Whole), (All,        Parts), None),
            Kind::Alltoall      => ("alltoall",       (All,  Parts), (All,        Parts), None),
        };
        Row { name, givers, gives, getters, gets, combined }
    }

    /// Does something for this kind as a constant, which makes a function of its own of it.
    #[rustfmt::skip]
    #[inline(always)]
    pub fn with_constant<W: ForKind>(self, work: W) -> W::Output {
        match self {
            Kind::Barrier       => work.run::<{ Kind::Barrier as usize }>(),
            Kind::Broadcast     => work.run::<{ Kind::Broadcast as usize }>(),
            Kind::Reduce        => work.run::<{ Kind::Reduce as usize }>(),
            Kind::Allreduce     => work.run::<{ Kind::Allreduce as usize }>(),
            Kind::Scan          => work.run::<{ Kind::Scan as usize }>(),
            Kind::Exscan        => work.run::<{ Kind::Exscan as usize }>(),
            Kind::ReduceScatter => work.run::<{ Kind::ReduceScatter as usize }>(),
            Kind::Gather        => work.run::<{ Kind::Gather as usize }>(),
            Kind::Scatter       => work.run::<{ Kind::Scatter as usize }>(),
            Kind::Allgather     => work.run::<{ Kind::Allgather as usize }>(),
            Kind::Alltoall      => work.run::<{ Kind::Alltoall as usize }>(),
        }
    }

    /// Returns its name in the C interface, without `rg_`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns whether elements are combined.
    #[inline(always)]
    pub fn combines(self) -> bool {
        self.row().combined.is_some()
    }

    /// Returns whose elements are combined for a member.
    #[inline(always)]
    pub(crate) fn combined(self) -> Option<Combined> {
        self.row().combined
    }

    /// Returns whether one member is the root.
    #[inline(always)]
    pub fn is_rooted(self) -> bool {
        self.row().givers == Members::Root || self.row().getters == Members::Root
    }

    /// Returns what a member that gives something gives.
    #[inline(always)]
    pub(crate) fn gives(self) -> Form {
        self.row().gives
    }

    /// Returns what a member that gets something gets.
    #[inline(always)]
    pub(crate) fn gets(self) -> Form {
        self.row().gets
    }

    /// Returns whether members give a part to each.
    #[inline(always)]
    pub fn gives_parts(self) -> bool {
        self.gives() == Form::Parts
    }

    /// Returns whether members get a part of each.
    #[inline(always)]
    pub fn gets_parts(self) -> bool {
        self.gets() == Form::Parts
    }

    /// Returns whether the root alone gives something.
    #[inline(always)]
    pub(crate) fn has_one_giver(self) -> bool {
        self.row().givers == Members::Root
    }

    /// Returns whether member `rank` gets something, if only from itself.
    #[inline(always)]
    pub(crate) fn is_getter(self, root: u32, rank: u32) -> bool {
        match self.row().getters {
            Members::All => true,
            Members::Root => rank == root,
            Members::AboveFirst => rank > 0,
        }
    }

    /// Returns whether member `rank` gets something of what member `other` gives, or waits for it.
    #[inline(always)]
    pub fn hears(self, root: u32, rank: u32, other: u32) -> bool {
        let gives = !self.has_one_giver() || other == root;
        let counts = match self.combined() {
            Some(Combined::UpToOwn) => other <= rank,
            Some(Combined::BelowOwn) => other < rank,
            Some(Combined::All) | None => true,
        };
        gives && counts && self.is_getter(root, rank)
    }

    /// Returns whether it is one message if there are two members.
    #[inline(always)]
    pub fn is_one_way(self) -> bool {
        self.is_rooted() && !self.combines()
    }

    /// Returns whether every member knows the lengths of all parts; else only those that give or get them know.
    #[inline(always)]
    pub fn parts_are_known(self) -> bool {
        let both = self.gives() == Form::Parts && self.gets() == Form::Parts;
        !both && !self.is_one_way()
    }

    /// Returns whether all members give the same things and get the same result.
    #[inline(always)]
    pub fn is_same_for_all(self) -> bool {
        let whole = self.gives() != Form::Parts && self.gets() != Form::Parts;
        whole && !self.is_rooted() && matches!(self.combined(), None | Some(Combined::All))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn who_hears_whom() {
        let (root, size) = (1, 3);
        for kind in Kind::ALL {
            for (rank, other) in (0..size).flat_map(|rank| (0..size).map(move |at| (rank, at))) {
                let expected = match kind {
                    Kind::Broadcast | Kind::Scatter => other == root,
                    Kind::Reduce | Kind::Gather => rank == root,
                    Kind::Scan => other <= rank,
                    Kind::Exscan => other < rank,
                    _ => true,
                };
                assert_eq!(
                    kind.hears(root, rank, other),
                    expected,
                    "{kind:?}: {rank} {other}"
                );
            }
        }
    }
}
