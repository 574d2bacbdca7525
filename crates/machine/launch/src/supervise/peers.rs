//! The hosts of a job, as seen by its launcher: this one, and the others with the channels to their agents.

use std::time::Duration;

use regatta_segment::job::Cause;
use regatta_wire::world::World;

use super::history::History;
use crate::channel::messages::Order;
use crate::channel::remote::Remote;
use crate::system::time_asleep::Wakes;

/// The hosts of one job.
pub(super) struct Peers {
    /// The name of this host, if it has tasks and is one of several.
    here: Option<String>,
    /// The number of this host.
    number: u32,
    /// The other hosts, including lost ones.
    others: Vec<Remote>,
    /// Orders replayed to hosts that join later.
    history: History,
    wakes: Wakes,
}

impl Peers {
    /// Returns the hosts of a job that begins, or that this launcher takes over.
    pub(super) fn new(
        (number, here): (u32, Option<String>),
        others: Vec<Remote>,
        history: History,
    ) -> Self {
        Self {
            here,
            number,
            others,
            history,
            wakes: Wakes::new(),
        }
    }

    /// Returns the number of this host.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the name of this host, if it has tasks and is one of several.
    pub(super) fn here(&self) -> Option<&str> {
        self.here.as_deref()
    }

    /// Returns the other hosts, including lost ones. Their indices never change.
    pub(super) fn others(&self) -> &[Remote] {
        &self.others
    }

    /// See [`others`](Self::others).
    pub(super) fn others_mut(&mut self) -> &mut [Remote] {
        &mut self.others
    }

    /// Returns the other hosts that are not lost.
    pub(super) fn living(&self) -> impl Iterator<Item = &Remote> {
        self.others.iter().filter(|remote| !remote.lost)
    }

    /// See [`living`](Self::living).
    pub(super) fn living_mut(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.others.iter_mut().filter(|remote| !remote.lost)
    }

    /// Returns the host with this number, if it is another one.
    pub(super) fn get(&self, number: u32) -> Option<&Remote> {
        self.others.iter().find(|remote| remote.number == number)
    }

    /// See [`get`](Self::get).
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Remote> {
        self.others
            .iter_mut()
            .find(|remote| remote.number == number)
    }

    /// Returns the host of task 0, if it is another one.
    pub(super) fn of_first_task(&mut self) -> Option<&mut Remote> {
        self.others.iter_mut().find(|remote| remote.has(0))
    }

    /// Adds a host, and sends it everything that the others have been told since the start.
    pub(super) fn add(&mut self, mut remote: Remote) {
        for order in self.history.orders() {
            // Orders while a job runs fit into every frame.
            let _ = remote.send(&order);
        }
        self.others.push(remote);
    }

    /// Sends an order to every other host.
    pub(super) fn send_to_all(&mut self, order: &Order) {
        for remote in &mut self.others {
            // Orders while a job runs fit into every frame.
            let _ = remote.send(order);
        }
    }

    /// Has every other host enter tasks into its table. Returns the numbers of those hosts.
    pub(super) fn enter(&mut self, world: &World) -> Vec<u32> {
        self.history.note_world(world);
        let enter = |remote: &mut Remote| {
            let world = world.clone();
            let _ = remote.send(&Order::Enter { world });
            remote.number
        };
        self.living_mut().map(enter).collect()
    }

    /// Has every other host record that a task is gone. The task's own host knows.
    pub(super) fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.history.note_gone(rank, cause);
        for remote in self.others.iter_mut().filter(|remote| !remote.has(rank)) {
            let _ = remote.send(&Order::Gone { rank, cause });
        }
    }

    /// Returns how much longer this turn of the loop took than intended. To be called once in each turn.
    pub(super) fn away(&mut self) -> Duration {
        self.wakes.away()
    }

    /// Returns the length of a long pause of this process that ended a moment ago, if there was one.
    pub(super) fn paused_lately(&self) -> Option<Duration> {
        self.wakes.paused_lately()
    }
}
