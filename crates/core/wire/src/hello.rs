//! How two tasks on different hosts greet each other, before anything else flows between them.
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
//! A proof is a keyed hash, by the job's key, of all greetings and proofs that went before it. On an encrypted connection the messages of a Noise
//! handshake follow the greetings, and the last of them stands in the place of the last proof. All have their length, so
//! nothing a stranger sends makes anybody wait for more, or keep more, than that.
//!
//! Hello and Welcome with their proofs are the same in every version. Behind those of another version nothing is read.

use crate::Malformed;
use crate::fields::{joined, whole};

/// Nonce and proof.
pub const WORD: usize = 32;
/// Bytes of a [`Hello`] without and with its proof.
pub const HELLO: usize = 60;
/// Bytes of a [`Welcome`] without its proof.
pub const WELCOME: usize = 44;

const MAGIC: [u8; 8] = *b"regatta\x02";

/// The first message of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of what flows on connections.
    pub version: u32,
    /// Tasks in the job.
    pub tasks: u32,
    /// The caller's rank.
    pub from: u32,
    /// The rank it believes to be called.
    pub to: u32,
    /// Will the connection be encrypted?
    pub encrypted: bool,
    /// Never used before.
    pub nonce: [u8; WORD],
}

/// The listener's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Of what flows on connections.
    pub version: u32,
    /// Never used before.
    pub nonce: [u8; WORD],
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO] {
        let words = [self.version, self.tasks, self.from, self.to].map(u32::to_le_bytes);
        let encrypted = [self.encrypted as u8, 0, 0, 0];
        joined(&[&MAGIC, words.as_flattened(), &encrypted, &self.nonce])
    }

    /// From bytes.
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
    /// As bytes.
    pub fn encode(&self) -> [u8; WELCOME] {
        joined(&[&MAGIC, &self.version.to_le_bytes(), &self.nonce])
    }

    /// From bytes.
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
        fn greetings_round_trip(words: [u32; 4], encrypted: bool, nonce: [u8; WORD]) {
            let [version, tasks, from, to] = words;
            let hello = Hello { version, tasks, from, to, encrypted, nonce };
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
            let welcome = Welcome { version, nonce };
            prop_assert_eq!(Welcome::decode(&welcome.encode()), Ok(welcome));
        }

        #[test]
        fn any_change_is_refused_or_read(at in 0..HELLO, byte: u8) {
            let hello = Hello { version: 1, tasks: 2, from: 0, to: 1, encrypted: true, nonce: [7; WORD] };
            let mut bytes = hello.encode();
            bytes[at] = byte;
            if let Ok(read) = Hello::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
            let mut bytes = Welcome { version: 1, nonce: [7; WORD] }.encode();
            bytes[at % WELCOME] = byte;
            if let Ok(read) = Welcome::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }
    }
}
