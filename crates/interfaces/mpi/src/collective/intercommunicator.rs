//! Collectives between two groups: by messages in the hidden group, which has both. And others by messages from each to each.
//!
//! In reductions each side combines at its first process, which sends the result to all who want it on the other side. If there is none, that message is empty,
//! and a verdict follows: why.

use std::ffi::c_int;
use std::sync::Arc;

use super::memory::Memory;
use super::messages::{Content, Message};
use super::{Collective, LocalData, REDUCE, Reduction, next_tag};
use crate::communicator::Communicator;

/// The part of a process that is on the root's side, and not the root.
pub fn outside(comm: Arc<Communicator>) -> Collective {
    next_tag(&comm.sequence);
    Collective::nothing(comm)
}

/// Messages to all, or from all.
fn all(comm: &Communicator, tag: c_int, memory: impl Fn(usize) -> Memory) -> Vec<Message> {
    let base = comm.peer_base();
    let message = |rank| Message {
        peer: base + rank as c_int,
        tag,
        content: Content::Memory(memory(rank)),
    };
    (0..comm.peers().len()).map(message).collect()
}

fn one(comm: &Communicator, tag: c_int, rank: c_int, memory: Memory) -> Vec<Message> {
    vec![Message {
        peer: comm.peer_base() + rank,
        tag,
        content: Content::Memory(memory),
    }]
}

/// To each peer something.
pub fn to_all(comm: Arc<Communicator>, memory: impl Fn(usize) -> Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let sends = all(&comm, tag, memory);
    Collective::messages(comm, sends, Vec::new())
}

/// From each peer something.
pub fn from_all(comm: Arc<Communicator>, memory: impl Fn(usize) -> Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = all(&comm, tag, memory);
    Collective::messages(comm, Vec::new(), receives)
}

/// To one peer.
pub fn to_one(comm: Arc<Communicator>, root: c_int, memory: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let sends = one(&comm, tag, root, memory);
    Collective::messages(comm, sends, Vec::new())
}

/// From one peer.
pub fn from_one(comm: Arc<Communicator>, root: c_int, memory: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = one(&comm, tag, root, memory);
    Collective::messages(comm, Vec::new(), receives)
}

/// To each peer something, and from each.
pub fn exchange(
    comm: Arc<Communicator>,
    gives: impl Fn(usize) -> Memory,
    takes: impl Fn(usize) -> Memory,
) -> Collective {
    let tag = next_tag(&comm.sequence);
    let (sends, receives) = (all(&comm, tag, gives), all(&comm, tag, takes));
    Collective::messages(comm, sends, receives)
}

/// Receives the other side's result, or its verdict.
fn result_from(comm: &Communicator, tag: c_int, content: Content) -> Vec<Message> {
    let peer = comm.peer_base();
    let message = |tag, content| Message { peer, tag, content };
    vec![message(tag, content), message(tag + 1, Content::Verdict)]
}

/// Sends a peer the result, or the verdict.
fn result_to(peer: c_int, tag: c_int, bytes: usize) -> [Message; 2] {
    let message = |tag, content| Message { peer, tag, content };
    [
        message(tag, Content::Result(bytes)),
        message(tag + 1, Content::Verdict),
    ]
}

/// The root's part in a reduction of the other side.
pub fn result_at_root(comm: Arc<Communicator>, takes: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = result_from(&comm, tag, Content::Memory(takes));
    Collective::messages(comm, Vec::new(), receives)
}

/// The part of a process whose operands go to a root on the other side.
pub fn reduced_for(
    comm: Arc<Communicator>,
    root: c_int,
    gives: Memory,
    reduction: Reduction,
) -> Collective {
    let tag = next_tag(&comm.sequence);
    let peer = comm.peer_base() + root;
    let sends = result_to(peer, tag, gives.bytes());
    reduced_here(comm, gives, reduction, sends.into(), Vec::new())
}

/// Each side gets the other one's result. Of a scattered one each process takes what is behind the first `from` bytes: how
/// it is scattered is known to this side alone.
pub fn reduced_for_all(
    comm: Arc<Communicator>,
    gives: Memory,
    takes: Memory,
    reduction: Reduction,
    from: usize,
) -> Collective {
    let tag = next_tag(&comm.sequence);
    let whole = gives.bytes();
    let content = match takes.bytes() == whole {
        true => Content::Memory(takes),
        false => Content::Slice(takes, from, whole),
    };
    let receives = result_from(&comm, tag, content);
    let (base, peers) = (comm.peer_base(), comm.peers().len());
    let sends = (0..peers).flat_map(|rank| result_to(base + rank as c_int, tag, whole));
    let sends = sends.collect();
    reduced_here(comm, gives, reduction, sends, receives)
}

/// A reduction on this side, whose first process sends the result.
fn reduced_here(
    comm: Arc<Communicator>,
    gives: Memory,
    reduction: Reduction,
    sends: Vec<Message>,
    receives: Vec<Message>,
) -> Collective {
    let leads = comm.rank == 0;
    let own = comm.remote.as_ref().map_or(comm.group, |remote| remote.own);
    Collective {
        engine: Some((REDUCE, own)),
        gives: LocalData::Memory(gives),
        reduction: Some(reduction),
        sends: if leads { sends } else { Vec::new() },
        receives,
        leads,
        ..Collective::nothing(comm)
    }
}
