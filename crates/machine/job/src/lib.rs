//! Everything that is decided about one job: its tasks, their names and groups, its hosts, and its end.
//!
//! Pure: no clock, no sockets, no threads, no processes. The launcher hands in what has happened together with the time, and carries out what
//! comes back. Time is a [`std::time::Duration`] since the start of the job, and never goes back.
//!
//! These parts decide; the launcher feeds them all.
//!
//! # Lifecycle
//!
//! [`Lifecycle`] decides what becomes of the job: when it is over, when its tasks are signalled and then killed, which status its command
//! exits with, and which sentences the user reads. Starts and ends of tasks, signals, lost hosts and the passing of time go in; [`Action`]s
//! come out. [`Lifecycle::deadline`] says when [`Lifecycle::tick`] must be called next; a late call does no harm.
//!
//! # Registry
//!
//! [`Registry`] knows the tasks and hosts of the job, the named entries (mailboxes), the named groups and the watches of its tasks. A request of
//! a task goes in ([`Registry::handle_request`]) and is answered by exactly one message with the same number, at once or later. Messages to
//! tasks collect until the launcher takes them ([`Registry::take_messages`]); what needs processes, hosts or a clock comes back as an
//! [`Effect`].
//!
//! # Spawns
//!
//! [`Spawns`] takes each request for more tasks through its steps on all hosts that it concerns: prepare, enter, start. It gives the tasks
//! their numbers, in the registry and the lifecycle.
//!
//! # Hosts, clocks, barriers, reachability
//!
//! [`HostRequests`] answers tasks that request hosts, [`TimeRequests`] those that ask a host what time it is. [`Barriers`] knows the shared barriers that are lent to named groups, and which of them
//! a request shuts. [`Reachability`] knows the pairs of tasks that cannot reach each other: what the user reads of them, and when they are
//! given up.
//!
//! # Credit
//!
//! The [`credits`] module says how much output may be on its way from a host, and what is repaid to whom.
//!
//! # Replication
//!
//! Other hosts keep copies, so that one of them can go on with the job when the launcher's host is lost. A [`ReplicatedRegistry`] records each
//! [`Change`]; a copy begins as a snapshot ([`Registry::snapshot`]) and then applies the changes in order ([`Registry::apply`]). The same
//! changes in the same order give the same registry. Each message to a task is kept until its host has acknowledged it
//! ([`Registry::unacknowledged`]), so the next launcher sends exactly what a task has not received.
//!
//! # Failover
//!
//! The [`failover`] module decides who leads next when the launcher's host is lost, and with what state: [`failover::Follower`] on every other
//! host, [`failover::Leadership`] and [`failover::Replication`] on the launcher's.
//!
//! # Hosts
//!
//! [`hosts::Arrivals`] brings hosts into the job, those that it begins with and those that come later, and says why one does not come.
//!
//! # Promises
//!
//! - A task number is given once and never again.
//! - Every request of a living task is answered exactly once, or fails with the task.
//! - The end of a task or host is notified exactly once for each watch, also if it came before the watch.
//! - Bytes from others (requests, changes, snapshots) never cause a panic; malformed ones are refused.
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
