//! Collectives that are started, and complete later: schedules of messages.

use regatta_engine::{GroupId, Handle, Parts, Reduction, Result};
use regatta_memory::views::Views;

use crate::collective::check_reduction;
use crate::state::enter;

/// Start a barrier.
pub fn start_barrier(group: GroupId) -> Result<Handle> {
    enter()?.engine.start_barrier(group)
}

/// Start a broadcast.
pub fn start_broadcast(group: GroupId, root: u32, buffer: Views) -> Result<Handle> {
    enter()?.engine.start_broadcast(group, root, buffer)
}

/// Start a reduction to the root.
pub fn start_reduce(
    group: GroupId,
    root: u32,
    input: Views,
    output: Views,
    what: Reduction,
) -> Result<Handle> {
    check_reduction(&what)?;
    enter()?
        .engine
        .start_reduce(group, root, input, output, what)
}

/// Start a reduction to all.
pub fn start_allreduce(
    group: GroupId,
    input: Views,
    output: Views,
    what: Reduction,
) -> Result<Handle> {
    check_reduction(&what)?;
    enter()?.engine.start_allreduce(group, input, output, what)
}

/// Start a scan.
pub fn start_scan(group: GroupId, input: Views, output: Views, what: Reduction) -> Result<Handle> {
    check_reduction(&what)?;
    enter()?.engine.start_scan(group, input, output, what)
}

/// Start a scan of the ranks below.
pub fn start_exscan(
    group: GroupId,
    input: Views,
    output: Views,
    what: Reduction,
) -> Result<Handle> {
    check_reduction(&what)?;
    enter()?.engine.start_exscan(group, input, output, what)
}

/// Start a reduction of which each has a part.
pub fn start_reduce_scatter(
    group: GroupId,
    input: Views,
    output: Views,
    parts: &Parts,
    what: Reduction,
) -> Result<Handle> {
    check_reduction(&what)?;
    enter()?
        .engine
        .start_reduce_scatter(group, input, output, parts, what)
}

/// Start a gathering to all.
pub fn start_allgather(
    group: GroupId,
    input: Option<Views>,
    output: Views,
    parts: &Parts,
) -> Result<Handle> {
    enter()?.engine.start_allgather(group, input, output, parts)
}

/// Start a complete exchange.
pub fn start_alltoall(
    group: GroupId,
    input: Views,
    gives: &Parts,
    output: Views,
    gets: &Parts,
) -> Result<Handle> {
    enter()?
        .engine
        .start_alltoall(group, input, gives, output, gets)
}

/// Start a gathering to the root.
pub fn start_gather(
    group: GroupId,
    root: u32,
    input: Option<Views>,
    output: Views,
    parts: &Parts,
) -> Result<Handle> {
    enter()?
        .engine
        .start_gather(group, root, input, output, parts)
}

/// Start a scattering from the root.
pub fn start_scatter(
    group: GroupId,
    root: u32,
    input: Views,
    parts: &Parts,
    output: Option<Views>,
) -> Result<Handle> {
    enter()?
        .engine
        .start_scatter(group, root, input, parts, output)
}
