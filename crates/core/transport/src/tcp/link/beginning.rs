//! The beginning of a connection on a link: the first parcel in each direction says how far its sender got before.

use std::io;

use regatta_connection::channel::Channel;
use regatta_connection::dial;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::first_head::send_first;
use super::{Link, PEER_CLOSED, Trouble};

const NONSENSE: &str = "a connection begins with invalid data";

impl Link {
    /// Adopts an authenticated connection in place of the previous one, and sends the peer the position that this
    /// side has reached.
    pub(in crate::tcp) fn adopt(
        &mut self,
        mut channel: Channel,
        called: bool,
    ) -> Result<(), Trouble> {
        // Bytes received on the previous connection need not be repeated. A peer that has ended since could not
        // repeat them.
        self.read_out();
        self.forget_connection();
        self.bypass = None;
        let said = send_first(&mut channel, &self.first_head());
        self.state.adopted(channel, called);
        Ok(said?)
    }

    /// Receives the first parcel of a connection as far as it has arrived, but no byte of the parcels behind it.
    /// Fails if the connection ends before.
    pub(in crate::tcp) fn begin(&mut self) -> io::Result<()> {
        let Some(first) = self.state.read_first_head()? else {
            return Ok(());
        };
        let first = first.decoded();
        if let Err(trouble) = self.begin_with(first) {
            self.trouble(trouble);
        }
        Ok(())
    }

    fn begin_with(&mut self, first: Option<Head>) -> Result<(), Trouble> {
        if self.state.is_shut_out() {
            return Err(Trouble::Lost);
        }
        let first = first.ok_or(NONSENSE)?;
        if self.stall.refuses() {
            return Err(Trouble::Lost);
        }
        match first.parcel {
            Parcel::Resume => {}
            Parcel::Disowned => return Err(Trouble::Disowned),
            Parcel::Shortage => {
                self.stall.hear_refusal();
                return Err(Trouble::Lost);
            }
            Parcel::Closed => return Err(PEER_CLOSED.into()),
            _ => return Err(NONSENSE.into()),
        }
        if let Some(channel) = self.state.begun() {
            let _ = dial::set_keepalive(channel, false);
        }
        self.resume(&first)?;
        self.try_pump(1).map(drop)
    }

    /// Continues over a new connection, whose first parcel from the peer has this header.
    pub(in crate::tcp) fn resume(&mut self, head: &Head) -> Result<(), Trouble> {
        let taken = head.word.checked_sub(head.context.into());
        let taken = taken.ok_or("a connection resumes before the data already received")?;
        if !self.outbox.rewind(head.word, taken)? {
            return Err(Trouble::Lost);
        }
        self.streams.resume();
        self.outbox.keep_late(self.inbox.taken);
        self.receipts.tell(self.inbox.taken);
        self.state.resumed();
        self.reception.expect_more();
        Ok(())
    }

    /// Returns the first parcel of a connection: the position that this side has reached, or the reason not to
    /// continue. The header counts bytes that have been received and not taken separately: the peer must not repeat
    /// them, but they still use its window.
    pub(in crate::tcp) fn first_head(&self) -> [u8; HEAD] {
        let parcel = match self.state.fault() {
            _ if self.stall.refuses() => Parcel::Shortage,
            _ if self.state.is_cut_for_good() => Parcel::Disowned,
            None => Parcel::Resume,
            Some(_) => Parcel::Closed,
        };
        let untaken = self.inbox.reached - self.inbox.taken;
        Head::bare(parcel, untaken as u32, self.inbox.reached).encode()
    }
}
