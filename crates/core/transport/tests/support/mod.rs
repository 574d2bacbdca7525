//! Common parts of the transport's tests.

pub mod other_task;
pub mod traffic;
