//! The service of a window: a thread of each process that acts on its memory for processes that cannot access it
//! directly.
//!
//! Requests are messages in the window's hidden group. A target serves the requests of one process in order. A reply to
//! a flush says that all requests before it have been executed, and returns their first error. A lock that another
//! process holds is refused, and requested again: the service never waits.
//!
//! Processes on the same host, whose memory the kernel can copy, are asked only for elements in many blocks, through
//! the [`inbox`].
//!
//! This file has the protocol; `client` sends requests, `server` executes them.

mod client;
mod inbox;
mod mailbox;
mod page;
mod server;

use std::ffi::c_int;

pub use client::{by_either, flush, get, lock, put, stop, swap, unlock, update};
pub use inbox::{Address, add, close, open, remove, serve_own};
pub use mailbox::Mailbox;
pub use server::start;

/// The tag of requests. Tags of replies are chosen by the client.
const REQUEST: c_int = 1;

/// Number of words of a request's header: action, tag of the reply, datatype, operator, number of words of the pieces,
/// number of data bytes.
const HEAD: usize = 6;

const PUT: u64 = 1;
const GET: u64 = 2;
const UPDATE: u64 = 3;
const FETCH: u64 = 4;
const SWAP: u64 = 5;
const FLUSH: u64 = 6;
const LOCK_ALONE: u64 = 7;
const LOCK_TOGETHER: u64 = 8;
const UNLOCK_ALONE: u64 = 9;
const UNLOCK_TOGETHER: u64 = 10;
const STOP: u64 = 11;

/// The reply to a request for a lock that another process holds.
const BUSY: u64 = u64::MAX;
