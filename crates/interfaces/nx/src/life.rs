//! Joining as a node or a host, and leaving.

use std::ffi::c_int;

use crate::error::{EQDRVERR, EQNOSET, EQSET, Fault, check, fault};
use crate::host::usual_nodes;
use crate::places::{Place, VARIABLE};
use crate::rg;
use crate::state::{Library, NOBODY, library};

/// Returns the library's state, after joining if necessary. NX has no call that begins a node's program: the first call
/// of any kind joins.
#[inline(always)]
pub fn enrolled<'a>() -> Result<&'a mut Library, Fault> {
    let library = library();
    if library.joined {
        return Ok(library);
    }
    enrol()
}

/// Initializes Regatta. Returns this task's rank in the world, the world's size, and its first task.
fn join() -> Result<(c_int, c_int, c_int), Fault> {
    // SAFETY: the calls take plain values only.
    unsafe {
        check(rg::rg_init())?;
        Ok((
            number(rg::rg_rank(rg::WORLD))?,
            number(rg::rg_size(rg::WORLD))?,
            number(rg::rg_tid_of(rg::WORLD, 0))?,
        ))
    }
}

/// Returns the place at which a host has loaded this process. A process that the host has not started itself has
/// inherited the variable, for example in a job that a loaded process has started: then returns `None`.
fn place() -> Option<Place> {
    let place = Place::read(&std::env::var(VARIABLE).ok()?)?;
    // SAFETY: the call takes plain values only.
    (unsafe { rg::rg_parent() } == place.host).then_some(place)
}

#[cold]
#[inline(never)]
fn enrol<'a>() -> Result<&'a mut Library, Fault> {
    let library = library();
    if library.cube.is_some() {
        return Err(Fault::plain(EQNOSET));
    }
    let (rank, size, first) = join()?;
    library.task = first + rank;
    match place() {
        None => {
            (library.me, library.nodes, library.first) = (rank, size, first);
            library.group = Some(rg::WORLD);
        }
        Some(place) => {
            library.me = place.node + rank;
            library.nodes = place.nodes;
            library.ptype = place.pid.into();
            (library.fork, library.rows) = (place.fork, place.rows);
            library.places.set_host(place.host, place.host_pid.into());
            // Assume that the processes of this pid were not loaded together.
            library.set_apart();
            if place.node == 0 && size == place.nodes {
                (library.first, library.peers) = (first, library.ptype);
                library.group = Some(rg::WORLD);
            }
        }
    }
    leave_at_the_end()?;
    library.joined = true;
    Ok(library)
}

/// Becomes a host with this pid.
pub fn enrol_host(pid: c_int) -> Result<(), Fault> {
    let library = library();
    if library.joined {
        return Err(Fault::of(EQSET, "pid", pid.into()));
    }
    let (_, size, first) = join()?;
    if size > 1 || place().is_some() {
        // A node has its pid from the start.
        return Err(Fault::of(EQSET, "pid", pid.into()));
    }
    if library.nodes == 0 {
        library.nodes = usual_nodes()?;
    }
    become_host(first, pid)
}

fn become_host(task: c_int, pid: c_int) -> Result<(), Fault> {
    let library = library();
    library.cube.get_or_insert_default();
    library.task = task;
    library.me = library.nodes;
    library.ptype = pid.into();
    library.set_apart();
    library.places.set_host(task, pid.into());
    leave_at_the_end()?;
    library.joined = true;
    Ok(())
}

/// Returns whether this process was started by itself: no host has loaded it, and its world has one task.
pub fn is_alone() -> Result<bool, Fault> {
    let (_, size, _) = join()?;
    Ok(size == 1 && place().is_none())
}

/// Becomes the program that begins an application of this many nodes: a host that has no pid yet.
pub fn enrol_controller(nodes: c_int, rows: c_int) -> Result<(), Fault> {
    let (_, _, first) = join()?;
    (library().nodes, library().rows) = (nodes, rows);
    become_host(first, NOBODY)
}

fn leave_at_the_end() -> Result<(), Fault> {
    library().process = std::process::id();
    // SAFETY: `leave` has the right type, and runs once, when the program ends.
    match unsafe { libc::atexit(leave) } {
        0 => Ok(()),
        _ => Err(Fault::plain(EQDRVERR)),
    }
}

fn number(code: c_int) -> Result<c_int, Fault> {
    match code {
        0.. => Ok(code),
        _ => Err(fault(code)),
    }
}

/// Leaves when the program ends by itself, which counts as success. A program that a call has ended has failed. A
/// forked child is not a process of NX.
extern "C" fn leave() {
    let library = library();
    if !library.failed && library.process == std::process::id() {
        crate::handlers::end();
        // SAFETY: open requests are dropped, and the program that owns their memory is ending.
        unsafe { rg::rg_finalize() };
    }
}
