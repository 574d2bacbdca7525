//! Numbers that mean something else in the two ABIs: for each role a function inward, to the standard ABI's value, and one
//! outward. Made of the table.
// Values are listed one by one, as the table has them.
#![allow(dead_code, clippy::manual_range_patterns)]

include!(concat!(env!("OUT_DIR"), "/roles.rs"));
