//! Tasks that no host of the job has started: they came by a door of a job that stays, or the launcher was called by one.

use std::net::SocketAddr;

use regatta_transport::job::TaskState;

use super::Supervisor;
use super::growing::Growing;
use crate::door::Door;
use crate::entrance::Newcomer;
use crate::tasks::Tasks;

/// Somebody who has knocked on another host, whose agent calls it by this number.
pub(super) struct Caller {
    pub host: u32,
    pub number: u32,
    pub program: Vec<u8>,
    pub address: Option<SocketAddr>,
}

impl Supervisor<'_> {
    /// May somebody be let in? Who comes first finds the hosts that were there before.
    pub(super) fn is_open(&self) -> bool {
        !self.growing.as_ref().is_some_and(Growing::is_gathering)
    }

    /// Lets those in who have knocked.
    pub(super) fn heed_door(&mut self) {
        if !self.is_open() {
            return;
        }
        if let Some(ready) = self.ready.take() {
            // The process that began the job may be gone.
            let _ = rustix::io::write(ready, &[1]);
        }
        for caller in std::mem::take(&mut self.early) {
            self.knocked(caller);
        }
        let arrivals = self.door.as_mut().map_or_else(Vec::new, Door::heed);
        if let Some(mishap) = self.door.as_mut().and_then(Door::take_mishap) {
            self.output.say(&mishap);
        }
        for arrival in arrivals {
            let Some(arrival) = self.claimed(arrival) else {
                continue;
            };
            let Some(tasks) = &mut self.tasks else { return };
            if let Some(newcomer) = Newcomer::of(arrival, tasks) {
                self.let_in(newcomer);
            }
        }
    }

    /// A process of this host wants to become a task.
    pub(super) fn let_in(&mut self, newcomer: Newcomer) {
        let (program, address) = (newcomer.arrival.program.clone(), newcomer.address);
        let process = self.newcomers.add(newcomer);
        self.join((self.number, process), program, address);
    }

    /// Somebody has knocked at the door of another host.
    pub(super) fn knocked(&mut self, caller: Caller) {
        if !self.is_open() {
            return self.early.push(caller);
        }
        let Caller {
            host,
            number,
            program,
            address,
        } = caller;
        self.join((host, number), program, address);
    }

    /// Takes note of guests that have ended, or have left.
    pub(super) fn heed_guests(&mut self) {
        let Some(tasks) = &mut self.tasks else { return };
        for ended in tasks.take_gone_guests() {
            self.task_ended(ended);
            let was_ours = self.tasks.as_ref().is_some_and(Tasks::is_adopted);
            if was_ours && ended.rank == 0 && ended.state != TaskState::Left {
                let mut actions = Vec::new();
                self.lifecycle
                    .abandoned(self.started.elapsed(), &mut actions);
                self.perform(actions);
            }
        }
    }
}
