//! The contract with a launcher whose processes become the tasks of one job.
//!
//! A launcher of another system makes no job of its processes. It tells each its rank, its node and the ranks beside it: a [`Step`].
//! The tasks of a node meet at a socket named after user, step and node, and one of them starts a guardian for all
//! (`crates/core/process/src/step`). The guardians of several nodes then exchange addresses and keys, as the launcher lets them: that is the
//! contract's other half, `Exchange` in `crates/machine/guardian/src/exchange.rs`. [Adding a launcher](../README.md#adding-a-launcher) lists the files.

use crate::Environment;

/// A launcher that tells its processes of each other.
pub trait StepSource: Sync {
    /// The launcher in words, for messages.
    fn names(&self) -> Names;

    /// Returns the step of several tasks that this process was started in; `None` if the launcher has not started it, or has started it as the only one.
    ///
    /// The task and its guardian, which has the task's environment, must find the same, but for the rank. An error says what the launcher
    /// has not told, or what does not fit.
    fn find(&self, environment: Environment) -> Result<Option<Step>, String>;
}

/// A launcher in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The system, as in "step 7.0 of Slurm"; also the key by which a guardian knows how its nodes exchange bytes.
    pub launcher: &'static str,
    /// The command that starts its tasks.
    pub command: &'static str,
    /// Another way to start the program, after "start the program with".
    pub instead: &'static str,
}

/// The processes that a launcher has started at once, as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The launcher.
    pub names: Names,
    /// Different for each step of a user on a node; the same in all its tasks.
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
    /// Whether the parts fit each other.
    pub(crate) fn is_sound(&self) -> bool {
        self.here.contains(&self.rank)
            && self.here.iter().all(|&rank| rank < self.size)
            && (self.node as usize) < self.nodes.len()
    }

    /// The name of this node.
    pub fn node_name(&self) -> &str {
        &self.nodes[self.node as usize]
    }
}
