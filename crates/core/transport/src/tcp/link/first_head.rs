//! The first parcel of a connection, sent whole, and received no byte further: behind it parcels flow.

use std::io::{self, IoSlice, IoSliceMut};

use regatta_connection::channel::Channel;
use regatta_wire::link::{HEAD, Head};

/// The first parcel of the peer, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct FirstHead {
    bytes: [u8; HEAD],
    have: usize,
}

impl FirstHead {
    /// Receives more of it; whether it is whole.
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

    /// The head, if it makes sense.
    pub(super) fn decoded(&self) -> Option<Head> {
        Head::decode(&self.bytes).ok()
    }
}

/// Sends the first parcel of a connection, or a parcel that is to be its last. An error: it does not take it whole.
pub(super) fn send_first(channel: &mut Channel, bytes: &[u8]) -> io::Result<()> {
    match channel.send(&[IoSlice::new(bytes)])? {
        n if n == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
