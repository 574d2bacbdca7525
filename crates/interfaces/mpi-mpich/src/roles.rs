//! Numbers whose values differ between the two ABIs. For each role there is a function `inward`, which converts to the
//! standard ABI, and a function `outward`. Generated from the table.
// The table lists values one by one.
#![allow(dead_code, clippy::manual_range_patterns)]

include!(concat!(env!("OUT_DIR"), "/roles.rs"));
