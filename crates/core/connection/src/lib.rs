//! Connections between programs that share a key, and waiting for them.
//!
//! [`dial`] and [`listener`] make connections, [`handshake`] authenticates both ends, and a [`channel`] carries bytes,
//! encrypted or not. A [`packet_socket`] carries frames beside it. [`calls`] combines these for programs that are not
//! tasks. [`ready`] waits for descriptors. [`local_socket`] is for processes of one host, which find each other in a
//! [`private_directory`]. [`library_thread`] starts threads that take no signals ([`signal_mask`]), and [`last_thread`]
//! ends the process when only such threads are left.

pub mod calls;
pub mod channel;
pub mod dial;
pub mod handshake;
#[cfg(test)]
mod handshake_tests;
pub mod last_thread;
pub mod library_thread;
pub mod listener;
pub mod local_socket;
pub mod packet_socket;
pub mod private_directory;
pub mod ready;
pub mod signal_mask;
mod socket;
