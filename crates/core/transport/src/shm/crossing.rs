//! Large messages that cross: two tasks send to each other before either receives, as buffered sends allow.
//!
//! Such a message is not drained before its sender receives as well. The best footprint for a message that is drained
//! while it is written holds only a part of the message, and the rest would have to be copied aside for the sender to
//! proceed. So while messages cross, they use the whole of a pipe.

use regatta_engine::Peer;
use rustc_hash::FxHashMap;

/// Number of messages to a task that use a whole pipe after each one that was crossed.
const WHOLE_PIPE_MESSAGES: u32 = 16;

/// The tasks whose messages cross those of this one, and how many more messages to each of them are expected to be
/// crossed.
#[derive(Debug, Default)]
pub(super) struct Crossing(FxHashMap<Peer, u32>);

impl Crossing {
    /// Records that a message from task `to` waits at this task while this task sends one there.
    pub(super) fn note(&mut self, to: Peer) {
        self.0.insert(to, WHOLE_PIPE_MESSAGES);
    }

    /// Counts a message to this task. Returns whether it is expected to be crossed, as recent ones were.
    pub(super) fn goes(&mut self, to: Peer) -> bool {
        let Some(left) = self.0.get_mut(&to) else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            self.0.remove(&to);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_whole_pipes_as_long_as_they_cross() {
        let mut crossing = Crossing::default();
        assert!(!crossing.goes(1));
        crossing.note(1);
        for _ in 0..WHOLE_PIPE_MESSAGES - 1 {
            assert!(crossing.goes(1));
            assert!(!crossing.goes(2), "another task");
        }
        crossing.note(1);
        for _ in 0..WHOLE_PIPE_MESSAGES {
            assert!(crossing.goes(1));
        }
        assert!(!crossing.goes(1));
    }
}
