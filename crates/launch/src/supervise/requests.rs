//! What the tasks ask of their launcher, and what they are told.

use regatta_wire::control::Tell;
use regatta_wire::fields::Message;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::cores;
use crate::desk::{Deed, Host, SPEED};
use crate::fleet::Fleet;

impl Supervisor<'_> {
    /// Heeds what the tasks of this host ask, and says what there is to say.
    pub(super) fn heed_tasks(&mut self) {
        let (mut asked, mut ended) = (Vec::new(), Vec::new());
        if let Some(tasks) = &mut self.tasks {
            ended = tasks.heed(|task, bytes| asked.push((task, bytes.to_vec())));
        }
        for (task, bytes) in asked {
            self.asked(task, &bytes);
        }
        ended.into_iter().for_each(|task| self.hushed(task));
        self.speak();
    }

    /// A task asks something.
    pub(super) fn asked(&mut self, task: u32, bytes: &[u8]) {
        if self.is_new(task, bytes) {
            self.ask_desk(task, bytes);
        }
    }

    pub(super) fn ask_desk(&mut self, task: u32, bytes: &[u8]) {
        match self.desk.asked(task, bytes) {
            None => {}
            Some(Deed::Spawn { by, id, order }) => self.spawn(by, id, order),
            Some(Deed::Signal { task, signal }) => self.signal(task, signal),
            Some(Deed::Hosts { asker, wish }) => self.heed_wish(asker, wish),
            Some(Deed::Lend { group, members }) => self.lend(group, members),
            Some(Deed::Starter { by, id }) => self.set_starter(by, id),
            Some(Deed::Hoster { by, id, on }) => self.set_hoster(by, id, on),
            Some(Deed::HostsStarted {
                by,
                id,
                request,
                hosts,
            }) => self.hosts_started(by, id, request, hosts),
            Some(Deed::Ended {
                by,
                id,
                task,
                status,
            }) => self.said_to_have_ended(by, id, task, status),
            Some(Deed::Clock { by, id, host }) => self.ask_clock(by, id, host),
            Some(Deed::Taken { by, task, bytes }) => self.taken(by, task, bytes),
            Some(Deed::Reach {
                by,
                task,
                address,
                silent,
            }) => self.heed_reach(by, task, address, silent),
            Some(Deed::Halt) => {
                let mut acts = Vec::new();
                self.course.halt(self.started.elapsed(), &mut acts);
                self.perform(acts);
            }
        }
    }

    fn signal(&mut self, task: u32, signal: i32) {
        let host = self.desk.host_of(task);
        if let Some(remote) = host.and_then(|host| self.remote(host)) {
            let _ = remote.send(&Order::SignalTask { task, signal });
        } else if let Some(tasks) = &self.tasks {
            tasks.signal(task, signal);
        }
    }

    /// Says to the tasks what there is to say to them.
    pub(super) fn speak(&mut self) {
        self.spread();
        // Before anybody hears what came of it: an answer that a task of this host keeps holds as long as this is the same.
        if let Some(tasks) = &self.tasks {
            tasks.job().set_groups(self.desk.groups_version());
        }
        for (task, tell) in self.desk.take_said() {
            self.tell(task, &tell);
        }
        self.ask_copies();
    }

    fn tell(&mut self, task: u32, tell: &Tell) {
        let mut bytes = Vec::new();
        tell.encode(&mut bytes);
        let host = self.desk.host_of(task);
        if host.is_some_and(|host| self.must_wait(host)) {
            let changes = self.desk.last_change();
            self.unconfirmed.keep(changes, task, bytes);
        } else if let Some(remote) = host.and_then(|host| self.remote(host)) {
            let _ = remote.send(&Order::Tell { task, bytes });
        } else if let Some(tasks) = &mut self.tasks {
            tasks.tell(task, &bytes);
            // Should this host be lost its tasks are as well: nothing need be kept for them.
            if self.desk.keeps_much(task) {
                let count = self.desk.told_count(task);
                self.desk.has_heard(task, count);
            }
        }
    }
}

/// What the hosts of a job are to its tasks.
pub(super) fn hosts(fleet: &Fleet) -> Vec<Host> {
    let here = |number: u32, name: String| Host {
        number,
        name,
        architecture: std::env::consts::ARCH.to_owned(),
        cores: cores::usable() as u32,
        speed: SPEED,
        lives: true,
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
            Some(hello) => Host {
                number,
                name,
                architecture: hello.architecture.clone(),
                cores: hello.cores,
                speed: SPEED,
                lives: true,
            },
        }
    });
    hosts.collect()
}
