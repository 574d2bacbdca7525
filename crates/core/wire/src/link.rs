//! The parcels on a connection between two tasks on different hosts: each is a header, followed by as many bytes as the
//! header says.
//!
//! ```text
//! 0  kind (1) | last (1) | zero (2) | length of what follows (4)
//! 8  context or stream (4) | tag (4)
//! 16 word (8)
//! ```
//!
//! *Numbered* parcels (frames, and others that must not be lost) are kept by their sender until they are acknowledged,
//! and sent again on a new connection. Their word says how many bytes of numbered parcels, headers included, their
//! sender has taken in the other direction. All other parcels may be lost with a connection, and may be received twice.
//!
//! Frames may take a bypass beside the connection ([`crate::bypass`]). [`Parcel::Place`] then says at which byte the
//! connection continues.

use crate::bypass;
use crate::deadlock_probe;
use crate::{Frame, Kind, Malformed};

/// Size of a header, in bytes.
pub const HEAD: usize = 24;
/// Maximum size of a chunk, in bytes.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

/// The kind of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// An engine's frame. Numbered.
    Frame(Kind),
    /// The sender of a stream has abandoned it, after it has sent a frame that names the stream. Numbered.
    Cancelled,
    /// The sender of a stream has abandoned it, and it will not be used: no frame has named it, or its receiver has
    /// declined. Numbered.
    Retracted,
    /// The receiver has all bytes of a stream. Numbered.
    Complete,
    /// The sender leaves and sends nothing after this. Numbered.
    Bye,
    /// A chunk of a stream; the word is its offset in the message.
    Chunk,
    /// Carries only the acknowledgement in the word: how many bytes were taken.
    Taken,
    /// The sender of a stream may send up to the offset in the word; the body says up to which offset the receiver has
    /// received.
    Credit,
    /// A message between blocked tasks: [`deadlock_probe::DeadlockProbe`]. It is sent once all numbered parcels have
    /// been sent.
    DeadlockProbe,
    /// The word says how many of the peer's streams the sender has released so far.
    Released,
    /// The first parcel of a connection in each direction: the word says how many bytes of numbered parcels have been
    /// received, the context how many of these have not been taken.
    Resume,
    /// The sender considers what the peer sends invalid, and accepts no more of it.
    Closed,
    /// In the sender's table the peer is dead: the sender neither sends nor accepts anything more.
    Disowned,
    /// The sender has had no free descriptor for a connection to the peer for a long time, and gives the peer up.
    Shortage,
    /// Offers a bypass beside the connection; the body is a [`bypass::Offer`].
    Bypass,
    /// The sender's frames on the bypass are sealed under the next key, beginning with the frame number in the word.
    BypassKey,
    /// The next numbered parcel begins at the byte in the word. All that was sent by the bypass from there on, and may
    /// not have been received, is repeated.
    Place,
}

impl Parcel {
    fn byte(self) -> u8 {
        match self {
            Parcel::Frame(kind) => kind as u8,
            Parcel::Cancelled => 16,
            Parcel::Complete => 17,
            Parcel::Bye => 18,
            Parcel::Retracted => 19,
            Parcel::Chunk => 32,
            Parcel::Taken => 33,
            Parcel::Credit => 34,
            Parcel::Resume => 35,
            Parcel::Closed => 36,
            Parcel::DeadlockProbe => 37,
            Parcel::Released => 38,
            Parcel::Disowned => 39,
            Parcel::Bypass => 40,
            Parcel::BypassKey => 41,
            Parcel::Place => 42,
            Parcel::Shortage => 43,
        }
    }

    fn from_byte(byte: u8) -> Option<Parcel> {
        Some(match byte {
            16 => Parcel::Cancelled,
            17 => Parcel::Complete,
            18 => Parcel::Bye,
            19 => Parcel::Retracted,
            32 => Parcel::Chunk,
            33 => Parcel::Taken,
            34 => Parcel::Credit,
            35 => Parcel::Resume,
            36 => Parcel::Closed,
            37 => Parcel::DeadlockProbe,
            38 => Parcel::Released,
            39 => Parcel::Disowned,
            40 => Parcel::Bypass,
            41 => Parcel::BypassKey,
            42 => Parcel::Place,
            43 => Parcel::Shortage,
            _ => Parcel::Frame(Kind::from_byte(byte)?),
        })
    }

    /// Whether the sender keeps the parcel until it is acknowledged.
    #[inline(always)]
    pub fn is_numbered(self) -> bool {
        matches!(
            self,
            Parcel::Frame(_)
                | Parcel::Cancelled
                | Parcel::Retracted
                | Parcel::Complete
                | Parcel::Bye
        )
    }

    /// Whether `length` bytes can follow the header. The transport limits frames itself.
    fn allows(self, length: u32) -> bool {
        match self {
            Parcel::Frame(_) => true,
            Parcel::Chunk => length as usize <= MAX_CHUNK_BYTES,
            Parcel::Credit => length == 8,
            Parcel::Bypass => length as usize == bypass::OFFER_BYTES,
            Parcel::DeadlockProbe => {
                (deadlock_probe::MIN_BYTES..=deadlock_probe::MAX_BYTES).contains(&(length as usize))
            }
            _ => length == 0,
        }
    }
}

/// The header of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The kind of the parcel.
    pub parcel: Parcel,
    /// Whether the message ends with this chunk.
    pub last: bool,
    /// Number of bytes that follow.
    pub length: u32,
    /// A frame's context, or the number of a stream.
    pub context: u32,
    /// A frame's tag.
    pub tag: i32,
    /// A value whose meaning depends on the kind of the parcel.
    pub word: u64,
}

impl Head {
    /// Returns the header of a parcel without a body.
    pub fn bare(parcel: Parcel, context: u32, word: u64) -> Head {
        Head {
            parcel,
            last: false,
            length: 0,
            context,
            tag: 0,
            word,
        }
    }

    /// Returns the header of an engine's frame.
    #[inline(always)]
    pub fn frame(frame: Frame, length: u32, word: u64) -> Head {
        Head {
            parcel: Parcel::Frame(frame.kind),
            last: false,
            length,
            context: frame.context,
            tag: frame.tag,
            word,
        }
    }

    /// Returns the encoded header.
    #[inline(always)]
    pub fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.parcel.byte();
        bytes[1] = self.last as u8;
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.context.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.tag.to_le_bytes());
        bytes[16..].copy_from_slice(&self.word.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    #[inline(always)]
    pub fn decode(bytes: &[u8; HEAD]) -> Result<Head, Malformed> {
        let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let parcel = Parcel::from_byte(bytes[0]).ok_or(Malformed)?;
        let head = Head {
            parcel,
            last: bytes[1] != 0,
            length: u32::from_le_bytes(four(4)),
            context: u32::from_le_bytes(four(8)),
            tag: i32::from_le_bytes(four(12)),
            word: u32::from_le_bytes(four(16)) as u64 | (u32::from_le_bytes(four(20)) as u64) << 32,
        };
        let flag = bytes[1] == 0 || (bytes[1] == 1 && parcel == Parcel::Chunk);
        let tag = head.tag == 0 || matches!(parcel, Parcel::Frame(_));
        let sound = flag && tag && bytes[2] == 0 && bytes[3] == 0 && parcel.allows(head.length);
        sound.then_some(head).ok_or(Malformed)
    }

    /// Returns the number of bytes that follow a header, from its bytes, which may be invalid.
    #[inline(always)]
    pub fn length_in(bytes: &[u8; HEAD]) -> u32 {
        u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
    }

    /// Returns the size of the whole parcel, in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        HEAD + self.length as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_head_or_refused(bytes: [u8; HEAD]) {
            if let Ok(head) = Head::decode(&bytes) {
                prop_assert_eq!(head.encode(), bytes);
            }
        }

        #[test]
        fn plausible_bytes_too(kind in 0u8..44, last in 0u8..3, length in 0u32..18, word: u64) {
            let mut bytes = Head::bare(Parcel::Taken, 7, word).encode();
            (bytes[0], bytes[1]) = (kind, last);
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            if let Ok(head) = Head::decode(&bytes) {
                prop_assert_eq!(head.encode(), bytes);
                prop_assert!(head.word == word && head.length == length);
            }
        }
    }

    #[test]
    fn a_chunk_has_its_limit() {
        let mut head = Head::bare(Parcel::Chunk, 2, 0);
        head.length = MAX_CHUNK_BYTES as u32;
        assert_eq!(Head::decode(&head.encode()), Ok(head));
        head.length += 1;
        assert_eq!(Head::decode(&head.encode()), Err(Malformed));
    }
}
