//! Slurm's information about a job, and requests to Slurm.
//!
//! Slurm describes a job to its processes in environment variables: an [`Allocation`] is what a job was given;
//! `regatta_foreign::slurm` reads a single `srun` in it. Reading them is pure. Functions that need more than the
//! environment call Slurm's commands: [`credential`] proves to other nodes to which user this process belongs,
//! [`node_address`] finds their addresses.

#![forbid(unsafe_code)]

mod allocation;
pub mod credential;
mod node;

pub use allocation::{Allocation, Node, OF_ONE_STEP, is_of_step};
pub use node::node_address;
pub use regatta_foreign::{Environment, environment};
