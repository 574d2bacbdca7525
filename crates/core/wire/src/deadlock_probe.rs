//! Messages between blocked senders on different hosts, with which they find out that they wait in a circle (see
//! `deadlock_detector` in the crate `process`).
//!
//! ```text
//! 0  kind (4) | number (4)
//! 8  word (8)
//! 16 more: looks (4), or tasks (4 each)
//! ```

use crate::Malformed;
use crate::fields::{Bytes, Field, all, bytes_of, bytes_of_all};

/// Minimum size of a probe, in bytes.
pub const MIN_BYTES: usize = 16;
/// Maximum number of members of a circle that is reported; a larger circle is not reported.
pub const MAX_MEMBERS: usize = 256;
/// Maximum size of a probe, in bytes.
pub const MAX_BYTES: usize = MIN_BYTES + 4 * MAX_MEMBERS;

const ASK: u32 = 1;
const STATE: u32 = 2;
const CIRCLE: u32 = 3;

/// A probe between two blocked tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadlockProbe {
    /// Asks for the state of the receiver. Questions are numbered.
    Ask(u32),
    /// The state of the sender; `number` is 0 if it was not asked for.
    State {
        /// The question that this answers.
        number: u32,
        /// The sender's wait word, as in the table of its host.
        word: u64,
        /// How often the sender has checked without success.
        looks: u32,
    },
    /// Tells the receiver that it waits in a circle.
    Circle {
        /// The receiver's wait word for that wait.
        word: u64,
        /// The tasks in the circle, each waiting for the next.
        members: Vec<u32>,
    },
}

impl DeadlockProbe {
    /// Returns the encoded probe.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, number, word, more) = match self {
            DeadlockProbe::Ask(number) => (ASK, *number, 0, &[][..]),
            DeadlockProbe::State {
                number,
                word,
                looks,
            } => (STATE, *number, *word, std::slice::from_ref(looks)),
            DeadlockProbe::Circle { word, members } => (CIRCLE, 0, *word, &members[..]),
        };
        [bytes_of(&(kind, number, word)), bytes_of_all(more)].concat()
    }

    /// Decodes a probe.
    pub fn decode(bytes: &[u8]) -> Result<DeadlockProbe, Malformed> {
        let mut rest = Bytes(bytes);
        let (kind, number, word) = <(u32, u32, u64)>::take(&mut rest)?;
        if rest.0.len() > 4 * MAX_MEMBERS {
            return Err(Malformed);
        }
        let more: Vec<u32> = all(rest.0)?;
        match (kind, &more[..]) {
            (ASK, []) if word == 0 => Ok(DeadlockProbe::Ask(number)),
            (STATE, &[looks]) => Ok(DeadlockProbe::State {
                number,
                word,
                looks,
            }),
            (CIRCLE, [_, _, ..]) if number == 0 => Ok(DeadlockProbe::Circle {
                word,
                members: more,
            }),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_understood_or_refused(
            kind in 0u32..5, number in 0u32..3, rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = [kind.to_le_bytes(), number.to_le_bytes()].concat();
            bytes.extend(rest);
            if let Ok(probe) = DeadlockProbe::decode(&bytes) {
                prop_assert_eq!(probe.encode(), bytes);
            }
        }

        #[test]
        fn what_is_said_is_understood(number: u32, word: u64, looks: u32, members in prop::collection::vec(any::<u32>(), 2..=MAX_MEMBERS)) {
            for probe in [
                DeadlockProbe::Ask(number),
                DeadlockProbe::State { number, word, looks },
                DeadlockProbe::Circle { word, members: members.clone() },
            ] {
                let bytes = probe.encode();
                prop_assert!((MIN_BYTES..=MAX_BYTES).contains(&bytes.len()));
                prop_assert_eq!(DeadlockProbe::decode(&bytes), Ok(probe));
            }
        }
    }

    #[test]
    fn a_circle_has_its_limit() {
        let members = vec![1; MAX_MEMBERS + 1];
        let bytes = DeadlockProbe::Circle { word: 1, members }.encode();
        assert_eq!(DeadlockProbe::decode(&bytes), Err(Malformed));
    }
}
