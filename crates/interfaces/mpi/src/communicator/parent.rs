//! Processes started by other processes: what these send about the new MPI_COMM_WORLD, and the intercommunicator with
//! them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

use super::{Inherited, Members, inter, internal_messages, making, publish, registry};
use crate::abi::*;
use crate::error::Result;

/// The environment variable with the task number of the process that has started this one and sends it the rest.
pub const VARIABLE: &str = "REGATTA_MPI_STARTED_BY";
/// The tag of that message.
pub const TAG: c_int = 1;

/// The content of the message.
#[derive(Clone, Debug)]
struct Origin {
    world: Members,
    parents: Members,
    application: c_int,
}

static ORIGIN: Mutex<Option<Option<Origin>>> = Mutex::new(None);
static PARENT: AtomicUsize = AtomicUsize::new(COMM_NULL.0);

/// Returns the message for a started process.
pub fn message(world: &[c_int], parents: &[c_int], application: c_int) -> Vec<c_int> {
    let mut words = vec![application, world.len() as c_int];
    words.extend_from_slice(world);
    words.extend_from_slice(parents);
    words
}

/// Returns the message for this process; `None` if the launcher has started it.
fn origin() -> Result<Option<Origin>> {
    let mut origin = ORIGIN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(origin) = &*origin {
        return Ok(origin.clone());
    }
    let said = std::env::var(VARIABLE).ok();
    let said = said.and_then(|text| text.parse::<c_int>().ok());
    // SAFETY: the call has no arguments and no preconditions.
    let parent = unsafe { rg::rg_parent() };
    // The variable may be inherited through another process that is no task.
    if said.is_none_or(|said| said != parent) {
        *origin = Some(None);
        return Ok(None);
    }
    let (_, words) = internal_messages::receive(internal_messages::CHANNEL, parent, TAG)?;
    let (application, count) = match words[..] {
        [application, count, ..] => (application, count as usize),
        _ => (0, 0),
    };
    let (world, parents) = words.get(2..).unwrap_or(&[]).split_at(count);
    let found = Origin {
        world: world.to_vec().into(),
        parents: parents.to_vec().into(),
        application,
    };
    *origin = Some(Some(found.clone()));
    Ok(Some(found))
}

/// Returns the processes of MPI_COMM_WORLD if other processes have started this one, otherwise `None`.
pub fn world() -> Result<Option<Members>> {
    Ok(origin()?.map(|origin| origin.world))
}

/// Returns the index of this process's command among those that were started together.
pub fn application() -> c_int {
    origin()
        .ok()
        .flatten()
        .map_or(0, |origin| origin.application)
}

/// Makes the intercommunicator with the processes that have started this one.
pub fn meet_parents() -> Result {
    let Some(origin) = origin()? else {
        return Ok(());
    };
    let own = making::dup_group(registry::get(COMM_WORLD)?.group)?;
    let made = inter::join_sides(origin.world, own, origin.parents, making::UNTOLD)?;
    let parent = publish(made, Inherited::named(c"MPI_COMM_PARENT"))?;
    PARENT.store(parent.handle.0, Ordering::Release);
    Ok(())
}

/// Returns that intercommunicator, or MPI_COMM_NULL if there is none or it has been freed.
pub fn parent() -> Comm {
    let parent = Comm(PARENT.load(Ordering::Acquire));
    match super::route(parent) {
        Ok(_) => parent,
        Err(_) => COMM_NULL,
    }
}
