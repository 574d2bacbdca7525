//! Collectives: what all members of a group do together. Blocking forms.

use std::ops::Range;

use regatta_process::Parts;

use crate::error::{Error, Result};
use crate::memory::Data;
use crate::operator::Operator;
use crate::raw::blocking::{self, Input};
use crate::raw::{Gives, Takes};
use crate::{Group, raw};

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

/// A root's rank as the engine counts.
pub(crate) fn root_number(root: usize) -> u32 {
    u32::try_from(root).unwrap_or(u32::MAX)
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
    /// Wait until all members have come.
    pub fn barrier(&self) -> Result<()> {
        raw::outside()?;
        crate::error::ours(regatta_process::barrier(self.id()))
    }

    /// The root's `data` to all members.
    pub fn broadcast<T: Data>(&self, data: &mut [T], root: usize) -> Result<()> {
        blocking::broadcast(self.id(), root_number(root), Takes::slice(data))
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
        let output = if self.rank() == root {
            alike(input.len(), output.len())?;
            Takes::slice(output)
        } else {
            Takes::nothing()
        };
        let what = operator.reduction(input.len());
        let input = Input::From(Gives::slice(input));
        blocking::reduce(self.id(), root_number(root), input, output, what)
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
        alike(input.len(), output.len())?;
        let what = operator.reduction(input.len());
        let input = Input::From(Gives::slice(input));
        blocking::allreduce(self.id(), input, Takes::slice(output), what)
    }

    /// As [`allreduce`](Group::allreduce), with `data` for both.
    pub fn allreduce_in_place<T: Data>(
        &self,
        data: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        let what = operator.reduction(data.len());
        blocking::allreduce(self.id(), Input::InPlace, Takes::slice(data), what)
    }

    /// Combine the inputs of ranks 0 up to this one, element by element.
    pub fn scan<T: Data>(
        &self,
        input: &[T],
        output: &mut [T],
        operator: impl Operator<T>,
    ) -> Result<()> {
        alike(input.len(), output.len())?;
        let what = operator.reduction(input.len());
        let input = Input::From(Gives::slice(input));
        blocking::scan(self.id(), input, Takes::slice(output), what)
    }

    /// As [`scan`](Group::scan), with `data` for both.
    pub fn scan_in_place<T: Data>(&self, data: &mut [T], operator: impl Operator<T>) -> Result<()> {
        let what = operator.reduction(data.len());
        blocking::scan(self.id(), Input::InPlace, Takes::slice(data), what)
    }

    /// All members' `mine`, equally long, to the root's `all`, in rank order. The other members'
    /// `all` is not touched and may be empty.
    pub fn gather<T: Data>(&self, mine: &[T], all: &mut [T], root: usize) -> Result<()> {
        if self.rank() == root {
            let parts = even::<T>(mine.len(), self.size(), all.len())?;
            return self.gathered(mine, Takes::slice(all), &parts, root);
        }
        self.gathered(mine, Takes::nothing(), &Parts::Even(0), root)
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
        if self.rank() == root {
            own(self.rank(), parts, mine.len())?;
            let parts = listed::<T>(parts, self.size(), all.len())?;
            return self.gathered(mine, Takes::slice(all), &parts, root);
        }
        self.gathered(mine, Takes::nothing(), &Parts::Even(0), root)
    }

    fn gathered<T: Data>(
        &self,
        mine: &[T],
        all: Takes<'_>,
        parts: &Parts,
        root: usize,
    ) -> Result<()> {
        blocking::gather(self.id(), root_number(root), Gives::slice(mine), all, parts)
    }

    /// The root's `all`, cut into equal parts, to the members' `mine`, in rank order. The other
    /// members' `all` may be empty.
    pub fn scatter<T: Data>(&self, all: &[T], mine: &mut [T], root: usize) -> Result<()> {
        let parts = if self.rank() == root {
            even::<T>(mine.len(), self.size(), all.len())?
        } else {
            Parts::Even(0)
        };
        self.scattered(all, &parts, mine, root)
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
        let parts = if self.rank() == root {
            own(self.rank(), parts, mine.len())?;
            listed::<T>(parts, self.size(), all.len())?
        } else {
            Parts::Even(0)
        };
        self.scattered(all, &parts, mine, root)
    }

    fn scattered<T: Data>(
        &self,
        all: &[T],
        parts: &Parts,
        mine: &mut [T],
        root: usize,
    ) -> Result<()> {
        let (all, mine) = (Gives::slice(all), Takes::slice(mine));
        blocking::scatter(self.id(), root_number(root), all, parts, mine)
    }

    /// All members' `mine`, equally long, to everybody's `all`, in rank order.
    pub fn allgather<T: Data>(&self, mine: &[T], all: &mut [T]) -> Result<()> {
        let parts = even::<T>(mine.len(), self.size(), all.len())?;
        let mine = Input::From(Gives::slice(mine));
        blocking::allgather(self.id(), mine, Takes::slice(all), parts)
    }

    /// As [`allgather`](Group::allgather), with this task's own part already in its place.
    pub fn allgather_in_place<T: Data>(&self, all: &mut [T]) -> Result<()> {
        let parts = even::<T>(all.len() / self.size().max(1), self.size(), all.len())?;
        blocking::allgather(self.id(), Input::InPlace, Takes::slice(all), parts)
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
        let mine = Input::From(Gives::slice(mine));
        blocking::allgather(self.id(), mine, Takes::slice(all), parts)
    }

    /// From each member to each member a part of its own: part `k` of `gives` goes to rank `k`,
    /// part `k` of `gets` comes from rank `k`. All parts are equally long.
    pub fn alltoall<T: Data>(&self, gives: &[T], gets: &mut [T]) -> Result<()> {
        let each = gives.len() / self.size().max(1);
        let give = even::<T>(each, self.size(), gives.len())?;
        let get = even::<T>(each, self.size(), gets.len())?;
        let (gives, gets) = (Gives::slice(gives), Takes::slice(gets));
        blocking::alltoall(self.id(), gives, give, gets, get)
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
        let (gives, gets) = (Gives::slice(gives), Takes::slice(gets));
        blocking::alltoall(self.id(), gives, give, gets, get)
    }
}
