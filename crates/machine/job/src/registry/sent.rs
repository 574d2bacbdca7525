//! Messages to tasks, kept until the task's host has acknowledged them.
//!
//! If the launcher is lost, messages in flight may be lost with it. So each message is kept until the agent of the
//! task's host acknowledges it. An agent acknowledges several messages at once. The kept messages are those in flight
//! and a few more. Messages to one task are counted, and an acknowledgement is such a count.

use std::collections::{BTreeMap, VecDeque};

use regatta_wire::control::{StreamState, Tell};
use regatta_wire::fields;
use regatta_wire::fields::Message;

use super::Registry;

/// Number of messages to a task after which its agent acknowledges them.
pub const ACKNOWLEDGE_MESSAGES: usize = 32;
/// Number of bytes to a task after which its agent acknowledges them.
pub const ACKNOWLEDGE_BYTES: usize = 16 << 10;

/// The messages to one task.
#[derive(Debug, Default)]
struct Sent {
    /// Number of messages sent to the task in all. Wraps around.
    count: u32,
    /// The last of them: all that may not have been received.
    last: VecDeque<Vec<u8>>,
}

/// The messages to all tasks, by task.
#[derive(Debug, Default)]
pub(super) struct SentLog(BTreeMap<u32, Sent>);

impl SentLog {
    /// Records a message that is sent to a task.
    pub(super) fn add(&mut self, task: u32, bytes: Vec<u8>) {
        let sent = self.0.entry(task).or_default();
        sent.count = sent.count.wrapping_add(1);
        sent.last.push_back(bytes);
    }

    /// Drops the messages that have been received: the first `received` ones to the task.
    fn acknowledged(&mut self, task: u32, received: u32) {
        if let Some(sent) = self.0.get_mut(&task) {
            // A copy may have recorded fewer messages than were received.
            let missing = (sent.count.wrapping_sub(received) as i32).max(0) as usize;
            let arrived = sent.last.len().saturating_sub(missing);
            sent.last.drain(..arrived);
        }
    }

    /// Forgets the messages of a task that has ended.
    pub(super) fn forget(&mut self, task: u32) {
        self.0.remove(&task);
    }

    /// Returns the messages that a task has not received, given that it has received `received`. The last `new`
    /// recorded ones are omitted, since they are about to be sent in any case.
    fn unacknowledged(&mut self, task: u32, received: u32, new: usize) -> Vec<Vec<u8>> {
        let sent = self.0.entry(task).or_default();
        let before = sent.count.wrapping_sub(new as u32);
        // Negative if another launcher has sent the task more than this copy recorded.
        let missing = (before.wrapping_sub(received) as i32).max(0) as usize;
        let until = sent.last.len().saturating_sub(new);
        let from = until.saturating_sub(missing);
        let again: Vec<Vec<u8>> = sent.last.range(from..until).cloned().collect();
        // A copy may have recorded fewer messages than the task has received.
        sent.count = received.wrapping_add((again.len() + new) as u32);
        again
    }

    /// Returns whether so many messages or bytes are kept for a task that an acknowledgement is due.
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

    /// Returns the log as a list for a snapshot.
    pub(super) fn to_list(&self) -> Vec<SentTo> {
        let sent = |(&task, sent): (&u32, &Sent)| SentTo {
            task,
            count: sent.count,
            last: sent.last.iter().cloned().collect(),
        };
        self.0.iter().map(sent).collect()
    }

    /// Returns the log from the list in a snapshot.
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

/// The messages to one task, as encoded in a snapshot.
pub(super) struct SentTo {
    task: u32,
    count: u32,
    last: Vec<Vec<u8>>,
}
fields!(SentTo { task, count, last });

/// Returns whether a message is sent again if it has not been received. Output of other tasks may be lost with a
/// launcher, so it is not sent again. The end of a stream is.
pub fn is_resent(message: &Tell) -> bool {
    match message {
        Tell::Output { then, .. } => *then == StreamState::Closed,
        _ => true,
    }
}

impl Registry {
    /// Starts keeping messages until they are acknowledged.
    pub fn keep_sent(&mut self) {
        self.sent.get_or_insert_default();
    }

    /// Returns the messages that a task has not received, given that it has received `received`, without those that
    /// [`Self::take_messages`] will return anyway. They count as sent from now on.
    pub fn unacknowledged(&mut self, task: u32, received: u32) -> Vec<Vec<u8>> {
        let outgoing = self.outgoing.iter();
        let new = outgoing.filter(|(to, message)| *to == task && is_resent(message));
        let (new, sent) = (new.count(), self.sent.as_mut());
        sent.map_or_else(Vec::new, |sent| sent.unacknowledged(task, received, new))
    }

    /// Returns whether so many messages or bytes are kept for a task that an acknowledgement is due.
    pub fn wants_acknowledgement(&self, task: u32) -> bool {
        let sent = self.sent.as_ref();
        sent.is_some_and(|sent| sent.is_much(task))
    }

    /// Returns the number of messages that have been sent to a task, including those of former launchers.
    pub fn sent_count(&self, task: u32) -> u32 {
        self.sent.as_ref().map_or(0, |sent| sent.count(task))
    }

    /// Drops the first `received` messages to a task, which have been received.
    pub(super) fn acknowledged(&mut self, task: u32, received: u32) {
        if let Some(sent) = &mut self.sent {
            sent.acknowledged(task, received);
        }
    }

    /// Sets the number of messages that have been sent to a task.
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
        // Sent by a launcher whose last messages this copy does not have.
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
        // An acknowledgement beyond what this copy has recorded.
        sent.acknowledged(1, 1005);
        assert!(sent.0[&1].last.is_empty());
        sent.acknowledged(2, 1);
        assert!(sent.unacknowledged(1, 1005, 0).is_empty());
    }
}
