//! Collectives by messages: the steps of one member in each. Each function describes its algorithm and its rounds.
//!
//! All members take their steps in the same order. Callers that know the sizes have checked them.

use std::sync::Arc;

use regatta_memory::views::Views;

use crate::algorithm::Algorithm;
use crate::error::Result;
use crate::group::GroupId;
use crate::groups::Groups;
use crate::kind::Kind;
use crate::lanes::{broadcast_in_pieces, broadcast_piece, lanes_allgather};
use crate::leaders::{leaders_allgather, leaders_alltoall};
use crate::operation::{Operation, Parts, Reduction};
use crate::reduction::{
    combine_up, exchange_allreduce, leaders_allreduce, pair_allreduce, reduce_here, ring_allreduce,
    send_down, shared_allreduce,
};
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use crate::tree::{Hosts, Tree};

/// Length of the segments of a large broadcast, in bytes. A member passes a segment on while it receives the next.
const BROADCAST_SEGMENT_BYTES: usize = 128 << 10;
/// Maximum length of the parts that members on several hosts send before they post their receives, in bytes: that of a frame.
const MAX_SENT_FIRST_BYTES: usize = 16 << 10;

/// A member's rank and the number of members.
type Place = (u32, u32);

impl<T: Transport> Groups<T> {
    /// Returns the steps of this member in a collective.
    pub(crate) fn steps(
        &mut self,
        id: GroupId,
        operation: &Operation,
        algorithm: Algorithm,
    ) -> Result<Steps> {
        let group = self.group(id)?;
        let place = (group.rank, group.size());
        let (root, given, out) = (operation.root, operation.given(), operation.out());
        let what = operation.reduction;
        match (operation.kind, what) {
            (Kind::Broadcast, _) => self.broadcast(id, root, out),
            (Kind::Reduce, Some(what)) => self.reduce(id, algorithm, root, (given, out), what),
            (Kind::Allreduce, Some(what)) => self.allreduce(id, algorithm, given, out, what),
            (Kind::Scan, Some(what)) => Ok(scan(place, given, out, what)),
            (Kind::Exscan, Some(what)) => Ok(exscan(place, given, out, what)),
            (Kind::ReduceScatter, Some(what)) => {
                Ok(reduce_scatter(place, given, out, &operation.gives, what))
            }
            (Kind::Gather, _) => Ok(gather(place, operation)),
            (Kind::Scatter, _) => Ok(scatter(place, operation)),
            (Kind::Allgather, _) => match self.hosts_for(id, algorithm)? {
                Some(hosts) if algorithm == Algorithm::Lanes => {
                    Ok(lanes_allgather(&hosts, place.0, operation))
                }
                Some(hosts) => Ok(leaders_allgather(&hosts, place.0, operation)),
                None => Ok(allgather(
                    place,
                    operation,
                    self.sends_first(id, operation)?,
                )),
            },
            (Kind::Alltoall, _) => match self.hosts_for(id, algorithm)? {
                Some(hosts) => Ok(leaders_alltoall(&hosts, place, operation)),
                None => Ok(alltoall(place, operation, self.sends_first(id, operation)?)),
            },
            _ => self.barrier(id),
        }
    }

    /// Returns the hosts of a group if the algorithm uses their leaders or lanes.
    fn hosts_for(&mut self, id: GroupId, algorithm: Algorithm) -> Result<Option<Arc<Hosts>>> {
        match algorithm {
            Algorithm::Leaders | Algorithm::Lanes => self.hosts(id, 0),
            _ => Ok(None),
        }
    }

    /// Returns whether members that exchange data send before they post their receives. They do across hosts, where checking for a message that
    /// cannot have arrived yet costs a system call, unless the data is long: a long message is received directly in place if the receive is posted
    /// first.
    fn sends_first(&mut self, id: GroupId, operation: &Operation) -> Result<bool> {
        Ok(
            operation.terms().bytes(operation.kind) <= MAX_SENT_FIRST_BYTES
                && self.hosts(id, 0)?.is_some(),
        )
    }

    /// Returns the steps of a barrier by dissemination: in round `k` each member sends to the member at distance `2^k` above, and receives from the
    /// one at distance `2^k` below. Across hosts, the leaders do that.
    fn barrier(&mut self, id: GroupId) -> Result<Steps> {
        let group = self.group(id)?;
        let (rank, size) = (group.rank, group.size());
        if let Some(hosts) = self.hosts(id, 0)? {
            return Ok(barrier_across(&hosts, rank));
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
        Ok(steps)
    }

    /// Returns the steps of a broadcast along a tree from the root. Large messages are sent in segments, so that a member passes one on while it
    /// receives the next.
    fn broadcast(&mut self, id: GroupId, root: u32, buffer: Views) -> Result<Steps> {
        let size = self.group(id)?.size();
        let tree = self.tree_for(id, root, buffer.len())?;
        let hosts = self.hosts(id, 0)?;
        let mut steps = Steps::default();
        // All members cut alike, so the cut depends on the length alone; only members that relay wait between segments. Strided memory cannot be
        // cut: its bytes are copied to or from a block.
        let total = buffer.len();
        let cut = match &hosts {
            Some(hosts) => broadcast_piece(hosts, total),
            None if size > 2 => BROADCAST_SEGMENT_BYTES,
            None => usize::MAX,
        };
        let staged = total > cut && buffer.contiguous().is_none();
        let whole = match staged {
            true => steps.scratch(total),
            false => buffer.clone(),
        };
        if staged && tree.parent.is_none() {
            steps.push(Step::Copy(buffer.clone(), whole.clone()));
        }
        if hosts.is_some() && total > cut {
            broadcast_in_pieces(&mut steps, &tree, &whole, cut);
        } else {
            broadcast_in_turn(&mut steps, &tree, &whole, (cut, hosts.is_some()));
        }
        if staged && tree.parent.is_some() {
            steps.push(Step::Wait);
            steps.push(Step::Copy(whole, buffer));
        }
        Ok(steps)
    }

    /// Returns the steps of a reduction up a tree. Few members on one host all send to the root. A noncommutative operator needs its operands in rank
    /// order: then the tree of a single host is used, up to rank 0, which sends the result to the root.
    fn reduce(
        &mut self,
        id: GroupId,
        algorithm: Algorithm,
        root: u32,
        (input, output): (Views, Views),
        what: Reduction,
    ) -> Result<Steps> {
        let group = self.group(id)?;
        let (rank, size) = (group.rank, group.size());
        let mut steps = Steps::default();
        if algorithm == Algorithm::Tree && self.hosts(id, root)?.is_none() {
            let tree = Tree::near(rank, size, root);
            reduce_here(&mut steps, &tree, (input, output), what);
            return Ok(steps);
        }
        let (top, tree) = match algorithm {
            Algorithm::OrderedTree => (0, Tree::flat(rank, size, 0)),
            _ => (root, self.tree(id, root)?),
        };
        let mine = match rank == root && top == root {
            true => output.clone(),
            false => steps.scratch(what.bytes()),
        };
        steps.push(Step::Copy(input, mine.clone()));
        combine_up(&mut steps, &tree, &mine, what);
        if top != root {
            if rank == top {
                steps.push(Step::Send(root, mine));
            } else if rank == root {
                steps.push(Step::Receive(top, output));
            }
        }
        Ok(steps)
    }

    /// Returns the steps of an allreduce. Two tasks exchange and combine, or each does half of the work. For larger groups and vectors and a
    /// commutative operator: each member combines a share of the work from all others and sends them the result; on one host with many members a
    /// ring of partial sums, then a ring of results. Otherwise: reduce to rank 0, then broadcast.
    fn allreduce(
        &mut self,
        id: GroupId,
        algorithm: Algorithm,
        input: Views,
        output: Views,
        what: Reduction,
    ) -> Result<Steps> {
        let group = self.group(id)?;
        let (rank, size) = (group.rank, group.size());
        let hosts = self.hosts(id, 0)?;
        let mut steps = Steps::default();
        match (algorithm, hosts) {
            (Algorithm::Halves, _) => pair_allreduce(&mut steps, rank, &input, &output, what),
            (Algorithm::Exchange, hosts) => {
                let other = (1 - rank.min(1), hosts.is_some());
                exchange_allreduce(&mut steps, other, input, output, what);
            }
            (Algorithm::Shares, hosts) => {
                let hosts = hosts.unwrap_or_else(|| Arc::new(Hosts::one(size)));
                // Memory that is not one block cannot be cut.
                let from = match input.contiguous() {
                    Some(_) => input,
                    None => {
                        steps.push(Step::Copy(input, output.clone()));
                        output.clone()
                    }
                };
                shared_allreduce(&mut steps, &hosts, rank, &from, &output, what);
            }
            (Algorithm::Ring, _) => {
                ring_allreduce(&mut steps, (rank, size), input, output, what);
            }
            (Algorithm::Leaders, Some(hosts)) => {
                leaders_allreduce(&mut steps, &hosts, rank, input, &output, what);
            }
            _ => {
                let tree = Tree::flat(rank, size, 0);
                steps.push(Step::Copy(input, output.clone()));
                combine_up(&mut steps, &tree, &output, what);
                send_down(&mut steps, &tree, &output);
            }
        }
        Ok(steps)
    }
}

/// Adds the steps of a broadcast in which each member receives a segment of `cut` bytes, passes it on and continues with the next. `is_across` says
/// whether members are on several hosts.
fn broadcast_in_turn(
    steps: &mut Steps,
    Tree { parent, children }: &Tree,
    whole: &Views,
    (cut, is_across): (usize, bool),
) {
    let total = whole.len();
    let mut from = 0;
    loop {
        let len = (total - from).min(cut);
        let piece = match total > cut {
            true => whole.part(from, len),
            false => whole.clone(),
        };
        if let Some(parent) = *parent {
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
}

/// Returns the steps of a barrier across hosts: all members notify their leader, the leaders notify each other, and each leader notifies the members
/// on its host.
fn barrier_across(hosts: &Hosts, rank: u32) -> Steps {
    let Tree { parent, children } = hosts.star(rank);
    let mut steps = Steps::default();
    for &child in &children {
        steps.push(Step::Receive(child, Views::none()));
    }
    steps.push(Step::Wait);
    match parent {
        Some(parent) => {
            steps.push(Step::Send(parent, Views::none()));
            steps.push(Step::Receive(parent, Views::none()));
            steps.push(Step::Wait);
        }
        None => leaders_barrier(&mut steps, hosts),
    }
    let told = children.iter().rev();
    steps.extend(told.map(|&child| Step::Send(child, Views::none())));
    steps
}

/// Adds the leaders' steps of a barrier: in each round a leader sends to the leader at twice the previous distance above, and receives from the one
/// below.
pub(crate) fn leaders_barrier(steps: &mut Steps, hosts: &Hosts) {
    let (size, place) = (hosts.count(), hosts.number());
    let mut distance = 1;
    while distance < size {
        let after = hosts.leader((place + distance) % size);
        let before = hosts.leader((place + size - distance) % size);
        steps.push(Step::Send(after, Views::none()));
        steps.push(Step::Receive(before, Views::none()));
        steps.push(Step::Wait);
        distance *= 2;
    }
}

/// Returns the steps of a scan along a chain: each member combines its operands with what it receives from the rank below, and sends the result to
/// the rank above.
fn scan((rank, size): Place, input: Views, output: Views, what: Reduction) -> Steps {
    let mut steps = Steps::default();
    steps.push(Step::Copy(input, output.clone()));
    if rank > 0 {
        let below = steps.scratch(what.bytes());
        steps.push(Step::Receive(rank - 1, below.clone()));
        steps.push(Step::Wait);
        steps.push(what.combine(below, output.clone()));
    }
    if rank + 1 < size {
        steps.push(Step::Send(rank + 1, output));
    }
    steps
}

/// Returns the steps of an exclusive scan along a chain: what a member receives from the rank below is its result. The output of rank 0 is not
/// written.
fn exscan((rank, size): Place, input: Views, output: Views, what: Reduction) -> Steps {
    let mut steps = Steps::default();
    let passes_on = rank + 1 < size;
    if rank == 0 {
        if passes_on {
            steps.push(Step::Send(1, input));
        }
        return steps;
    }
    // Input and output may be the same memory.
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
    steps
}

/// Returns the steps of a reduce-scatter: each member combines its own part, which all others send it, at increasing distances, with
/// one send and one receive at a time. A noncommutative operator gets its operands in rank order. `parts` is the layout of the input; the output is this member's part, and may be
/// the beginning of the input.
fn reduce_scatter(
    (rank, size): Place,
    input: Views,
    output: Views,
    parts: &Parts,
    what: Reduction,
) -> Steps {
    let mut steps = Steps::default();
    let (own, _) = parts.of(rank);
    let what = what.of_bytes(own);
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
        // No member waits before it has sent, so each can receive the parts in rank order.
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
    steps
}

/// Returns the steps of a gather: every member sends to the root.
fn gather((rank, size): Place, operation: &Operation) -> Steps {
    let Operation { root, gets, .. } = operation;
    let mut steps = Steps::default();
    if rank != *root {
        let input = operation.input.clone();
        steps.push(Step::Send(*root, input.unwrap_or_else(Views::none)));
        return steps;
    }
    let output = operation.out();
    for other in (0..size).filter(|&other| other != rank) {
        steps.push(Step::Receive(other, gets.cut(&output, other)));
    }
    if let Some(input) = &operation.input {
        steps.push(Step::Copy(input.clone(), gets.cut(&output, rank)));
    }
    steps
}

/// Returns the steps of a scatter: the root sends to every member.
fn scatter((rank, size): Place, operation: &Operation) -> Steps {
    let Operation { root, gives, .. } = operation;
    let mut steps = Steps::default();
    if rank != *root {
        steps.push(Step::Receive(*root, operation.out()));
        return steps;
    }
    let input = operation.given();
    for other in (0..size).filter(|&other| other != rank) {
        steps.push(Step::Send(other, gives.cut(&input, other)));
    }
    if let Some(output) = &operation.output {
        steps.push(Step::Copy(gives.cut(&input, rank), output.clone()));
    }
    steps
}

/// Returns the steps of an allgather along a ring: in each of `size - 1` rounds a member passes on the part that it received last. Two members
/// exchange their parts.
fn allgather((rank, size): Place, operation: &Operation, sends_first: bool) -> Steps {
    let (output, gets) = (operation.out(), &operation.gets);
    let own = gets.cut(&output, rank);
    let copy = operation.input.clone().map(|input| Step::Copy(input, own));
    let mut steps = Steps::default();
    if size == 2 {
        let sent = operation.input.clone();
        let sent = sent.unwrap_or_else(|| gets.cut(&output, rank));
        let receive = Step::Receive(1 - rank, gets.cut(&output, 1 - rank));
        both(
            &mut steps,
            [receive],
            [Step::Send(1 - rank, sent)],
            sends_first,
        );
        steps.extend(copy);
        return steps;
    }
    steps.extend(copy);
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    for round in 0..size - 1 {
        let given = (rank + size - round) % size;
        let got = (rank + size - round - 1) % size;
        steps.push(Step::Receive(left, gets.cut(&output, got)));
        steps.push(Step::Send(right, gets.cut(&output, given)));
        steps.push(Step::Wait);
    }
    steps
}

/// Adds receives and sends that are in progress at the same time.
fn both(
    steps: &mut Steps,
    receives: impl IntoIterator<Item = Step>,
    sends: impl IntoIterator<Item = Step>,
    sends_first: bool,
) {
    if sends_first {
        steps.extend(sends);
        steps.extend(receives);
    } else {
        steps.extend(receives);
        steps.extend(sends);
    }
}

/// Returns the steps of a complete exchange: every member sends to every other, each starting with its neighbour so that no member is flooded.
fn alltoall((rank, size): Place, operation: &Operation, sends_first: bool) -> Steps {
    let (input, output) = (operation.given(), operation.out());
    let Operation { gives, gets, .. } = operation;
    let mut steps = Steps::default();
    let receives = (1..size).map(|distance| {
        let other = (rank + size - distance) % size;
        Step::Receive(other, gets.cut(&output, other))
    });
    let sends = (1..size).map(|distance| {
        let other = (rank + distance) % size;
        Step::Send(other, gives.cut(&input, other))
    });
    both(&mut steps, receives, sends, sends_first);
    steps.push(Step::Copy(gives.cut(&input, rank), gets.cut(&output, rank)));
    steps
}
