//! The kinds of collectives. One table says which members give and get what, and what is combined. A kind's behavior in a round, in the message
//! between two members and in a group of one follows from its row.
//!
//! To add a kind, add a row here, a row to the choice in `algorithm`, and its steps in `steps`.
//!
//! Callers that serve a single kind pass a constant, so that code for other kinds is compiled away.

/// The collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No member continues until all have called.
    Barrier,
    /// The root's bytes go to all members.
    Broadcast,
    /// The elements of all members, combined, go to the root.
    Reduce,
    /// The elements of all members, combined, go to all.
    Allreduce,
    /// Each member gets the combined elements of all ranks up to its own.
    Scan,
    /// Each member gets the combined elements of all ranks below its own. The output of rank 0 is not written.
    Exscan,
    /// The elements of all members are combined, and each member gets its part of the result.
    ReduceScatter,
    /// The bytes of all members go to the root.
    Gather,
    /// Each member gets its bytes from the root.
    Scatter,
    /// The bytes of all members go to all.
    Allgather,
    /// Each member gets bytes of its own from each member.
    Alltoall,
}

/// The members that give, or get, data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    Root,
    /// All but rank 0.
    AboveFirst,
}

/// The layout of a member's data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// No data.
    Empty,
    /// One message, or one vector of elements.
    Whole,
    /// One part for each member, or one from each.
    Parts,
}

/// The ranks whose elements are combined for a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combined {
    All,
    /// The ranks up to the member's own.
    UpToOwn,
    /// The ranks below the member's own.
    BelowOwn,
}

/// Work that is compiled separately for each kind.
pub trait ForKind {
    /// Result of the work.
    type Output;

    /// Does the work for the kind with number `KIND`.
    fn run<const KIND: usize>(self) -> Self::Output;
}

/// A kind's row of the table.
#[derive(Clone, Copy)]
struct Row {
    /// Name in the C interface, without `rg_`.
    name: &'static str,
    givers: Members,
    gives: Form,
    getters: Members,
    gets: Form,
    combined: Option<Combined>,
}

impl Kind {
    /// All kinds, in the order of their numbers.
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

    /// Runs the work with this kind as a constant, so that each kind gets a function of its own.
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

    /// Returns the name in the C interface, without `rg_`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns whether elements are combined.
    #[inline(always)]
    pub fn combines(self) -> bool {
        self.row().combined.is_some()
    }

    /// Returns the ranks whose elements are combined for a member, or `None` if elements are not combined.
    #[inline(always)]
    pub(crate) fn combined(self) -> Option<Combined> {
        self.row().combined
    }

    /// Returns whether members give each other something: all kinds but the barrier.
    #[inline(always)]
    pub fn moves_data(self) -> bool {
        self.gives() != Form::Empty
    }

    /// Returns whether the kind has a root.
    #[inline(always)]
    pub fn is_rooted(self) -> bool {
        self.row().givers == Members::Root || self.row().getters == Members::Root
    }

    /// Returns the layout of the data that a giving member gives.
    #[inline(always)]
    pub(crate) fn gives(self) -> Form {
        self.row().gives
    }

    /// Returns the layout of the data that a getting member gets.
    #[inline(always)]
    pub(crate) fn gets(self) -> Form {
        self.row().gets
    }

    /// Returns whether members give one part to each member.
    #[inline(always)]
    pub fn gives_parts(self) -> bool {
        self.gives() == Form::Parts
    }

    /// Returns whether members get one part from each member.
    #[inline(always)]
    pub fn gets_parts(self) -> bool {
        self.gets() == Form::Parts
    }

    /// Returns whether only the root gives data.
    #[inline(always)]
    pub(crate) fn has_one_giver(self) -> bool {
        self.row().givers == Members::Root
    }

    /// Returns whether member `rank` gets data, even if only from itself.
    #[inline(always)]
    pub(crate) fn is_getter(self, root: u32, rank: u32) -> bool {
        match self.row().getters {
            Members::All => true,
            Members::Root => rank == root,
            Members::AboveFirst => rank > 0,
        }
    }

    /// Returns whether member `rank` gets data from member `other`, or waits for it.
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

    /// Returns whether the collective is a single message if the group has two members.
    #[inline(always)]
    pub fn is_one_way(self) -> bool {
        self.is_rooted() && !self.combines()
    }

    /// Returns whether every member knows the lengths of all parts. Otherwise only the members that give or get a part know its length.
    #[inline(always)]
    pub fn parts_are_known(self) -> bool {
        let both = self.gives() == Form::Parts && self.gets() == Form::Parts;
        !both && !self.is_one_way()
    }

    /// Returns whether all members give data of the same layout and get the same result.
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
