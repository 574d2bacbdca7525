//! The record of a task's profile: a file of little-endian 64-bit words, whose size is fixed when it is created.
//!
//! The task writes the record through a memory mapping while it runs (`crates/interfaces/recorder`), so that the record survives
//! when the task is killed. [`Record::read`] reads it afterwards, and treats the file as untrusted.
//!
//! | part | words | contents |
//! |---|---|---|
//! | head | [`head::WORDS`] | process and task, times, totals |
//! | threads | [`THREADS`] of [`thread::WORDS`] | calls, messages by peer and by size, of one thread at a time |
//! | names | [`NAMES`] of [`name::WORDS`] | marks and toggles of the program |
//! | modules | [`MODULE_WORDS`] | files that are mapped as code, as text |
//! | samples | [`SAMPLES`] of 2 | sampled code addresses, with their counts |
//! | events | a power of two, of [`event::WORDS`] | the newest events |
//!
//! | module | contents |
//! |---|---|
//! | `layout` | positions of all words |
//! | `calls` | the functions that are recorded |
//! | `bounds`, `read` | reading and checking of the untrusted file |

#![forbid(unsafe_code)]

mod bounds;
mod calls;
mod layout;
mod read;

pub use calls::{CALLS, Call, Kind};
pub use layout::*;
pub use read::{
    CallRecord, Event, EventKind, Fault, Head, Module, Name, Peer, Record, Sample, Sizes, Thread,
};
