//! `gridinit` etc.: the cube as a grid of rings.

use std::ffi::c_int;

use regatta_nodes::fault::Fault;
use regatta_nodes::own::Own;
use regatta_nodes::place::place;

use crate::cube::Grid;
use crate::life::{call, dimension};

static GRID: Own<Option<Grid>> = Own::new(None);

fn grid<'a>() -> Result<&'a mut Grid, Fault> {
    let grid = GRID.get().as_mut();
    grid.ok_or(Fault::says("there is no grid yet: call gridinit first"))
}

/// Fails if an array, which has a number for each dimension, is NULL.
fn given<T>(numbers: *mut T) -> Result<*mut T, Fault> {
    match numbers.is_null() {
        true => Err(Fault::says("the array of numbers is NULL")),
        false => Ok(numbers),
    }
}

fn known(node: c_int) -> Result<u32, Fault> {
    match (0..place().nodes).contains(&node) {
        true => Ok(node as u32),
        false => Err(Fault::says(format!("there is no node {node}"))),
    }
}

/// Arranges the nodes in a grid with these numbers of nodes along the dimensions. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn gridinit(ndim: c_int, num: *const c_int) -> c_int {
    call("gridinit", || {
        let numbers = given(num.cast_mut())?;
        if !(1..=32).contains(&ndim) {
            return Err(Fault::says(format!("a grid cannot have {ndim} dimensions")));
        }
        // SAFETY: by the C contract the array has a number for each dimension.
        let counts = unsafe { std::slice::from_raw_parts(numbers, ndim as usize) };
        *GRID.get() = Some(Grid::new(dimension(), counts).map_err(Fault::says)?);
        Ok(0)
    })
}

/// Writes a node's coordinates. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn gridcoord(node: c_int, coordinates: *mut c_int) -> c_int {
    call("gridcoord", || {
        let (to, node) = (given(coordinates)?, known(node)?);
        for (dimension, at) in grid()?.coordinates(node).enumerate() {
            // SAFETY: by the C contract the array has an element for each dimension.
            unsafe { to.add(dimension).write(at) };
        }
        Ok(0)
    })
}

/// Returns the node with these coordinates, which wrap around, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn gridproc(coordinates: *const c_int) -> c_int {
    call("gridproc", || {
        let (grid, at) = (grid()?, given(coordinates.cast_mut())?);
        // SAFETY: by the C contract the array has a number for each dimension.
        let at = unsafe { std::slice::from_raw_parts(at, grid.dimensions()) };
        Ok(grid.node(at.iter().copied()) as c_int)
    })
}

/// Returns the channel from a node to its neighbour along a dimension, up or down, as a mask; 0 if the node is its own
/// neighbour; or -1.
#[unsafe(no_mangle)]
extern "C" fn gridchan(node: c_int, dimension: c_int, direction: c_int) -> c_int {
    call("gridchan", || {
        let channel = grid()?.channel(known(node)?, dimension, direction);
        Ok(channel.map_err(Fault::says)? as c_int)
    })
}
