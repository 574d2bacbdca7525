//! Collectives that move parts: gathers, scatters, complete exchanges.

use std::ops::Range;

use regatta_process::{Kind, Operation, Parts};

use super::{rooted, zeros};
use crate::error::{Error, Result};
use crate::memory::Data;
use crate::{Group, Request};

/// Returns consecutive ranges of `lens[0]`, `lens[1]`, ... elements: the usual parts for collectives whose names end with `v`.
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

/// Converts parts to bytes. Fails unless there is one for each of `size` members and all lie within `len` elements.
fn listed<T>(parts: &[Range<usize>], size: usize, len: usize) -> Result<Parts> {
    if parts.len() != size {
        return Err(Error::argument(format!(
            "{} parts for a group of {size} members: there must be one part for each member",
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

/// Returns the consecutive parts of these lengths, in bytes. Fails unless there is one for each of `size` members and their
/// sum is `whole` elements.
pub(super) fn cut<T>(counts: &[usize], size: usize, whole: usize) -> Result<Parts> {
    let parts = parts(counts);
    let end = end(&parts);
    if end < whole {
        return Err(Error::argument(format!(
            "the parts have {end} elements together, but the whole has {whole}"
        )));
    }
    listed::<T>(&parts, size, whole)
}

/// Returns equal parts of `len` elements, in bytes. Fails unless `size` of them have `whole` elements together.
pub(super) fn even<T>(len: usize, size: usize, whole: usize) -> Result<Parts> {
    if len.checked_mul(size) != Some(whole) {
        return Err(Error::argument(format!(
            "{size} members with {len} elements each do not make {whole} elements"
        )));
    }
    Ok(Parts::Even(len * size_of::<T>()))
}

/// Fails unless this task's part is as long as its own memory.
pub(super) fn own(rank: usize, parts: &[Range<usize>], mine: usize) -> Result<()> {
    match parts.get(rank) {
        Some(part) if part.len() != mine => Err(Error::argument(format!(
            "this task's part is {part:?}, but its own memory holds {mine} elements"
        ))),
        _ => Ok(()),
    }
}

/// Returns the highest end of these parts.
fn end(parts: &[Range<usize>]) -> usize {
    parts.iter().map(|part| part.end).max().unwrap_or(0)
}

/// How the memory for all members is divided: one part for each member, in elements. `None` stands for equal parts in rank
/// order.
type Cut<'a> = Option<&'a [Range<usize>]>;

/// # Gathers, scatters and complete exchanges
impl Group<'_> {
    /// Returns the parts of `all` elements. Fails unless this task's part has `mine` elements.
    fn cut<T>(&self, mine: usize, all: usize, cut: Cut<'_>) -> Result<Parts> {
        let Some(parts) = cut else {
            return even::<T>(mine, self.size(), all);
        };
        own(self.rank(), parts, mine)?;
        listed::<T>(parts, self.size(), all)
    }

    /// Calls [`cut`](Group::cut) at the root. Other members do not have the memory, and know only whether parts are equal.
    fn cut_at<T>(&self, root: usize, mine: usize, all: usize, cut: Cut<'_>) -> Result<Parts> {
        match (self.rank() == root, cut) {
            (true, _) => self.cut::<T>(mine, all, cut),
            (false, None) => Ok(Parts::Even(mine * size_of::<T>())),
            (false, Some(_)) => Ok(Parts::Listed(Vec::new())),
        }
    }

    fn gathers<T>(&self, mine: usize, all: usize, cut: Cut<'_>, root: usize) -> Result<Operation> {
        Ok(Operation {
            gets: self.cut_at::<T>(root, mine, all, cut)?,
            ..rooted(Kind::Gather, root)
        })
    }

    fn gather_into<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        cut: Cut<'_>,
        root: usize,
    ) -> Result<()> {
        let rest = self.gathers::<T>(mine.len(), all.len(), cut, root)?;
        self.run(Some(mine), (self.rank() == root).then_some(all), rest)
    }

    /// Gathers all members' `mine`, which have equal lengths, in the root's `all`, in rank order. `all` is neither read nor
    /// written at other members, and may be empty there.
    pub fn gather<T: Data>(&self, mine: &[T], all: &mut [T], root: usize) -> Result<()> {
        self.gather_into(mine, all, None, root)
    }

    /// Gathers each member's `mine` in the root's `all`, at `parts[rank]`, in elements. `all` and `parts` are ignored at other
    /// members, and may be empty there.
    pub fn gatherv<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<()> {
        self.gather_into(mine, all, Some(parts), root)
    }

    fn start_gather<T: Data>(
        &self,
        mine: Vec<T>,
        len: usize,
        cut: Cut<'_>,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(if self.rank() == root { len } else { 0 });
        let rest = self.gathers::<T>(mine.len(), all.len(), cut, root)?;
        self.start(Some(mine), all, rest)
    }

    /// Starts a gather. The request returns all members' elements at the root, and an empty vector elsewhere.
    pub fn igather<T: Data>(&self, mine: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        let len = mine.len() * self.size();
        self.start_gather(mine, len, None, root)
    }

    /// Starts a gather of parts of any length. At the root the request returns a vector that reaches to the highest end of
    /// the parts. Elsewhere it returns an empty vector, and `parts` may be empty.
    pub fn igatherv<T: Data>(
        &self,
        mine: Vec<T>,
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        self.start_gather(mine, end(parts), Some(parts), root)
    }

    fn scatters<T>(&self, all: usize, cut: Cut<'_>, mine: usize, root: usize) -> Result<Operation> {
        Ok(Operation {
            gives: self.cut_at::<T>(root, mine, all, cut)?,
            ..rooted(Kind::Scatter, root)
        })
    }

    /// Scatters equal parts of the root's `all` to the members' `mine`, in rank order. `all` may be empty at other members.
    pub fn scatter<T: Data>(&self, all: &[T], mine: &mut [T], root: usize) -> Result<()> {
        let rest = self.scatters::<T>(all.len(), None, mine.len(), root)?;
        self.run((self.rank() == root).then_some(all), Some(mine), rest)
    }

    /// Scatters parts of any length of the root's `all` to the members' `mine`: `parts[rank]`, in elements. `all` and `parts`
    /// may be empty at other members.
    pub fn scatterv<T: Data>(
        &self,
        all: &[T],
        parts: &[Range<usize>],
        mine: &mut [T],
        root: usize,
    ) -> Result<()> {
        let rest = self.scatters::<T>(all.len(), Some(parts), mine.len(), root)?;
        self.run((self.rank() == root).then_some(all), Some(mine), rest)
    }

    /// Starts a scatter of the root's `all`, with `each` elements for each member. The request returns this member's elements.
    /// `all` may be empty at other members.
    pub fn iscatter<T: Data>(
        &self,
        all: Vec<T>,
        each: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = self.scatters::<T>(all.len(), None, each, root)?;
        self.start(Some(all), zeros(each), rest)
    }

    /// Starts a scatter of parts of any length. The request returns this member's part, of `mine` elements. `all` and `parts`
    /// may be empty at members other than the root.
    pub fn iscatterv<T: Data>(
        &self,
        all: Vec<T>,
        parts: &[Range<usize>],
        mine: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = self.scatters::<T>(all.len(), Some(parts), mine, root)?;
        self.start(Some(all), zeros(mine), rest)
    }

    fn gathers_to_all<T>(&self, mine: usize, all: usize, cut: Cut<'_>) -> Result<Operation> {
        Ok(Operation {
            gets: self.cut::<T>(mine, all, cut)?,
            ..Operation::of(Kind::Allgather)
        })
    }

    /// Gathers all members' `mine`, which have equal lengths, in every member's `all`, in rank order.
    pub fn allgather<T: Data>(&self, mine: &[T], all: &mut [T]) -> Result<()> {
        let rest = self.gathers_to_all::<T>(mine.len(), all.len(), None)?;
        self.run(Some(mine), Some(all), rest)
    }

    /// Like [`allgather`](Group::allgather), in place: each member's own part is already in `all`.
    pub fn allgather_in_place<T: Data>(&self, all: &mut [T]) -> Result<()> {
        let mine = all.len() / self.size().max(1);
        let rest = self.gathers_to_all::<T>(mine, all.len(), None)?;
        self.run(None, Some(all), rest)
    }

    /// Gathers each member's `mine` in every member's `all`, at `parts[rank]`, in elements.
    pub fn allgatherv<T: Data>(
        &self,
        mine: &[T],
        all: &mut [T],
        parts: &[Range<usize>],
    ) -> Result<()> {
        let rest = self.gathers_to_all::<T>(mine.len(), all.len(), Some(parts))?;
        self.run(Some(mine), Some(all), rest)
    }

    /// Starts an allgather of equal parts. The request returns all members' elements.
    pub fn iallgather<T: Data>(&self, mine: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(mine.len() * self.size());
        let rest = self.gathers_to_all::<T>(mine.len(), all.len(), None)?;
        self.start(Some(mine), all, rest)
    }

    /// Starts an allgather of parts of any length. The request returns a vector that reaches to the highest end of the parts.
    pub fn iallgatherv<T: Data>(
        &self,
        mine: Vec<T>,
        parts: &[Range<usize>],
    ) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(end(parts));
        let rest = self.gathers_to_all::<T>(mine.len(), all.len(), Some(parts))?;
        self.start(Some(mine), all, rest)
    }

    /// Returns the operation of a complete exchange. `gives` and `gets` are the numbers of elements sent and received by this
    /// member, `give` and `get` their parts.
    fn exchanges<T>(
        &self,
        (gives, give): (usize, Cut<'_>),
        (gets, get): (usize, Cut<'_>),
    ) -> Result<Operation> {
        let each = gives / self.size().max(1);
        let cut = |all, parts: Cut<'_>| match parts {
            Some(parts) => listed::<T>(parts, self.size(), all),
            None => even::<T>(each, self.size(), all),
        };
        Ok(Operation {
            gives: cut(gives, give)?,
            gets: cut(gets, get)?,
            ..Operation::of(Kind::Alltoall)
        })
    }

    /// Exchanges parts between all members (all-to-all): part `k` of `gives` is sent to rank `k`, and part `k` of `gets` is
    /// received from rank `k`. All parts have equal lengths.
    pub fn alltoall<T: Data>(&self, gives: &[T], gets: &mut [T]) -> Result<()> {
        let rest = self.exchanges::<T>((gives.len(), None), (gets.len(), None))?;
        self.run(Some(gives), Some(gets), rest)
    }

    /// Like [`alltoall`](Group::alltoall), with parts of any length: `give[rank]` of `gives` and `get[rank]` of `gets`, in
    /// elements. The part that a member sends must be as long as the part that its receiver has for it.
    pub fn alltoallv<T: Data>(
        &self,
        gives: &[T],
        give: &[Range<usize>],
        gets: &mut [T],
        get: &[Range<usize>],
    ) -> Result<()> {
        let rest = self.exchanges::<T>((gives.len(), Some(give)), (gets.len(), Some(get)))?;
        self.run(Some(gives), Some(gets), rest)
    }

    /// Starts a complete exchange of equal parts. The request returns the parts received, in rank order.
    pub fn ialltoall<T: Data>(&self, gives: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let gets = zeros(gives.len());
        let rest = self.exchanges::<T>((gives.len(), None), (gets.len(), None))?;
        self.start(Some(gives), gets, rest)
    }

    /// Starts a complete exchange of parts of any length: `give[rank]` of `gives` is sent to each member. The request returns
    /// a vector with the part received from each member at `get[rank]`, which reaches to the highest end of these parts.
    pub fn ialltoallv<T: Data>(
        &self,
        gives: Vec<T>,
        give: &[Range<usize>],
        get: &[Range<usize>],
    ) -> Result<Request<'_, Vec<T>>> {
        let gets = zeros(end(get));
        let rest = self.exchanges::<T>((gives.len(), Some(give)), (gets.len(), Some(get)))?;
        self.start(Some(gives), gets, rest)
    }
}
