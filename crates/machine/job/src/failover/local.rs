//! Facts about its tasks that only one host knows. The next launcher requests them from every host.

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
    /// Number of received messages of the kinds that are sent again after a take-over. Wraps around.
    pub count: u32,
    /// Messages and bytes received since the last acknowledgement to the launcher.
    unacknowledged: (usize, usize),
}

impl Received {
    /// Counts one more message of this many bytes. Returns the count if an acknowledgement is due.
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

/// The facts; see the module.
#[derive(Debug, Default)]
pub struct LocalRecord {
    /// The addresses at which the first tasks listen.
    pub addresses: Vec<SocketAddr>,
    /// The worlds that have been entered into this host's table.
    pub worlds: Vec<World>,
    /// The tasks of other hosts that are gone according to this host's table. Tasks without a cause left in good order.
    pub gone: Vec<(u32, Option<Cause>)>,
    /// This host's tasks that have ended.
    pub ended: Vec<Ended>,
    /// Messages that each of this host's tasks has received, by task number.
    pub received: BTreeMap<u32, Received>,
    /// Unanswered requests, by task and request number.
    pub requests: BTreeMap<(u32, u32), Vec<u8>>,
}

impl LocalRecord {
    /// Records a request of a task of this host.
    pub fn note_request(&mut self, task: u32, bytes: &[u8]) {
        if let Some(id) = Ask::decode(bytes).ok().and_then(|ask| ask.id()) {
            self.requests.insert((task, id), bytes.to_vec());
        }
    }

    /// Records a message that a task of this host receives. Returns how many it has received if an acknowledgement is
    /// due.
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

    /// Records that a task of this host has ended. Its unanswered requests are dropped.
    pub fn note_ended(&mut self, ended: Ended) {
        let of = |task: u32| (task, 0)..=(task, u32::MAX);
        let unanswered = self.requests.range(of(ended.rank));
        let unanswered: Vec<_> = unanswered.map(|(key, _)| *key).collect();
        for key in unanswered {
            self.requests.remove(&key);
        }
        self.ended.push(ended);
    }

    /// Returns these facts for the next launcher. The caller adds those about running processes.
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
