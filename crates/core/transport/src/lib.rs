//! Transports: implementations of the traits that [`regatta_engine::Transport`] joins.
//!
//! [`shm`] moves messages through the memory that the tasks of one job on one host share (`regatta_segment`);
//! [`paths`] adds connections to tasks on other hosts.
//! [`calls`] are connections of the same kind for programs that are no tasks, [`blocked_signals`] makes threads,
//! [`ready`] waits for descriptors.

pub mod blocked_signals;
pub mod calls;
pub mod footprint;
pub mod local_socket;
mod opened_rings;
pub mod paths;
pub mod ready;
pub mod shm;
mod shm_channel;
mod tcp;
