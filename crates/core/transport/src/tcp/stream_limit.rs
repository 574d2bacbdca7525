//! The limit on the streams that a task may open to a peer.
//!
//! A stream that its sender has opened takes memory of the receiver until the receiver has emptied or dropped it.
//! That may be long after the receiver has confirmed all bytes: a short stream fits into the first window, and waits
//! there for its receive. So both sides count *held* streams, by the same messages:
//!
//! ```text
//! sender    opened  - released, as last reported   is at most MAX_HELD_STREAMS
//! receiver  noticed - released, as last reported   is at most MAX_HELD_STREAMS, or the peer broke the protocol
//! ```
//!
//! With `Parcel::Released` the receiver reports how many streams of the sender it has released since the link began.
//! The count only rises, so a parcel that is lost with a connection is sent again on the next one. The sender never
//! knows of more releases than were reported, and the receiver notices no stream before it is opened, so an honest
//! sender never exceeds what the receiver checks. A sender that has used up its streams offers messages without one.
//! Their receiver then opens the stream, and such streams do not count here.

/// Maximum number of a sender's streams that its receiver holds.
pub(crate) const MAX_HELD_STREAMS: u64 = 64;
/// Maximum number of released streams that have not been reported to the sender.
const MAX_UNTOLD_RELEASES: u64 = MAX_HELD_STREAMS / 4;

/// The streams that this task has opened to a peer.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    opened: u64,
    released: u64,
}

impl Opened {
    /// Returns whether one more stream may be opened.
    pub(crate) fn may_open(&self) -> bool {
        self.opened - self.released < MAX_HELD_STREAMS
    }

    /// Counts one more opened stream.
    pub(crate) fn open(&mut self) {
        self.opened += 1;
    }

    /// Records how many streams the receiver has released so far. Fails if that is more than were opened.
    pub(crate) fn told(&mut self, released: u64) -> Result<(), &'static str> {
        if released > self.opened {
            return Err("a peer has ended more streams than existed");
        }
        self.released = self.released.max(released);
        Ok(())
    }
}

/// The streams that the peer has opened to this task.
#[derive(Debug, Default)]
pub(crate) struct Noticed {
    noticed: u64,
    released: u64,
    told: u64,
    /// Whether the last report may have been lost with a connection.
    again: bool,
}

impl Noticed {
    /// Counts one more stream. Fails if the peer may not have opened it.
    pub(crate) fn notice(&mut self) -> Result<(), &'static str> {
        if self.noticed - self.told >= MAX_HELD_STREAMS {
            return Err("a peer opens more streams than it may");
        }
        self.noticed += 1;
        Ok(())
    }

    /// Counts a stream that no longer takes memory.
    pub(crate) fn release(&mut self) {
        self.released += 1;
    }

    /// Records that a new connection has begun.
    pub(crate) fn reconnected(&mut self) {
        self.again = self.told > 0;
    }

    /// Returns whether a report is to be sent to the peer now.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.again || self.released - self.told >= MAX_UNTOLD_RELEASES
    }

    /// Returns the count to report to the peer, and records it as reported.
    pub(crate) fn take_count(&mut self) -> u64 {
        self.again = false;
        self.told = self.released;
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// An honest sender is never refused, whatever is delayed or lost, and never has more streams open than it
        /// may.
        #[test]
        fn both_sides_agree(steps in prop::collection::vec(0u8..8, 0..4000)) {
            let (mut ours, mut theirs) = (Opened::default(), Noticed::default());
            let (mut on_the_way, mut held, mut word) = (0u64, 0u64, None);
            for step in steps {
                match step {
                    0..3 if ours.may_open() => {
                        ours.open();
                        on_the_way += 1;
                    }
                    3 if on_the_way > 0 => {
                        prop_assert_eq!(theirs.notice(), Ok(()));
                        (on_the_way, held) = (on_the_way - 1, held + 1);
                    }
                    4 | 5 if held > 0 => {
                        theirs.release();
                        held -= 1;
                    }
                    6 if theirs.is_due() => word = Some(theirs.take_count()),
                    7 if word.is_some_and(|word| word % 3 == 0) => {
                        word = None;
                        theirs.reconnected();
                    }
                    7 => {
                        if let Some(word) = word.take() {
                            prop_assert_eq!(ours.told(word), Ok(()));
                        }
                    }
                    _ => {}
                }
                prop_assert!(on_the_way + held <= MAX_HELD_STREAMS);
            }
            // Once all have been noticed and released, all may be opened again.
            (0..on_the_way).for_each(|_| theirs.notice().unwrap());
            (0..on_the_way + held).for_each(|_| theirs.release());
            theirs.reconnected();
            ours.told(theirs.take_count()).unwrap();
            prop_assert_eq!(ours.opened, ours.released);
        }
    }

    #[test]
    fn a_sender_stops_at_its_limit_and_goes_on_when_told() {
        let (mut ours, mut theirs) = (Opened::default(), Noticed::default());
        while ours.may_open() {
            ours.open();
            assert_eq!(theirs.notice(), Ok(()));
        }
        assert!(theirs.notice().is_err());
        (0..MAX_UNTOLD_RELEASES - 1).for_each(|_| theirs.release());
        assert!(!theirs.is_due());
        theirs.release();
        assert!(theirs.is_due());
        assert_eq!(ours.told(theirs.take_count()), Ok(()));
        assert!(ours.may_open() && theirs.notice().is_ok());
        assert!(ours.told(MAX_HELD_STREAMS + 1).is_err());
    }
}
