//! Calls that need more than a translation of each parameter, by their names in small letters: they get the caller's values.
//! One of a call that has a form for large counts gets what the core would, counts in either form. The build finds them in the
//! files of this folder.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

pub mod arrays;
pub mod attributes;
pub mod environment;
pub mod functions;
pub mod removed;
pub mod statuses;
pub mod types;
