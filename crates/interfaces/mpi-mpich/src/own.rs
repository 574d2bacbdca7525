//! Calls that need more than a conversion of each parameter, by their names in lower case. They get the caller's
//! values. A call that has a variant for large counts gets counts of either width, as the core would. The build script
//! finds the calls in the files of this folder.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

pub mod arrays;
pub mod attributes;
pub mod environment;
pub mod functions;
pub mod removed;
pub mod statuses;
pub mod types;
