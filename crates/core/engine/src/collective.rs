//! The collectives as schedules. Each function says its algorithm and its rounds.
//!
//! All are started by every member of the group in the same order. Memory of all views must stay
//! valid until the request is complete. Sizes are checked by the callers that know them.

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::reduction::{
    combine_up, exchange_allreduce, leaders_allreduce, pair_allreduce, ring_allreduce, send_down,
    shared_allreduce,
};
use crate::request::Handle;
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use crate::tree::{self, Tree};

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
}

impl<T: Transport> Engine<T> {
    fn shape(&self, group: GroupId) -> Result<(u32, u32)> {
        let group = self.group(group)?;
        Ok((group.rank, group.size()))
    }

    fn check_root(&self, group: GroupId, root: u32) -> Result<(u32, u32)> {
        let (rank, size) = self.shape(group)?;
        if root >= size {
            return Err(Error::Task(root as i64));
        }
        Ok((rank, size))
    }

    /// Dissemination: in round `k` tell the member `2^k` on and hear from the one `2^k` back; across hosts their
    /// leaders do.
    pub fn start_barrier(&mut self, group: GroupId) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        if let Some(hosts) = self.hosts(group, 0)? {
            return self.start_schedule(group, tree::barrier(&hosts, rank));
        }
        let mut steps = Steps::default();
        let mut distance = 1;
        while distance < size {
            steps.push(Step::Receive(
                (rank + size - distance) % size,
                Views::none(),
            ));
            steps.push(Step::Send((rank + distance) % size, Views::none()));
            steps.push(Step::Wait);
            distance *= 2;
        }
        self.start_schedule(group, steps)
    }

    /// A binomial tree from the root; large messages go through it in segments, so that a member
    /// passes one on while it receives the next.
    pub fn start_broadcast(&mut self, group: GroupId, root: u32, buffer: Views) -> Result<Handle> {
        const SEGMENT: usize = 128 << 10;
        let (_, size) = self.check_root(group, root)?;
        let Tree { parent, children } = self.tree_for(group, root, buffer.len())?;
        let is_across = self.hosts(group, 0)?.is_some();
        let mut steps = Steps::default();
        // All members cut alike, so by length alone; only those that relay have to wait between
        // segments. Strided memory has no parts: its bytes go through memory that has.
        let total = buffer.len();
        let cut = if size > 2 { SEGMENT } else { usize::MAX };
        let staged = total > cut && buffer.contiguous().is_none();
        let whole = match staged {
            true => steps.scratch(total),
            false => buffer.clone(),
        };
        if staged && parent.is_none() {
            steps.push(Step::Copy(buffer.clone(), whole.clone()));
        }
        let mut from = 0;
        loop {
            let len = (total - from).min(cut);
            let piece = match total > cut {
                true => whole.part(from, len),
                false => whole.clone(),
            };
            if let Some(parent) = parent {
                steps.push(Step::Receive(parent, piece.clone()));
                if !children.is_empty() {
                    steps.push(Step::Wait);
                }
            }
            // Deepest subtree first.
            let to = children.iter().rev().copied();
            match is_across && children.len() > 1 {
                true => steps.push(Step::SendToAll(to.collect(), piece.clone())),
                false => steps.extend(to.map(|child| Step::Send(child, piece.clone()))),
            }
            from += len;
            if from >= total {
                break;
            }
        }
        if staged && parent.is_some() {
            steps.push(Step::Wait);
            steps.push(Step::Copy(whole, buffer));
        }
        self.start_schedule(group, steps)
    }

    /// Up a tree. An operator that is not commutative gets its operands in rank order: by the tree of one host, to rank
    /// 0, which passes the result on where the root is another.
    pub fn start_reduce(
        &mut self,
        group: GroupId,
        root: u32,
        input: Views,
        output: Views,
        what: Reduction,
    ) -> Result<Handle> {
        let (rank, size) = self.check_root(group, root)?;
        let mut steps = Steps::default();
        let turn = if what.operator.commutative() { root } else { 0 };
        let mine = if rank == root && turn == root {
            output.clone()
        } else {
            steps.scratch(what.bytes())
        };
        let tree = match what.operator.commutative() {
            true => self.tree(group, turn)?,
            false => Tree::flat(rank, size, 0),
        };
        steps.push(Step::Copy(input, mine.clone()));
        combine_up(&mut steps, &tree, &mine, what);
        if turn != root {
            if rank == turn {
                steps.push(Step::Send(root, mine));
            } else if rank == root {
                steps.push(Step::Receive(turn, output));
            }
        }
        self.start_schedule(group, steps)
    }

    /// Two tasks: exchange and combine, or half of the work for each; larger and commutative: a ring of partial sums, then a
    /// ring of results (each task moves twice the data whatever their number), or across hosts a part of the work for
    /// each member. Otherwise: reduce to rank 0, then broadcast.
    pub fn start_allreduce(
        &mut self,
        group: GroupId,
        input: Views,
        output: Views,
        what: Reduction,
    ) -> Result<Handle> {
        const RING_FROM: usize = 64 << 10;
        const HALVES_FROM: usize = 16 << 10;
        let (rank, size) = self.shape(group)?;
        let mut steps = Steps::default();
        let has_parts = input.contiguous().is_some() && output.contiguous().is_some();
        if size == 2
            && what.bytes() >= HALVES_FROM
            && what.operator.commutative()
            && has_parts
            && self.hosts(group, 0)?.is_none()
        {
            pair_allreduce(&mut steps, rank, &input, &output, what);
        } else if size == 2 && what.bytes() < RING_FROM && what.operator.commutative() {
            let is_across = self.hosts(group, 0)?.is_some();
            exchange_allreduce(&mut steps, (1 - rank, is_across), input, output, what);
        } else if what.bytes() >= RING_FROM
            && what.operator.commutative()
            && let Some(hosts) = self.hosts(group, 0)?
        {
            // Memory that is not one block has no parts.
            let from = match input.contiguous() {
                Some(_) => input,
                None => {
                    steps.push(Step::Copy(input, output.clone()));
                    output.clone()
                }
            };
            shared_allreduce(&mut steps, &hosts, rank, &from, &output, what);
        } else if what.bytes() >= RING_FROM && what.operator.commutative() && size > 1 {
            ring_allreduce(&mut steps, (rank, size), input, output, what);
        } else if what.operator.commutative()
            && let Some(hosts) = self.hosts(group, 0)?
        {
            leaders_allreduce(&mut steps, &hosts, rank, input, &output, what);
        } else {
            let tree = Tree::flat(rank, size, 0);
            steps.push(Step::Copy(input, output.clone()));
            combine_up(&mut steps, &tree, &output, what);
            send_down(&mut steps, &tree, &output);
        }
        self.start_schedule(group, steps)
    }

    /// A chain: each adds its own to what comes from below and passes it up.
    pub fn start_scan(
        &mut self,
        group: GroupId,
        input: Views,
        output: Views,
        what: Reduction,
    ) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        let bytes = what.bytes();
        let mut steps = Steps::default();
        steps.push(Step::Copy(input, output.clone()));
        if rank > 0 {
            let below = steps.scratch(bytes);
            steps.push(Step::Receive(rank - 1, below.clone()));
            steps.push(Step::Wait);
            steps.push(what.combine(below, output.clone()));
        }
        if rank + 1 < size {
            steps.push(Step::Send(rank + 1, output));
        }
        self.start_schedule(group, steps)
    }

    /// As a scan, of the ranks below this one: what comes from below is the result. The output of rank 0 is left alone.
    pub fn start_exscan(
        &mut self,
        group: GroupId,
        input: Views,
        output: Views,
        what: Reduction,
    ) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        let mut steps = Steps::default();
        let passes_on = rank + 1 < size;
        if rank == 0 {
            if passes_on {
                steps.push(Step::Send(1, input));
            }
            return self.start_schedule(group, steps);
        }
        // Input and output may be one.
        let mut upto = Views::none();
        if passes_on {
            upto = steps.scratch(what.bytes());
            steps.push(Step::Copy(input, upto.clone()));
        }
        steps.push(Step::Receive(rank - 1, output.clone()));
        if passes_on {
            steps.push(Step::Wait);
            steps.push(what.combine(output, upto.clone()));
            steps.push(Step::Send(rank + 1, upto));
        }
        self.start_schedule(group, steps)
    }

    /// Each combines its own part, which all others send it: at increasing distances, two at a time. An operator that is not
    /// commutative gets its operands in rank order. `parts` are those of the input, in bytes; the output is this member's, and may
    /// be the front of the input.
    pub fn start_reduce_scatter(
        &mut self,
        group: GroupId,
        input: Views,
        output: Views,
        parts: &Parts,
        what: Reduction,
    ) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        let mut steps = Steps::default();
        let (own, _) = parts.of(rank);
        let what = Reduction {
            count: own / what.element.size().max(1),
            ..what
        };
        let mine = steps.scratch(own);
        let theirs = steps.scratch(own);
        let gives = |to: u32| match parts.of(to).0 {
            0 => None,
            _ => Some(Step::Send(to, parts.cut(&input, to))),
        };
        if what.operator.commutative() {
            steps.push(Step::Copy(parts.cut(&input, rank), mine.clone()));
            for distance in 1..size {
                let from = (rank + size - distance) % size;
                if own > 0 {
                    steps.push(Step::Receive(from, theirs.clone()));
                }
                steps.extend(gives((rank + distance) % size));
                steps.push(Step::Wait);
                if own > 0 {
                    steps.push(what.combine(theirs.clone(), mine.clone()));
                }
            }
        } else {
            // Nobody waits before it has sent, so each can take the parts in the order of the ranks.
            steps.extend((0..size).filter(|&to| to != rank).filter_map(gives));
            for from in (0..size).filter(|_| own > 0) {
                let into = if from == 0 { &mine } else { &theirs };
                if from == rank {
                    steps.push(Step::Copy(parts.cut(&input, rank), into.clone()));
                } else {
                    let come = steps.start(Step::Receive(from, into.clone()));
                    steps.push(Step::Until(come));
                }
                if from > 0 {
                    steps.push(what.combine(mine.clone(), theirs.clone()));
                    steps.push(Step::Copy(theirs.clone(), mine.clone()));
                }
            }
            steps.push(Step::Wait);
        }
        steps.push(Step::Copy(mine, output));
        self.start_schedule(group, steps)
    }

    /// Everybody sends to the root.
    pub fn start_gather(
        &mut self,
        group: GroupId,
        root: u32,
        input: Option<Views>,
        output: Views,
        parts: &Parts,
    ) -> Result<Handle> {
        let (rank, size) = self.check_root(group, root)?;
        let mut steps = Steps::default();
        if rank != root {
            steps.push(Step::Send(root, input.unwrap_or_else(Views::none)));
        } else {
            for other in (0..size).filter(|&other| other != rank) {
                steps.push(Step::Receive(other, parts.cut(&output, other)));
            }
            if let Some(input) = input {
                steps.push(Step::Copy(input, parts.cut(&output, rank)));
            }
        }
        self.start_schedule(group, steps)
    }

    /// The root sends to everybody.
    pub fn start_scatter(
        &mut self,
        group: GroupId,
        root: u32,
        input: Views,
        parts: &Parts,
        output: Option<Views>,
    ) -> Result<Handle> {
        let (rank, size) = self.check_root(group, root)?;
        let mut steps = Steps::default();
        if rank != root {
            steps.push(Step::Receive(root, output.unwrap_or_else(Views::none)));
        } else {
            for other in (0..size).filter(|&other| other != rank) {
                steps.push(Step::Send(other, parts.cut(&input, other)));
            }
            if let Some(output) = output {
                steps.push(Step::Copy(parts.cut(&input, rank), output));
            }
        }
        self.start_schedule(group, steps)
    }

    /// A ring: in each of `size - 1` rounds pass on the part that came last.
    pub fn start_allgather(
        &mut self,
        group: GroupId,
        input: Option<Views>,
        output: Views,
        parts: &Parts,
    ) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        let mut steps = Steps::default();
        let own = parts.cut(&output, rank);
        if size == 2 {
            let sent = input.clone().unwrap_or_else(|| own.clone());
            steps.push(Step::Receive(1 - rank, parts.cut(&output, 1 - rank)));
            steps.push(Step::Send(1 - rank, sent));
            if let Some(input) = input {
                steps.push(Step::Copy(input, own));
            }
            return self.start_schedule(group, steps);
        }
        if let Some(input) = input {
            steps.push(Step::Copy(input, own));
        }
        let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
        for round in 0..size - 1 {
            let gives = (rank + size - round) % size;
            let gets = (rank + size - round - 1) % size;
            steps.push(Step::Receive(left, parts.cut(&output, gets)));
            steps.push(Step::Send(right, parts.cut(&output, gives)));
            steps.push(Step::Wait);
        }
        self.start_schedule(group, steps)
    }

    /// Everybody sends to everybody, each starting with its neighbour so that no one is swamped.
    pub fn start_alltoall(
        &mut self,
        group: GroupId,
        input: Views,
        gives: &Parts,
        output: Views,
        gets: &Parts,
    ) -> Result<Handle> {
        let (rank, size) = self.shape(group)?;
        let mut steps = Steps::default();
        for distance in 1..size {
            let other = (rank + size - distance) % size;
            steps.push(Step::Receive(other, gets.cut(&output, other)));
        }
        for distance in 1..size {
            let other = (rank + distance) % size;
            steps.push(Step::Send(other, gives.cut(&input, other)));
        }
        steps.push(Step::Copy(gives.cut(&input, rank), gets.cut(&output, rank)));
        self.start_schedule(group, steps)
    }
}
