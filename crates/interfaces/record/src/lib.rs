//! The record of a task's profile: a file of 64-bit words, little-endian, of a size that is known when it is made.
//!
//! The task writes it through a mapping while it runs (`crates/interfaces/recorder`), so that everything written is there when the
//! task is killed. [`Record::read`] reads it afterwards: the file is untrusted, whoever wrote it.
//!
//! | part | words | holds |
//! |---|---|---|
//! | head | [`head::WORDS`] | whose record it is, times, totals |
//! | threads | [`THREADS`] of [`thread::WORDS`] | calls, messages by peer and by size, of one thread at a time |
//! | names | [`NAMES`] of [`name::WORDS`] | marks and toggles of the program |
//! | modules | [`MODULE_WORDS`] | files that are mapped as code, as text |
//! | samples | [`SAMPLES`] of 2 | addresses at which the processor was seen, and how often |
//! | events | a power of two, of [`event::WORDS`] | the newest events |

//! | module | is |
//! |---|---|
//! | `layout` | positions of all words |
//! | `calls` | the functions that are recorded |
//! | `bounds`, `read` | the file, read: it is untrusted |

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
