//! The constants of `express.h`.

use std::ffi::c_int;

/// Any node, any type.
pub const DONTCARE: c_int = -1;
/// A neighbour that does not exist: nothing is sent to it or read from it.
pub const NONODE: c_int = -2;
/// The host program.
pub const HOST: c_int = -3;
/// In place of the number of nodes: all nodes; the list is ignored.
pub const ALLNODES: c_int = -4;
/// In place of the number of nodes: all nodes and the host program.
pub const ALLPROCS: c_int = -5;
