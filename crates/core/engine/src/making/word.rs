//! The messages by which members make a group: which group each is about, and its contents.

use regatta_wire::BODY;
use regatta_wire::fields::{all, bytes_of_all};

use crate::transport::Peer;

/// A call that makes a group and the hash of its members, as in each message.
pub(super) type Name = [u64; 2];

/// Number of `u64` values in a message: call and members, attempt, contents.
const NUMBERS: usize = 6;
const _: () = assert!(NUMBERS * size_of::<u64>() <= BODY);

/// Decodes a message into name, attempt and contents. Returns `None` if it is malformed.
pub(super) fn read_word(bytes: &[u8]) -> Option<(Name, u64, [u64; 3])> {
    let numbers: [u64; NUMBERS] = all(bytes).ok()?.try_into().ok()?;
    let [call, members, attempt, word @ ..] = numbers;
    Some(([call, members], attempt, word))
}

/// Identifies a call that makes a group. Simultaneous calls from one group differ in this or in their members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// All members of the old group take part. Contains the number of their call; see [`Engine::next_call`](crate::Engine::next_call).
    Numbered(u32),
    /// Only the new group's members take part.
    Selecting,
    /// Only the new group's members take part, with this tag.
    Tagged(i32),
}

impl Call {
    pub(super) fn word(self) -> u64 {
        match self {
            Call::Tagged(tag) => u64::from(tag as u32),
            Call::Numbered(number) => 1 << 32 | u64::from(number),
            Call::Selecting => 2 << 32,
        }
    }

    /// Returns the number of a numbered call, given its encoding.
    pub(super) fn number(word: u64) -> Option<u32> {
        (word >> 32 == 1).then_some(word as u32)
    }
}

/// The contents of a message about a new group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A context and its epoch.
    Propose(u32, u64),
    Accepted,
    /// The lowest acceptable context and its epoch.
    Refused(u32, u64),
    /// The first of the contexts agreed on.
    Made(u32),
    /// A member is gone. True if it has left in good order, false if it has died.
    Gone(Peer, bool),
    /// A member has no memory or no entry for the group.
    Full(Peer),
}

impl Word {
    /// Returns the encoded message for an attempt.
    pub(super) fn message(self, name: Name, attempt: u64) -> Vec<u8> {
        bytes_of_all(&[&name[..], &[attempt], &self.numbers()].concat())
    }

    fn numbers(self) -> [u64; 3] {
        match self {
            Word::Propose(context, epoch) => [1, u64::from(context), epoch],
            Word::Accepted => [2, 0, 0],
            Word::Refused(next, epoch) => [3, u64::from(next), epoch],
            Word::Made(context) => [4, u64::from(context), 0],
            Word::Gone(peer, left) => [5, u64::from(peer), u64::from(left)],
            Word::Full(peer) => [6, u64::from(peer), 0],
        }
    }

    pub(super) fn of([kind, number, detail]: [u64; 3]) -> Option<Word> {
        let number = u32::try_from(number).ok()?;
        Some(match kind {
            1 => Word::Propose(number, detail),
            2 => Word::Accepted,
            3 => Word::Refused(number, detail),
            4 => Word::Made(number),
            5 => Word::Gone(number, detail != 0),
            6 => Word::Full(number),
            _ => return None,
        })
    }

    /// Combines the answers of two members. A death takes precedence over a departure, which it may have caused.
    pub(super) fn and(self, other: Word) -> Word {
        match (self, other) {
            (Word::Accepted, other) => other,
            (Word::Refused(one, epoch), Word::Refused(next, other)) => {
                let (epoch, next) = (epoch, one).max((other, next));
                Word::Refused(next, epoch)
            }
            (Word::Refused(..), Word::Gone(..) | Word::Full(_))
            | (Word::Gone(_, true), Word::Gone(_, false)) => other,
            _ => self,
        }
    }
}
