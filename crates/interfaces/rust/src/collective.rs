//! Collectives: what all members of a group do together. Blocking forms.

use std::ops::Range;

use regatta_process::{Kind, Operation, Parts};

use crate::Group;
use crate::error::{Error, Result};
use crate::memory::Data;
use crate::operator::Operator;
use crate::raw::blocking;
use crate::raw::{Gives, Takes};

/// Ranges of `lens[0]`, `lens[1]`, ... elements, one after the other: the parts of the `...v`
/// collectives for the usual case.
///
/// ```
/// assert_eq!(regatta::parts(&[2, 0, 3]), [0..2, 2..2, 2..5]);
/// ```
pub fn parts(lens: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0usize;
    let next = |&len: &usize| {
        let start = end;
        end = end.saturating_add(len);
        start..end
    };
    lens.iter().map(next).collect()
}

/// A collective with this root.
pub(crate) fn rooted(kind: Kind, root: usize) -> Operation {
    Operation {
        root: u32::try_from(root).unwrap_or(u32::MAX),
        ..Operation::of(kind)
    }
}

/// As bytes, if the parts are one for each of `size` members and lie within `len` elements.
pub(crate) fn listed<T>(parts: &[Range<usize>], size: usize, len: usize) -> Result<Parts> {
    if parts.len() != size {
        return Err(Error::argument(format!(
            "{} parts for a group of {size}: one each is needed",
            parts.len()
        )));
    }
    if let Some(part) = parts.iter().find(|p| p.start > p.end || p.end > len) {
        return Err(Error::argument(format!(
            "the part {part:?} does not lie within the {len} elements of the whole"
        )));
    }
    let width = size_of::<T>();
    let bytes = |part: &Range<usize>| (part.len() * width, part.start * width);
    Ok(Parts::Listed(parts.iter().map(bytes).collect()))
}

/// As bytes, if `counts` has one for each of `size` members and they make `whole` elements.
pub(crate) fn cut<T>(counts: &[usize], size: usize, whole: usize) -> Result<Parts> {
    let parts = parts(counts);
    let end = parts.last().map_or(0, |part| part.end);
    if end < whole {
        return Err(Error::argument(format!(
            "the parts have {end} elements together, but the whole has {whole}"
        )));
    }
    listed::<T>(&parts, size, whole)
}

/// `len` elements each make `whole`.
pub(crate) fn even<T>(len: usize, size: usize, whole: usize) -> Result<Parts> {
    if len.checked_mul(size) != Some(whole) {
        return Err(Error::argument(format!(
            "{size} members with {len} elements each do not make {whole} elements"
        )));
    }
    Ok(Parts::Even(len * size_of::<T>()))
}

/// This task's part is as long as its own memory.
fn own(rank: usize, parts: &[Range<usize>], mine: usize) -> Result<()> {
    match parts.get(rank) {
        Some(part) if part.len() != mine => Err(Error::argument(format!(
            "this task's part is {part:?}, but its own memory holds {mine} elements"
        ))),
        _ => Ok(()),
    }
}

fn alike(input: usize, output: usize) -> Result<()> {
    if input != output {
        return Err(Error::argument(format!(
            "a reduction of {input} elements gives as many, not {output}"
        )));
    }
    Ok(())
}

/// # Collectives
///
/// All block; all are called by every member of the group, in the same order, with the same root
/// and the same lengths (except where each member has its own). Counts are elements. If a member
/// dies, every member that cannot finish gets [`ErrorKind::Dead`](crate::ErrorKind::Dead) with its
/// name. Arguments that do not fit are errors before anything has happened; the other members then
/// wait for this one.
///
/// Forms that start with `i` do not block; see [`Request`](crate::Request).
impl Group<'_> {
    #[inline(always)]
    fn run(
        &self,
        input: Option<Gives<'_>>,
        output: Option<Takes<'_>>,
        rest: Operation,
    ) -> Result<()> {
        blocking::collective(self.id(), input, output, rest)
    }

    /// A reduction of these elements; without an input, of those in the output.
    #[inline(always)]
    fn combine<T: Data>(
        &self,
        kind: Kind,
        input: Option<&[T]>,
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        alike(input.map_or(output.len(), <[T]>::len), output.len())?;
        let rest = Operation {
            reduction: Some(operator.reduction(output.len())),
            ..Operation::of(kind)
        };
        self.run(input.map(Gives::slice), Some(Takes::slice(output)), rest)
    }

    /// Wait until all members have come.
    pub fn barrier(&self) -> Result<()> {
        self.run(None, None, Operation::of(Kind::Barrier))
    }

    /// The root's `data` to all members.
    pub fn broadcast<T: Data>(&self, data: &mut [T], root: usize) -> Result<()> {
        self.run(
            None,
            Some(Takes::slice(data)),
            rooted(Kind::Broadcast, root),
        )
    }

    /// Combine all members' inputs, element by element; the result to the root. The other members'
    /// `output` is not touched and may be empty.
    pub fn reduce<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
        root: usize,
    ) -> Result<()> {
        let is_root = self.rank() == root;
        if is_root {
            alike(input.len(), output.len())?;
        }
        let rest = Operation {
            reduction: Some(operator.reduction(input.len())),
            ..rooted(Kind::Reduce, root)
        };
        let output = is_root.then(|| Takes::slice(output));
        self.run(Some(Gives::slice(input)), output, rest)
    }

    /// Combine all members' inputs, element by element; the result to all.
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
        self.combine(Kind::Allreduce, Some(input), output, operator)
    }

    /// As [`allreduce`](Group::allreduce), with `data` for both.
    pub fn allreduce_in_place<T: Data>(
        &self,
        data: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(Kind::Allreduce, None, data, operator)
    }

    /// Combine the inputs of ranks 0 up to this one, element by element.
    pub fn scan<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(Kind::Scan, Some(input), output, operator)
    }

    /// As [`scan`](Group::scan), with `data` for both.
    pub fn scan_in_place<T: Data>(&self, data: &mut [T], operator: impl Operator<T>) -> Result<()> {
        self.combine(Kind::Scan, None, data, operator)
    }

    /// Combines the inputs of the ranks below this one, element by element. There is none below rank 0: its `output` is not
    /// touched and may be empty.
    pub fn exscan<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let has_result = self.rank() > 0;
        if has_result {
            alike(input.len(), output.len())?;
        }
        let rest = Operation {
            reduction: Some(operator.reduction(input.len())),
            ..Operation::of(Kind::Exscan)
        };
        let output = has_result.then(|| Takes::slice(output));
        self.run(Some(Gives::slice(input)), output, rest)
    }

    /// As [`exscan`](Group::exscan), with `data` for both. Rank 0 keeps its own.
    pub fn exscan_in_place<T: Data>(
        &self,
        data: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        self.combine(Kind::Exscan, None, data, operator)
    }

    /// Combines all members' inputs, element by element, and gives each its part of the result: the first `counts[0]` elements
    /// to rank 0, the next `counts[1]` to rank 1, and so on. All give the same counts, one for each member; `input` is as long as
    /// all parts together, `output` as this task's.
    pub fn reduce_scatter<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let parts = cut::<T>(counts, self.size(), input.len())?;
        own(self.rank(), &self::parts(counts), output.len())?;
        self.reduced(input, output, parts, operator)
    }

    /// As [`reduce_scatter`](Group::reduce_scatter), with equal parts: each is as long as `output`.
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
        let parts = even::<T>(output.len(), self.size(), input.len())?;
        self.reduced(input, output, parts, operator)
    }

    fn reduced<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        parts: Parts,
        operator: impl Operator<T>,
    ) -> Result<()> {
        let rest = Operation {
            gives: parts,
            reduction: Some(operator.reduction(input.len())),
            ..Operation::of(Kind::ReduceScatter)
        };
        self.run(Some(Gives::slice(input)), Some(Takes::slice(output)), rest)
    }

    /// All members' `mine`, equally long, to the root's `all`, in rank order. The other members'
    /// `all` is not touched and may be empty.
    pub fn gather<T: Data>(&self, mine: &[T], all: &mut [T], root: usize) -> Result<()> {
        let parts = match self.rank() == root {
            true => Some(even::<T>(mine.len(), self.size(), all.len())?),
            false => None,
        };
        self.gather_parts(mine, all, parts, root)
    }

    /// All members' `mine` to the root's `all`, each to its part: `parts[rank]`, in elements.
    /// The other members' `all` and `parts` are not touched and may be empty.
    pub fn gatherv<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<()> {
        let parts = self.listed_at_root::<T>(parts, mine.len(), all.len(), root)?;
        self.gather_parts(mine, all, parts, root)
    }

    /// The root's list of parts, of which its own is as long as its own memory.
    fn listed_at_root<T>(
        &self,
        parts: &[Range<usize>],
        mine: usize,
        all: usize,
        root: usize,
    ) -> Result<Option<Parts>> {
        if self.rank() != root {
            return Ok(None);
        }
        own(root, parts, mine)?;
        listed::<T>(parts, self.size(), all).map(Some)
    }

    fn gather_parts<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        parts: Option<Parts>,
        root: usize,
    ) -> Result<()> {
        let output = parts.is_some().then(|| Takes::slice(all));
        let rest = Operation {
            gets: parts.unwrap_or(Parts::Even(0)),
            ..rooted(Kind::Gather, root)
        };
        self.run(Some(Gives::slice(mine)), output, rest)
    }

    /// The root's `all`, cut into equal parts, to the members' `mine`, in rank order. The other
    /// members' `all` may be empty.
    pub fn scatter<T: Data>(&self, all: &[T], mine: &mut [T], root: usize) -> Result<()> {
        let parts = match self.rank() == root {
            true => Some(even::<T>(mine.len(), self.size(), all.len())?),
            false => None,
        };
        self.scatter_parts(all, parts, mine, root)
    }

    /// The parts of the root's `all` to the members' `mine`: `parts[rank]`, in elements. The other
    /// members' `all` and `parts` may be empty.
    pub fn scatterv<T: Data>(
        &self,
        all: &[T],
        parts: &[Range<usize>],
        mine: &mut [T],
        root: usize,
    ) -> Result<()> {
        let parts = self.listed_at_root::<T>(parts, mine.len(), all.len(), root)?;
        self.scatter_parts(all, parts, mine, root)
    }

    fn scatter_parts<T: Data>(
        &self,
        all: &[T],
        parts: Option<Parts>,
        mine: &mut [T],
        root: usize,
    ) -> Result<()> {
        let rest = Operation {
            gives: parts.unwrap_or(Parts::Even(0)),
            ..rooted(Kind::Scatter, root)
        };
        self.run(Some(Gives::slice(all)), Some(Takes::slice(mine)), rest)
    }

    /// All members' `mine`, equally long, to everybody's `all`, in rank order.
    pub fn allgather<T: Data>(&self, mine: &[T], all: &mut [T]) -> Result<()> {
        let parts = even::<T>(mine.len(), self.size(), all.len())?;
        self.allgather_parts(Some(mine), all, parts)
    }

    /// As [`allgather`](Group::allgather), with this task's own part already in its place.
    pub fn allgather_in_place<T: Data>(&self, all: &mut [T]) -> Result<()> {
        let parts = even::<T>(all.len() / self.size().max(1), self.size(), all.len())?;
        self.allgather_parts(None, all, parts)
    }

    /// All members' `mine` to everybody's `all`, each to its part: `parts[rank]`, in elements.
    pub fn allgatherv<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        parts: &[Range<usize>],
    ) -> Result<()> {
        own(self.rank(), parts, mine.len())?;
        let parts = listed::<T>(parts, self.size(), all.len())?;
        self.allgather_parts(Some(mine), all, parts)
    }

    fn allgather_parts<T: Data>(
        &self,
        mine: Option<&[T]>,
        all: &mut [T],
        gets: Parts,
    ) -> Result<()> {
        let rest = Operation {
            gets,
            ..Operation::of(Kind::Allgather)
        };
        self.run(mine.map(Gives::slice), Some(Takes::slice(all)), rest)
    }

    /// From each member to each member a part of its own: part `k` of `gives` goes to rank `k`,
    /// part `k` of `gets` comes from rank `k`. All parts are equally long.
    pub fn alltoall<T: Data>(&self, gives: &[T], gets: &mut [T]) -> Result<()> {
        let each = gives.len() / self.size().max(1);
        let give = even::<T>(each, self.size(), gives.len())?;
        let get = even::<T>(each, self.size(), gets.len())?;
        self.alltoall_parts((gives, give), (gets, get))
    }

    /// As [`alltoall`](Group::alltoall), with parts of any length: `give[rank]` of `gives` and
    /// `get[rank]` of `gets`, in elements. The part that one member gives another is as long as what that
    /// one gets.
    pub fn alltoallv<T: Data>(
        &self,
        gives: &[T],
        give: &[Range<usize>],
        gets: &mut [T],
        get: &[Range<usize>],
    ) -> Result<()> {
        let give = listed::<T>(give, self.size(), gives.len())?;
        let get = listed::<T>(get, self.size(), gets.len())?;
        self.alltoall_parts((gives, give), (gets, get))
    }

    fn alltoall_parts<T: Data>(
        &self,
        (input, gives): (&[T], Parts),
        (output, gets): (&mut [T], Parts),
    ) -> Result<()> {
        let rest = Operation {
            gives,
            gets,
            ..Operation::of(Kind::Alltoall)
        };
        self.run(Some(Gives::slice(input)), Some(Takes::slice(output)), rest)
    }
}
