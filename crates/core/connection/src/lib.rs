//! Connections between programs that know one key, and waiting for what comes over them.
//!
//! [`dial`] and [`listener`] make connections, [`handshake`] proves both ends to each other, a [`channel`] carries bytes, as they are
//! or encrypted. A [`packet_socket`] carries frames beside it. [`calls`] puts these together for programs that are no tasks. [`ready`] waits for descriptors,
//! [`local_socket`] is for processes of one host, [`blocked_signals`] makes threads.

pub mod blocked_signals;
pub mod calls;
pub mod channel;
pub mod dial;
pub mod handshake;
#[cfg(test)]
mod handshake_tests;
pub mod listener;
pub mod local_socket;
pub mod packet_socket;
pub mod ready;
mod socket;
