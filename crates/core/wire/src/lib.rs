//! Frames: the messages between two engines, independent of the transport.
//!
//! A frame consists of a header ([`Frame`]) and a payload of known length. Eager frames carry the user's bytes; all
//! other kinds carry one of the bodies below, in little-endian words. This crate is pure: no I/O, no state, and every
//! decoder checks what it reads, because the bytes come from another process. `decode(encode(x)) == x`, and no input
//! panics; both are tested.
#![forbid(unsafe_code)]

pub mod bypass;
pub mod control;
pub mod deadlock_probe;
pub mod fields;
pub mod framing;
pub mod guardian;
pub mod hello;
pub mod join_request;
pub mod life;
pub mod link;
pub mod session;
pub mod world;

use std::fmt;

use fields::{joined, whole};

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A whole message; the payload is the user's bytes.
    Eager = 1,
    /// Offers a large or synchronous message: [`Offer`].
    Offer = 2,
    /// The receiver has matched an offer and names the stream to use: [`Clear`].
    Clear = 3,
    /// The receiver has begun to receive a synchronous message: [`Token`].
    Begun = 4,
    /// Announces a message that the receiver reads in place: [`Loan`].
    Loan = 5,
    /// The sender has withdrawn an offer, or asks whether it may: [`Withdrawn`].
    Withdrawn = 6,
    /// The receiver has returned an offer, as the sender asked: [`Token`].
    Void = 7,
}

impl Kind {
    /// Returns the kind that a byte stands for.
    #[inline(always)]
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Eager,
            2 => Kind::Offer,
            3 => Kind::Clear,
            4 => Kind::Begun,
            5 => Kind::Loan,
            6 => Kind::Withdrawn,
            7 => Kind::Void,
            _ => return None,
        })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: Kind,
    /// Separates the messages of libraries and collectives.
    pub context: u32,
    /// The message's tag; unused in `Clear`, `Begun` and `Void`. In `Withdrawn`, the engine's tag for
    /// revocations says that the group of the context is revoked.
    pub tag: i32,
}

/// Maximum size of the body of a frame that is not eager, in bytes.
pub const BODY: usize = 48;

/// The stream through which a message's bytes flow; made and read by the transport alone.
pub type Route = [u8; 24];

/// The error for bytes that are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message does not have the length that it states, or is of an unknown kind")
    }
}

impl std::error::Error for Malformed {}

/// Body of [`Kind::Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Length of the message, in bytes.
    pub total: u64,
    /// Identifies the message to its sender, in `Clear` and `Begun`.
    pub token: u64,
    /// The stream the sender has begun to fill, or zeros.
    pub route: Route,
    /// Whether the sender waits for `Begun`.
    pub synchronous: bool,
    /// Whether a stream has been begun.
    pub streaming: bool,
}

/// Body of [`Kind::Clear`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clear {
    /// The token of the offer.
    pub token: u64,
    /// The stream to fill.
    pub route: Route,
}

/// Body of [`Kind::Begun`] and [`Kind::Void`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u64);

/// Body of [`Kind::Loan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// Length of the message, in bytes.
    pub total: u64,
    /// Location of the message, for the transport.
    pub place: u64,
}

/// Body of [`Kind::Withdrawn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawn {
    /// The token of the offer.
    pub token: u64,
    /// Whether the stream holds the whole message, so that a receive that has begun can still complete.
    pub whole: bool,
    /// Whether the offer is withdrawn only if no receive has matched it. The answer is `Void` or `Begun`, and until
    /// then the stream is not touched.
    pub asks: bool,
}

impl Offer {
    /// Returns the encoded body.
    pub fn encode(&self) -> [u8; 48] {
        let flags = self.synchronous as u64 | (self.streaming as u64) << 1;
        let words = [self.total, self.token, flags].map(u64::to_le_bytes);
        joined(&[words.as_flattened(), &self.route])
    }

    /// Decodes the body.
    pub fn decode(bytes: &[u8]) -> Result<Offer, Malformed> {
        let (total, token, flags, route): (_, _, u64, _) = whole(bytes)?;
        let offer = Offer {
            total,
            token,
            route,
            synchronous: flags & 1 != 0,
            streaming: flags & 2 != 0,
        };
        (flags <= 3).then_some(offer).ok_or(Malformed)
    }
}

impl Clear {
    /// Returns the encoded body.
    pub fn encode(&self) -> [u8; 32] {
        joined(&[&self.token.to_le_bytes(), &self.route])
    }

    /// Decodes the body.
    pub fn decode(bytes: &[u8]) -> Result<Clear, Malformed> {
        let (token, route) = whole(bytes)?;
        Ok(Clear { token, route })
    }
}

impl Token {
    /// Returns the encoded body.
    pub fn encode(&self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Decodes the body.
    pub fn decode(bytes: &[u8]) -> Result<Token, Malformed> {
        whole(bytes).map(Token)
    }
}

impl Loan {
    /// Returns the encoded body.
    pub fn encode(&self) -> [u8; 16] {
        joined(&[&self.total.to_le_bytes(), &self.place.to_le_bytes()])
    }

    /// Decodes the body.
    pub fn decode(bytes: &[u8]) -> Result<Loan, Malformed> {
        let (total, place) = whole(bytes)?;
        Ok(Loan { total, place })
    }
}

impl Withdrawn {
    /// Returns the encoded body.
    pub fn encode(&self) -> [u8; 16] {
        let flags = self.whole as u64 | (self.asks as u64) << 1;
        joined(&[&self.token.to_le_bytes(), &flags.to_le_bytes()])
    }

    /// Decodes the body.
    pub fn decode(bytes: &[u8]) -> Result<Withdrawn, Malformed> {
        let (token, flags): (_, u64) = whole(bytes)?;
        let withdrawn = Withdrawn {
            token,
            whole: flags & 1 != 0,
            asks: flags & 2 != 0,
        };
        (flags <= 3).then_some(withdrawn).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            total: u64, token: u64, route: Route, synchronous: bool, streaming: bool,
        ) {
            let offer = Offer { total, token, route, synchronous, streaming };
            prop_assert_eq!(Offer::decode(&offer.encode()), Ok(offer));
            let clear = Clear { token, route };
            prop_assert_eq!(Clear::decode(&clear.encode()), Ok(clear));
            prop_assert_eq!(Token::decode(&Token(token).encode()), Ok(Token(token)));
            let loan = Loan { total, place: token };
            prop_assert_eq!(Loan::decode(&loan.encode()), Ok(loan));
            let withdrawn = Withdrawn { token, whole: synchronous, asks: streaming };
            prop_assert_eq!(Withdrawn::decode(&withdrawn.encode()), Ok(withdrawn));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(offer) = Offer::decode(&bytes) {
                prop_assert_eq!(&offer.encode()[..], &bytes[..]);
            }
            if let Ok(clear) = Clear::decode(&bytes) {
                prop_assert_eq!(&clear.encode()[..], &bytes[..]);
            }
            if let Ok(loan) = Loan::decode(&bytes) {
                prop_assert_eq!(&loan.encode()[..], &bytes[..]);
            }
            if let Ok(withdrawn) = Withdrawn::decode(&bytes) {
                prop_assert_eq!(&withdrawn.encode()[..], &bytes[..]);
            }
            prop_assert_eq!(Token::decode(&bytes).is_ok(), bytes.len() == 8);
        }
    }
}
