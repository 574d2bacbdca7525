//! The virtual machine of many hosts, as each of its daemons sees it: which hosts are up, which are dead, and which may
//! go on.
//!
//! Pure: no clock, no sockets, no threads. A daemon passes inputs to [`Membership::handle`] together with the time,
//! takes outputs from [`Membership::poll`] until there are none, and passes [`Input::Timer`] at
//! [`Membership::deadline`]. Time is a [`std::time::Duration`] since an arbitrary start, and never goes back; the
//! system clock is not used. Late timers, and lost, repeated, late and reordered datagrams do no harm.
//!
//! # Names
//!
//! A [`HostId`] is an address and the number of the run of the daemon there. A daemon that is restarted is a different
//! host, and so is one that is alive but was declared dead: it takes the next number by itself ([`Event::Renewed`]) and
//! must end what it ran.
//!
//! # Who is there
//!
//! SWIM, from the foca crate. Each period a host probes another one at random, and asks three more to try before it
//! suspects it; a suspect that does not object in time is dead. Updates are piggybacked on the probes, and gossiped
//! while there are any. Parts that are not foca's:
//!
//! - Suspects are notified directly, every period, by the hosts that will pass the verdict. So one lost datagram does
//!   not kill a host.
//! - A process that did not run does not blame the others: the time for which it was stopped does not count.
//! - Only a host that sees a majority passes verdicts. A host that is cut off, receives nothing, or is new only
//!   suspects.
//! - When many hosts are suspected at once, the hosts that answer compare their suspects, and the verdict waits half a
//!   suspicion longer: it looks like a split.
//! - Deaths have a [`Cause`]: silence; a daemon that is gone while its host refuses connections
//!   ([`Input::DaemonGone`]); replacement by a later run. A host that leaves says so and is gone at once.
//!
//! # Who may go on
//!
//! The [`Roll`] is the list of hosts that were agreed on last. A host may accept work ([`Standing::Majority`]) while it
//! is on the roll and more than half of the roll answers; of two equal halves, the one with the host that has been on
//! the roll for the longest time. So in a machine of two hosts, the older one goes on. If the majority is missing for
//! as long as a suspicion, the host changes to [`Standing::Minority`], with the two numbers that show why.
//!
//! Dead hosts leave the roll and new ones enter it by decision: the longest-serving host that answers proposes the next
//! epoch, and it is decided when a quorum of the current one has accepted it (Paxos, one instance per epoch). So hosts
//! that die one after the other reduce the number of which a majority is needed, and two sides of a split can never
//! both have reduced it. A host that leaves stays until it is off the roll ([`Event::Departed`]).
//!
//! Two things go on without a quorum. Hosts whose death is certain (their daemon's port refuses connections, or a later
//! run exists) do not have to be outvoted if all other hosts of the roll answer. Without this, the second of two hosts
//! could never go on after a crash of the first daemon. And when a majority is gone for good, [`Input::Vouch`] lets the
//! operator decide.
//!
//! Both may be wrong: the dead may have decided something that living hosts hold, and the operator may err. So each
//! begins a new [`Lineage`], whose rolls are numbered separately. Hosts of different lineages accept nothing from each
//! other. When they meet, the hosts of the lineage that comes first go on if they have a quorum, and the others give
//! way: they take new identities ([`Renewal`]) and join it. So a wrong vouch never stops a majority, and of two sides
//! that went on, one is left.
//!
//! A host that had no majority, and finds that the daemons of all hosts from which it was cut off have ended, concludes
//! that the machine was ended without it ([`Event::Ended`]).
//!
//! When a split heals, the hosts that were cut off learn from the majority that they are dead, take new identities,
//! catch up on the roll and are admitted again. The hosts of the majority keep their identities, since no host on the
//! other side has declared them dead.
//!
//! # Bounds
//!
//! No datagram exceeds [`Settings::datagram`]. The traffic of a host in a quiet machine does not depend on the number
//! of hosts. Memory grows by about sixty bytes per host. The leader sends a ballot to every host, at most once per half
//! millisecond times the number of hosts. Datagrams are taken to be authentic, since the daemon checks them; malformed
//! ones are dropped.
#![forbid(unsafe_code)]

mod ballot;
mod catchup;
mod codec;
mod datagram;
mod decide;
mod detector;
mod event;
mod foca_events;
mod foca_output;
mod host;
mod host_facts;
mod lineage;
mod membership;
mod pending;
mod reunion;
mod roll;
mod settings;
mod tick;
mod view;

pub use event::{Cause, Event, Input, Output, Renewal, Standing};
pub use host::{Facts, HostId};
pub use lineage::Lineage;
pub use membership::Membership;
pub use roll::{Change, Roll};
pub use settings::Settings;

#[cfg(test)]
mod tests;
