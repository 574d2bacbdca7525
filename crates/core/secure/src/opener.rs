//! Opens the records of the other end.
//!
//! ```text
//! bytes: opened | not opened | free
//!               start        end
//! aside: returned | opened, not returned
//!                 plain
//! ```

use std::io::{self, IoSliceMut};
use std::ops::Range;

use crate::bounds::{Bounds, Use};
use crate::cipher::Cipher;
use crate::record::{HEAD, MAX_BODY_BYTES, MAX_CONTENT_BYTES, TAG, broken, length};

/// Size of the buffer for one receive, in bytes: four of the longest records.
const RECEIVE_BUFFER_BYTES: usize = 4 * (HEAD + MAX_BODY_BYTES);

#[derive(Debug)]
pub(crate) struct Opener {
    cipher: Cipher,
    bounds: Bounds,
    used: Use,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// The content of a record that did not fit into the caller's part.
    aside: Box<[u8]>,
    plain: Range<usize>,
    /// Whether the last read from the stream filled the buffer, so that there may be more.
    more: bool,
    failed: bool,
}

/// Returns the rest of the part that contains byte `at`, counted over all parts.
fn place<'a>(into: &'a mut [IoSliceMut<'_>], at: usize) -> &'a mut [u8] {
    let mut skip = at;
    for part in into {
        if skip < part.len() {
            return &mut part[skip..];
        }
        skip -= part.len();
    }
    &mut []
}

impl Opener {
    pub(crate) fn new(cipher: Cipher, bounds: Bounds) -> Opener {
        Opener {
            bounds,
            used: Use::after(cipher.number()),
            cipher,
            bytes: vec![0; RECEIVE_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            aside: vec![0; MAX_CONTENT_BYTES].into_boxed_slice(),
            plain: 0..0,
            more: false,
            failed: false,
        }
    }

    /// Returns whether something can be returned without more bytes of the stream, or the stream may have more.
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        self.more || !self.plain.is_empty() || !matches!(self.whole(), Ok(None))
    }

    /// Returns the first unopened record, if it has been received completely.
    #[inline]
    fn whole(&self) -> io::Result<Option<Range<usize>>> {
        let Some(head) = self.bytes[self.start..self.end].first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let begin = self.start + HEAD;
        let end = begin + length(*head)?;
        Ok((end <= self.end).then_some(begin..end))
    }

    /// Receives as much as is available into `into`. Returns `None` if there is nothing. After an invalid record it
    /// returns only errors.
    pub(crate) fn recv(
        &mut self,
        into: &mut [IoSliceMut<'_>],
        mut recv: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        if self.failed {
            return Err(broken("a stream continues after its end"));
        }
        let room: usize = into.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < room {
            if !self.plain.is_empty() {
                done += self.hand_out(place(into, done));
            } else if let Some(record) = self.checked(Opener::whole)? {
                let place = place(into, done);
                if record.len() - TAG <= place.len() {
                    done += self.open(record, Some(place))?;
                } else if done == 0 {
                    self.open(record, None)?;
                } else {
                    // The next call may have room for this record.
                    break;
                }
            } else if done > 0 && !self.more {
                // Save a read from the stream that would return nothing.
                break;
            } else {
                match self.look(&mut recv) {
                    Ok(true) => {}
                    Ok(false) => break,
                    // Return the records from before the end first.
                    Err(_) if done > 0 => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((done > 0).then_some(done))
    }

    /// Reads bytes from the stream. Returns whether there were any.
    fn look(
        &mut self,
        recv: &mut impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        self.make_room();
        let asked = self.bytes.len() - self.end;
        let came = recv(&mut self.bytes[self.end..])?;
        self.more = came == Some(asked);
        self.end += came.unwrap_or(0);
        Ok(came.is_some())
    }

    /// Makes an error of the other end final.
    #[inline]
    fn checked<T>(&mut self, read: impl FnOnce(&Opener) -> io::Result<T>) -> io::Result<T> {
        let result = read(self);
        self.failed |= result.is_err();
        result
    }

    /// Opens a record into `place`, which has room for it, or into `aside`. Returns how many bytes were written to
    /// `place`.
    #[inline]
    fn open(&mut self, record: Range<usize>, place: Option<&mut [u8]>) -> io::Result<usize> {
        let opened = self.try_open(record, place);
        self.failed |= opened.is_err();
        opened
    }

    #[inline]
    fn try_open(&mut self, record: Range<usize>, place: Option<&mut [u8]>) -> io::Result<usize> {
        let (sealed, content) = (record.len(), record.len() - TAG);
        if !self.used.has_room(&self.bounds, sealed) {
            return Err(broken("a key was not changed in time"));
        }
        let record = &self.bytes[record];
        let is_aside = place.is_none();
        let place = place.unwrap_or(&mut self.aside[..]);
        if !self.cipher.open(record, &mut place[..content]) {
            return Err(broken("a record fails authentication at its position"));
        }
        self.start += HEAD + sealed;
        if content == 0 {
            return self.change_key();
        }
        self.used.count(sealed);
        if is_aside {
            self.plain = 0..content;
            return Ok(0);
        }
        Ok(content)
    }

    /// Changes the key: the record that was opened is the last under its key.
    #[cold]
    fn change_key(&mut self) -> io::Result<usize> {
        if !self.used.may_change(&self.bounds) {
            return Err(broken("a key was changed too early"));
        }
        self.cipher.change();
        self.used = Use::default();
        Ok(0)
    }

    /// Copies content from `aside` to `place`. Returns how many bytes it copied.
    fn hand_out(&mut self, place: &mut [u8]) -> usize {
        let from = &self.aside[self.plain.clone()];
        let keep = place.len().min(from.len());
        place[..keep].copy_from_slice(&from[..keep]);
        self.plain.start += keep;
        keep
    }

    /// Moves the unopened bytes, at most the beginning of a record, to the front of the buffer.
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }
}
