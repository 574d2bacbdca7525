//! Processes that other processes have started: what these say of their world, and the way to them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

use super::{Inherited, Members, inter, internal_messages, making, publish, registry};
use crate::abi::*;
use crate::error::Result;

/// The variable by which a started process knows which task has started it, and will tell it the rest.
pub const VARIABLE: &str = "REGATTA_MPI_STARTED_BY";
/// The tag of the message with the rest.
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

/// The message for a process that is started.
pub fn message(world: &[c_int], parents: &[c_int], application: c_int) -> Vec<c_int> {
    let mut words = vec![application, world.len() as c_int];
    words.extend_from_slice(world);
    words.extend_from_slice(parents);
    words
}

/// The message for this process; none if the launcher has started it.
fn origin() -> Result<Option<Origin>> {
    let mut origin = ORIGIN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(origin) = &*origin {
        return Ok(origin.clone());
    }
    let said = std::env::var(VARIABLE).ok();
    let said = said.and_then(|text| text.parse::<c_int>().ok());
    // SAFETY: the call has no arguments and no preconditions.
    let parent = unsafe { rg::rg_parent() };
    // The variable may come from a process between the two, which is no task.
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

/// The processes of MPI_COMM_WORLD, if who has started them says that.
pub fn world() -> Result<Option<Members>> {
    Ok(origin()?.map(|origin| origin.world))
}

/// Which of the commands that were started together this process runs.
pub fn application() -> c_int {
    origin()
        .ok()
        .flatten()
        .map_or(0, |origin| origin.application)
}

/// Makes the way to those who have started this world.
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

/// That way, as long as it has not been freed.
pub fn parent() -> Comm {
    let parent = Comm(PARENT.load(Ordering::Acquire));
    match super::route(parent) {
        Ok(_) => parent,
        Err(_) => COMM_NULL,
    }
}
