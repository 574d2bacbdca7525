//! The tasks that have been added and have gone since a job began, for the tables of hosts that join later.
//!
//! The job's hosts are told of each change when it happens. [`super::growing`] replays all changes to an arriving host.

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
            // The first number of a resident job belongs to no task.
            gone: match vacant {
                true => vec![(0, None)],
                false => Vec::new(),
            },
        }
    }

    /// Records that every host is told to enter these tasks into its table.
    pub(super) fn note_world(&mut self, world: &World) {
        if self.kept {
            self.worlds.push(world.clone());
        }
    }

    /// Records that every host is told of a task's end.
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
