//! Tasks that start together.

use std::net::SocketAddr;

use crate::fields;

/// Tasks that start together: their numbers follow each other. Numbers are given in order and never twice, by the launcher alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// The number of its first task.
    pub first: u32,
    /// The task that spawned them; none: no task of the job did.
    pub parent: Option<u32>,
    /// The task that requested them, perhaps on behalf of the parent, and the number of its request.
    pub request: Option<(u32, u32)>,
    /// The host of each, and where it listens, if it does.
    pub places: Vec<(u32, Option<SocketAddr>)>,
}

fields!(World {
    first,
    parent,
    request,
    places
});
