//! How two tasks on different hosts greet each other, before anything else flows between them.
//!
//! ```text
//! caller                                listener
//! Hello: who, to whom, nonce, proof ──>         silent unless the proof holds
//!       <── Welcome: version, nonce, proof      of both nonces
//! proof of both ──────────────────────>
//! ```
//!
//! A proof is a keyed hash, by the job's key, of all that went before it. All three have their length, so
//! nothing a stranger sends makes anybody wait for more, or keep more, than that.

use crate::Malformed;

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

fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn nonce(bytes: &[u8]) -> [u8; WORD] {
    let mut word = [0; WORD];
    word.copy_from_slice(bytes);
    word
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&MAGIC);
        let words = [self.version, self.tasks, self.from, self.to];
        for (place, word) in bytes[8..24].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[24] = self.encrypted as u8;
        bytes[28..].copy_from_slice(&self.nonce);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; HELLO]) -> Result<Hello, Malformed> {
        let sound = bytes[..8] == MAGIC && bytes[24] <= 1 && bytes[25..28] == [0; 3];
        sound.then_some(()).ok_or(Malformed)?;
        Ok(Hello {
            version: four(bytes, 8),
            tasks: four(bytes, 12),
            from: four(bytes, 16),
            to: four(bytes, 20),
            encrypted: bytes[24] == 1,
            nonce: nonce(&bytes[28..]),
        })
    }
}

impl Welcome {
    /// As bytes.
    pub fn encode(&self) -> [u8; WELCOME] {
        let mut bytes = [0; WELCOME];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..].copy_from_slice(&self.nonce);
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; WELCOME]) -> Result<Welcome, Malformed> {
        (bytes[..8] == MAGIC).then_some(()).ok_or(Malformed)?;
        Ok(Welcome {
            version: four(bytes, 8),
            nonce: nonce(&bytes[12..]),
        })
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
