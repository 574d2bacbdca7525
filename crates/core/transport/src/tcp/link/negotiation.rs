//! Which bypass a connection is to have: whether one is due, and the peer's offer.

use regatta_wire::bypass::Offer;

/// Number of frames that must have come on a connection before a bypass is offered.
pub(in crate::tcp) const FRAMES_BEFORE_OFFER: u32 = 32;

/// What a connection has brought that concerns a bypass beside it.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    offer: Option<Offer>,
    /// A bypass is to be offered, or the peer's offer to be answered.
    is_due: bool,
    /// Frames that have come on the connection.
    frames: u32,
}

impl Negotiation {
    /// A frame has come on the connection.
    #[inline]
    pub(super) fn count_frame(&mut self) {
        self.frames = self.frames.wrapping_add(1);
        self.is_due |= self.frames == FRAMES_BEFORE_OFFER;
    }

    /// The peer has offered a bypass.
    pub(super) fn offered(&mut self, offer: Offer) {
        (self.offer, self.is_due) = (Some(offer), true);
    }

    /// Whether a bypass is to be offered, or an offer to be taken.
    #[inline]
    pub(in crate::tcp) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Notes that the caller handles what was due.
    pub(in crate::tcp) fn begin(&mut self) {
        self.is_due = false;
    }

    pub(in crate::tcp) fn take_offer(&mut self) -> Option<Offer> {
        self.offer.take()
    }
}
