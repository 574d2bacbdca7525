//! The Rust interface of Regatta, a message-passing environment.
//!
//! It uses the terms of the C interface (`regatta.h`). Rules that C programs must follow are lifetimes here, which the
//! compiler checks.
//!
//! ```
//! fn main() -> regatta::Result<()> {
//!     let task = regatta::init()?;
//!     let world = task.world();
//!     let mine = [world.rank() as u64];
//!     let mut sum = [0];
//!     world.allreduce(&mine, &mut sum, regatta::Sum)?;
//!     println!("rank {} of {}: the ranks sum up to {}", world.rank(), world.size(), sum[0]);
//!     Ok(())
//! }
//! ```
//!
//! Start the program with `regatta run -n 4 PROGRAM`. Started alone, it is a world of one task.
//!
//! # Terms
//!
//! A *task* is a process of a job. A *group* is an ordered set of tasks, in which each task has a *rank*. The *world* is
//! the group of the tasks that were started together. A *message* is sent from one member of a group to another and
//! carries a *tag*. A receive selects messages by source and tag, each given exactly or as "any", and takes the oldest
//! message that matches. Messages from one task to another in one group never overtake each other. Sizes called
//! `length` are in bytes; counts, and sizes that come from slices, are in elements.
//!
//! # Blocking
//!
//! Functions that may wait for another task say "Blocks" in their documentation, and sleep while there is nothing to do.
//! All others return at once. Each [`Error`] has a sentence that explains it.
//!
//! # Memory
//!
//! A blocking call borrows its memory until it returns. A non-blocking call starts an operation that uses its memory
//! after the call has returned. The operation's handle can be dropped or leaked ([`std::mem::forget`] is safe) while the
//! operation still uses the memory, so a borrow in the handle would not make this sound. There are two sound ways:
//!
//! | | memory | why it is safe |
//! |---|---|---|
//! | [`Group::scope`] | borrowed | the scope does not end before its operations have ended, as with [`std::thread::scope`] |
//! | [`Group::isend`], [`irecv`](Group::irecv), collectives with `i` | owned by the [`Request`] | leaking the request leaks the memory, too |
//!
//! A request is completed by [`wait`](Request::wait) (or [`wait_all`], [`wait_any`]), by `.await`, or by
//! [`on_complete`](Request::on_complete). A [`View`] describes strided memory. A [`Loan`] is a message that is not
//! copied.
//!
//! # Threads
//!
//! Any thread may make any call. A waiting thread makes progress for all operations of the task.
//!
//! # Files
//!
//! | file | contents |
//! |---|---|
//! | `task`, `group` | joining a job; members of groups |
//! | `select` | peers, tags, status |
//! | `memory` | memory that messages are gathered from and scattered to |
//! | `message` | blocking sends, receives, probes |
//! | `scope`, `request`, `future` | non-blocking operations |
//! | `loan` | messages without copies |
//! | `operator`, `collective` | operators of reductions; blocking and non-blocking collectives (`collective/reduction.rs`, `collective/gathering.rs`) |
//! | `tasks` | starting, ending and watching tasks; names; named groups |
//! | `error` | the errors of calls |
//! | `raw` | the unsafe code, and why it is sound |
#![deny(unsafe_code)]

mod collective;
mod error;
mod future;
mod group;
mod loan;
mod memory;
mod message;
mod operator;
#[allow(unsafe_code, reason = "the one place for it; see there")]
mod raw;
mod request;
mod scope;
mod select;
mod task;
mod tasks;

pub use bytemuck;
pub use collective::parts;
pub use error::{Error, ErrorKind, Result};
pub use future::Completion;
pub use group::Group;
pub use loan::Loan;
pub use memory::{Data, Gather, Scatter, Shape, View, ViewMut};
pub use operator::{And, BitAnd, BitOr, BitXor, Max, Min, Or, Product, Sum, Xor};
pub use operator::{Custom, Integer, Number, Operator, commutative, ordered};
pub use request::{Operation, Request, test_all, test_any, wait_all, wait_any};
pub use scope::{Receiving, Scope, Sending};
pub use select::{Source, Status, TagMatch, To};
pub use task::{Descriptor, Task, init};
pub use tasks::{
    EVENT, Ending, Event, Get, GroupInfo, HostInfo, Hosted, NameInfo, OUTPUT, Place, Put, Spawn,
    TaskInfo, Watch,
};
pub use tasks::{event, output};
