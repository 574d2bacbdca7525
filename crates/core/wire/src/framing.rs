//! Messages in a stream of bytes: a length of four bytes, then that many bytes of one message.
//!
//! Bytes arrive in chunks of any size; [`FrameReader`] keeps them until a message is complete. No memory is reserved
//! for an announced length before its bytes arrive, so a false length costs the receiver nothing.

use crate::Malformed;
use crate::fields::Message;

/// Maximum size of a frame, in bytes, enforced by sender and reader. The largest are a job's environment and arguments, which the
/// kernel limits, and the addresses of 65536 tasks.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// Received bytes, until the messages in them have been taken.
#[derive(Debug, Default)]
pub struct FrameReader {
    arrived: Vec<u8>,
    /// How many bytes of `arrived` have been taken.
    taken: usize,
}

impl FrameReader {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.arrived.drain(..self.taken);
            self.taken = 0;
        }
        self.arrived.extend_from_slice(bytes);
    }

    /// Returns the next complete frame, undecoded, or `None` if more bytes are needed.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>, Malformed> {
        self.next_bytes_within(MAX_FRAME_BYTES)
    }

    /// Returns the next complete frame, undecoded, or `None` if more bytes are needed. Fails as soon as a frame
    /// announces more than `longest` bytes.
    pub fn next_bytes_within(&mut self, longest: usize) -> Result<Option<&[u8]>, Malformed> {
        let rest = &self.arrived[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > longest {
            return Err(Malformed);
        }
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += 4 + length;
        Ok(Some(bytes))
    }

    /// Returns the bytes that have not been taken, for text that precedes the frames.
    pub fn unread(&self) -> &[u8] {
        &self.arrived[self.taken..]
    }

    /// Marks the first `bytes` of [`unread`](Self::unread) as taken.
    pub fn pass(&mut self, bytes: usize) {
        self.taken = self.arrived.len().min(self.taken + bytes);
    }

    /// Decodes the next complete message, or returns `None` if more bytes are needed.
    pub fn next_message<M: Message>(&mut self) -> Result<Option<M>, Malformed> {
        self.next_message_within(MAX_FRAME_BYTES)
    }

    /// Decodes the next complete message, or returns `None` if more bytes are needed. Fails as soon as a message
    /// announces more than `longest` bytes.
    pub fn next_message_within<M: Message>(
        &mut self,
        longest: usize,
    ) -> Result<Option<M>, Malformed> {
        self.next_bytes_within(longest)?.map(M::decode).transpose()
    }
}

/// Appends a message to `to` as a frame. Fails, and appends nothing, if the message is too long for a frame.
pub fn put<M: Message>(message: &M, to: &mut Vec<u8>) -> Result<(), Malformed> {
    let before = to.len();
    to.extend_from_slice(&[0; 4]);
    message.encode(to);
    let length = to.len() - before - 4;
    if length > MAX_FRAME_BYTES {
        to.truncate(before);
        return Err(Malformed);
    }
    to[before..before + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Appends an encoded message to `to` as a frame, like [`put`].
pub fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) -> Result<(), Malformed> {
    if bytes.len() > MAX_FRAME_BYTES {
        return Err(Malformed);
    }
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_they_are_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10),
            piece in 1_usize..40,
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                put_bytes(body, &mut stream).unwrap();
            }
            let (mut frames, mut came) = (FrameReader::default(), Vec::new());
            for piece in stream.chunks(piece) {
                frames.push(piece);
                while let Some(body) = frames.next_bytes().unwrap() {
                    came.push(body.to_vec());
                }
            }
            prop_assert_eq!(came, bodies);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_both_sides() {
        assert!(put_bytes(&vec![0; MAX_FRAME_BYTES + 1], &mut Vec::new()).is_err());
        let mut frames = FrameReader::default();
        frames.push(&(MAX_FRAME_BYTES as u32 + 1).to_le_bytes());
        assert_eq!(frames.next_bytes(), Err(Malformed));
        let mut frames = FrameReader::default();
        frames.push(&3_u32.to_le_bytes());
        assert_eq!(frames.next_bytes_within(2), Err(Malformed));
        assert_eq!(frames.next_bytes_within(3), Ok(None));
    }
}
