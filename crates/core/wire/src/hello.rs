//! The greeting between two tasks on different hosts, before anything else is sent between them.
//!
//! ```text
//! caller                                listener
//! Hello: who, to whom, nonce, proof ──>         silent unless the proof holds
//! [first message of Noise] ───────────>         silent unless it opens
//!       <── Welcome: version, nonce, proof      of both nonces
//!       <── [second message of Noise]
//! proof of both [third message] ──────>
//! ```
//!
//! A proof is a keyed hash, under the job's key, of all greetings and proofs that were sent before it. On an encrypted
//! connection the messages of a Noise handshake follow the greetings, and the last of them takes the place of the last
//! proof. All messages have fixed lengths, so nothing that a stranger sends makes an end wait for more, or keep more,
//! than that.
//!
//! Hello and Welcome with their proofs are the same in every version. What follows those of another version is not
//! read.

use crate::Malformed;
use crate::fields::{joined, whole};

/// Size of a nonce, and of a proof, in bytes.
pub const PROOF_BYTES: usize = 32;
/// Size of a [`Hello`] without its proof, in bytes.
pub const HELLO: usize = 60;
/// Size of a [`Welcome`] without its proof, in bytes.
pub const WELCOME: usize = 44;

const MAGIC: [u8; 8] = *b"regatta\x02";

/// The first message of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version of what is sent on connections.
    pub version: u32,
    /// Tasks in the job.
    pub tasks: u32,
    /// The caller's rank.
    pub from: u32,
    /// The rank that the caller means to call.
    pub to: u32,
    /// Whether the connection will be encrypted.
    pub encrypted: bool,
    /// The caller's nonce, never used before.
    pub nonce: [u8; PROOF_BYTES],
}

/// The listener's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Version of what is sent on connections.
    pub version: u32,
    /// The listener's nonce, never used before.
    pub nonce: [u8; PROOF_BYTES],
}

impl Hello {
    /// Returns the encoded message.
    pub fn encode(&self) -> [u8; HELLO] {
        let words = [self.version, self.tasks, self.from, self.to].map(u32::to_le_bytes);
        let encrypted = [self.encrypted as u8, 0, 0, 0];
        joined(&[&MAGIC, words.as_flattened(), &encrypted, &self.nonce])
    }

    /// Decodes the message.
    pub fn decode(bytes: &[u8; HELLO]) -> Result<Hello, Malformed> {
        let (magic, words, (encrypted, zeros), nonce): ([u8; 8], _, (_, [u8; 3]), _) =
            whole(bytes)?;
        let (version, tasks, from, to) = words;
        let hello = Hello {
            version,
            tasks,
            from,
            to,
            encrypted,
            nonce,
        };
        let sound = magic == MAGIC && zeros == [0; 3];
        sound.then_some(hello).ok_or(Malformed)
    }
}

impl Welcome {
    /// Returns the encoded message.
    pub fn encode(&self) -> [u8; WELCOME] {
        joined(&[&MAGIC, &self.version.to_le_bytes(), &self.nonce])
    }

    /// Decodes the message.
    pub fn decode(bytes: &[u8; WELCOME]) -> Result<Welcome, Malformed> {
        let (magic, version, nonce): ([u8; 8], _, _) = whole(bytes)?;
        let welcome = Welcome { version, nonce };
        (magic == MAGIC).then_some(welcome).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn greetings_round_trip(words: [u32; 4], encrypted: bool, nonce: [u8; PROOF_BYTES]) {
            let [version, tasks, from, to] = words;
            let hello = Hello { version, tasks, from, to, encrypted, nonce };
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
            let welcome = Welcome { version, nonce };
            prop_assert_eq!(Welcome::decode(&welcome.encode()), Ok(welcome));
        }

        #[test]
        fn any_change_is_refused_or_read(at in 0..HELLO, byte: u8) {
            let hello = Hello { version: 1, tasks: 2, from: 0, to: 1, encrypted: true, nonce: [7; PROOF_BYTES] };
            let mut bytes = hello.encode();
            bytes[at] = byte;
            if let Ok(read) = Hello::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
            let mut bytes = Welcome { version: 1, nonce: [7; PROOF_BYTES] }.encode();
            bytes[at % WELCOME] = byte;
            if let Ok(read) = Welcome::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }
    }
}
