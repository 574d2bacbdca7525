//! All decisions about one job: its tasks, their names and groups, its hosts, and its end.
//!
//! Pure: no clock, no sockets, no threads, no processes. The launcher passes in events together with the time, and
//! carries out the returned steps. Time is a [`std::time::Duration`] since the start of the job, and never goes back.
//!
//! These parts decide. The launcher passes events to all of them.
//!
//! # Lifecycle
//!
//! [`Lifecycle`] decides when the job is over, when its tasks are signalled and then killed, which status its command
//! exits with, and which sentences the user reads. Starts and ends of tasks, signals, lost hosts and the passing of
//! time go in; [`Action`]s come out. [`Lifecycle::deadline`] returns when [`Lifecycle::tick`] must be called next; a
//! late call does no harm.
//!
//! # Registry
//!
//! [`Registry`] has the tasks and hosts of the job, the named entries (mailboxes), the named groups and the watches of
//! its tasks. A request of a task goes in ([`Registry::handle_request`]) and is answered by exactly one message with
//! the same number, at once or later. Messages to tasks are queued until the launcher takes them
//! ([`Registry::take_messages`]). What needs processes, hosts or a clock is returned as an [`Effect`].
//!
//! # Spawns
//!
//! [`Spawns`] takes each request for more tasks through its steps on all hosts concerned: prepare, enter, start. It
//! assigns the tasks' numbers, in the registry and the lifecycle.
//!
//! # Hosts, clocks, barriers, reachability
//!
//! [`HostRequests`] answers tasks that request hosts, [`TimeRequests`] those that ask a host for its time. [`Barriers`]
//! has the shared barriers that are lent to named groups, and decides which of them a request shuts. [`Reachability`]
//! has the pairs of tasks that cannot reach each other. It decides what the user reads about them, and when they give
//! each other up.
//!
//! # Credit
//!
//! The [`credits`] module limits how much output may be in flight from a host, and decides what is repaid to whom.
//!
//! # Replication
//!
//! Other hosts keep copies, so that one of them can resume the job when the launcher's host is lost. A
//! [`ReplicatedRegistry`] records each [`Change`]. A copy begins as a snapshot ([`Registry::snapshot`]) and then
//! applies the changes in order ([`Registry::apply`]). The same changes in the same order give the same registry. Each
//! message to a task is kept until its host has acknowledged it ([`Registry::unacknowledged`]), so the next launcher
//! sends exactly what a task has not received.
//!
//! # Failover
//!
//! The [`failover`] module decides which host leads next when the launcher's host is lost, and with what state:
//! [`failover::Follower`] on every other host, [`failover::Leadership`] and [`failover::Replication`] on the
//! launcher's.
//!
//! # Hosts
//!
//! [`hosts::Arrivals`] brings hosts into the job, those that it begins with and those that join later, and reports why
//! a host does not join.
//!
//! # Promises
//!
//! - A task number is assigned once and never reused.
//! - Every request of a living task is answered exactly once, or fails with the task.
//! - The end of a task or host is notified exactly once for each watch, even if it happened before the watch.
//! - Bytes from other processes (requests, changes, snapshots) never cause a panic. Malformed ones are refused.
#![forbid(unsafe_code)]

pub mod barriers;
pub mod credits;
mod end;
pub mod failover;
pub mod hosting;
pub mod hosts;
pub mod lifecycle;
pub mod reachability;
pub mod registry;
pub mod spawn;
mod time_requests;
pub mod words;

pub use barriers::Barriers;
pub use credits::Credits;
pub use end::{End, Ended, Failure};
pub use hosting::HostRequests;
pub use lifecycle::{Action, Lifecycle, OnFailure, Policy};
pub use reachability::{Reachability, ReachabilityEffect};
pub use registry::{Change, Effect, HostRecord, Registry, ReplicatedRegistry};
pub use spawn::{SpawnEffect, SpawnedBy, Spawns};
pub use time_requests::TimeRequests;
