//! Regatta, a message-passing environment: the Rust interface.
//!
//! The words are those of the C interface (`regatta.h`); what is a rule there is a lifetime here.
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
//! Start it with `regatta run -n 4 PROGRAM`; started alone it is a world of one.
//!
//! # Words
//!
//! A *task* is a process of a job. A *group* is an ordered set of tasks, in which each has a
//! *rank*; the *world* is the group of those that were started together. A *message* goes from one member of a group to another
//! and carries a *tag*. A receive selects by source and tag, each exactly or any, and takes the
//! oldest message it selects: two messages from one task to another in one group never overtake
//! each other. Lengths are bytes where they are called length, elements where they are counts or
//! come from slices.
//!
//! # Blocking
//!
//! Calls that may wait for another task say so, and sleep when there is nothing to do. All others
//! return at once. Errors are sentences: see [`Error`].
//!
//! # Memory
//!
//! A blocking call borrows its memory until it returns. A call that does not block leaves an
//! operation behind that goes on using its memory, and the handle of an operation can be dropped
//! or leaked ([`std::mem::forget`] is safe) while it does. So a borrow in the handle would prove
//! nothing, and there are two kinds:
//!
//! | | memory | who sees to its safety |
//! |---|---|---|
//! | [`Group::scope`] | borrowed | the scope, which does not end before its operations have; as with [`std::thread::scope`] |
//! | [`Group::isend`], [`irecv`](Group::irecv), collectives with `i` | owned, by the [`Request`] | whoever leaks the request leaks the memory with it |
//!
//! A request completes by [`wait`](Request::wait) (or [`wait_all`], [`wait_any`]), by `.await`, or by
//! [`on_complete`](Request::on_complete). Strided memory is a [`View`]; messages that are never
//! copied are [`Loan`]s.
//!
//! # Threads
//!
//! Every call may be made by any thread. A thread that waits makes progress for all.
//!
//! # Files
//!
//! | file | idea |
//! |---|---|
//! | `task`, `group` | joining a job; who is in a group |
//! | `select` | peers, tags, status |
//! | `memory` | what messages are gathered from and scattered to |
//! | `message` | blocking sends, receives, probes |
//! | `scope`, `request`, `future` | non-blocking operations |
//! | `loan` | messages without copies |
//! | `operator`, `collective` | operators of reductions; collectives, each in both forms: `collective/reduction.rs`, `collective/gathering.rs` |
//! | `tasks` | starting, ending and watching tasks; names; named groups |
//! | `error` | the errors of calls |
//! | `raw` | the unsafe code, and what upholds it |
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
