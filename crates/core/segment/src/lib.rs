//! The memory that the tasks of one job share on one host.
//!
//! This crate knows the layout of that memory and the states of the tasks, but not frames and messages. The launcher
//! makes the job and supervises its tasks, the tasks join it, and the transports move messages through it.
//!
//! | module | is |
//! |---|---|
//! | [`job`] | the segment, and what is known of each task |
//! | `join_token`, `job_error` | how a task finds it; why a job cannot be made or joined |
//! | `geometry` | sizes of rings, payload buffers and pipes by number of tasks |
//! | `table` | the words at its front: header and table of tasks |
//! | [`place`] | where tasks are when the job runs on several hosts |
//! | [`world`] | tasks that are added while it runs |
//! | [`ring_memory`], [`ring_marks`] | rings: their memory, and which have been written to |
//! | [`collective_buffer`], [`free_collective_buffers`] | the memory of small collectives, and what of it is free |
//! | [`loan_blocks`] | blocks that go from task to task |
//! | [`shared_barrier`] | where the members of named groups meet |
//! | `left` | what a killed task had in hand |

mod buffer_users;
pub mod collective_buffer;
pub mod free_collective_buffers;
mod geometry;
pub mod job;
mod job_error;
mod join_token;
#[cfg(test)]
mod layout_tests;
mod left;
pub mod loan_blocks;
#[cfg(test)]
mod message_tests;
pub mod place;
pub mod ring_marks;
pub mod ring_memory;
mod table;
pub mod world;

pub use regatta_memory::shared_barrier;
