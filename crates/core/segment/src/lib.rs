//! The memory that the tasks of one job share on one host.
//!
//! This crate knows the layout of that memory and the states of the tasks, but not frames and messages. The launcher
//! makes the job and supervises its tasks, the tasks join it, and the transports move messages through it.
//!
//! | module | is |
//! |---|---|
//! | [`job`] | the segment, and the state of each task |
//! | `join_token`, `job_error` | what a task needs to join; why a job cannot be made or joined |
//! | `geometry` | sizes of rings, payload buffers and pipes by number of tasks |
//! | `table` | the words at the segment's front: header and table of tasks |
//! | [`place`] | hosts and addresses of the tasks of a job that runs on several hosts |
//! | [`world`] | tasks that are added while the job runs |
//! | [`ring_memory`], [`ring_marks`] | the memory of rings, and marks of those that have been written to |
//! | [`collective_buffer`], [`free_collective_buffers`] | the memory of small collectives, and its reuse |
//! | [`loan_blocks`] | the blocks of zero-copy messages |
//! | [`shared_barrier`] | barriers for the members of named groups |
//! | `left` | recovery of memory that a killed task had allocated and not listed |

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
