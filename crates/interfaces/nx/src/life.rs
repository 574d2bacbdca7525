//! Becoming a node, or a host, and leaving.

use std::ffi::c_int;

use crate::error::{EQDRVERR, EQNOSET, EQSET, Fault, check, fault};
use crate::host::usual_nodes;
use crate::places::{Place, VARIABLE};
use crate::rg;
use crate::state::{Library, NOBODY, library};

/// The library's state, as a process that can send and receive. NX has no call that begins a node's program: the first call of any kind
/// does.
#[inline(always)]
pub fn enrolled<'a>() -> Result<&'a mut Library, Fault> {
    let library = library();
    if library.joined {
        return Ok(library);
    }
    enrol()
}

/// The world's tasks: our rank, how many they are, and the first of them.
fn join() -> Result<(c_int, c_int, c_int), Fault> {
    // SAFETY: plain calls.
    unsafe {
        check(rg::rg_init())?;
        Ok((
            number(rg::rg_rank(rg::WORLD))?,
            number(rg::rg_size(rg::WORLD))?,
            number(rg::rg_tid_of(rg::WORLD, 0))?,
        ))
    }
}

/// The place at which a host has loaded this process, which has joined. The variable of a process that the host has not started is
/// another's: jobs that a loaded process starts inherit it.
fn place() -> Option<Place> {
    let place = Place::read(&std::env::var(VARIABLE).ok()?)?;
    // SAFETY: a plain question.
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
            // Were they all loaded together?
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

/// Becomes the host, with this pid.
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

/// Whether nobody has started this process as a part of something: it has no place, and no tasks beside it.
pub fn is_alone() -> Result<bool, Fault> {
    let (_, size, _) = join()?;
    Ok(size == 1 && place().is_none())
}

/// Becomes the program that begins an application of so many nodes: a host that has no pid yet.
pub fn enrol_controller(nodes: c_int, rows: c_int) -> Result<(), Fault> {
    let (_, _, first) = join()?;
    (library().nodes, library().rows) = (nodes, rows);
    become_host(first, NOBODY)
}

fn leave_at_the_end() -> Result<(), Fault> {
    library().process = std::process::id();
    // SAFETY: it runs once, when the program ends.
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

/// A program that ends by itself has done its work: its process leaves. One that a call ends has failed.
/// A forked child is no process of NX's.
extern "C" fn leave() {
    let library = library();
    if !library.failed && library.process == std::process::id() {
        crate::handlers::end();
        // SAFETY: requests that are still open are dropped, and their memory is the program's, which ends.
        unsafe { rg::rg_finalize() };
    }
}
