//! Memory shared between the tasks of a host: segments, rings, pipes, doorbells, copies.
//!
//! This is the lowest layer. It knows bytes, words, processes, and tasks as numbers that own pieces; it knows nothing
//! of messages, tags or groups. Offsets, lengths and positions that another process can write are *untrusted* here:
//! they are checked before use, so a process that overwrites them causes an error value ([`Corrupt`]) and never a
//! fault. Payload bytes are copied and never interpreted. Some memory here is private to a process: its lock, its keys,
//! messages that wait.
//!
//! | module | what it is |
//! |---|---|
//! | [`segment`] | an anonymous, sealed memfd with allocated memory, mapped by every task of a job |
//! | [`ring`] | single producer, single consumer: 64-byte lines with in-line messages |
//! | [`payload_buffer`] | the byte ring beside a line ring, for payloads that do not fit into a line |
//! | [`pipe`] | a stream buffer that sender and receiver copy through at the same time |
//! | [`shared_barrier`] | a barrier that is lent to a group, and can be withdrawn at any moment |
//! | [`block`] | the owner and the readers of a block of memory; reuse of the blocks of dead tasks |
//! | [`stack`] | pieces that any task pushes and pops |
//! | [`list`] | pieces that any task pushes, walked while others push, or taken all at once |
//! | [`ends`] | the two tasks that use a ring or a pipe, and when it can be reused |
//! | [`losses`] | a counter that says when the states of tasks must be read again |
//! | [`making`] | memory that was allocated and is not on a list yet, found when its task dies |
//! | `memory_limit` | the memory that control groups leave to this process, and that its host has left |
//! | [`mod@layout`] | the layout of all of these, for the test that compares it with a version |
//! | [`bell`] | sleeping and waking across processes without a fence on the fast path |
//! | [`wake_request`] | the tasks that a task waiting for several others asks to wake it |
//! | [`error_checking_mutex`] | a mutex that records its holder, for [`biased`] |
//! | `futex` | sleeping on a word, for [`bell`], [`segment`] and [`error_checking_mutex`] |
//! | `sync` | atomics, or those of the model checker |
//! | [`views`], `strided_copy` | user memory, contiguous or strided, copied in place |
//! | [`copy`], [`prefetch`] | copies to and from lines owned by another core; prefetching of lines |
//! | [`remote`] | reading the memory of another process through the kernel in a single copy |
//! | [`mod@ticks`] | a clock for comparing copies |
//! | [`held`] | the bytes of a message that waits |
//! | [`combine`] | reduction operators on raw elements |
//! | [`biased`] | a lock that costs its first thread almost nothing |
//! | [`uncancelled`] | calls in which a thread is not cancelled |
//! | [`undumped`] | keys, in memory that is excluded from core dumps |

pub mod bell;
pub mod biased;
pub mod block;
pub mod combine;
pub mod copy;
pub mod ends;
pub mod error_checking_mutex;
mod futex;
pub mod held;
pub mod layout;
pub mod list;
pub mod losses;
pub mod making;
mod memory_limit;
pub mod payload_buffer;
pub mod pipe;
pub mod prefetch;
pub mod remote;
pub mod ring;
pub mod segment;
pub mod shared_barrier;
#[cfg(all(test, not(loom)))]
#[path = "../../../../tests/src/skipped.rs"]
mod skipped;
pub mod stack;
mod strided_copy;
mod sync;
pub mod ticks;
pub mod uncancelled;
pub mod undumped;
pub mod views;
pub mod wake_request;

/// The error for shared memory whose contents no correct peer writes.
///
/// Nothing was changed locally. The process that wrote it is at fault; the structure in which it was found must not
/// be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// What was found, for the message to the user.
    pub what: &'static str,
}

/// Size of a cache line, in bytes.
pub const LINE: usize = 64;
