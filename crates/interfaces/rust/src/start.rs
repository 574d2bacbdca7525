//! Collectives: non-blocking forms, which own their memory.

use std::ops::Range;

use regatta_process::Parts;

use crate::collective::{even, listed, root_number};
use crate::error::Result;
use crate::memory::Data;
use crate::operator::Operator;
use crate::raw::owned::{self, Fold};
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
    /// Start a barrier: complete when all members have started it.
    pub fn ibarrier(&self) -> Result<Request<'_, ()>> {
        owned::barrier(self).map(Request::of)
    }

    /// Start a broadcast of the root's `data`; the other members' is as long. Gives it back.
    pub fn ibroadcast<T: Data>(&self, data: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        owned::broadcast(self, root_number(root), data).map(Request::of)
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
        let fold = Fold::To(root_number(root));
        owned::reduce(self, fold, data, operator).map(Request::of)
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
        owned::reduce(self, Fold::ToAll, data, operator).map(Request::of)
    }

    /// Start a scan. Gives the result.
    pub fn iscan<T: Data, O>(&self, data: Vec<T>, operator: O) -> Result<Request<'_, Vec<T>>>
    where
        O: Operator<T> + Send + Sync + 'static,
    {
        owned::reduce(self, Fold::Scan, data, operator).map(Request::of)
    }

    /// Start a gathering. Gives all members' elements at the root, and elsewhere nothing.
    pub fn igather<T: Data>(&self, mine: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        let all = if self.rank() == root {
            zeros(mine.len() * self.size())
        } else {
            vec![]
        };
        let parts = Parts::Even(size_of_val(&mine[..]));
        self.gathers(mine, all, &parts, root)
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
            return self.gathers(mine, vec![], &Parts::Even(0), root);
        }
        let all = zeros(end(parts));
        let parts = listed::<T>(parts, self.size(), all.len())?;
        self.gathers(mine, all, &parts, root)
    }

    fn gathers<T: Data>(
        &self,
        mine: Vec<T>,
        all: Vec<T>,
        parts: &Parts,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::gather(self, root_number(root), mine, all, parts).map(Request::of)
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
        self.scatters(all, &parts, each, root)
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
        self.scatters(all, &parts, mine, root)
    }

    fn scatters<T: Data>(
        &self,
        all: Vec<T>,
        parts: &Parts,
        mine: usize,
        root: usize,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::scatter(self, root_number(root), all, parts, zeros(mine)).map(Request::of)
    }

    /// Start a gathering to all of equally long parts. Gives all members' elements.
    pub fn iallgather<T: Data>(&self, mine: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(mine.len() * self.size());
        let parts = Parts::Even(size_of_val(&mine[..]));
        owned::allgather(self, mine, all, &parts).map(Request::of)
    }

    /// Start a gathering to all of parts of any length. Gives a vector that reaches to the end of
    /// the last part.
    pub fn iallgatherv<T: Data>(
        &self,
        mine: Vec<T>,
        parts: &[Range<usize>],
    ) -> Result<Request<'_, Vec<T>>> {
        let all = zeros(end(parts));
        let parts = listed::<T>(parts, self.size(), all.len())?;
        owned::allgather(self, mine, all, &parts).map(Request::of)
    }

    /// Start a complete exchange of equally long parts. Gives what comes from each member.
    pub fn ialltoall<T: Data>(&self, gives: Vec<T>) -> Result<Request<'_, Vec<T>>> {
        let gets = zeros(gives.len());
        let each = gives.len() / self.size().max(1);
        let parts = even::<T>(each, self.size(), gives.len())?;
        owned::alltoall(self, gives, &parts, gets, &parts).map(Request::of)
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
        owned::alltoall(self, gives, &give, gets, &get).map(Request::of)
    }
}

/// Where the last of these parts ends.
fn end(parts: &[Range<usize>]) -> usize {
    parts.iter().map(|part| part.end).max().unwrap_or(0)
}
