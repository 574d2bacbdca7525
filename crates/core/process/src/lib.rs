//! The one engine of a process.
//!
//! The engine is pure; this crate gives it a place (one per process, behind a lock that costs a
//! single-threaded program next to nothing), a way in ([`join`]), and time: how long to spin, to
//! yield, and when to sleep ([`mod@wait`]). The interfaces (C, Rust, and later the others) are thin
//! layers over the calls here, which speak in groups and ranks.
//!
//! | file | idea |
//! |---|---|
//! | `join` | becoming a task: by a join token or alone, and never under a foreign launcher |
//! | `slurm` | tasks that `srun` has started become a job |
//! | `ancestors` | whether a program was started by a task itself, which has the same join token |
//! | `abort` | the end of the job, also from a signal handler |
//! | `fork` | children that a task forks are kept out |
//! | `leave` | before leaving: what was sent has arrived |
//! | `state` | the process's engine and its lock |
//! | `wait` | the waiting policy |
//! | `pace` | whether the task has its core to itself, as its waits show |
//! | `linger` | whether a task of a crowd looks on after it has yielded, as its messages show |
//! | `in_vain` | what becomes of a task that looks in vain, in calls that do not wait |
//! | `deadlock_detector` | blocked senders that wait for each other |
//! | `notice` | the descriptor that is readable when something may have come |
//! | `start` | the tasks that one starts in the launcher's place, as messages |
//! | `wait_flag` | waiting for a flag of the caller's |
//! | `message` | sends, receives, probes, completion |
//! | `settle` | the fast path of completion |
//! | `matched` | receiving the very message that a probe has found |
//! | `buffered_send` | sends that do not wait |
//! | `timed_receive` | receiving what fits, within some time |
//! | `collective` | collectives: rounds in shared memory when small, else by schedule |
//! | `across` | small collectives of members on several hosts |
//! | `launcher_on_demand` | a launcher for a task that was started by hand |
//! | `resident` | joining a job that stays |
//! | `launcher`, `tasks`, `hosts` | asking the launcher, hearing from it; starting, ending and watching tasks |
//! | `event`, `output` | events, and what started tasks write, as messages |
//! | `groups` | making groups |
//! | `shared_barrier` | the barrier of a named group |
//! | `members` | who is in a named group |
//! | `loan` | messages in place |
//! | `explain` | errors as sentences; the path a pair uses |

mod abort;
mod across;
mod ancestors;
mod buffered_send;
mod collective;
mod deadlock_detector;
pub mod event;
mod explain;
mod fork;
mod groups;
mod hosts;
mod in_vain;
mod join;
mod launcher;
mod launcher_on_demand;
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
mod slurm;
pub mod start;
mod started_collective;
mod state;
mod tasks;
mod timed_receive;
mod wait;
mod wait_flag;

pub use abort::abort;
pub use buffered_send::send_kept;
pub use collective::*;
pub use explain::{path, sentence};
pub use fork::check_process;
pub use groups::*;
pub use hosts::*;
pub use join::{enter_job, finalize, init, is_initialized, set_may_end};
pub use loan::*;
pub use matched::*;
pub use members::members;
pub use message::*;
pub use notice::{clear_descriptor, descriptor, raise_descriptor};
pub use regatta_engine::{
    Error, GroupId, Handle, NOBODY, Parts, Reason, Reduction, Result, Status,
};
pub use regatta_engine::{Message, Mode, TagSelect};
pub use regatta_memory::biased::{Biased, Guard};
pub use regatta_memory::combine::{Builtin, Element, Operator, UserCombine};
pub use regatta_memory::views::{Refused, View, Views};
pub use regatta_wire::control;
pub use resident::{begin as begin_job, is_there as job_is_there};
pub use settle::*;
pub use shared_barrier::{leave_named, meet, meet_so_many};
pub use started_collective::*;
pub use state::{Callback, progress, refused};
pub use tasks::*;
pub use timed_receive::*;
pub use wait_flag::{wait_until, wake};
