//! Peers: their task ids, and the numbers of messages sent to and received from them.

use std::ffi::c_int;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::{Group, WORLD, channel};
use regatta_record::{PEERS, class, event, peer, thread};

use crate::events::Message;
use crate::map::{Map, add};
use crate::real;

/// Task id of rank 0 of the world. Tasks of the world have consecutive ids.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Looks up the task id of rank 0 of the world. Called after this process has become a task.
pub(crate) fn joined() {
    FIRST.store(look_up(WORLD, 0), Relaxed);
}

/// Returns the task id of a rank of a group, or a negative number for no rank or any.
#[inline]
pub(crate) fn task(group: Group, rank: c_int) -> i32 {
    match group.id {
        _ if rank < 0 => -1,
        id if id == WORLD.id => FIRST.load(Relaxed).wrapping_add(rank),
        id if id >= channel(0).id => rank,
        _ => look_up(group, rank),
    }
}

fn look_up(group: Group, rank: c_int) -> i32 {
    // SAFETY: the function accepts any numbers.
    unsafe { real::rg_tid_of(group, rank) }
}

/// Counts a message in a thread's part of the record.
pub(crate) fn count(map: Map, part: usize, message: &Message) {
    let sent = message.flags == event::SENT;
    let sizes = match sent {
        true => thread::SENT_SIZES,
        false => thread::RECEIVED_SIZES,
    };
    let size = part + sizes + 2 * class(message.bytes);
    add(&map[size], 1);
    add(&map[size + 1], message.bytes);
    let at = place(map, part, message.peer);
    let (count, bytes) = match sent {
        true => (peer::SENT, peer::SENT_BYTES),
        false => (peer::RECEIVED, peer::RECEIVED_BYTES),
    };
    add(&map[at + count], 1);
    add(&map[at + bytes], message.bytes);
}

/// Returns the position of a peer's entry, or of the shared entry if there is no room for one.
fn place(map: Map, part: usize, task: i32) -> usize {
    let at = |number: usize| part + thread::PEERS_AT + number * peer::WORDS;
    let key = u64::from(task as u32) + 1;
    for number in (0..PROBES).map(|step| (task as usize + step) % PEERS) {
        let name = &map[at(number) + peer::TASK];
        match name.load(Relaxed) {
            0 => {
                name.store(key, Relaxed);
                return at(number);
            }
            found if found == key => return at(number),
            _ => {}
        }
    }
    at(PEERS)
}

/// Maximum number of entries that are tried for a peer.
const PROBES: usize = 8;
