//! The tasks that have come and gone since a job began, for the tables of hosts that join later.
//!
//! The job's hosts hear of each change when it happens; [`super::growing`] replays all of them to a host that arrives.

use regatta_segment::job::Cause;
use regatta_wire::world::World;

use crate::channel::messages::Order;

/// The history of one job.
#[derive(Debug)]
pub(super) struct History {
    /// Whether hosts may join.
    kept: bool,
    worlds: Vec<World>,
    gone: Vec<(u32, Option<Cause>)>,
}

impl History {
    /// Returns the history of a job that begins. `kept` says whether hosts may join, `vacant` whether it begins without tasks.
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

    /// Notes that every host has entered these tasks into its table.
    pub(super) fn note_world(&mut self, world: &World) {
        if self.kept {
            self.worlds.push(world.clone());
        }
    }

    /// Notes that every host has heard of a task's end.
    pub(super) fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        if self.kept {
            self.gone.push((rank, cause));
        }
    }

    /// Returns the whole history, in the order in which a host can enter it.
    pub(super) fn orders(&self) -> impl Iterator<Item = Order> {
        let worlds = self.worlds.iter().cloned();
        let worlds = worlds.map(|world| Order::Enter { world });
        let gone = self.gone.iter();
        worlds.chain(gone.map(|&(rank, cause)| Order::Gone { rank, cause }))
    }
}
