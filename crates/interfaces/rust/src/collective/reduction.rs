//! Collectives that combine elements.

use regatta_process::{Kind, Operation};

use super::gathering::{cut, even, own, parts};
use super::{rooted, zeros};
use crate::error::{Error, Result};
use crate::memory::Data;
use crate::operator::Operator;
use crate::raw::owned;
use crate::{Group, Request};

/// # Reductions
impl Group<'_> {
    /// Runs a reduction of the elements of the input, or of the output if there is no input. Fails if there are both and
    /// their lengths differ.
    #[inline(always)]
    fn combine<T: Data>(
        &self,
        input: Option<&[T]>,
        output: Option<&mut [T]>,
        operator: impl Operator<T>,
        rest: Operation,
    ) -> Result<()> {
        if let (Some(input), Some(output)) = (input, &output)
            && input.len() != output.len()
        {
            let (input, output) = (input.len(), output.len());
            return Err(Error::argument(format!(
                "a reduction of {input} elements cannot have an output of {output} elements"
            )));
        }
        self.reduced(input, output, operator, rest)
    }

    #[inline(always)]
    fn reduced<T: Data>(
        &self,
        input: Option<&[T]>,
        output: Option<&mut [T]>,
        operator: impl Operator<T>,
        rest: Operation,
    ) -> Result<()> {
        let count = input.or(output.as_deref()).map_or(0, <[T]>::len);
        let rest = Operation {
            reduction: Some(operator.reduction(count)),
            ..rest
        };
        self.run(input, output, rest)
    }

    /// Starts a reduction of the elements of the input, or of the output if there is no input.
    fn start_reduced<T: Data>(
        &self,
        input: Option<Vec<T>>,
        output: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
        rest: Operation,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::reduction(self, input, output, operator, rest).map(Request::of)
    }

    /// Combines all members' inputs, element by element, in the root's `output`. `output` is neither read nor written at other
    /// members, and may be empty there.
    pub fn reduce<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
        root: usize,
    ) -> Result<()> {
        let output = (self.rank() == root).then_some(output);
        self.combine(Some(input), output, operator, rooted(Kind::Reduce, root))
    }

    /// Starts a reduction. The request returns the result at the root, and the unchanged `data` elsewhere.
    pub fn ireduce<T: Data>(
        &self,
        data: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        self.start_reduced(None, data, operator, rooted(Kind::Reduce, root))
    }

    /// Combines all members' inputs, element by element, in every member's `output`.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let mut total = [0; 2];
    /// task.world().allreduce(&[3, 4], &mut total, regatta::Sum)?;
    /// assert_eq!(total, [3, 4]); // a world of one
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn allreduce<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(Some(input), Some(output), operator, ALLREDUCE)
    }

    /// Like [`allreduce`](Group::allreduce), with `data` as both input and output.
    pub fn allreduce_in_place<T: Data>(
        &self,
        data: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(None, Some(data), operator, ALLREDUCE)
    }

    /// Starts an allreduce. The request returns the result.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let request = world.iallreduce(vec![1.5], regatta::Max)?;
    /// // compute something here
    /// assert_eq!(request.wait()?.0, [1.5]); // a world of one
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn iallreduce<T: Data>(
        &self,
        data: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
    ) -> Result<Request<'_, Vec<T>>> {
        self.start_reduced(None, data, operator, ALLREDUCE)
    }

    /// Combines the inputs of all ranks from 0 up to and including this one, element by element.
    pub fn scan<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(Some(input), Some(output), operator, SCAN)
    }

    /// Like [`scan`](Group::scan), with `data` as both input and output.
    pub fn scan_in_place<T: Data>(&self, data: &mut [T], operator: impl Operator<T>) -> Result<()> {
        self.combine(None, Some(data), operator, SCAN)
    }

    /// Starts a scan. The request returns the result.
    pub fn iscan<T: Data>(
        &self,
        data: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
    ) -> Result<Request<'_, Vec<T>>> {
        self.start_reduced(None, data, operator, SCAN)
    }

    /// Combines the inputs of the ranks below this one, element by element. At rank 0 `output` is neither read nor written, and
    /// may be empty.
    pub fn exscan<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let output = (self.rank() > 0).then_some(output);
        self.combine(Some(input), output, operator, EXSCAN)
    }

    /// Like [`exscan`](Group::exscan), with `data` as both input and output. At rank 0 `data` is unchanged.
    pub fn exscan_in_place<T: Data>(
        &self,
        data: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(None, Some(data), operator, EXSCAN)
    }

    /// Starts an exclusive scan. The request returns the result, and the unchanged `data` at rank 0.
    pub fn iexscan<T: Data>(
        &self,
        data: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
    ) -> Result<Request<'_, Vec<T>>> {
        self.start_reduced(None, data, operator, EXSCAN)
    }

    /// Returns the operation of a reduce-scatter of `whole` elements, of which this member gets `mine`. `counts` has the lengths
    /// of all parts; `None` stands for equal parts.
    fn scattered<T>(
        &self,
        whole: usize,
        counts: Option<&[usize]>,
        mine: usize,
    ) -> Result<Operation> {
        let gives = match counts {
            Some(counts) => {
                own(self.rank(), &parts(counts), mine)?;
                cut::<T>(counts, self.size(), whole)?
            }
            None => even::<T>(mine, self.size(), whole)?,
        };
        Ok(Operation {
            gives,
            ..Operation::of(Kind::ReduceScatter)
        })
    }

    /// Combines all members' inputs, element by element, and scatters the result: rank 0 gets the first `counts[0]` elements,
    /// rank 1 the next `counts[1]`, and so on. All members pass the same counts, one for each member. `input` is as long as all
    /// parts together, and `output` as this member's part.
    pub fn reduce_scatter<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let rest = self.scattered::<T>(input.len(), Some(counts), output.len())?;
        self.reduced(Some(input), Some(output), operator, rest)
    }

    /// Starts a reduce-scatter in which each member gets `counts[rank]` elements. The request returns this member's part.
    pub fn ireduce_scatter<T: Data>(
        &self,
        data: Vec<T>,
        counts: &[usize],
        operator: impl Operator<T> + Send + Sync + 'static,
    ) -> Result<Request<'_, Vec<T>>> {
        let mine = counts.get(self.rank()).copied().unwrap_or(0);
        let rest = self.scattered::<T>(data.len(), Some(counts), mine)?;
        self.start_reduced(Some(data), zeros(mine), operator, rest)
    }

    /// Like [`reduce_scatter`](Group::reduce_scatter), with equal parts, each as long as `output`.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let input = vec![1.5; 2 * world.size()];
    /// let mut mine = [0.0; 2];
    /// world.reduce_scatter_block(&input, &mut mine, regatta::Sum)?;
    /// assert_eq!(mine, [1.5, 1.5]); // a world of one
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn reduce_scatter_block<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let rest = self.scattered::<T>(input.len(), None, output.len())?;
        self.reduced(Some(input), Some(output), operator, rest)
    }

    /// Starts a reduce-scatter with equal parts. The request returns this member's part.
    pub fn ireduce_scatter_block<T: Data>(
        &self,
        data: Vec<T>,
        operator: impl Operator<T> + Send + Sync + 'static,
    ) -> Result<Request<'_, Vec<T>>> {
        let mine = data.len() / self.size().max(1);
        let rest = self.scattered::<T>(data.len(), None, mine)?;
        self.start_reduced(Some(data), zeros(mine), operator, rest)
    }
}

const ALLREDUCE: Operation = Operation::of(Kind::Allreduce);
const SCAN: Operation = Operation::of(Kind::Scan);
const EXSCAN: Operation = Operation::of(Kind::Exscan);
