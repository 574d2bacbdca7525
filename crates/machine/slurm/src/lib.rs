//! Slurm's statements about a job, and our questions to it.
//!
//! Slurm tells a process where it is by variables of its environment: an [`Allocation`] is what a job was given, a
//! [`Step`] is one `srun` in it, as one of its tasks sees it. Reading them is pure. Functions that need more than the environment
//! ask Slurm's own commands: [`credential`] proves to other nodes whose process this is, [`node_address`] finds them.

#![forbid(unsafe_code)]

mod allocation;
pub mod credential;
mod lists;
mod node;
pub mod rendezvous;
mod step;

pub use allocation::{Allocation, Node, OF_ONE_STEP, is_of_step};
pub use lists::{counts, names, numbers};
pub use node::node_address;
pub use step::Step;

/// Looks up a variable of the environment; none if it is missing or empty.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// This process's own environment.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
