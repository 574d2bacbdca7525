//! The hosts of a job as its launcher has them: this one, and the others by the channels to their agents.

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
    /// The other hosts, those that are lost among them.
    others: Vec<Remote>,
    /// What hosts that arrive later are to hear first.
    history: History,
    wakes: Wakes,
}

impl Peers {
    /// The hosts of a job that begins, or that this launcher takes over.
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

    /// The number of this host.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The name of this host, if it has tasks and is one of several.
    pub(super) fn here(&self) -> Option<&str> {
        self.here.as_deref()
    }

    /// The other hosts, those that are lost among them. Their places never change.
    pub(super) fn others(&self) -> &[Remote] {
        &self.others
    }

    /// See [`others`](Self::others).
    pub(super) fn others_mut(&mut self) -> &mut [Remote] {
        &mut self.others
    }

    /// The other hosts that are not lost.
    pub(super) fn living(&self) -> impl Iterator<Item = &Remote> {
        self.others.iter().filter(|remote| !remote.lost)
    }

    /// See [`living`](Self::living).
    pub(super) fn living_mut(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.others.iter_mut().filter(|remote| !remote.lost)
    }

    /// The host of this number, if it is another one.
    pub(super) fn get(&self, number: u32) -> Option<&Remote> {
        self.others.iter().find(|remote| remote.number == number)
    }

    /// See [`get`](Self::get).
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Remote> {
        self.others
            .iter_mut()
            .find(|remote| remote.number == number)
    }

    /// The host that task 0 is on, if it is another one.
    pub(super) fn of_first_task(&mut self) -> Option<&mut Remote> {
        self.others.iter_mut().find(|remote| remote.has(0))
    }

    /// Adds a host, which is told at once all that the others have heard since the start.
    pub(super) fn add(&mut self, mut remote: Remote) {
        for order in self.history.orders() {
            // Orders while a job runs fit every frame.
            let _ = remote.send(&order);
        }
        self.others.push(remote);
    }

    /// Says something to every other host.
    pub(super) fn send_to_all(&mut self, order: &Order) {
        for remote in &mut self.others {
            // Orders while a job runs fit every frame.
            let _ = remote.send(order);
        }
    }

    /// Has every other host enter tasks into its table. Returns which hosts are to.
    pub(super) fn enter(&mut self, world: &World) -> Vec<u32> {
        self.history.note_world(world);
        let enter = |remote: &mut Remote| {
            let world = world.clone();
            let _ = remote.send(&Order::Enter { world });
            remote.number
        };
        self.living_mut().map(enter).collect()
    }

    /// Has every other host note that a task is no more. Its own host knows.
    pub(super) fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.history.note_gone(rank, cause);
        for remote in self.others.iter_mut().filter(|remote| !remote.has(rank)) {
            let _ = remote.send(&Order::Gone { rank, cause });
        }
    }

    /// For how much longer this turn of the loop took than it was meant to; called once in each.
    pub(super) fn away(&mut self) -> Duration {
        self.wakes.away()
    }

    /// The length of a long pause of this process that ended a moment ago, if there was one.
    pub(super) fn paused_lately(&self) -> Option<Duration> {
        self.wakes.paused_lately()
    }
}
