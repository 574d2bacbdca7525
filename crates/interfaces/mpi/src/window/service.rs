//! The service of a window: a thread of each process that acts on its memory for processes that cannot reach it.
//!
//! Requests are messages in the window's hidden group. A target serves those of one process in their order: a reply to a
//! flush tells that all before it has happened, and the first error of it. A lock that somebody has is refused, and asked for again:
//! the service waits for nobody.
//!
//! Processes of the same host, whose memory the system copies, are asked for elements in many blocks only, through the [`inbox`].
//!
//! The protocol is here; `client` sends requests, `server` acts on them.

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

/// Requests have this tag. The tags of replies are the client's.
const REQUEST: c_int = 1;

/// Words of a request's head: what, the reply's tag, datatype, operator, words of the pieces, bytes of data.
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

/// The answer to a lock that somebody has.
const BUSY: u64 = u64::MAX;
