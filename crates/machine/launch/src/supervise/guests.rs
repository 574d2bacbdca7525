//! Tasks that no host of the job has started: they came by a join socket of a job that stays, or the launcher was called by one.

use std::net::SocketAddr;

use regatta_segment::job::TaskState;

use super::Supervisor;
use super::growing::Growing;
use crate::agent_join_socket::Newcomer;
use crate::join_socket::JoinSocket;
use crate::tasks::Tasks;

/// A process that has asked to join on another host, whose agent calls it by this number.
pub(super) struct RemoteCaller {
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

    /// Lets in the processes that have asked to join.
    pub(super) fn handle_join_socket(&mut self) {
        if !self.is_open() {
            return;
        }
        if let Some(ready) = self.ready.take() {
            // The process that began the job may be gone.
            let _ = rustix::io::write(ready, &[1]);
        }
        for caller in std::mem::take(&mut self.early) {
            self.join_requested(caller);
        }
        let arrivals = self
            .join_socket
            .as_mut()
            .map_or_else(Vec::new, JoinSocket::handle_callers);
        if let Some(mishap) = self.join_socket.as_mut().and_then(JoinSocket::take_mishap) {
            self.output.report(&mishap);
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

    /// A process has asked to join on another host.
    pub(super) fn join_requested(&mut self, caller: RemoteCaller) {
        if !self.is_open() {
            return self.early.push(caller);
        }
        let RemoteCaller {
            host,
            number,
            program,
            address,
        } = caller;
        self.join((host, number), program, address);
    }

    /// Takes note of guests that have ended, or have left.
    pub(super) fn handle_guests(&mut self) {
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
