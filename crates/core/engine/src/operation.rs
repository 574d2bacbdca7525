//! A collective as a value: what one member gives and gets. The interfaces create it from their arguments; the layers below pass it on.
//!
//! The memory of all views must remain valid until the collective is complete.

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::Views;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::schedule::Step;

/// The location of each member's part in a buffer, by rank.
#[derive(Clone, Debug)]
pub enum Parts {
    /// Consecutive parts of this length in bytes.
    Even(usize),
    /// Length and offset of each part in bytes. Empty at members that do not know the parts: only the root of a scatter or gather needs them.
    Listed(Vec<(usize, usize)>),
}

impl Parts {
    /// Returns length and offset of a member's part.
    pub fn of(&self, rank: u32) -> (usize, usize) {
        match self {
            Parts::Even(len) => (*len, *len * rank as usize),
            Parts::Listed(list) => list.get(rank as usize).copied().unwrap_or_default(),
        }
    }

    /// Returns the length of the longest part.
    pub fn longest(&self) -> usize {
        match self {
            Parts::Even(len) => *len,
            Parts::Listed(list) => list.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }

    /// Returns a member's part of `whole`.
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
    /// The type of the elements.
    pub element: Element,
    /// The number of elements.
    pub count: usize,
}

impl Reduction {
    /// Returns the size of all elements, in bytes.
    pub fn bytes(&self) -> usize {
        self.count * self.element.size()
    }

    /// Returns the same reduction with as many elements as fit into `bytes`.
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

    /// Fails if the operands are not valid. Takes `self` by value, so that the caller can keep its copy in registers.
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

/// One member's view of a collective.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The kind of the collective.
    pub kind: Kind,
    /// Rank of the root, for kinds that have one.
    pub root: u32,
    /// The data that this member gives. `None` if it gives none, or if its data is already in place in the output.
    pub input: Option<Views>,
    /// The memory for the result; for a broadcast, the buffer of every member. `None` if this member gets none, or if its part stays in the input.
    pub output: Option<Views>,
    /// Layout of the input in bytes: for a scatter at the root, a complete exchange, and a reduce-scatter.
    pub gives: Parts,
    /// Layout of the output in bytes: for a gather at the root, an allgather, and a complete exchange.
    pub gets: Parts,
    /// How elements are combined, for kinds that combine.
    pub reduction: Option<Reduction>,
}

impl Operation {
    /// Creates an operation without memory. The caller sets the other fields.
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

    /// Fails if the operation is not valid in itself. Does not check it against a group.
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

    /// Fails if the root is not a member of a group of this size.
    pub(crate) fn check_root(&self, size: u32) -> Result<()> {
        match self.kind.is_rooted() && self.root >= size {
            true => Err(Error::Task(self.root as i64)),
            false => Ok(()),
        }
    }

    /// Returns the memory for the result, empty if there is none.
    #[inline(always)]
    pub fn out(&self) -> Views {
        self.output.clone().unwrap_or_else(Views::none)
    }

    /// Returns the input. If the operation is in place, that is the output memory.
    #[inline(always)]
    pub fn given(&self) -> Views {
        match &self.input {
            Some(input) => input.clone(),
            None => self.out(),
        }
    }
}
