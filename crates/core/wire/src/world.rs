//! Tasks that are started together.

use std::net::SocketAddr;

use crate::fields;

/// Tasks that are started together, with consecutive numbers. The launcher alone assigns numbers, in order and never
/// twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// The number of its first task.
    pub first: u32,
    /// The task that spawned them; `None` if no task of the job did.
    pub parent: Option<u32>,
    /// The task that requested them, perhaps on behalf of the parent, and the number of its request.
    pub request: Option<(u32, u32)>,
    /// The host of each task, and the address at which it listens, if it does.
    pub places: Vec<(u32, Option<SocketAddr>)>,
}

fields!(World {
    first,
    parent,
    request,
    places
});
