//! Ordered sets of processes, by their task numbers.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::Arc;

use regatta_sys as rg;

use crate::error::{Result, checked};

/// The task numbers of processes, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Arc<[c_int]>);

impl Members {
    /// Returns the members of a group of the engine.
    pub fn of_engine(group: rg::Group) -> Result<Members> {
        // SAFETY: the call takes numbers and no pointers.
        let size = unsafe { rg::rg_size(group) };
        checked(size)?;
        // SAFETY: the call takes numbers and no pointers.
        let tasks = (0..size).map(|rank| unsafe { rg::rg_tid_of(group, rank) });
        let tasks: Vec<c_int> = tasks.collect();
        tasks.iter().try_for_each(|&task| checked(task))?;
        Ok(Members(tasks.into()))
    }

    /// Returns the processes of MPI_COMM_WORLD.
    pub fn of_world() -> Result<Members> {
        match super::parent::world()? {
            Some(world) => Ok(world),
            None => Members::of_engine(rg::WORLD),
        }
    }

    /// Returns the ranks of the members on the same host as the member with this rank.
    pub fn beside(&self, rank: c_int) -> Vec<c_int> {
        // SAFETY: the call takes a number and no pointers.
        let host = |rank: c_int| unsafe { rg::rg_host_of(self[rank as usize]) };
        let own = host(rank);
        let all = 0..self.len() as c_int;
        all.filter(|&rank| host(rank) == own).collect()
    }

    /// Returns whether both share one list, which is faster than comparing the members.
    pub fn is_same_list(&self, other: &Members) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the rank of a task.
    pub fn rank_of(&self, task: c_int) -> Option<c_int> {
        let at = self.0.iter().position(|&it| it == task);
        at.map(|at| at as c_int)
    }
}

impl From<Vec<c_int>> for Members {
    fn from(tasks: Vec<c_int>) -> Members {
        Members(tasks.into())
    }
}

impl Deref for Members {
    type Target = [c_int];

    fn deref(&self) -> &[c_int] {
        &self.0
    }
}
