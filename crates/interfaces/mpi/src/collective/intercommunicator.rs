//! Collectives between two groups, by messages in the hidden group, which contains both groups; and other collectives
//! by messages between all processes.
//!
//! In a reduction, the first process of each group gets its result and sends it to all processes of the other group
//! that want it. If there is no result, that message is empty, and a verdict with the reason follows.

use std::ffi::c_int;
use std::sync::Arc;

use super::memory::Memory;
use super::messages::{Content, Message};
use super::{Collective, LocalData, REDUCE, Reduction, next_tag};
use crate::communicator::Communicator;

/// Returns the part of a process in the root's group, other than the root.
pub fn outside(comm: Arc<Communicator>) -> Collective {
    next_tag(&comm.sequence);
    Collective::nothing(comm)
}

/// Returns a message to or from each peer.
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

/// Sends something to each peer.
pub fn to_all(comm: Arc<Communicator>, memory: impl Fn(usize) -> Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let sends = all(&comm, tag, memory);
    Collective::messages(comm, sends, Vec::new())
}

/// Receives something from each peer.
pub fn from_all(comm: Arc<Communicator>, memory: impl Fn(usize) -> Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = all(&comm, tag, memory);
    Collective::messages(comm, Vec::new(), receives)
}

/// Sends something to one peer.
pub fn to_one(comm: Arc<Communicator>, root: c_int, memory: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let sends = one(&comm, tag, root, memory);
    Collective::messages(comm, sends, Vec::new())
}

/// Receives something from one peer.
pub fn from_one(comm: Arc<Communicator>, root: c_int, memory: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = one(&comm, tag, root, memory);
    Collective::messages(comm, Vec::new(), receives)
}

/// Sends something to each peer, and receives something from each.
pub fn exchange(
    comm: Arc<Communicator>,
    gives: impl Fn(usize) -> Memory,
    takes: impl Fn(usize) -> Memory,
) -> Collective {
    let tag = next_tag(&comm.sequence);
    let (sends, receives) = (all(&comm, tag, gives), all(&comm, tag, takes));
    Collective::messages(comm, sends, receives)
}

/// Returns the messages by which a process receives the other group's result, or the verdict.
fn result_from(comm: &Communicator, tag: c_int, content: Content) -> Vec<Message> {
    let peer = comm.peer_base();
    let message = |tag, content| Message { peer, tag, content };
    vec![message(tag, content), message(tag + 1, Content::Verdict)]
}

/// Returns the messages by which a peer gets the result, or the verdict.
fn result_to(peer: c_int, tag: c_int, bytes: usize) -> [Message; 2] {
    let message = |tag, content| Message { peer, tag, content };
    [
        message(tag, Content::Result(bytes)),
        message(tag + 1, Content::Verdict),
    ]
}

/// Returns the root's part in a reduction of the other group's operands.
pub fn result_at_root(comm: Arc<Communicator>, takes: Memory) -> Collective {
    let tag = next_tag(&comm.sequence);
    let receives = result_from(&comm, tag, Content::Memory(takes));
    Collective::messages(comm, Vec::new(), receives)
}

/// Returns the part of a process whose operands are reduced for a root in the other group.
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

/// Returns the part of a process if each group gets the other one's result. Of a scattered result the process takes
/// what follows the first `from` bytes: only its own group knows how the result is scattered.
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

/// Returns a reduction in this group whose first process sends the result.
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
