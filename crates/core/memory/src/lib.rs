//! Memory shared between the tasks of a host: segments, rings, pipes, doorbells, copies.
//!
//! This is the lowest layer. It knows bytes, words, processes, and tasks as numbers to which pieces belong; it knows nothing
//! of messages, tags or groups. Offsets, lengths and positions that another process can write are *untrusted* here: they
//! are checked before use, so a scribbling neighbour causes an error value ([`Corrupt`]) and never a fault. The bytes of
//! payloads are copied and never looked at. Some memory here is a process's own: its lock, its keys, messages that wait.
//!
//! | module | what it is |
//! |---|---|
//! | [`segment`] | an anonymous, sealed, really reserved memfd mapped by every task of a job |
//! | [`ring`] | single producer, single consumer: 64-byte lines with in-line messages |
//! | [`payload_buffer`] | the byte ring beside a line ring, for payloads that do not fit into a line |
//! | [`pipe`] | a stream buffer that sender and receiver copy through at the same time |
//! | [`shared_barrier`] | a barrier that is lent, and can be taken back at any moment |
//! | [`block`] | whose a block of memory is, and who reads it; what becomes of the blocks of the dead |
//! | [`stack`] | pieces that anybody pushes and pops |
//! | [`list`] | pieces that anybody pushes, walked while others push, or taken all at once |
//! | [`ends`] | the two tasks that use a ring or a pipe, and when it can be used again |
//! | [`losses`] | the count that says when to look again who is there |
//! | [`making`] | memory that was handed out and is not on a list yet, found when its task dies |
//! | `memory_limit` | what control groups leave this process, and what its host has left |
//! | [`mod@layout`] | what lies where in all of these, for the test that holds it to a version |
//! | [`bell`] | sleeping and waking across processes without a fence on the fast path |
//! | [`wake_request`] | whom a task that waits for several others asks to wake it |
//! | [`error_checking_mutex`] | a mutex that knows its holder, for [`biased`] |
//! | `futex` | sleeping on a word, for [`bell`], [`segment`] and [`error_checking_mutex`] |
//! | `sync` | atomics, or the model checker's in their place |
//! | [`views`], `strided_copy` | user memory, contiguous or strided, copied in place |
//! | [`copy`], [`prefetch`] | the copy that suits lines owned by another core; lines asked for before they are needed |
//! | [`remote`] | the memory of another process, read by the kernel in a single copy |
//! | [`mod@ticks`] | a clock for comparing copies |
//! | [`held`] | the bytes of a message that waits |
//! | [`combine`] | reduction operators on raw elements |
//! | [`biased`] | a lock that costs its first thread nothing to speak of |
//! | [`uncancelled`] | calls in which a thread is not cancelled |
//! | [`undumped`] | keys, in memory that no core dump has |

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

/// Shared memory holds something no correct peer writes.
///
/// Nothing was changed locally. The fault is the process that wrote it; the structure it was found
/// in must not be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The damage that was found, for the sentence that the user reads.
    pub what: &'static str,
}

/// A cache line of its own, and the neighbour the prefetcher drags along.
pub const LINE: usize = 64;
