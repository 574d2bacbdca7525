//! Numbers that mean something else in the two ABIs: for each role a function inward, to the standard ABI's value, and one
//! outward. Made of the table.
#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/roles.rs"));
