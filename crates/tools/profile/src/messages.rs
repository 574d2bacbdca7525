//! Messages on the timeline: matches both ends of each, and sums up how long receivers waited for senders.

use std::collections::{BTreeMap, HashMap};

use regatta_record::{Event, EventKind, Kind};

use crate::profile::Profile;

/// A message of which both ends are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrow {
    /// The sender.
    pub from: u32,
    /// The begin of the call that sent it.
    pub sent: u64,
    /// The receiver.
    pub to: u32,
    /// The end of the call that received it.
    pub received: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its tag.
    pub tag: i32,
}

/// The messages that were matched.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Sorted by the time of sending.
    pub arrows: Vec<Arrow>,
    /// For each task, the time in receives before the sender began to send.
    pub late: BTreeMap<u32, u64>,
}

/// Sender, receiver, tag and number of a message.
type Key = (u32, u32, i32, u32);

/// Matches the ends of messages by their numbers.
pub(crate) fn of(profile: &Profile) -> Messages {
    let mut sent: HashMap<Key, u64> = HashMap::new();
    for task in &profile.tasks {
        for event in task.record.events.iter().filter(|event| event.sent) {
            if let Some((peer, sequence)) = end(event) {
                let key = (task.number, peer, event.tag, sequence);
                sent.insert(key, task.at(event.began));
            }
        }
    }
    let mut messages = Messages::default();
    for task in &profile.tasks {
        for event in task.record.events.iter().filter(|event| event.received) {
            let Some((peer, sequence)) = end(event) else {
                continue;
            };
            let key = (peer, task.number, event.tag, sequence);
            let Some(&sent) = sent.get(&key) else {
                continue;
            };
            let (began, ended) = (task.at(event.began), task.at(event.ended));
            messages.arrows.push(Arrow {
                from: peer,
                sent,
                to: task.number,
                received: ended,
                bytes: event.bytes,
                tag: event.tag,
            });
            if waits(event) {
                let late = sent.clamp(began, ended) - began;
                let sum = messages.late.entry(task.number).or_default();
                *sum = sum.saturating_add(late);
            }
        }
    }
    messages
        .arrows
        .sort_by_key(|arrow| (arrow.sent, arrow.received));
    messages
}

fn end(event: &Event) -> Option<(u32, u32)> {
    let known = event.peer.filter(|_| event.sequence != 0)?;
    Some((known, event.sequence))
}

/// Returns whether the event is a call that waits for its message.
fn waits(event: &Event) -> bool {
    match event.kind {
        EventKind::Call(call) => matches!(call.kind(), Kind::Receive | Kind::Wait),
        _ => false,
    }
}
