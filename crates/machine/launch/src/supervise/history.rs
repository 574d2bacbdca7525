//! Which tasks have been added since a job began, and which are no more, for the tables of hosts that come later.
//!
//! Every host that is of the job hears these things when they happen; [`super::growing`] says all of it to one that arrives.

use regatta_segment::job::Cause;
use regatta_wire::world::World;

use crate::channel::messages::Order;

/// The history of one job; the module says more.
#[derive(Debug)]
pub(super) struct History {
    /// Hosts may come.
    kept: bool,
    worlds: Vec<World>,
    gone: Vec<(u32, Option<Cause>)>,
}

impl History {
    /// Of a job that begins. `kept` says whether hosts may come to it, `vacant` whether it begins without tasks.
    pub(super) fn new(kept: bool, vacant: bool) -> Self {
        Self {
            kept,
            worlds: Vec::new(),
            // The number that a job begins with which stays is nobody's.
            gone: match vacant {
                true => vec![(0, None)],
                false => Vec::new(),
            },
        }
    }

    /// Every host has entered these tasks into its table.
    pub(super) fn note_world(&mut self, world: &World) {
        if self.kept {
            self.worlds.push(world.clone());
        }
    }

    /// Every host has heard that a task is no more.
    pub(super) fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        if self.kept {
            self.gone.push((rank, cause));
        }
    }

    /// All of it, in the order in which a host can take it.
    pub(super) fn orders(&self) -> impl Iterator<Item = Order> {
        let worlds = self.worlds.iter().cloned();
        let worlds = worlds.map(|world| Order::Enter { world });
        let gone = self.gone.iter();
        worlds.chain(gone.map(|&(rank, cause)| Order::Gone { rank, cause }))
    }
}
