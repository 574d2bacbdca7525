//! Slurm's statements about a job, and our questions to it.
//!
//! Slurm tells a process where it is by variables of its environment: an [`Allocation`] is what a job was given; one `srun` in it is read in
//! `regatta_foreign::slurm`. Reading them is pure. Functions that need more than the environment
//! ask Slurm's own commands: [`credential`] proves to other nodes whose process this is, [`node_address`] finds them.

#![forbid(unsafe_code)]

mod allocation;
pub mod credential;
mod node;

pub use allocation::{Allocation, Node, OF_ONE_STEP, is_of_step};
pub use node::node_address;
pub use regatta_foreign::{Environment, environment};
