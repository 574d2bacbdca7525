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
//! | `step` | tasks that a launcher of another system has started, such as `srun`, become a job |
//! | `ancestors` | whether a program was started by a task itself, which has the same join token |
//! | `abort` | the end of the job, also from a signal handler |
//! | `fork` | children that a task forks are kept out |
//! | `leave` | before leaving: what was sent has arrived |
//! | `state` | the process's engine and its lock |
//! | `wait` | the waiting policy |
//! | `pace` | whether the task has its core to itself, as its waits show |
//! | `linger` | whether a task of a crowd looks on after it has yielded, as its messages show |
//! | `in_vain` | what becomes of a task that looks in vain, in calls that do not wait |
//! | `interrupt` | the question whether a wait is to end, put to the program |
//! | `deadlock_detector` | blocked senders that wait for each other |
//! | `notice` | the descriptor that is readable when something may have come |
//! | `start` | the tasks that one starts in the launcher's place, as messages |
//! | `wait_flag` | waiting for a flag of the caller's |
//! | `fast` | fast paths of small sends and receives |
//! | `message` | sends, receives, probes, completion |
//! | `settle` | the fast path of completion |
//! | `matched` | receiving the very message that a probe has found |
//! | `buffered_send` | sends that do not wait |
//! | `timed_receive` | receiving what fits, within some time |
//! | `collective` | collectives that block, and that are started |
//! | `pair` | small ones of two tasks, by the quickest way |
//! | `launcher_on_demand` | a launcher for a task that was started by hand |
//! | `resident` | joining a job that stays |
//! | `launcher`, `launcher_socket` | asking the launcher, hearing from it |
//! | `tasks`, `hosts` | starting, ending and watching tasks |
//! | `event`, `output` | events, and what started tasks write, as messages |
//! | `groups` | making groups |
//! | `shared_barrier`, `lease` | the barrier of a named group |
//! | `members`, `known_members` | who is in a named group |
//! | `loan` | messages in place |
//! | `explain` | errors as sentences; the path a pair uses |

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
