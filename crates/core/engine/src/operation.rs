//! A collective as a value: what one member gives and gets. The interfaces make it of their arguments; everything
//! below passes it on.
//!
//! Memory of all views must stay valid until the collective is complete.

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::Views;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::schedule::Step;

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
