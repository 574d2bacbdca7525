//! Facts that only one host knows of its tasks: the next launcher asks every host for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use regatta_wire::control::{Ask, Tell};
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::Handover;
use crate::end::Ended;
use crate::registry::{ACKNOWLEDGE_BYTES, ACKNOWLEDGE_MESSAGES, is_resent};

/// Messages that one task has received.
#[derive(Debug, Clone, Copy, Default)]
pub struct Received {
    /// How many messages that are sent again after a take-over. Wraps.
    pub count: u32,
    /// Messages and bytes that the launcher does not know to have been received.
    unacknowledged: (usize, usize),
}

impl Received {
    /// One more message, of this many bytes. The count, when it is time to acknowledge it.
    fn note(&mut self, bytes: usize) -> Option<u32> {
        self.count = self.count.wrapping_add(1);
        self.unacknowledged.0 += 1;
        self.unacknowledged.1 += bytes;
        let (messages, bytes) = self.unacknowledged;
        (messages >= ACKNOWLEDGE_MESSAGES || bytes >= ACKNOWLEDGE_BYTES).then(|| {
            self.unacknowledged = (0, 0);
            self.count
        })
    }
}

/// The facts. The module says more.
#[derive(Debug, Default)]
pub struct LocalRecord {
    /// Where the first tasks listen.
    pub addresses: Vec<SocketAddr>,
    /// The worlds that were entered into this host's table.
    pub worlds: Vec<World>,
    /// The tasks of other hosts that are gone by this host's table; without a cause they left in good order.
    pub gone: Vec<(u32, Option<Cause>)>,
    /// Its own tasks that have ended.
    pub ended: Vec<Ended>,
    /// Messages that each of its tasks has received, by its number.
    pub received: BTreeMap<u32, Received>,
    /// Requests without an answer, by task and number.
    pub requests: BTreeMap<(u32, u32), Vec<u8>>,
}

impl LocalRecord {
    /// A task of this host makes a request.
    pub fn note_request(&mut self, task: u32, bytes: &[u8]) {
        if let Some(id) = Ask::decode(bytes).ok().and_then(|ask| ask.id()) {
            self.requests.insert((task, id), bytes.to_vec());
        }
    }

    /// A task of this host receives a message. How many it has received, when it is time to acknowledge that.
    pub fn note_message(&mut self, task: u32, bytes: &[u8]) -> Option<u32> {
        let message = Tell::decode(bytes).ok()?;
        let received = self.received.entry(task).or_default();
        let due = is_resent(&message)
            .then(|| received.note(bytes.len()))
            .flatten();
        if let Some(id) = message.id() {
            self.requests.remove(&(task, id));
        }
        due
    }

    /// A task of this host has ended: nobody waits for its answers.
    pub fn note_ended(&mut self, ended: Ended) {
        let of = |task: u32| (task, 0)..=(task, u32::MAX);
        let unanswered = self.requests.range(of(ended.rank));
        let unanswered: Vec<_> = unanswered.map(|(key, _)| *key).collect();
        for key in unanswered {
            self.requests.remove(&key);
        }
        self.ended.push(ended);
    }

    /// These facts for the next launcher. The processes of this host say the rest.
    pub fn handover(&self) -> Handover {
        let received = self.received.iter();
        let requests = self.requests.iter();
        Handover {
            worlds: self.worlds.clone(),
            ended: self.ended.clone(),
            received: received
                .map(|(&task, received)| (task, received.count))
                .collect(),
            gone: self.gone.clone(),
            requests: requests
                .map(|(&(task, _), bytes)| (task, bytes.clone()))
                .collect(),
            ..Handover::default()
        }
    }
}
