//! Collectives: non-blocking forms, which own their memory.

use std::ops::Range;

use regatta_process::{Kind, Operation, Parts};

use crate::collective::{cut, even, listed, rooted};
use crate::error::Result;
use crate::memory::Data;
use crate::operator::Operator;
use crate::raw::owned;
use crate::{Group, Request};

fn zeros<T: Data>(len: usize) -> Vec<T> {
    vec![T::zeroed(); len]
}

/// # Collectives that do not block
///
/// As the forms without the `i`, but they return at once with a [`Request`] that owns the memory
/// and gives the result at completion. All members start them in the same order, mixed with
/// blocking ones as they like; they may complete in any order.
impl Group<'_> {
    /// A collective of which this member gives and gets this memory, of whose parts `rest` tells.
    fn start<T: Data>(
        &self,
        input: Vec<T>,
        output: Vec<T>,
        rest: Operation,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::collective(self, Some(input), output, rest, None).map(Request::of)
    }

    /// Start a barrier: complete when all members have started it.
    pub fn ibarrier(&self) -> Result<Request<'_, ()>> {
        owned::barrier(self).map(Request::of)
    }

    /// Start a broadcast of the root's `data`; the other members' is as long. Gives it back.
    pub fn ibroadcast<T: Data>(&self, data: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        let rest = rooted(Kind::Broadcast, root);
        owned::collective(self, None, data, rest, None).map(Request::of)
    }

    /// Start a reduction. Gives the result at the root, and elsewhere `data` as it was.
    pub fn ireduce<T: Data, O>(
        &self,
        data: Vec<T>,
        operator: O,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        owned::reduction(self, None, data, operator, rooted(Kind::Reduce, root)).map(Request::of)
    }

    /// Start a reduction to all. Gives the result.
    ///
    /// ```
    /// let task = regatta::init()?;
    /// let world = task.world();
    /// let request = world.iallreduce(vec![1.5], regatta::Max)?;
    /// // compute something here
    /// assert_eq!(request.wait()?.0, [1.5]); // a world of one
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn iallreduce<T: Data, O>(&self, data: Vec<T>, operator: O) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        let rest = Operation::of(Kind::Allreduce);
        owned::reduction(self, None, data, operator, rest).map(Request::of)
    }

    /// Start a scan. Gives the result.
    pub fn iscan<T: Data, O>(&self, data: Vec<T>, operator: O) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        owned::reduction(self, None, data, operator, Operation::of(Kind::Scan)).map(Request::of)
    }

    /// Starts an exclusive scan. Gives the result, and at rank 0 `data` as it was.
    pub fn iexscan<T: Data, O>(&self, data: Vec<T>, operator: O) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        owned::reduction(self, None, data, operator, Operation::of(Kind::Exscan)).map(Request::of)
    }

    /// Starts a reduction of which each member gets a part: `counts[rank]` elements. Gives this member's.
    pub fn ireduce_scatter<T: Data, O>(
        &self,
        data: Vec<T>,
        counts: &[usize],
        operator: O,
    ) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        let parts = cut::<T>(counts, self.size(), data.len())?;
        let mine = zeros(counts[self.rank()]);
        self.start_reduced(data, mine, parts, operator)
    }

    /// Starts a reduction of which each member gets an equal part. Gives this member's.
    pub fn ireduce_scatter_block<T: Data, O>(
        &self,
        data: Vec<T>,
        operator: O,
    ) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        let each = data.len() / self.size().max(1);
        let parts = even::<T>(each, self.size(), data.len())?;
        self.start_reduced(data, zeros(each), parts, operator)
    }

    fn start_reduced<T: Data, O>(
        &self,
        data: Vec<T>,
        mine: Vec<T>,
        parts: Parts,
        operator: O,
    ) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        let rest = Operation {
            gives: parts,
            ..Operation::of(Kind::ReduceScatter)
        };
        owned::reduction(self, Some(data), mine, operator, rest).map(Request::of)
    }

    /// Start a gathering. Gives all members' elements at the root, and elsewhere nothing.
    pub fn igather<T: Data>(&self, mine: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        let all = if self.rank() == root {
            zeros(mine.len() * self.size())
        } else {
            vec![]
        };
        let parts = Parts::Even(size_of_val(&mine[..]));
        self.gathers(mine, all, parts, root)
    }

    /// Start a gathering of parts of any length. Gives at the root a vector that reaches to the
    /// end of the last part, and elsewhere nothing; there `parts` may be empty.
    pub fn igatherv<T: Data>(
        &self,
        mine: Vec<T>,
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        if self.rank() != root {
            return self.gathers(mine, vec![], Parts::Even(0), root);
        }
        let all = zeros(end(parts));
        let parts = listed::<T>(parts, self.size(), all.len())?;
        self.gathers(mine, all, parts, root)
    }

    fn gathers<T: Data>(
        &self,
        mine: Vec<T>,
        all: Vec<T>,
        gets: Parts,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = Operation {
            gets,
            ..rooted(Kind::Gather, root)
        };
        self.start(mine, all, rest)
    }

    /// Start a scattering of the root's `all`, `each` elements to each member. Gives this
    /// member's. Elsewhere `all` may be empty.
    pub fn iscatter<T: Data>(
        &self,
        all: Vec<T>,
        each: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let parts = if self.rank() == root {
            even::<T>(each, self.size(), all.len())?
        } else {
            Parts::Even(0)
        };
        self.scatters(all, parts, each, root)
    }

    /// Start a scattering of parts of any length. Gives this member's, which is `mine` elements.
    /// Elsewhere than at the root `all` and `parts` may be empty.
    pub fn iscatterv<T: Data>(
        &self,
        all: Vec<T>,
        parts: &[Range<usize>],
        mine: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let parts = if self.rank() == root {
            listed::<T>(parts, self.size(), all.len())?
        } else {
            Parts::Even(0)
        };
        self.scatters(all, parts, mine, root)
    }

    fn scatters<T: Data>(
        &self,
        all: Vec<T>,
        gives: Parts,
        mine: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = Operation {
            gives,
            ..rooted(Kind::Scatter, root)
        };
        self.start(all, zeros(mine), rest)
    }

    /// Start an allgather of equally long parts. Gives all members' elements.
    pub fn iallgather<T: Data>(&self, mine: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(mine.len() * self.size());
        let parts = Parts::Even(size_of_val(&mine[..]));
        self.gathers_to_all(mine, all, parts)
    }

    /// Start an allgather of parts of any length. Gives a vector that reaches to the end of
    /// the last part.
    pub fn iallgatherv<T: Data>(
        &self,
        mine: Vec<T>,
        parts: &[Range<usize>],
    ) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(end(parts));
        let parts = listed::<T>(parts, self.size(), all.len())?;
        self.gathers_to_all(mine, all, parts)
    }

    fn gathers_to_all<T: Data>(
        &self,
        mine: Vec<T>,
        all: Vec<T>,
        gets: Parts,
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = Operation {
            gets,
            ..Operation::of(Kind::Allgather)
        };
        self.start(mine, all, rest)
    }

    /// Start a complete exchange of equally long parts. Gives what comes from each member.
    pub fn ialltoall<T: Data>(&self, gives: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let gets = zeros(gives.len());
        let each = gives.len() / self.size().max(1);
        let parts = even::<T>(each, self.size(), gives.len())?;
        self.exchanges((gives, parts.clone()), (gets, parts))
    }

    /// Start a complete exchange of parts of any length: `give[rank]` of `gives`; `get[rank]` of
    /// the vector it gives, which reaches to the end of the last of them.
    pub fn ialltoallv<T: Data>(
        &self,
        gives: Vec<T>,
        give: &[Range<usize>],
        get: &[Range<usize>],
    ) -> Result<Request<'_, Vec<T>>> {
        let give = listed::<T>(give, self.size(), gives.len())?;
        let gets = zeros(end(get));
        let get = listed::<T>(get, self.size(), gets.len())?;
        self.exchanges((gives, give), (gets, get))
    }

    fn exchanges<T: Data>(
        &self,
        (input, gives): (Vec<T>, Parts),
        (output, gets): (Vec<T>, Parts),
    ) -> Result<Request<'_, Vec<T>>> {
        let rest = Operation {
            gives,
            gets,
            ..Operation::of(Kind::Alltoall)
        };
        self.start(input, output, rest)
    }
}

/// Where the last of these parts ends.
fn end(parts: &[Range<usize>]) -> usize {
    parts.iter().map(|part| part.end).max().unwrap_or(0)
}
