//! A large message on its way in: the receiver's side of its stream.

use regatta_memory::views::Views;

use super::TURN;
use crate::transport::{Fault, Flow, Peer, Streams};

/// A message being received.
pub(crate) struct Incoming<S: Streams> {
    pub(crate) from: Peer,
    /// `None`: the receive was taken back; the bytes are passed over, for the sender's sake.
    pub(super) request: Option<u32>,
    pub(super) bulk: Option<S::Bulk>,
    /// The sender's name for it.
    pub(super) token: u64,
    pub(super) total: u64,
    pub(super) tag: i32,
}

impl<S: Streams> Incoming<S> {
    /// Moves some of the message; bytes beyond `into` are dropped. True: some bytes moved.
    pub(super) fn drain(&mut self, streams: &mut S, into: &Views) -> Result<bool, Fault> {
        let Some(bulk) = self.bulk.as_mut() else {
            return Ok(false);
        };
        let mut moved = false;
        for _ in 0..TURN {
            match streams.drain(self.from, bulk, into, self.total)? {
                Flow::Still => break,
                Flow::Moved => moved = true,
                Flow::Finished => {
                    self.bulk = None;
                    return Ok(true);
                }
            }
        }
        Ok(moved)
    }
}
