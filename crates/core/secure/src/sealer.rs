//! Seals the records that this end sends.
//!
//! ```text
//! out: sent | sealed, to be sent | free
//!           start                end
//! ```

use std::io::{self, IoSlice};

use crate::bounds::{Bounds, Use};
use crate::cipher::Cipher;
use crate::record::{HEAD, KEY_CHANGE_BYTES, MAX_BODY_BYTES, MAX_CONTENT_BYTES, TAG, broken};

/// Maximum number of bytes sealed at a time: the longest record, preceded by a change of the key and a short record,
/// such as a header that is sent before its body. While one batch is being sent, the next is sealed.
const MAX_BATCH_BYTES: usize = 128 + KEY_CHANGE_BYTES + HEAD + MAX_BODY_BYTES;

#[derive(Debug)]
pub(crate) struct Sealer {
    cipher: Cipher,
    bounds: Bounds,
    used: Use,
    /// Number of records after which the key is changed, including the one that changes it.
    limit: u64,
    out: Box<[u8]>,
    start: usize,
    end: usize,
    failed: bool,
}

/// Returns the contents of the records of a send. Those of a part have equal size.
fn pieces<'a>(from: &'a [IoSlice<'_>]) -> impl Iterator<Item = &'a [u8]> {
    from.iter().flat_map(|part| {
        let records = part.len().div_ceil(MAX_CONTENT_BYTES).max(1);
        part.chunks(part.len().div_ceil(records).max(1))
    })
}

impl Sealer {
    /// Creates a sealer that changes its key after `limit` records, within the limits of `bounds`.
    pub(crate) fn new(cipher: Cipher, bounds: Bounds, limit: u64) -> Sealer {
        Sealer {
            bounds,
            used: Use::after(cipher.number()),
            cipher,
            limit: limit.min(bounds.most).max(bounds.least + 1),
            out: vec![0; MAX_BATCH_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            failed: false,
        }
    }

    /// Returns whether everything that was sealed has been sent.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.start == self.end
    }

    /// Sends what was sealed. Returns whether everything has been sent. `send` returns how many bytes it took.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        mut send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        while self.start < self.end {
            match send(&self.out[self.start..self.end])? {
                Some(n) => self.start += n,
                None => return Ok(false),
            }
        }
        (self.start, self.end) = (0, 0);
        Ok(true)
    }

    /// Seals and sends in batches as long as `send` takes everything. Returns how many bytes of content were sealed.
    pub(crate) fn send(
        &mut self,
        from: &[IoSlice<'_>],
        mut send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        let mut done = 0;
        let mut pieces = pieces(from).peekable();
        while pieces.peek().is_some() && self.flush(&mut send)? {
            while let Some(piece) = pieces.next_if(|piece| self.has_room(piece)) {
                self.seal(piece)?;
                done += piece.len();
            }
        }
        self.flush(send)?;
        Ok(done)
    }

    /// Returns whether the batch has room for a record, and a change of the key before it.
    fn has_room(&self, content: &[u8]) -> bool {
        self.end + KEY_CHANGE_BYTES + HEAD + content.len() + TAG <= MAX_BATCH_BYTES
    }

    /// Seals one record, after a change of the key if that is due.
    #[inline]
    fn seal(&mut self, content: &[u8]) -> io::Result<()> {
        let sealed = content.len() + TAG;
        // The limits must also leave room for the change itself.
        let is_due =
            self.used.records + 1 >= self.limit || !self.used.has_room(&self.bounds, sealed + TAG);
        if is_due {
            self.change_key()?;
        }
        self.seal_one(content)
    }

    /// Seals a change of the key and changes to the next key.
    #[cold]
    fn change_key(&mut self) -> io::Result<()> {
        if !self.used.may_change(&self.bounds) {
            return Err(self.fail());
        }
        self.seal_one(&[])?;
        self.cipher.change();
        self.used = Use::default();
        Ok(())
    }

    /// Seals a record after the others. If that is not possible, clears the rest of the buffer and fails.
    #[inline]
    fn seal_one(&mut self, content: &[u8]) -> io::Result<()> {
        let sealed = content.len() + TAG;
        let (Ok(length), false) = (u16::try_from(sealed), self.failed) else {
            return Err(self.fail());
        };
        if !self.used.has_room(&self.bounds, sealed) {
            return Err(self.fail());
        }
        let end = self.end + HEAD + sealed;
        let Some(record) = self.out.get_mut(self.end..end) else {
            return Err(self.fail());
        };
        let (head, place) = record.split_at_mut(HEAD);
        head.copy_from_slice(&length.to_be_bytes());
        self.cipher.seal(content, place);
        self.used.count(sealed);
        self.end = end;
        Ok(())
    }

    /// Prevents any further sealing, and clears the rest of the buffer.
    #[cold]
    fn fail(&mut self) -> io::Error {
        self.failed = true;
        self.out[self.end..].fill(0);
        broken("a record cannot be sealed: the key is used up")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ciphers;

    #[test]
    fn pieces_of_a_part_are_of_one_size_and_end_with_it() {
        let parts = [24, 0, MAX_CONTENT_BYTES, MAX_CONTENT_BYTES + 1, 1 << 18]
            .map(|length| vec![1; length]);
        let slices = parts.each_ref().map(|part| IoSlice::new(part));
        let lengths: Vec<usize> = pieces(&slices).map(<[u8]>::len).collect();
        let fifth = (1 << 18) / 5 + 1;
        let expected = [
            24,
            MAX_CONTENT_BYTES,
            32_760,
            32_760,
            fifth,
            fifth,
            fifth,
            fifth,
            fifth - 1,
        ];
        assert_eq!(lengths, expected);
    }

    /// Also if more is sent afterwards.
    #[test]
    fn what_has_no_room_does_not_go_out() {
        let [cipher, _] = ciphers();
        let mut sealer = Sealer::new(cipher, Bounds::CONNECTION, u64::MAX);
        sealer.seal_one(b"sound").unwrap();
        let sound = sealer.out[..sealer.end].to_vec();
        // Room for the content, but not for its tag.
        sealer.out = sealer.out[..sealer.end + HEAD + 10].into();
        sealer.out[sound.len()..].fill(9);
        assert!(sealer.seal_one(b"a secret").is_err());
        assert!(sealer.seal_one(b"").is_err());
        let mut out = vec![];
        let all = sealer.flush(|bytes| {
            out.extend_from_slice(bytes);
            Ok(Some(bytes.len()))
        });
        assert!(all.unwrap() && out == sound);
        assert!(sealer.out[sound.len()..].iter().all(|&byte| byte == 0));
        assert!(
            sealer
                .send(&[IoSlice::new(b"more")], |_| panic!("it goes out"))
                .is_err()
        );
    }
}
