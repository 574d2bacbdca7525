//! How a job outlives the host of its launcher: who leads next, and with what state.
//!
//! # The promise
//!
//! A launcher that ends, or is ended, ends its job, and says so. A launcher whose *host* is lost says nothing. Then the first candidate
//! of the [`SuccessionOrder`] that is left leads in its place, with the tasks that are left and with all that the registry knew. When that
//! host is lost too, the next candidate follows.
//!
//! # The next leader
//!
//! The succession order is the launcher's host and behind it all other hosts of the job by their numbers; the launcher sends it to every
//! host. Which of them are left is the verdict of the membership ([`MembershipView`]), never silence. Only a majority passes a verdict, and
//! it is never taken back: a host that returns is another run. So all agree in the end, and no two lead: a host that sees no majority leads
//! nobody, and a launcher that is cut off from a majority, has lost its daemon, or was declared dead gives up ([`Leadership`]). Both may
//! lead for as long as a verdict takes.
//!
//! A launcher may give up a host that is alive: the channel between the two has broken, say. That host keeps the order that it had, and
//! may be the first of it. So a host whose owner is lost says who may take it over by its own, latest order ([`Follower::successors`]), and a
//! host that is not among them gives up. It asks all of them before it takes over any ([`Claims`]).
//!
//! # State that is kept
//!
//! - The first candidates hold *replicas* of the registry ([`Replica`]): a snapshot once, then each change before any task hears what came
//!   of it. Half as many as there are hosts, so that every majority without the launcher has one; but at most eight.
//! - Each host keeps what only it knows ([`LocalRecord`]): what its tasks have requested without an answer, how many messages each of them has
//!   received, how its tasks ended, which worlds it has entered into its table.
//!
//! # Why the latest replica is enough
//!
//! Replicas are not alike: the launcher sends each change to all of them before it answers, but a host may be cut off while some have
//! arrived and others have not. The replica that has applied the most changes knows all that the others know. A message to a host
//! arrives in order, so a host with a replica has every change before its tasks hear what came of it. A message for a task on a host without a
//! replica waits until a host with one confirms the changes before it ([`Replication`]). So the next launcher knows what any task has
//! heard, unless that host is lost at the same time. A launcher whose host is lost before the first candidate has got its replica takes the
//! job with it: the others wait for their turn, and end.
//!
//! The next launcher takes the latest replica and the [`Handover`] of every host ([`Takeover`]), and makes one job of them ([`take_over`]).

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

/// The runs of hosts that a new launcher does not take in: those the registry knows, of which some were given back, and those of the
/// succession order.
pub fn known_runs(registry: &Registry, order: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = registry.known_runs().to_vec();
    known.extend(order);
    known.sort_unstable();
    known.dedup();
    known
}

/// Whether a new launcher handles a request that the old one may have handled: its answer was not sent again, and will not come by itself.
fn is_open(registry: &Registry, answered: &BTreeSet<(u32, u32)>, task: u32, id: u32) -> bool {
    !answered.contains(&(task, id)) && !registry.is_pending(task, id)
}
