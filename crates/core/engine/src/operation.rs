//! A collective as a value: what one member gives and gets. The interfaces make it of their arguments; everything
//! below passes it on.
//!
//! Memory of all views must stay valid until the collective is complete.

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::Views;

use crate::error::{Error, Result};
use crate::schedule::Step;

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

impl Kind {
    /// All of them.
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

    /// Its name in the C interface, without `rg_`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
            Kind::Scan => "scan",
            Kind::Exscan => "exscan",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::Allgather => "allgather",
            Kind::Alltoall => "alltoall",
        }
    }

    fn combines(self) -> bool {
        use Kind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self, Reduce | Allreduce | Scan | Exscan | ReduceScatter)
    }

    fn is_rooted(self) -> bool {
        matches!(
            self,
            Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter
        )
    }
}

/// Where each member's part lies in a buffer: length and offset by rank.
#[derive(Clone, Debug)]
pub enum Parts {
    /// All alike, one after the other.
    Even(usize),
    /// Each its own.
    Listed(Vec<(usize, usize)>),
}

impl Parts {
    /// Length and offset of a member's part.
    pub fn of(&self, rank: u32) -> (usize, usize) {
        match self {
            Parts::Even(len) => (*len, *len * rank as usize),
            Parts::Listed(list) => list[rank as usize],
        }
    }

    /// Length of the longest part.
    pub fn longest(&self) -> usize {
        match self {
            Parts::Even(len) => *len,
            Parts::Listed(list) => list.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }

    /// A member's part of `whole`.
    pub fn cut(&self, whole: &Views, rank: u32) -> Views {
        let (len, offset) = self.of(rank);
        whole.part(offset, len)
    }
}

/// The operands of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The operator.
    pub operator: Operator,
    /// The elements.
    pub element: Element,
    /// How many.
    pub count: usize,
}

impl Reduction {
    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.count * self.element.size()
    }

    /// This many bytes of it.
    pub(crate) fn of_bytes(self, bytes: usize) -> Reduction {
        Reduction {
            count: bytes / self.element.size().max(1),
            ..self
        }
    }

    pub(crate) fn combine(&self, from: Views, inout: Views) -> Step {
        self.combine_part(from, inout, self.count)
    }

    pub(crate) fn combine_part(&self, from: Views, inout: Views, count: usize) -> Step {
        Step::Combine {
            operator: self.operator,
            element: self.element,
            count,
            from,
            inout,
        }
    }

    /// Returns the error of operands that make no sense. Takes `self` by value, so that the caller can keep its copy in registers.
    fn check(self) -> Result<()> {
        if self.count.checked_mul(self.element.size()).is_none() {
            return Err(Error::Argument(format!(
                "{} elements do not fit into memory",
                self.count
            )));
        }
        if !self.operator.suits(self.element) {
            return Err(Error::Argument(format!(
                "the operator is not defined on elements of type {:?}",
                self.element
            )));
        }
        Ok(())
    }
}

/// A collective, as one member takes part in it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// Rank of the root, if it has one.
    pub root: u32,
    /// What this member gives. `None`: nothing, or what lies in its place in the output already.
    pub input: Option<Views>,
    /// Where it gets the result; of a broadcast the memory of all members. `None`: it gets none, or its part stays in the input.
    pub output: Option<Views>,
    /// The parts of the input, in bytes: of a scatter at the root, a complete exchange, and a reduction that is scattered.
    pub gives: Parts,
    /// The parts of the output, in bytes: of a gather at the root, an allgather, and a complete exchange.
    pub gets: Parts,
    /// How elements are combined, if they are.
    pub reduction: Option<Reduction>,
}

impl Operation {
    /// One without memory, for the other fields to be set.
    #[inline(always)]
    pub const fn of(kind: Kind) -> Operation {
        Operation {
            kind,
            root: 0,
            input: None,
            output: None,
            gives: Parts::Even(0),
            gets: Parts::Even(0),
            reduction: None,
        }
    }

    /// The error of one that makes no sense by itself. (What the group says of it is another matter.)
    #[inline(always)]
    pub fn check(&self) -> Result<()> {
        match self.reduction {
            Some(what) => what.check(),
            None if self.kind.combines() => Err(Error::Argument(
                "a reduction needs an operator and elements".into(),
            )),
            None => Ok(()),
        }
    }

    /// The error of a root that is no member.
    pub(crate) fn check_root(&self, size: u32) -> Result<()> {
        match self.kind.is_rooted() && self.root >= size {
            true => Err(Error::Task(self.root as i64)),
            false => Ok(()),
        }
    }

    /// Bytes by which all members choose how to do it: of the message, of the operands, or of the longest part.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        match self.kind {
            Kind::Broadcast => self.output.as_ref().map_or(0, Views::len),
            Kind::Allgather | Kind::Alltoall => self.gets.longest(),
            _ => self.reduction.as_ref().map_or(0, Reduction::bytes),
        }
    }

    /// Whether both its lists of parts are even ones.
    #[inline(always)]
    pub fn is_even(&self) -> bool {
        matches!((&self.gives, &self.gets), (Parts::Even(_), Parts::Even(_)))
    }

    /// The memory of the result; none is empty.
    #[inline(always)]
    pub fn out(&self) -> Views {
        self.output.clone().unwrap_or_else(Views::none)
    }

    /// What is given: operands that are in place are where the result goes.
    #[inline(always)]
    pub fn given(&self) -> Views {
        match &self.input {
            Some(input) => input.clone(),
            None => self.out(),
        }
    }
}
