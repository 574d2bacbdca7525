//! Connections between programs that know one key, and waiting for what comes over them.
//!
//! [`dial`] and [`listener`] make connections, [`handshake`] proves both ends to each other, a [`channel`] carries bytes, as they are
//! or encrypted. A [`packet_socket`] carries frames beside it. [`calls`] puts these together for programs that are no tasks. [`ready`] waits for descriptors,
//! [`local_socket`] is for processes of one host, which find each other in a [`private_directory`]; [`library_thread`] makes threads, which
//! take no signals ([`signal_mask`]), and [`last_thread`] ends the process when only such are left.

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
