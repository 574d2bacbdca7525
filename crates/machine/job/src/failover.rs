//! How a job outlives the host of its launcher: which host leads next, and with what state.
//!
//! # The promise
//!
//! A launcher that ends, or is ended, ends its job and notifies the hosts. A launcher whose *host* is lost cannot. Then
//! the first candidate of the [`SuccessionOrder`] that is left leads in its place, with the tasks that are left and
//! everything that the registry knew. When that host is lost too, the next candidate follows.
//!
//! # The next leader
//!
//! The succession order is the launcher's host, followed by all other hosts of the job by number. The launcher sends it
//! to every host. Which of them are left is decided by the verdict of the membership ([`MembershipView`]), never by
//! silence. Only a majority passes a verdict, and a verdict is final: a host that returns is another run. So all hosts
//! agree in the end, and no two lead: a host that sees no majority does not lead, and a launcher that is cut off from a
//! majority, has lost its daemon, or was declared dead gives up ([`Leadership`]). Both may lead for as long as a
//! verdict takes.
//!
//! A launcher may give up a host that is alive, for example because the channel between the two has broken. That host
//! keeps its last order, and may be the first candidate of it. Therefore a host whose owner is lost reports which hosts
//! may take it over by its own latest order ([`Follower::successors`]), and a host that is not among them gives up. A
//! new leader asks all hosts before it takes over any ([`Claims`]).
//!
//! # Replicated state
//!
//! - The first candidates hold *replicas* of the registry ([`Replica`]): one snapshot, then each change before any task
//!   receives a message that depends on it. Half of the hosts hold one (at least two, at most eight), so that every
//!   majority without the launcher has one.
//! - Each host records what no other host knows ([`LocalRecord`]): which requests of its tasks are unanswered, how many
//!   messages each of them has received, how its tasks ended, and which worlds it has entered into its table.
//!
//! # Why the latest replica is sufficient
//!
//! Replicas differ: the launcher sends each change to all of them before it answers, but a host may be cut off while
//! some have arrived and others have not. The replica that has applied the most changes knows everything that the
//! others know. Messages to a host arrive in order, so a host with a replica has every change before its tasks receive
//! messages that depend on it. A message for a task on a host without a replica waits until a host with one confirms
//! the changes before it ([`Replication`]). So the next launcher knows everything that any task has been told, unless
//! the confirming host is lost at the same time. If the launcher's host is lost before the first candidate has received
//! its replica, the job is lost with it: the other candidates wait for their turn, then end.
//!
//! The next launcher takes the latest replica and the [`Handover`] of every host ([`Takeover`]), and combines them into
//! one job ([`take_over`]).

mod absence;
mod claims;
mod follower;
mod gone;
mod leadership;
mod local;
mod membership;
mod order;
mod plan;
mod replica;
mod replication;
mod takeover;

use std::collections::BTreeSet;

pub use absence::Absence;
pub use claims::{ClaimEffect, ClaimInput, Claims, Obstacle, dead_hosts};
pub use follower::Follower;
pub use leadership::Leadership;
pub use local::{LocalRecord, Received};
pub use membership::{HostState, MembershipView};
pub use order::{Candidate, SuccessionOrder};
pub use plan::FailoverPlan;
pub use replica::{PIECE_BYTES, Replica, latest};
pub use replication::Replication;
pub use takeover::{Handover, Successor, Takeover, living_tasks, take_over};

use crate::Registry;

/// Returns the runs of hosts that a new launcher does not add: those that the registry knows (some may have been given
/// back), and those of the succession order.
pub fn known_runs(registry: &Registry, order: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = registry.known_runs().to_vec();
    known.extend(order);
    known.sort_unstable();
    known.dedup();
    known
}

/// Returns whether a new launcher must handle a request that the old one may have handled: its answer was not sent
/// again, and it does not wait for something that will answer it.
fn is_open(registry: &Registry, answered: &BTreeSet<(u32, u32)>, task: u32, id: u32) -> bool {
    !answered.contains(&(task, id)) && !registry.is_pending(task, id)
}
