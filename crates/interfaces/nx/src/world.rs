//! The group of global operations: the processes with this process's pid on all nodes.

use crate::error::{EQPRIV, Fault, check};
use crate::life::enrolled;
use crate::rg;

/// Returns the group. Processes that were not loaded together create it at their first global operation, once all of
/// them exist.
#[inline(always)]
pub fn global_group() -> Result<rg::Group, Fault> {
    match enrolled()?.group {
        Some(group) => Ok(group),
        None => make_group(),
    }
}

#[cold]
fn make_group() -> Result<rg::Group, Fault> {
    let library = enrolled()?;
    if library.cube.is_some() {
        return Err(Fault::plain(EQPRIV));
    }
    let (nodes, ptype) = (library.nodes, library.ptype);
    let tasks: Result<Vec<_>, Fault> = (0..nodes)
        .map(|node| match node == library.me {
            true => Ok(library.task),
            false => library.task_of(node.into(), ptype),
        })
        .collect();
    let tasks = tasks?;
    let mut group = rg::WORLD;
    // SAFETY: `tasks` has `nodes` entries, and `group` is writable.
    check(unsafe { rg::rg_group_select(rg::ALL, nodes, tasks.as_ptr(), &mut group) })?;
    library.group = Some(group);
    Ok(group)
}
