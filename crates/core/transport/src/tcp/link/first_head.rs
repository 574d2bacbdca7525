//! The first parcel of a connection. It is sent whole, and received without any byte of the parcels behind it.

use std::io::{self, IoSlice, IoSliceMut};

use regatta_connection::channel::Channel;
use regatta_wire::link::{HEAD, Head};

/// The first parcel of the peer, as far as it has been received.
#[derive(Debug, Default)]
pub(super) struct FirstHead {
    bytes: [u8; HEAD],
    have: usize,
}

impl FirstHead {
    /// Receives more of the parcel. Returns whether it is complete.
    pub(super) fn read(&mut self, channel: &mut Channel) -> io::Result<bool> {
        while self.have < HEAD {
            let place = &mut self.bytes[self.have..];
            match channel.recv(&mut [IoSliceMut::new(place)])? {
                Some(n) => self.have += n,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Returns the header, or `None` if it is invalid.
    pub(super) fn decoded(&self) -> Option<Head> {
        Head::decode(&self.bytes).ok()
    }
}

/// Sends the first parcel of a connection, or its last. Fails if the connection does not take all of it.
pub(super) fn send_first(channel: &mut Channel, bytes: &[u8]) -> io::Result<()> {
    match channel.send(&[IoSlice::new(bytes)])? {
        n if n == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
