//! Secure channels over a byte stream, between two who share a key: a handshake of Noise (`Noise_NNpsk0_25519_AESGCM_SHA256`, by `snow`), and
//! records under keys that come of it, sealed with AEGIS-128X2 (`aegis`).
//!
//! Nothing here knows of tasks, ranks, sockets or clocks. The caller of this crate moves the bytes, bounds the time of a
//! handshake, and ends the stream at the first error.
//!
//! ```text
//! caller                                           callee
//! first: ephemeral key, tag (48 bytes)  ──>        no answer unless it was sealed under the shared key
//!                      <── second: ephemeral key, tag (48 bytes)
//! third: a record without content, no head (16) ──>  the caller is there now
//! records                               <──>       records
//! ```
//!
//! # Handshake
//!
//! - *Key.* Each of the three is sealed under the shared key. Nobody without it can make one, or tell what is in it.
//! - *Prologue.* Both ends give what they have said to each other before, such as names and versions. The name of the records' cipher
//!   goes before that. If the two differ in a byte, no message opens: so an end that would seal records otherwise is refused here.
//! - *Freshness.* The callee's second message depends on the caller's ephemeral key, and the caller's third on the callee's. A
//!   first message that is sent again gets a new second message, and nothing that was recorded opens after that. So a [`Callee`]
//!   gives out a [`Session`] only for the third.
//! - *Secrecy.* Keys come from the ephemeral keys and the shared key. Somebody who learns the shared key later reads nothing that was said
//!   before; one who breaks X25519 later needs the shared key as well.
//! - *Reflection.* A message that comes back to its sender opens nowhere: each has its place in the handshake, and each direction a
//!   key of its own.
//!
//! # Records
//!
//! ```text
//! length (2, big-endian) │ content, sealed (0 to 65519) │ tag (16)
//! ```
//!
//! Noise gives each direction a secret at the end of the handshake (`Split`, section 5.2). From that HMAC-SHA-256 makes, under labels that
//! name the cipher, the direction's secret, and from this a key and a mask, of 16 bytes each. The nonce of a record is the mask, mixed by
//! exclusive or with the record's number in its direction. That begins at 0, with the third message, and never comes twice on a stream. So
//! a record opens once, in its place and in its direction, or the stream is over: [`Session::recv`] gives an error, and gives one ever
//! after. The length is not sealed. Another length has other bytes tried as a record, which do not open; one below 16 is refused as soon as
//! it is there.
//!
//! A record without content is a *change of the key*, the last record under its key. HMAC makes the next secret from the one before, and
//! the next key and mask from that: nobody can come from them back to the key before. Each direction changes by itself. As the
//! change is a record, both ends change at the same place of the stream, and nobody else can make them. The key before is
//! overwritten in its place.
//!
//! [`Bounds`] say how long a key serves, and both ends hold the same:
//!
//! - A sender changes its key as the last record that `most` allows, or earlier if it was told to, and before the sealed bytes
//!   exceed `bytes`. It seals nothing under a key that is used up.
//! - A receiver opens no record beyond `most` or `bytes` of a key, and takes no change before `least` records. So a peer can neither
//!   wear a key out, nor have a receiver derive keys without end.
//!
//! # Bypass
//!
//! Records may also go beside the stream, each by itself, as a [`Bypass`] that a session gives out: under other keys, and none of them is missed.
//!
//! # Memory
//!
//! - *One pass on each side.* A record is sealed from the memory of one part into the outgoing buffer, and opened from the
//!   incoming buffer into the memory of one part, if it fits there; short ones are copied first, and sealed or opened in their place. Parts are cut into records of one size: so a record
//!   ends where a part does, and a receiver who asks in parts of the same lengths has each opened in its place. A record that does not
//!   fit is opened aside, and copied.
//! - *No allocation* after the handshake.
//! - *No plaintext goes out.* The outgoing buffer is only ever as long as what was sealed. Should a record have to be refused, the place is
//!   cleared, and nothing is sealed any more.
//! - *No plaintext comes out unproved.* Memory of a record that did not open is cleared.
#![forbid(unsafe_code)]

mod bounds;
mod bypass;
mod cipher;
mod handshake;
mod opener;
mod primitives;
mod record;
mod sealer;
mod session;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use bypass::Bypass;
pub use handshake::{Callee, Caller, FIRST, Key, SECOND, THIRD};
pub use record::{HEAD, MAX_CONTENT_BYTES, TAG};
pub use session::Session;
