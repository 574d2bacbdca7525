//! Transports: implementations of the engine's [`regatta_engine::Transport`].
//!
//! [`job`] is the memory the tasks of one job on one host share; [`shm`] moves messages through
//! it; [`paths`] adds connections to tasks on other hosts; [`place`] says where tasks are when a job runs on
//! several hosts, [`world`] how tasks are added to one that runs, [`shared_barrier`] where members of named groups meet. The launcher uses `job` too: it makes the job and watches over its tasks.
//! [`calls`] are connections of the same kind for programs that are no tasks, [`blocked_signals`] makes threads,
//! [`ready`] waits for descriptors.

pub mod blocked_signals;
pub mod calls;
mod collective_buffer;
mod collective_buffers;
pub mod footprint;
pub mod job;
mod join_token;
#[cfg(test)]
mod layout_tests;
mod left;
mod loans;
pub mod paths;
pub mod place;
pub mod ready;
mod ring_marks;
pub mod shm;
mod shm_channel;
mod tcp;
pub mod world;

pub use regatta_memory::shared_barrier;
