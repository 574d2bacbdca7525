//! The link between this task and one peer on another host. It outlives the connections that it uses.
//!
//! Each part of a [`Link`] is a struct with private fields in its own file in the folder beside this one. [`state`]
//! is the life cycle of the link.

mod beginning;
mod chunks;
pub(super) mod farewell;
mod first_head;
mod giving_up;
mod negotiation;
mod probes;
mod receipts;
mod receiving;
mod reception;
mod sending;
mod state;
#[cfg(test)]
mod state_tests;
mod streams;

use regatta_wire::link::{Head, Parcel};

use super::bypass::Bypass;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::stall::Stall;
use first_head::send_first;
use negotiation::Negotiation;
use probes::Probes;
use receipts::Receipts;
use reception::Reception;
use state::LinkState;
use streams::Streams;

/// Maximum size of a frame's payload, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 16 << 10;

/// The fault of a peer that sent [`Parcel::Closed`].
const PEER_CLOSED: &str =
    "it closed the connection, because it received invalid data from this task";

/// The reason why a connection cannot be used any more.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection is lost; it can be replaced.
    Lost,
    /// The peer broke the protocol.
    Corrupt(&'static str),
    /// The peer's table says that this task is dead.
    Disowned,
}

impl From<std::io::Error> for Trouble {
    fn from(_: std::io::Error) -> Trouble {
        Trouble::Lost
    }
}

impl From<&'static str> for Trouble {
    fn from(what: &'static str) -> Trouble {
        Trouble::Corrupt(what)
    }
}

/// The link to one peer on another host: what was sent and received, over any number of connections.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) state: LinkState,
    pub(super) outbox: Outbox,
    pub(super) inbox: Inbox,
    pub(super) streams: Streams,
    pub(super) reception: Reception,
    pub(super) receipts: Receipts,
    /// The bypass beside the connection.
    pub(super) bypass: Option<Box<Bypass>>,
    pub(super) negotiation: Negotiation,
    pub(super) stall: Stall,
    pub(super) probes: Probes,
}

impl Link {
    pub(crate) fn new() -> Link {
        Link::with(LinkState::new(), Streams::new())
    }

    /// Returns a link to a peer that is gone and whose earlier link has been freed (see [`super::freeing`]).
    pub(crate) fn forgotten() -> Link {
        Link::with(LinkState::gone(), Streams::forgotten())
    }

    fn with(state: LinkState, streams: Streams) -> Link {
        Link {
            state,
            outbox: Outbox::new(),
            inbox: Inbox::new(),
            streams,
            reception: Reception::default(),
            receipts: Receipts::default(),
            bypass: None,
            negotiation: Negotiation::default(),
            stall: Stall::default(),
            probes: Probes::default(),
        }
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Ends the connection, for this reason. A peer that broke the protocol is notified, if a parcel can begin now.
    pub(crate) fn trouble(&mut self, trouble: Trouble) {
        if matches!(trouble, Trouble::Corrupt(_)) {
            self.send_last(Parcel::Closed);
        }
        self.forget_connection();
        self.state.ended();
        if !matches!(trouble, Trouble::Lost) {
            self.bypass = None;
        }
        match trouble {
            Trouble::Lost => {}
            Trouble::Corrupt(what) => self.state.break_protocol(what),
            Trouble::Disowned => self.state.disown(),
        }
    }

    /// Ends the link to a peer that is dead according to the table: neither side sends anything more. If the peer
    /// lives after all (its host had been cut off), it is notified of the reason.
    pub(crate) fn part(&mut self) {
        if self.state.part() {
            // If the parcel does not arrive, it is the first one of the next connection.
            self.send_last(Parcel::Disowned);
            self.trouble(Trouble::Lost);
        }
    }

    /// Sends this parcel as the last one of a connection, if a parcel can begin now.
    fn send_last(&mut self, parcel: Parcel) {
        if let Some(channel) = self.state.channel_mut()
            && channel.is_flushed()
            && self.outbox.is_between()
        {
            let _ = send_first(channel, &Head::bare(parcel, 0, 0).encode());
        }
    }

    /// Resets all parts for the next connection, which repeats the parcels that were in transit.
    fn forget_connection(&mut self) {
        self.note_end_for_bypass();
        self.inbox.cut();
        self.outbox.forget_connection();
        self.reception.cut();
        self.receipts
            .begin_again(self.inbox.taken, self.inbox.reached);
        self.negotiation = Negotiation::default();
        self.probes.forget_question();
    }

    /// Returns whether there is work of which no event will notify this task.
    #[inline]
    pub(crate) fn is_restless(&self) -> bool {
        self.state.is_lost() || self.is_blocked() || !self.probes.is_empty()
    }

    /// Returns whether the socket has refused a part of what was to be written.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        let channel = self.state.channel();
        channel.is_some_and(|channel| !channel.is_flushed()) || !self.outbox.is_written()
    }

    /// Returns whether there is something to write as soon as the socket has room.
    pub(crate) fn wants_room(&self) -> bool {
        let mut outs = self.streams.outs().iter();
        self.is_blocked() || outs.any(|stream| stream.sendable().is_some())
    }

    /// Returns whether anything waits for a connection.
    pub(crate) fn needs_connection(&self) -> bool {
        !self.outbox.is_settled() || !self.streams.outs().is_empty()
    }
}

#[cfg(test)]
impl Link {
    /// Returns a link with this connection, without the first parcels.
    pub(super) fn over(channel: regatta_connection::channel::Channel) -> Link {
        let mut link = Link::new();
        link.state.adopted(channel, false);
        link.state.begun();
        link
    }
}
