//! The one engine of a process.
//!
//! The engine is pure. This crate adds a place for it (one per process, behind a lock that costs a single-threaded program almost nothing), a way to
//! enter a job ([`join`]), and time: how long to spin, how long to yield, and when to sleep ([`mod@wait`]). The interfaces (C, Rust, and others) are
//! thin layers over the calls here, which use groups and ranks.
//!
//! | file | contents |
//! |---|---|
//! | `join` | becoming a task: by a join token or alone, and never under another system's launcher |
//! | `step` | tasks that the launcher of another system has started, such as `srun`, become a job |
//! | `ancestors` | whether a program was started by a task itself, which has the same join token |
//! | `abort` | ending the job, also from a signal handler |
//! | `fork` | keeps out children that a task forks |
//! | `leave` | before leaving: waits until sent messages have arrived |
//! | `state` | the process's engine and its lock |
//! | `wait` | the waiting policy |
//! | `pace` | whether the task has its core to itself, as observed in its waits |
//! | `linger` | whether a task of an oversubscribed job polls on after a yield, as learned from its messages |
//! | `in_vain` | what a task does that polls without success, in nonblocking calls |
//! | `interrupt` | asks the program whether a wait is to end |
//! | `deadlock_detector` | detects blocked senders that wait for each other |
//! | `notice` | a descriptor that is readable when something may have arrived |
//! | `start` | messages about tasks that a task starts on behalf of the launcher |
//! | `wait_flag` | waiting for a flag of the caller |
//! | `fast` | fast paths of small sends and receives |
//! | `message` | sends, receives, probes, completion |
//! | `settle` | the fast path of completion |
//! | `matched` | receiving the message that a probe has found |
//! | `buffered_send` | sends that do not block |
//! | `timed_receive` | receiving a message that fits, within a time limit |
//! | `collective` | blocking and nonblocking collectives |
//! | `pair` | the fastest path of small collectives of two tasks |
//! | `launcher_on_demand` | a launcher for a task that was started by hand |
//! | `resident` | joining a resident job |
//! | `launcher`, `launcher_socket` | requests to the launcher, and its messages |
//! | `tasks`, `hosts` | starting, ending and watching tasks |
//! | `event`, `output` | events, and the output of started tasks, as messages |
//! | `groups` | making groups |
//! | `shared_barrier`, `lease` | the barrier of a named group |
//! | `members`, `known_members` | the members of a named group |
//! | `loan` | messages in place |
//! | `explain` | errors as sentences; the path between two tasks |

mod abort;
mod ancestors;
mod buffered_send;
mod collective;
mod deadlock_detector;
pub mod event;
mod explain;
mod fast;
mod fork;
mod groups;
mod hosts;
mod in_vain;
mod interrupt;
mod join;
mod known_members;
mod launcher;
mod launcher_on_demand;
mod launcher_socket;
mod lease;
mod leave;
mod linger;
mod loan;
mod matched;
mod members;
mod message;
mod notice;
pub mod output;
mod pace;
mod pair;
mod resident;
mod settle;
mod shared_barrier;
pub mod start;
mod state;
mod step;
mod tasks;
mod timed_receive;
mod wait;
mod wait_flag;

pub use abort::abort;
pub use buffered_send::send_kept;
pub use collective::{run, start};
pub use explain::{path, sentence};
pub use fast::*;
pub use fork::check_process;
pub use groups::*;
pub use hosts::*;
pub use interrupt::{Interrupt, set_interrupt};
pub use join::{enter_job, finalize, init, is_initialized, set_may_end};
pub use loan::*;
pub use matched::*;
pub use members::members;
pub use message::*;
pub use notice::{clear_descriptor, descriptor, raise_descriptor};
pub use regatta_engine::{
    Error, GroupId, Handle, Kind, NOBODY, Operation, Parts, Reason, Reduction, Result, Status,
};
pub use regatta_engine::{Message, Mode, TagSelect};
pub use regatta_memory::biased::{Biased, Guard};
pub use regatta_memory::combine::{Builtin, Element, Operator, UserCombine};
pub use regatta_memory::views::{Refused, View, Views};
pub use regatta_wire::control;
pub use resident::{begin as begin_job, is_there as job_is_there};
pub use settle::*;
pub use shared_barrier::{leave_named, meet, meet_so_many};
pub use state::{Callback, progress, refused};
pub use tasks::*;
pub use timed_receive::*;
pub use wait_flag::{wait_until, wake};
