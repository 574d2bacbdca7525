//! Messages to tasks that are kept until the task's host has acknowledged them.
//!
//! A message may be lost with its launcher on the way. It is kept until the agent of the task's host acknowledges it, which
//! an agent does for several messages at once. So as much is kept as is on its way, and a few messages more. Messages to one task are
//! counted, and an acknowledgement is such a count.

use std::collections::{BTreeMap, VecDeque};

use regatta_wire::control::{Tell, Then};
use regatta_wire::fields;
use regatta_wire::fields::Message;

use super::Registry;

/// After so many messages to a task its agent acknowledges them.
pub const ACKNOWLEDGE_MESSAGES: usize = 32;
/// After so many bytes to a task its agent acknowledges them.
pub const ACKNOWLEDGE_BYTES: usize = 16 << 10;

/// The messages to one task.
#[derive(Debug, Default)]
struct Sent {
    /// How many have been sent to it in all; wraps around.
    count: u32,
    /// The last of them: all that may not have arrived.
    last: VecDeque<Vec<u8>>,
}

/// The messages to all tasks, by task.
#[derive(Debug, Default)]
pub(super) struct SentLog(BTreeMap<u32, Sent>);

impl SentLog {
    /// One more message has been sent to a task.
    pub(super) fn add(&mut self, task: u32, bytes: Vec<u8>) {
        let sent = self.0.entry(task).or_default();
        sent.count = sent.count.wrapping_add(1);
        sent.last.push_back(bytes);
    }

    /// The first `received` messages to a task have arrived.
    fn acknowledged(&mut self, task: u32, received: u32) {
        if let Some(sent) = self.0.get_mut(&task) {
            // A copy may know of fewer.
            let missing = (sent.count.wrapping_sub(received) as i32).max(0) as usize;
            let arrived = sent.last.len().saturating_sub(missing);
            sent.last.drain(..arrived);
        }
    }

    /// A task has ended.
    pub(super) fn forget(&mut self, task: u32) {
        self.0.remove(&task);
    }

    /// The messages that a task has not received, if it has received so many. The last `new` ones known are about to be sent in any case.
    fn unacknowledged(&mut self, task: u32, received: u32, new: usize) -> Vec<Vec<u8>> {
        let sent = self.0.entry(task).or_default();
        let before = sent.count.wrapping_sub(new as u32);
        // Negative: another launcher has sent it more than this copy knows of.
        let missing = (before.wrapping_sub(received) as i32).max(0) as usize;
        let until = sent.last.len().saturating_sub(new);
        let from = until.saturating_sub(missing);
        let again: Vec<Vec<u8>> = sent.last.range(from..until).cloned().collect();
        // A copy may know of fewer messages than the task has received.
        sent.count = received.wrapping_add((again.len() + new) as u32);
        again
    }

    /// Whether so much is kept for a task that an acknowledgement is due.
    fn is_much(&self, task: u32) -> bool {
        let Some(Sent { last, .. }) = self.0.get(&task) else {
            return false;
        };
        let bytes = || last.iter().map(Vec::len).sum::<usize>();
        last.len() >= ACKNOWLEDGE_MESSAGES || bytes() >= ACKNOWLEDGE_BYTES
    }

    fn count(&self, task: u32) -> u32 {
        self.0.get(&task).map_or(0, |sent| sent.count)
    }

    fn set_count(&mut self, task: u32, count: u32) {
        self.0.entry(task).or_default().count = count;
    }

    /// The log as it travels in a snapshot.
    pub(super) fn to_list(&self) -> Vec<SentTo> {
        let sent = |(&task, sent): (&u32, &Sent)| SentTo {
            task,
            count: sent.count,
            last: sent.last.iter().cloned().collect(),
        };
        self.0.iter().map(sent).collect()
    }

    /// The log from a snapshot.
    pub(super) fn from_list(list: Vec<SentTo>) -> Self {
        let sent = |to: SentTo| {
            let sent = Sent {
                count: to.count,
                last: to.last.into(),
            };
            (to.task, sent)
        };
        Self(list.into_iter().map(sent).collect())
    }
}

/// The messages to one task, as they travel in a snapshot.
pub(super) struct SentTo {
    task: u32,
    count: u32,
    last: Vec<Vec<u8>>,
}
fields!(SentTo { task, count, last });

/// Whether a message is sent again if it has not been received. Output of other tasks is not: it may be lost with a launcher. Its end is.
pub fn is_resent(message: &Tell) -> bool {
    match message {
        Tell::Output { then, .. } => *then == Then::Closed,
        _ => true,
    }
}

impl Registry {
    /// Keeps from now on what is sent, until it is acknowledged.
    pub fn keep_sent(&mut self) {
        self.sent.get_or_insert_default();
    }

    /// The messages that a task has not received, of which it has received so many; without those that [`Self::take_messages`] will
    /// give anyway. From here on they count as sent.
    pub fn unacknowledged(&mut self, task: u32, received: u32) -> Vec<Vec<u8>> {
        let outgoing = self.outgoing.iter();
        let new = outgoing.filter(|(to, message)| *to == task && is_resent(message));
        let (new, sent) = (new.count(), self.sent.as_mut());
        sent.map_or_else(Vec::new, |sent| sent.unacknowledged(task, received, new))
    }

    /// Whether so much is kept for a task that an acknowledgement is due.
    pub fn wants_acknowledgement(&self, task: u32) -> bool {
        let sent = self.sent.as_ref();
        sent.is_some_and(|sent| sent.is_much(task))
    }

    /// How many messages have been sent to a task, those of former launchers included.
    pub fn sent_count(&self, task: u32) -> u32 {
        self.sent.as_ref().map_or(0, |sent| sent.count(task))
    }

    /// The first `received` messages to a task have arrived, and are not kept any more.
    pub(super) fn acknowledged(&mut self, task: u32, received: u32) {
        if let Some(sent) = &mut self.sent {
            sent.acknowledged(task, received);
        }
    }

    /// This many messages have been sent to a task.
    pub(super) fn set_sent_count(&mut self, task: u32, count: u32) {
        if let Some(sent) = &mut self.sent {
            sent.set_count(task, count);
        }
    }

    /// Keeps a message that is being sent.
    pub(super) fn log_sent(&mut self, task: u32, message: &Tell) {
        if let Some(sent) = self.sent.as_mut().filter(|_| is_resent(message)) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            sent.add(task, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_received_is_sent_again_and_the_count_goes_on() {
        let mut sent = SentLog::default();
        (0..5_u8).for_each(|message| sent.add(3, vec![message]));
        assert_eq!(sent.unacknowledged(3, 3, 0), [vec![3], vec![4]]);
        assert!(sent.unacknowledged(3, 5, 0).is_empty());
        // Sent by a launcher whose last messages this copy does not know.
        assert!(sent.unacknowledged(3, 7, 0).is_empty());
        sent.add(3, vec![9]);
        assert_eq!(sent.unacknowledged(3, 7, 0), [vec![9]]);
        assert!(sent.unacknowledged(4, 0, 0).is_empty());
    }

    #[test]
    fn nothing_is_forgotten_that_may_not_have_been_received() {
        let mut sent = SentLog::default();
        (0..1000).for_each(|_| sent.add(1, vec![0; 100]));
        sent.add(1, vec![0; 1 << 20]);
        assert_eq!(sent.unacknowledged(1, 0, 0).len(), 1001);
        sent.acknowledged(1, 990);
        assert_eq!(sent.0[&1].last.len(), 11);
        assert_eq!(sent.unacknowledged(1, 995, 0).len(), 6);
        sent.acknowledged(1, 900);
        assert_eq!(sent.0[&1].last.len(), 11);
        // Of a copy that is behind.
        sent.acknowledged(1, 1005);
        assert!(sent.0[&1].last.is_empty());
        sent.acknowledged(2, 1);
        assert!(sent.unacknowledged(1, 1005, 0).is_empty());
    }
}
