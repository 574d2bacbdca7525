//! Messages that wait for their receive, wherever their data is.

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
    /// Data held here.
    Bytes(Held),
    /// A message of a task to itself, with the credit to return when it is received.
    Told(Held, ReceiptCredit),
    /// An offer: the data is still at the sender.
    Offer(Offer),
    /// A synchronous message to this task itself, still in user memory, with the send's request.
    Own(Views, u32),
    /// An offer that is being received early: the request that receives it, and the memory for it.
    Arriving(u32, Views),
    /// Data in memory that both tasks can access.
    Loan { place: u64, total: u64 },
    /// Withdrawn by its sender after it was taken out of matching: its length and the reason.
    Withdrawn(usize, Error),
}

/// Memory overhead of a held message, in bytes: its description and its entries in the lists that matching uses. The list for its tag may have
/// been made for this message alone, so it is included.
pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 256;
const _: () = assert!(Unexpected::<Body>::MESSAGE_OVERHEAD_BYTES <= MESSAGE_OVERHEAD_BYTES);

/// Returns how much of the buffer a held message of this many bytes takes, in bytes.
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

    /// Returns how much of the buffer the message takes, in bytes.
    pub(crate) fn charge(&self) -> usize {
        match self {
            Body::Bytes(_) | Body::Told(..) | Body::Arriving(..) => charge(self.length()),
            Body::Offer(_) | Body::Own(..) | Body::Loan { .. } | Body::Withdrawn(..) => 0,
        }
    }

    /// Returns the offer, if the data is still at the sender.
    pub(crate) fn offer(&self) -> Option<Offer> {
        match self {
            Body::Offer(offer) => Some(*offer),
            _ => None,
        }
    }
}

/// Returns the status that a receive of this message would have.
pub(crate) fn status_of(message: &Waiting<Body>) -> Status {
    Status {
        source: message.source as i32,
        tag: message.tag,
        length: message.body.length(),
        context: message.context,
    }
}
