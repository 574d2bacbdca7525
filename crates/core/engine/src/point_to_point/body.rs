//! Messages that wait for their receive, wherever their bytes are.

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Offer;

use crate::error::Error;
use crate::matching::{Unexpected, Waiting};
use crate::point_to_point::credits::ReceiptCredit;
use crate::request::Status;

/// A message that waits for its receive.
#[derive(Debug)]
pub(crate) enum Body {
    /// The bytes, held here.
    Bytes(Held),
    /// A message of a task to itself, with the credit that is due when it is received.
    Told(Held, ReceiptCredit),
    /// On offer: still with its sender.
    Offer(Offer),
    /// Sent to itself, synchronously: still in user memory, with the send's request.
    Own(Views, u32),
    /// On offer, and being taken in early: the request that does so, and where to.
    Arriving(u32, Views),
    /// In memory both can see.
    Loan { place: u64, total: u64 },
    /// Taken back after it had been taken out of matching: its length, and why.
    Withdrawn(usize, Error),
}

/// Bytes that keeping a message costs besides its own: what is known of it, and its places in the lists under matching, of which
/// those for its tag may be its alone.
pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 256;
const _: () = assert!(Unexpected::<Body>::MESSAGE_OVERHEAD_BYTES <= MESSAGE_OVERHEAD_BYTES);

/// Returns the charge of a held message of this many bytes against the buffer, in bytes.
#[inline(always)]
pub(crate) fn charge(bytes: usize) -> usize {
    bytes.saturating_add(MESSAGE_OVERHEAD_BYTES)
}

impl Body {
    /// Returns the length of the message, in bytes.
    pub(crate) fn length(&self) -> usize {
        match self {
            Body::Bytes(bytes) | Body::Told(bytes, _) => bytes.len(),
            Body::Offer(offer) => offer.total as usize,
            Body::Own(views, _) | Body::Arriving(_, views) => views.len(),
            Body::Loan { total, .. } => *total as usize,
            Body::Withdrawn(length, _) => *length,
        }
    }

    /// Returns the bytes that it takes of the buffer for messages.
    pub(crate) fn charge(&self) -> usize {
        match self {
            Body::Bytes(_) | Body::Told(..) | Body::Arriving(..) => charge(self.length()),
            Body::Offer(_) | Body::Own(..) | Body::Loan { .. } | Body::Withdrawn(..) => 0,
        }
    }

    /// Returns the offer, if it is still with its sender.
    pub(crate) fn offer(&self) -> Option<Offer> {
        match self {
            Body::Offer(offer) => Some(*offer),
            _ => None,
        }
    }
}

/// Returns the status of a message, as its receive would tell it.
pub(crate) fn status_of(message: &Waiting<Body>) -> Status {
    Status {
        source: message.source as i32,
        tag: message.tag,
        length: message.body.length(),
        context: message.context,
    }
}
