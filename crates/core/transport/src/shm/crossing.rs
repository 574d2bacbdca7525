//! Large messages that cross: two tasks send to each other before either receives, as buffered sends allow.
//!
//! Nobody drains such a message before its sender receives as well. The footprint that is best for a message that is drained while it is
//! written holds a part of it only, and the rest would have to be copied apart for its sender to go on. So these messages take the whole
//! of a pipe, for as long as messages cross.

use regatta_engine::Peer;
use rustc_hash::FxHashMap;

/// Messages to a task that take a whole pipe after each one that was crossed.
const WHOLE_PIPE_MESSAGES: u32 = 16;

/// The tasks whose messages cross those of this one, and how many more messages to each are expected to be crossed.
#[derive(Debug, Default)]
pub(super) struct Crossing(FxHashMap<Peer, u32>);

impl Crossing {
    /// A message from this task waits here while one goes there.
    pub(super) fn note(&mut self, to: Peer) {
        self.0.insert(to, WHOLE_PIPE_MESSAGES);
    }

    /// Will the message that goes to this task now be crossed by one of that task's, as the last ones were?
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
