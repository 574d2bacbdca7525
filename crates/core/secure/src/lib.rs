//! Secure channels over a byte stream, between two ends that share a key: a Noise handshake
//! (`Noise_NNpsk0_25519_AESGCM_SHA256`, from `snow`), and records under keys derived from it, sealed with AEGIS-128X2
//! (`aegis`).
//!
//! This crate knows nothing of tasks, ranks, sockets or clocks. Its caller transfers the bytes, limits the time of a
//! handshake, and ends the stream at the first error.
//!
//! ```text
//! caller                                           callee
//! first: ephemeral key, tag (48 bytes)  ──>        no answer unless it was sealed under the shared key
//!                      <── second: ephemeral key, tag (48 bytes)
//! third: a record without content, no header (16) ──> proves that the caller is not a replay
//! records                               <──>       records
//! ```
//!
//! # Handshake
//!
//! - *Key.* Each of the three messages is sealed under the shared key. Without it a message can neither be made nor
//!   read.
//! - *Prologue.* Both ends pass in what they have sent to each other before, such as names and versions. The name of
//!   the records' cipher is put in front. If the two prologues differ in a byte, no message opens, so an end with a
//!   different cipher is refused here.
//! - *Freshness.* The callee's second message depends on the caller's ephemeral key, and the caller's third on the
//!   callee's. A replayed first message gets a new second message, and no recorded message opens after that. So a
//!   [`Callee`] returns a [`Session`] only for the third message.
//! - *Forward secrecy.* Keys are derived from the ephemeral keys and the shared key. An attacker who learns the shared
//!   key later cannot read what was sent before; one who breaks X25519 later needs the shared key as well.
//! - *Reflection.* A message that is sent back to its sender does not open: each message has its position in the
//!   handshake, and each direction has its own key.
//!
//! # Records
//!
//! ```text
//! length (2, big-endian) │ content, sealed (0 to 65519) │ tag (16)
//! ```
//!
//! Noise gives each direction a secret at the end of the handshake (`Split`, section 5.2). From it HMAC-SHA-256
//! derives, under labels that name the cipher, the direction's secret, and from that a key and a mask of 16 bytes each.
//! The nonce of a record is the mask XORed with the record's number in its direction. The numbers begin at 0 with the
//! third message and are never repeated on a stream. So a record opens only once, at its position and in its direction;
//! otherwise the stream is over: [`Session::recv`] returns an error, and does so ever after. The length is not
//! authenticated. With a changed length, other bytes are tried as a record and do not open; a length below 16 is
//! refused as soon as it has been received.
//!
//! A record without content is a *change of the key*, the last record under its key. HMAC derives the next secret from
//! the current one, and from that the next key and mask; the previous key cannot be computed from them. Each direction
//! changes its key independently. As the change is a record, both ends change at the same position in the stream, and
//! an attacker cannot cause a change. The previous key is overwritten in place.
//!
//! [`Bounds`] limit the use of a key. Both ends have the same:
//!
//! - A sender changes its key at the latest with the last record that `most` allows, or earlier if told to, and before
//!   the sealed bytes exceed `bytes`. It seals nothing under a key that has reached its limits.
//! - A receiver opens no record beyond `most` or `bytes` of a key, and accepts no change before `least` records. So a
//!   peer can neither overuse a key nor make a receiver derive keys endlessly.
//!
//! # Bypass
//!
//! Records may also be sent beside the stream, one by one, with a [`Bypass`] from the session. They are under different
//! keys, and a lost record is not noticed.
//!
//! # Memory
//!
//! - *One pass on each side.* A record is sealed from the memory of one part into the outgoing buffer, and opened from
//!   the incoming buffer into the memory of one part, if it fits there. Short records are copied first, and sealed or
//!   opened in place. Parts are cut into records of equal size, so a record ends where its part ends, and a receiver
//!   that asks for parts of the same lengths gets each record opened in place. A record that does not fit is opened
//!   into a separate buffer and copied.
//! - *No allocation* after the handshake.
//! - *No plaintext is sent.* The outgoing buffer is only as long as what was sealed. If a record has to be refused, its
//!   memory is cleared, and nothing more is sealed.
//! - *No unauthenticated plaintext is returned.* The memory of a record that did not open is cleared.
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
