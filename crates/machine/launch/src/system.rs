//! What the kernel knows about this process and its descendants, and what it allows them.

pub mod cgroup;
pub mod inherited;
pub mod limits;
pub(crate) mod parallel;
pub(crate) mod signals;
pub(crate) mod time_asleep;
pub mod tree;
