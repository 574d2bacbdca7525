//! The negotiation of a connection's bypass: whether one is due, and the peer's offer.

use regatta_wire::bypass::Offer;

/// Number of frames that must have been received on a connection before a bypass is offered.
pub(in crate::tcp) const FRAMES_BEFORE_OFFER: u32 = 32;

/// What has been received on a connection that concerns its bypass.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    offer: Option<Offer>,
    /// Whether a bypass is to be offered, or the peer's offer to be answered.
    is_due: bool,
    /// Number of frames received on the connection.
    frames: u32,
}

impl Negotiation {
    /// Counts a frame that was received on the connection.
    #[inline]
    pub(super) fn count_frame(&mut self) {
        self.frames = self.frames.wrapping_add(1);
        self.is_due |= self.frames == FRAMES_BEFORE_OFFER;
    }

    /// Records the peer's offer of a bypass.
    pub(super) fn offered(&mut self, offer: Offer) {
        (self.offer, self.is_due) = (Some(offer), true);
    }

    /// Returns whether a bypass is to be offered, or an offer to be taken.
    #[inline]
    pub(in crate::tcp) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Records that the caller handles what was due.
    pub(in crate::tcp) fn begin(&mut self) {
        self.is_due = false;
    }

    pub(in crate::tcp) fn take_offer(&mut self) -> Option<Offer> {
        self.offer.take()
    }
}
