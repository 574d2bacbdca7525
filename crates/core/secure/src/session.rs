//! The two directions of a channel after its handshake.

use std::io::{self, IoSlice, IoSliceMut};

use crate::bounds::Bounds;
use crate::bypass::{Bypass, Secrets};
use crate::cipher::Cipher;
use crate::opener::Opener;
use crate::sealer::Sealer;

/// One end of a secure channel. The functions passed in transfer the records to and from the stream; none of them may
/// block.
#[derive(Debug)]
pub struct Session {
    sealer: Sealer,
    opener: Opener,
    /// The secrets of the bypass, until it is taken.
    bypass: Option<Box<Secrets>>,
    bounds: Bounds,
    records: u64,
}

impl Session {
    /// Creates the session after a handshake, with the ciphers that have already processed its last message. The first
    /// cipher seals the records that this end sends.
    pub(crate) fn new(
        [sends, receives]: [Cipher; 2],
        bypass: Box<Secrets>,
        bounds: Bounds,
        records: u64,
    ) -> Session {
        Session {
            sealer: Sealer::new(sends, bounds, records),
            opener: Opener::new(receives, bounds),
            bypass: Some(bypass),
            bounds,
            records,
        }
    }

    /// Returns the bypass beside this stream, once; afterwards `None`.
    pub fn take_bypass(&mut self) -> Option<Bypass> {
        let secrets = self.bypass.take()?;
        Some(Bypass::new(&secrets, self.bounds, self.records))
    }

    /// Seals `from` and sends the records, as long as the stream takes them. Returns how many bytes were sealed. `send`
    /// writes bytes to the stream and returns how many it took, or `None` if it takes none now. After an error nothing
    /// more may be sent.
    #[inline]
    pub fn send(
        &mut self,
        from: &[IoSlice<'_>],
        send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        self.sealer.send(from, send)
    }

    /// Sends what was sealed and not taken yet. Returns whether everything has been sent.
    #[inline]
    pub fn flush(
        &mut self,
        send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        self.sealer.flush(send)
    }

    /// Returns whether the stream has taken everything that was sealed.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.sealer.is_flushed()
    }

    /// Opens the available records into `into`. Returns how many bytes, or `None` if there is nothing now. `recv` reads
    /// bytes from the stream and returns how many, or `None` if there are none now. Memory of `into` after the returned
    /// bytes may be overwritten. Fails with an error of the stream, or if the other end has sent an invalid record; the
    /// second error is final.
    #[inline]
    pub fn recv(
        &mut self,
        into: &mut [IoSliceMut<'_>],
        recv: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        self.opener.recv(into, recv)
    }

    /// Returns whether the next [`Session::recv`] may return something without more bytes of the stream, although the
    /// last one had room.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.opener.holds_back()
    }
}
