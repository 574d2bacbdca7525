//! `exgridinit` etc.: the nodes as a grid, and the parts of a domain on it.

use std::ffi::c_int;

use regatta_nodes::fault::Fault;
use regatta_nodes::own::Own;
use regatta_nodes::place::place;

use crate::constants::NONODE;
use crate::grid::{self, Grid};
use crate::life::call;

/// Maximum number of dimensions of a grid.
const MAX_DIMENSIONS: c_int = 32;

static GRID: Own<Option<Grid>> = Own::new(None);

fn grid<'a>() -> Result<&'a mut Grid, Fault> {
    let grid = GRID.get().as_mut();
    grid.ok_or(Fault::says("there is no grid yet: call exgridinit first"))
}

fn dimensions(count: c_int) -> Result<usize, Fault> {
    match count {
        1..=MAX_DIMENSIONS => Ok(count as usize),
        _ => Err(Fault::says(format!(
            "a grid cannot have {count} dimensions; it must have 1 to {MAX_DIMENSIONS}"
        ))),
    }
}

/// Fails if an array, which has a number for each dimension, is NULL.
fn given<T>(numbers: *mut T) -> Result<*mut T, Fault> {
    match numbers.is_null() {
        true => Err(Fault::says("the array of numbers is NULL")),
        false => Ok(numbers),
    }
}

/// Arranges the nodes in a grid with these numbers of nodes along the dimensions. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridinit(ndim: c_int, nprocs: *const c_int) -> c_int {
    call("exgridinit", || {
        let (count, numbers) = (dimensions(ndim)?, given(nprocs.cast_mut())?);
        // SAFETY: by the C contract the array has a number for each dimension.
        let counts = unsafe { std::slice::from_raw_parts(numbers, count) };
        *GRID.get() = Some(Grid::new(place().nodes, counts).map_err(Fault::says)?);
        Ok(0)
    })
}

/// Sets for each dimension whether it is a ring. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridbc(periodic: *const c_int) -> c_int {
    call("exgridbc", || {
        let (grid, rings) = (grid()?, given(periodic.cast_mut())?);
        // SAFETY: by the C contract the array has a number for each dimension.
        let rings = unsafe { std::slice::from_raw_parts(rings, grid.dimensions()) };
        grid.set_rings(rings.iter().map(|&ring| ring != 0));
        Ok(0)
    })
}

/// Writes a node's coordinates. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridcoord(node: c_int, coordinates: *mut c_int) -> c_int {
    call("exgridcoord", || {
        let to = given(coordinates)?;
        for (dimension, at) in grid()?.coordinates(node).map_err(Fault::says)?.enumerate() {
            // SAFETY: by the C contract the array has an element for each dimension.
            unsafe { to.add(dimension).write(at) };
        }
        Ok(0)
    })
}

/// Returns the node with these coordinates, `NONODE`, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridproc(coordinates: *const c_int) -> c_int {
    call("exgridproc", || {
        let (grid, at) = (grid()?, given(coordinates.cast_mut())?);
        // SAFETY: by the C contract the array has a number for each dimension.
        let at = unsafe { std::slice::from_raw_parts(at, grid.dimensions()) };
        let found = grid.node(at.iter().map(|&at| i64::from(at)));
        Ok(found.unwrap_or(NONODE))
    })
}

/// Returns the node at this distance along a dimension, `NONODE`, or -1.
#[unsafe(no_mangle)]
extern "C" fn exgridnode(node: c_int, dimension: c_int, distance: c_int) -> c_int {
    call("exgridnode", || {
        let found = grid()?.neighbour(node, dimension, distance);
        Ok(found.map_err(Fault::says)?.unwrap_or(NONODE))
    })
}

/// Writes a node's part of a domain: along each dimension the number of its points, and the first one. Returns 0, or
/// -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridsize(
    node: c_int,
    global: *const c_int,
    local: *mut c_int,
    start: *mut c_int,
) -> c_int {
    call("exgridsize", || {
        let (grid, domain) = (grid()?, given(global.cast_mut())?);
        let (local, start) = (given(local)?, given(start)?);
        // SAFETY: by the C contract the array has a number for each dimension.
        let domain = unsafe { std::slice::from_raw_parts(domain, grid.dimensions()) };
        if let Some(points) = domain.iter().find(|&&points| points < 0) {
            return Err(Fault::says(format!("a domain cannot have {points} points")));
        }
        let parts = grid.parts(node, domain.iter().copied());
        for (dimension, (size, first)) in parts.map_err(Fault::says)?.enumerate() {
            // SAFETY: by the C contract the arrays have an element for each dimension.
            unsafe {
                local.add(dimension).write(size);
                start.add(dimension).write(first);
            }
        }
        Ok(0)
    })
}

/// Writes a good shape of a grid of this many nodes. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exgridsplit(nprocs: c_int, ndim: c_int, counts: *mut c_int) -> c_int {
    call("exgridsplit", || {
        let (count, to) = (dimensions(ndim)?, given(counts)?);
        if nprocs < 1 {
            return Err(Fault::says(format!("a grid cannot have {nprocs} nodes")));
        }
        for (dimension, nodes) in grid::split(nprocs, count).into_iter().enumerate() {
            // SAFETY: by the C contract the array has an element for each dimension.
            unsafe { to.add(dimension).write(nodes) };
        }
        Ok(0)
    })
}
