//! Transports: implementations of the traits that [`regatta_engine::Transport`] combines.
//!
//! [`shm`] moves messages through the memory that the tasks of one job on one host share (`regatta_segment`);
//! [`paths`] adds connections to tasks on other hosts (`regatta_connection`).

mod by_length;
pub mod footprint;
mod opened_rings;
pub mod paths;
pub mod shm;
mod shm_channel;
mod tcp;
