//! Calls that need more than a translation of each parameter, by their names in small letters: they get the caller's values.
//! With `_c` they are the forms for large counts. The build finds them in the files of this folder.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

pub mod arrays;
pub mod attributes;
pub mod environment;
pub mod functions;
pub mod removed;
pub mod spawn;
pub mod statuses;
pub mod types;
