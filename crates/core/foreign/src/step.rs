//! The interface to a launcher whose processes become the tasks of one job.
//!
//! A launcher of another system does not make a job of its processes. It tells each its rank, its node and the ranks on
//! that node: a [`Step`]. The tasks of a node meet at a socket named after user, step and node, and one of them starts
//! a guardian for all (`crates/core/process/src/step`). The guardians of several nodes then exchange addresses and keys
//! in a way that the launcher allows: the other half of the interface, `Exchange` in
//! `crates/machine/guardian/src/exchange.rs`. [Adding a launcher](../README.md#adding-a-launcher) lists the files.

use crate::Environment;

/// A launcher that gives its processes information about each other.
pub trait StepSource: Sync {
    /// Returns the launcher's names, for messages.
    fn names(&self) -> Names;

    /// Returns the step of several tasks in which this process was started, or `None` if the launcher has not started
    /// it or has started it alone.
    ///
    /// The task and its guardian, which inherits the task's environment, must get the same step except for the rank.
    /// An error says which variable is missing, or which do not fit together.
    fn find(&self, environment: Environment) -> Result<Option<Step>, String>;
}

/// A launcher's names, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The system, as in "step 7.0 of Slurm". Guardians also use it as the key that selects their `Exchange`.
    pub launcher: &'static str,
    /// The command that starts its tasks.
    pub command: &'static str,
    /// Another way to start the program, after "start the program with".
    pub instead: &'static str,
}

/// The processes that a launcher has started together, as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The launcher.
    pub names: Names,
    /// An id that is unique among a user's steps on a node, and the same in all tasks of the step.
    pub id: String,
    /// This task's rank.
    pub rank: u32,
    /// Number of tasks in the step: at least 2.
    pub size: u32,
    /// The number of this node in the step.
    pub node: u32,
    /// Names of the step's nodes, by number.
    pub nodes: Vec<String>,
    /// The ranks on this node, ascending.
    pub here: Vec<u32>,
}

impl Step {
    /// Returns whether the fields are consistent.
    pub(crate) fn is_sound(&self) -> bool {
        self.here.contains(&self.rank)
            && self.here.iter().all(|&rank| rank < self.size)
            && (self.node as usize) < self.nodes.len()
    }

    /// Returns the name of this node.
    pub fn node_name(&self) -> &str {
        &self.nodes[self.node as usize]
    }
}
