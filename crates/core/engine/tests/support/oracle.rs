//! The reference matcher: two plain queues per task, searched from the front.
//!
//! It is informed of the program's calls and of the order in which the engine received messages, and predicts the result of every receive.

use regatta_engine::{Peer, Select};

/// A message, by its number.
#[derive(Clone, Debug)]
pub struct Message {
    pub number: usize,
    pub from: Peer,
    pub context: u32,
    pub tag: i32,
    pub bytes: Vec<u8>,
    /// Its data is not in its frame: possibly only the beginning of it will arrive.
    pub offered: bool,
    /// It is sent as a loan.
    pub loan: bool,
}

/// One task's queues.
#[derive(Default)]
pub struct Oracle {
    posted: Vec<(usize, Select)>,
    waiting: Vec<Message>,
    /// Matches so far: (receive, message).
    matched: Vec<(usize, Message)>,
}

impl Oracle {
    /// Posts a receive.
    pub fn receive(&mut self, number: usize, select: Select) {
        match self.find(&select) {
            Some(at) => self.matched.push((number, self.waiting.remove(at))),
            None => self.posted.push((number, select)),
        }
    }

    /// Records the arrival of a message.
    pub fn arrive(&mut self, message: Message) {
        let takes = |select: &Select| select.takes(message.context, message.from, message.tag);
        match self.posted.iter().position(|(_, select)| takes(select)) {
            Some(at) => self.matched.push((self.posted.remove(at).0, message)),
            None => self.waiting.push(message),
        }
    }

    /// Withdraws a receive. Returns false if it has its message already.
    pub fn withdraw(&mut self, number: usize) -> bool {
        let before = self.posted.len();
        self.posted.retain(|(other, _)| *other != number);
        self.posted.len() < before
    }

    fn find(&self, select: &Select) -> Option<usize> {
        self.waiting
            .iter()
            .position(|m| select.takes(m.context, m.from, m.tag))
    }

    /// Returns the message that a probe finds.
    pub fn probe(&self, select: &Select) -> Option<&Message> {
        self.find(select).map(|at| &self.waiting[at])
    }

    /// Takes the probed message as a loan.
    pub fn take_loan(&mut self, select: &Select) -> Option<Message> {
        let at = self.find(select)?;
        self.waiting[at].loan.then(|| self.waiting.remove(at))
    }

    /// Returns the message that a receive was given.
    pub fn given(&self, receive: usize) -> Option<&Message> {
        let found = self.matched.iter().find(|(number, _)| *number == receive);
        found.map(|(_, message)| message)
    }

    /// Returns whether this message has found its receive.
    pub fn is_matched(&self, message: usize) -> bool {
        self.matched.iter().any(|(_, m)| m.number == message)
    }

    /// Returns the messages without a receive.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
