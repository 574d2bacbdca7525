//! The reference matcher: two plain queues per task, searched from the front.
//!
//! It is told what a program does and in which order its engine took messages in, and says what
//! every receive must yield.

use regatta_engine::{Peer, Select};

/// A message, by its number.
#[derive(Clone, Debug)]
pub struct Message {
    pub number: usize,
    pub from: Peer,
    pub context: u32,
    pub tag: i32,
    pub bytes: Vec<u8>,
    /// It does not travel in its frame: only the front of it may ever come.
    pub offered: bool,
    /// It travels as a loan.
    pub loan: bool,
}

/// One task's queues.
#[derive(Default)]
pub struct Oracle {
    posted: Vec<(usize, Select)>,
    waiting: Vec<Message>,
    /// Matches so far: receive, message.
    matched: Vec<(usize, Message)>,
}

impl Oracle {
    /// A receive is posted.
    pub fn receive(&mut self, number: usize, select: Select) {
        match self.find(&select) {
            Some(at) => self.matched.push((number, self.waiting.remove(at))),
            None => self.posted.push((number, select)),
        }
    }

    /// A message arrives.
    pub fn arrive(&mut self, message: Message) {
        let takes = |select: &Select| select.takes(message.context, message.from, message.tag);
        match self.posted.iter().position(|(_, select)| takes(select)) {
            Some(at) => self.matched.push((self.posted.remove(at).0, message)),
            None => self.waiting.push(message),
        }
    }

    /// A receive is withdrawn; false if it has its message already.
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

    /// The message a probe shows.
    pub fn probe(&self, select: &Select) -> Option<&Message> {
        self.find(select).map(|at| &self.waiting[at])
    }

    /// The probed message is taken as a loan.
    pub fn take_loan(&mut self, select: &Select) -> Option<Message> {
        let at = self.find(select)?;
        self.waiting[at].loan.then(|| self.waiting.remove(at))
    }

    /// The message that a receive was given.
    pub fn given(&self, receive: usize) -> Option<&Message> {
        let found = self.matched.iter().find(|(number, _)| *number == receive);
        found.map(|(_, message)| message)
    }

    /// Has this message found its receive?
    pub fn is_matched(&self, message: usize) -> bool {
        self.matched.iter().any(|(_, m)| m.number == message)
    }

    /// Messages without a receive.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
