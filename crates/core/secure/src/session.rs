//! The two directions of a channel after its handshake.

use std::io::{self, IoSlice, IoSliceMut};

use crate::bounds::Bounds;
use crate::bypass::{Bypass, Secrets};
use crate::cipher::Cipher;
use crate::opener::Opener;
use crate::sealer::Sealer;

/// One end of a secure channel. Bytes go in and come out in records, which the functions given take to the stream and from it; none
/// of them waits.
#[derive(Debug)]
pub struct Session {
    sealer: Sealer,
    opener: Opener,
    /// Of a bypass that nobody has asked for yet.
    bypass: Option<Box<Secrets>>,
    bounds: Bounds,
    records: u64,
}

impl Session {
    /// After a handshake, of which one direction has the last message behind it. The first cipher seals the records that this end sends.
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

    /// The keys of a bypass beside this stream. There is one: its keys are given out once.
    pub fn take_bypass(&mut self) -> Option<Bypass> {
        let secrets = self.bypass.take()?;
        Some(Bypass::new(&secrets, self.bounds, self.records))
    }

    /// Seals `from`, and has the records sent, as far as they are taken; how many bytes were sealed. `send` takes bytes to the stream: how
    /// many, or `None` if it takes none now. After an error nothing may be sent any more.
    #[inline]
    pub fn send(
        &mut self,
        from: &[IoSlice<'_>],
        send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<usize> {
        self.sealer.send(from, send)
    }

    /// Has sent what was sealed and not taken; whether that is all.
    #[inline]
    pub fn flush(
        &mut self,
        send: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<bool> {
        self.sealer.flush(send)
    }

    /// Whether the stream has taken all that was sealed.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.sealer.is_flushed()
    }

    /// Opens records into `into`, as far as they have come; how many bytes, or `None`: nothing now. `recv` brings bytes from the stream:
    /// how many, or `None` if there are none now. Memory of `into` behind what has come may be written to. An error: of the
    /// stream, or of the other end, and then for good.
    #[inline]
    pub fn recv(
        &mut self,
        into: &mut [IoSliceMut<'_>],
        recv: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        self.opener.recv(into, recv)
    }

    /// Whether there may be more than the last [`Session::recv`] gave, though it had room, without more bytes of the stream.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.opener.holds_back()
    }
}
