//! The requests of tasks, and the messages to them.

use regatta_job::registry::DEFAULT_SPEED;
use regatta_job::{Effect, HostRecord};
use regatta_wire::control::Tell;
use regatta_wire::fields::Message;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::hosts::fleet::Fleet;
use crate::tasks::cores;

impl Supervisor<'_> {
    /// Handles a request of a task, unless it was handled already when a shared barrier was shut.
    pub(super) fn asked(&mut self, task: u32, bytes: &[u8]) {
        if self.is_new(task, bytes) {
            self.handle_request(task, bytes);
        }
    }

    /// Passes a request of a task to the registry, and carries out its effect.
    pub(super) fn handle_request(&mut self, task: u32, bytes: &[u8]) {
        match self.registry.handle_request(task, bytes) {
            None => {}
            Some(Effect::Spawn { by, id, order }) => self.spawn(by, id, order),
            Some(Effect::Signal { task, signal }) => self.signal(task, signal),
            Some(Effect::Hosts { requester, change }) => self.change_hosts(requester, change),
            Some(Effect::ShareBarrier { group, members }) => self.lend(group, members),
            Some(Effect::Starter { by, id }) => self.set_starter(by, id),
            Some(Effect::Hoster { by, id, on }) => self.set_hoster(by, id, on),
            Some(Effect::HostsStarted {
                by,
                id,
                request,
                hosts,
            }) => self.hosts_started(by, id, request, hosts),
            Some(Effect::StartedTaskEnded {
                by,
                id,
                task,
                status,
            }) => self.said_to_have_ended(by, id, task, status),
            Some(Effect::Excused { task }) => self.lifecycle.excuse(task),
            Some(Effect::ReadClock { by, id, host }) => self.ask_clock(by, id, host),
            Some(Effect::OutputReceived { by, task, bytes }) => {
                self.order_for(task, Order::Taken { by, bytes });
            }
            Some(Effect::Reachability {
                by,
                task,
                address,
                silent,
            }) => self.handle_reach((by, task), address, silent),
            Some(Effect::Abort { by, status }) => {
                let mut actions = Vec::new();
                let now = self.started.elapsed();
                self.lifecycle.abort(now, by, status, &mut actions);
                self.perform(actions);
            }
            Some(Effect::Halt) => {
                let mut actions = Vec::new();
                self.lifecycle.halt(self.started.elapsed(), &mut actions);
                self.perform(actions);
            }
        }
    }

    /// Asks a host for its time, for a task.
    fn ask_clock(&mut self, by: u32, id: u32, host: u32) {
        // If this fails, the host is about to be lost.
        let _ = self.order(host, Order::Clock { by, id });
        self.time_requests.ask(host, by, id);
    }

    pub(super) fn signal(&mut self, task: u32, signal: i32) {
        self.order_for(task, Order::SignalTask { task, signal });
    }

    /// Handles this host's reports, sends the registry's changes to its copies, and then its messages to the tasks.
    pub(super) fn speak(&mut self) {
        self.handle_own_reports();
        self.spread();
        // Update the version before any task reads messages about the changes: tasks on this host use cached answers
        // while it is the same.
        if let Some(tasks) = &self.worker.tasks {
            tasks.job().set_groups(self.registry.groups_version());
        }
        for (task, message) in self.registry.take_messages() {
            self.send(task, &message);
        }
        self.ask_copies();
    }

    /// Sends a message to a task on any host, or keeps it until a replica has the changes that it depends on.
    fn send(&mut self, task: u32, message: &Tell) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let host = self.registry.host_of(task);
        let here = self.send_to(host, task, bytes);
        // If this host is lost, its tasks are as well: nothing must be kept for them.
        if here && self.registry.wants_acknowledgement(task) {
            let count = self.registry.sent_count(task);
            self.registry.acknowledged(task, count);
        }
    }

    /// Sends a message to a task on a host, or keeps it. Returns whether the task is on this host and the message was
    /// sent.
    pub(super) fn send_to(&mut self, host: Option<u32>, task: u32, bytes: Vec<u8>) -> bool {
        if host.is_some_and(|host| self.must_wait(host)) {
            let changes = self.registry.last_change();
            self.failover.keep(changes, task, bytes);
            return false;
        }
        let here = host.is_none_or(|host| self.peers.get(host).is_none());
        let _ = self.order(
            host.unwrap_or(self.peers.number()),
            Order::Tell { task, bytes },
        );
        here
    }
}

/// Returns the records of a job's hosts, for its tasks.
pub(super) fn hosts(fleet: &Fleet) -> Vec<HostRecord> {
    let here = |number: u32, name: String| HostRecord {
        number,
        name,
        architecture: std::env::consts::ARCH.to_owned(),
        cores: cores::usable() as u32,
        speed: DEFAULT_SPEED,
        alive: true,
    };
    if fleet.names.is_empty() {
        return vec![here(
            0,
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        )];
    }
    let used = |number: &u32| {
        let elsewhere = fleet.remotes.iter().any(|remote| remote.number == *number);
        elsewhere || fleet.here == Some(*number)
    };
    let numbers = (0..fleet.names.len() as u32).filter(used);
    let hosts = numbers.map(|number| {
        let name = fleet.names[number as usize].clone();
        let remote = fleet
            .remotes
            .iter()
            .find(|remote| remote.number == number)
            .and_then(|remote| remote.hello.as_ref());
        match remote {
            None => here(number, name),
            Some(hello) => HostRecord {
                number,
                name,
                architecture: hello.architecture.clone(),
                cores: hello.cores,
                speed: DEFAULT_SPEED,
                alive: true,
            },
        }
    });
    hosts.collect()
}
