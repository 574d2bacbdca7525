//! The barrier of a named group. It is at the launcher, or in shared memory if the launcher has lent all members a shared barrier.
//!
//! `regatta_memory::shared_barrier` describes how such a barrier works. A *lease* ([`Lease`]) is this task's knowledge of one. It begins with the
//! launcher's answer to a barrier of all members, and ends when the shared barrier is found shut, or with the next request of this task about the
//! group.

use std::time::Duration;

use regatta_engine::{Peer, Result};
use regatta_memory::shared_barrier::Crossing;
use regatta_wire::control::{Ask, Tell};

use crate::fast::POLLS_BEFORE_REQUEST;
use crate::launcher::{ask, ask_under};
use crate::lease::Lease;
use crate::members::members;
use crate::state::{Process, as_owner, enter};
use crate::tasks::{astray, value};
use crate::wait::{Awaited, wait_for};

impl Process {
    /// Records that the launcher lends a shared barrier to all members of a group, which have just met at the launcher.
    fn borrow(&mut self, group: &str, barrier: u64, members: &[Option<u32>]) {
        let peers: Vec<Peer> = members.iter().flatten().copied().collect();
        let me = self.engine.me();
        let Some(place) = peers.iter().position(|&peer| peer == me) else {
            return;
        };
        let known = |&peer: &Peer| peer < self.job.tasks();
        let Some(control) = self
            .control
            .as_mut()
            .filter(|_| barrier != 0 && peers.iter().all(known))
        else {
            return;
        };
        let lease = Lease {
            barrier,
            members: members.to_vec(),
            peers,
            place: place as u32,
            round: 0,
            question: control.next_id(),
            inside: false,
        };
        control.leases.insert(group.to_owned(), lease);
    }

    fn lease(&mut self, group: &str) -> Option<&mut Lease> {
        self.control.as_mut()?.leases.get_mut(group)
    }

    /// Returns the number of members for which the shared barrier of a group is open, if it is.
    fn open_for(&mut self, group: &str) -> Option<u32> {
        let lease = self.control.as_ref()?.leases.get(group)?;
        let open = lease.inside || lease.look(&self.job) == Crossing::Waiting;
        open.then(|| lease.size())
    }

    /// Enters the shared barrier. Returns `None` if there is none for this number of members.
    #[inline(always)]
    fn come(&mut self, group: &str, count: u32) -> Option<Crossing> {
        let lease = self.control.as_mut()?.leases.get_mut(group)?;
        if lease.size() != count || lease.inside {
            return None;
        }
        let passage = lease.come(&self.job);
        match passage {
            Crossing::Met => {
                lease.round = lease.round.wrapping_add(1);
                let fencing = self.fencing;
                for &peer in lease.peers.iter().filter(|&&peer| peer != self.engine.me()) {
                    self.job.bell(peer).ring(fencing);
                }
            }
            Crossing::Waiting => lease.inside = true,
            Crossing::Shut => {}
        }
        Some(passage)
    }

    /// Returns whether the round in which this task waits is complete.
    #[inline(always)]
    fn passed(&mut self, group: &str) -> Crossing {
        let Some(lease) = self
            .control
            .as_mut()
            .and_then(|control| control.leases.get_mut(group))
        else {
            return Crossing::Shut;
        };
        let passage = lease.look(&self.job);
        match passage {
            Crossing::Met => {
                lease.round = lease.round.wrapping_add(1);
                lease.inside = false;
            }
            Crossing::Shut => lease.inside = false,
            Crossing::Waiting => {}
        }
        passage
    }

    /// Enters the shared barrier, and polls for about as long as it takes if all members are on time.
    #[inline(always)]
    fn try_shared_barrier(&mut self, group: &str, count: u32) -> Option<Crossing> {
        let mut passage = self.come(group, count)?;
        let looks = if self.pace.spins() {
            POLLS_BEFORE_REQUEST
        } else {
            0
        };
        for _ in 0..looks {
            if passage != Crossing::Waiting {
                break;
            }
            std::hint::spin_loop();
            passage = self.passed(group);
        }
        Some(passage)
    }
}

/// Waits for the end of the round in which this task has entered the shared barrier of a group.
struct BarrierRound<'a>(&'a str);

impl Awaited for BarrierRound<'_> {
    type Output = Crossing;
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Crossing>> {
        let passage = process.passed(self.0);
        Ok((passage != Crossing::Waiting).then_some(passage))
    }

    /// Returns true: the last member has to wake all that sleep, which takes longer than it takes all of them to arrive.
    fn is_worth_patience(&self) -> bool {
        true
    }

    fn check(&mut self, process: &mut Process, _waited: Duration) -> Result<()> {
        process.listen();
        process.launcher()
    }
}

/// Waits until no other thread of this task is in the shared barrier of a group.
struct Turn<'a>(&'a str);

impl Awaited for Turn<'_> {
    type Output = ();
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        let inside = process.lease(self.0).is_some_and(|lease| lease.inside);
        Ok((!inside).then_some(()))
    }
}

/// The place where the members have met.
enum Met {
    /// All members of the shared barrier have met there.
    AtSharedBarrier,
    /// The launcher has reported that they have met. Contains the members if all of them have.
    AtLauncher(Option<Vec<Option<u32>>>),
}

/// Meets in the shared barrier of the group, if there is one. Returns `None` if the caller must meet at the launcher.
#[inline(always)]
fn at_shared_barrier(group: &str, count: u32) -> Result<Option<()>> {
    let mut passage = match as_owner(|process| process.try_shared_barrier(group, count)) {
        Some(passage) => passage,
        None => {
            wait_for(Turn(group))?;
            match enter()?.come(group, count) {
                None => return Ok(None),
                Some(passage) => passage,
            }
        }
    };
    if passage == Crossing::Waiting {
        passage = wait_for(BarrierRound(group)).inspect_err(|_| drop(forget(group)))?;
    }
    Ok((passage == Crossing::Met).then_some(()))
}

fn meet_members(group: &str, count: u32) -> Result<Met> {
    if at_shared_barrier(group, count)?.is_some() {
        return Ok(Met::AtSharedBarrier);
    }
    let lease = forget(group)?;
    let asking = |id| Ask::Meet {
        id,
        group: group.to_owned(),
        count,
    };
    let answer = match lease.filter(|lease| lease.size() == count) {
        Some(lease) => ask_under(lease.question, asking),
        None => ask(asking),
    };
    match answer? {
        Tell::Met { barrier, tasks, .. } => {
            enter()?.borrow(group, barrier, &tasks);
            Ok(Met::AtLauncher(Some(tasks)))
        }
        answer => value(answer).map(|_| Met::AtLauncher(None)),
    }
}

/// Ends the lease: later calls about the group use the launcher.
fn forget(group: &str) -> Result<Option<Lease>> {
    let mut held = enter()?;
    let leases = held.control.as_mut().map(|control| &mut control.leases);
    Ok(leases.and_then(|leases| leases.remove(group)))
}

/// Returns `count`, or the number of members if it is `None`.
#[inline(always)]
fn so_many(group: &str, count: Option<u32>) -> Result<u32> {
    if let Some(count) = count {
        return Ok(count);
    }
    // While the shared barrier is open, the members are those to which it was lent.
    let lent = enter()?.open_for(group);
    match lent {
        Some(count) => Ok(count),
        None => Ok(members(group.to_owned())?.iter().flatten().count() as u32),
    }
}

/// Blocks until `count` members of a named group have called this, or all if `None`. Returns the members by their numbers in the group, if all have
/// met.
pub fn meet(group: &str, count: Option<u32>) -> Result<Option<Vec<Option<u32>>>> {
    let count = so_many(group, count)?;
    match meet_members(group, count)? {
        Met::AtLauncher(all) => Ok(all),
        Met::AtSharedBarrier => {
            let mut held = enter()?;
            match held.lease(group) {
                Some(lease) => Ok(Some(lease.members.clone())),
                None => Err(astray()),
            }
        }
    }
}

/// Does the same as [`meet`], for callers that do not need the members.
#[inline(always)]
pub fn meet_so_many(group: &str, count: Option<u32>) -> Result<()> {
    let count = so_many(group, count)?;
    meet_members(group, count).map(|_| ())
}

/// Leaves a named group.
pub fn leave_named(group: String) -> Result<()> {
    drop(forget(&group)?);
    value(ask(|id| Ask::Leave { id, group })?).map(|_| ())
}
