//! What the tests of the transport share.

pub mod other_task;
pub mod traffic;
