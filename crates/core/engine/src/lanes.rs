//! Long messages across hosts. Each byte crosses between two hosts once, and the members of a host pass on received data to each other.
//!
//! Tasks of a host may share its processors. A member that waits in turn for another host and for members of its own host has to be woken each time.
//! So all receives are posted first, and data is passed on as it arrives.

use regatta_memory::views::Views;

use crate::operation::Operation;
use crate::schedule::{Step, Steps};
use crate::tree::{Hosts, Tree};

/// Minimum length of the pieces of a broadcast across several hosts, in bytes. Smaller messages interleave on a connection, so that few of their
/// bytes are received directly in place.
const MIN_PIECE_BYTES: usize = 1 << 20;
/// Maximum number of pieces of a broadcast.
const MAX_PIECES: usize = 8;
/// Maximum number of pieces in flight from a member to each other member. While one piece is sent, the previous one is acknowledged.
const MAX_PIECES_IN_FLIGHT: usize = 2;
/// Maximum number of members on a host for which long data stays undivided: a broadcast is sent as a whole, and a reduction of medium length uses
/// leaders.
pub(crate) const MAX_MEMBERS_PER_HOST_UNDIVIDED: usize = 4;

/// Returns the length of the pieces of a broadcast of `total` bytes. With pieces, a member passes one on while it receives the next. Between two
/// hosts with few members this saves less than each piece costs.
pub(crate) fn broadcast_piece(hosts: &Hosts, total: usize) -> usize {
    match hosts.count() > 2 || hosts.most() > MAX_MEMBERS_PER_HOST_UNDIVIDED {
        true => MIN_PIECE_BYTES.max(total.div_ceil(MAX_PIECES)),
        false => usize::MAX,
    }
}

/// Adds the steps of a broadcast of one block in pieces of `cut` bytes.
pub(crate) fn broadcast_in_pieces(steps: &mut Steps, tree: &Tree, whole: &Views, cut: usize) {
    let pieces: Vec<Views> = (0..whole.len().div_ceil(cut))
        .map(|index| whole.part(index * cut, cut))
        .collect();
    let receives: Vec<u32> = tree
        .parent
        .into_iter()
        .flat_map(|parent| pieces.iter().map(move |piece| (parent, piece.clone())))
        .map(|(parent, piece)| steps.start(Step::Receive(parent, piece)))
        .collect();
    let mut sends: Vec<Vec<u32>> = vec![];
    for (index, piece) in pieces.iter().enumerate() {
        if let Some(&receive) = receives.get(index) {
            steps.push(Step::Until(receive));
        }
        if let Some(before) = index.checked_sub(MAX_PIECES_IN_FLIGHT) {
            steps.extend(sends[before].iter().map(|&send| Step::Until(send)));
        }
        // Deepest subtree first.
        let children = tree.children.iter().rev();
        let send = |&child| steps.start(Step::Send(child, piece.clone()));
        sends.push(children.map(send).collect());
    }
}

/// Returns the steps of an allgather among hosts with equal numbers of members. The members with the same index on their hosts form a lane: a ring
/// in which each passes on the part that it received last, to the next host and to the other members of its own host.
pub(crate) fn lanes_allgather(hosts: &Hosts, rank: u32, operation: &Operation) -> Steps {
    let (output, gets) = (operation.out(), &operation.gets);
    let (count, number, here) = (hosts.count(), hosts.number(), hosts.here());
    let (place, size) = (hosts.place(rank), here.len());
    // The part that arrives at this host in a round, in the lane of index `place`. In round 0 it is the part of the lane's own member.
    let part = |round: usize, place: usize| {
        let host = (number + count - round) % count;
        gets.cut(&output, hosts.list(host)[place])
    };
    let before = hosts.list((number + count - 1) % count)[place];
    let after = hosts.list((number + 1) % count)[place];
    let mut steps = Steps::default();
    let come: Vec<u32> = (1..count)
        .map(|round| steps.start(Step::Receive(before, part(round, place))))
        .collect();
    for from in (1..size).map(|distance| (place + size - distance) % size) {
        steps.extend((0..count).map(|round| Step::Receive(here[from], part(round, from))));
    }
    if let Some(input) = &operation.input {
        steps.push(Step::Copy(input.clone(), part(0, place)));
    }
    for round in 0..count {
        if round > 0 {
            steps.push(Step::Until(come[round - 1]));
        }
        if round + 1 < count {
            steps.push(Step::Send(after, part(round, place)));
        }
        let others = (1..size).map(|distance| here[(place + distance) % size]);
        steps.extend(others.map(|other| Step::Send(other, part(round, place))));
    }
    steps
}
