//! The virtual machine of many hosts, as each of its daemons sees it: who is there, who is dead, and who may go on.
//!
//! Pure: no clock, no sockets, no threads. A daemon hands inputs to [`Membership::handle`] together with the time, takes outputs from
//! [`Membership::poll`] until there are none, and comes back with [`Input::Timer`] at [`Membership::deadline`]. Time is a [`std::time::Duration`] since
//! any start, and never goes back; the clock on the wall is not asked. Late timers, lost, doubled, late and reordered datagrams do no harm.
//!
//! # Names
//!
//! A [`HostId`] is an address and the number of the run of the daemon there. A daemon that starts again is another host, and so is
//! one that lives but was declared dead: it takes the next number by itself ([`Event::Renewed`]) and must end what it ran.
//!
//! # Who is there
//!
//! SWIM, by the foca crate. Each period a host probes another at random, and asks three more to try before it suspects it; a suspect that does not object
//! in time is dead. News rides on the probes and on gossip while there is any. Parts that are not foca's:
//!
//! - Suspects are told so directly, every period, by those who will pass the verdict. One lost datagram kills nobody.
//! - A process that did not run does not blame the others: time it was stopped does not count.
//! - Only a host that sees a majority passes verdicts. Cut off, deaf or new, it suspects, and that is all.
//! - When many are suspected at once, they are compared among those that answer, and the verdict waits half a suspicion longer: it looks like a split.
//! - Deaths have a [`Cause`]: silence; a daemon gone while its host refuses connections ([`Input::DaemonGone`]); replaced by a
//!   later run. A host that leaves says so and is gone at once.
//!
//! # Who may go on
//!
//! The [`Roll`] is the list of hosts that were agreed on last. A host may take on work ([`Standing::Majority`]) while it is on the roll and more than
//! half of the roll answers; of two equal halves, the one with the host that has been there longest. So of a machine of two, the older goes on.
//! A lack lasting as long as a suspicion makes [`Standing::Minority`], with the two numbers that say why.
//!
//! The dead leave the roll and newcomers enter it by decision: the longest-serving host that answers proposes the next epoch, and it is
//! decided when a quorum of the present one has accepted it (Paxos, one instance for an epoch). Hence hosts that die one after the other shrink what a majority is counted
//! of, and no two sides of a split can both have shrunk it their way. A leaver stays until it is off the roll ([`Event::Departed`]).
//!
//! Two things go on without a quorum. Hosts whose death is certain (their daemon's port refuses connections, or a later run is there) need not be
//! outvoted if all others of the roll are here. Without this, the second of two hosts could never go on after a crash of the first
//! daemon. And when a majority is gone for good, [`Input::Vouch`] lets the operator decide.
//!
//! Both may be wrong: the dead may have decided something that others hold who live, and the operator may err. So each begins a new
//! [`Lineage`], whose rolls are numbered apart. Hosts of different lineages believe nothing of each other; when they meet, the one whose lineage comes first goes on if
//! it has a quorum, and the others give way: they take new names ([`Renewal`]) and join it. So no majority is ever stopped by a wrong
//! vouch, and of two sides that went on one is left.
//!
//! A host that had no majority and finds that the daemons of all it was cut off from have ended concludes that the machine was ended without
//! it ([`Event::Ended`]).
//!
//! When a split heals, the cut-off hear from the majority that they are dead, take new names, catch up on the roll and are
//! admitted again. The hosts of the majority keep their names, since nobody on the other side has declared them dead.
//!
//! # Bounds
//!
//! No datagram exceeds [`Settings::datagram`]. The traffic of a quiet host does not depend on the number of hosts. Memory grows by about
//! sixty bytes a host. The one who leads sends a ballot to every host, at most every half millisecond times the hosts.
//! Datagrams are taken to be authentic, since the shell checks them; malformed ones are dropped.
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
