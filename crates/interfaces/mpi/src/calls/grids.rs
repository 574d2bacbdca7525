//! Cartesian topologies.

use std::ffi::c_int;
use std::sync::Arc;

use super::communicator_making::give;
use super::communicators::no_intra;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited};
use crate::error::{Error, Result, not_null};
use crate::topology::{Grid, Topology, dims};

/// Returns the Cartesian grid of a communicator.
fn grid_of(comm: &Communicator) -> Result<&Arc<Grid>> {
    match &comm.topology {
        Some(Topology::Grid(grid)) => Ok(grid),
        _ => Err(Error::new(
            ERR_TOPOLOGY,
            "the communicator has no Cartesian topology",
        )),
    }
}

/// Checks a rank of a communicator.
pub(crate) fn check_rank(comm: &Communicator, rank: c_int) -> Result {
    match (0..comm.size()).contains(&rank) {
        true => Ok(()),
        false => Err(Error::new(
            ERR_RANK,
            format!(
                "the rank is {rank}; ranks here are 0 to {}",
                comm.size() - 1
            ),
        )),
    }
}

/// Returns an array of the caller with `count` elements.
pub(crate) unsafe fn array<'a>(
    from: *const c_int,
    count: c_int,
    name: &str,
) -> Result<&'a [c_int]> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(count) => {
            not_null(from, name)?;
            // SAFETY: the caller guarantees that the array has this many elements.
            Ok(unsafe { std::slice::from_raw_parts(from, count) })
        }
        Err(_) => {
            let text = format!("the length of {name} is {count}; it must be 0 or more");
            Err(Error::new(ERR_ARG, text))
        }
    }
}

/// Writes as many words as fit to an array of the caller, which has `room` elements.
pub(crate) unsafe fn fill(to: *mut c_int, room: c_int, words: &[c_int], name: &str) -> Result {
    let count = words.len().min(usize::try_from(room).unwrap_or(0));
    if count == 0 {
        return Ok(());
    }
    not_null(to, name)?;
    // SAFETY: the caller guarantees that the array has `room` elements.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, count) };
    Ok(())
}

/// Returns the grid that the caller describes. It must not be larger than the communicator. With a dimension of 0 it
/// has no process.
unsafe fn described(
    comm: &Communicator,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
) -> Result<Grid> {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    if ndims < 0 {
        let text = format!("ndims is {ndims}; it must be 0 or more");
        return Err(Error::new(ERR_DIMS, text));
    }
    // SAFETY: the caller guarantees that the arrays have this many elements.
    let (dims, periods) = unsafe {
        (
            array(dims, ndims, "dims")?,
            array(periods, ndims, "periods")?,
        )
    };
    if let Some(dim) = dims.iter().find(|dim| **dim < 0) {
        let text = format!("a dimension of the grid is {dim}; it must be 0 or more");
        return Err(Error::new(ERR_DIMS, text));
    }
    let grid = Grid {
        dims: dims.to_vec(),
        periodic: periods.iter().map(|&period| period != 0).collect(),
    };
    let most = comm.size();
    match grid.size() {
        Some(size) if size <= most => Ok(grid),
        _ => Err(Error::new(
            ERR_DIMS,
            format!("the grid {dims:?} has more processes than the communicator, which has {most}"),
        )),
    }
}

/// Makes a communicator of the first `size` processes, with this topology.
pub(crate) fn with_topology(
    comm: &Communicator,
    size: c_int,
    topology: Topology,
    to: Out<Comm>,
) -> Result {
    let colour = (comm.rank < size).then_some(0);
    let made = communicator::split(comm, colour, comm.rank)?;
    let inherited = Inherited {
        topology: Some(topology),
        ..Inherited::of(comm)
    };
    give(made, inherited, to)
}

pub unsafe fn cart_create(
    comm: Arc<Communicator>,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    comm_cart: Out<Comm>,
) -> Result {
    comm_cart.put(COMM_NULL);
    // SAFETY: the caller guarantees that the arrays have this many elements.
    let grid = unsafe { described(&comm, ndims, dims, periods)? };
    let size = grid.size().unwrap_or(0);
    with_topology(&comm, size, Topology::Grid(Arc::new(grid)), comm_cart)
}

pub unsafe fn cart_map(
    comm: Arc<Communicator>,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: Out<c_int>,
) -> Result {
    // SAFETY: the caller guarantees that the arrays have this many elements.
    let grid = unsafe { described(&comm, ndims, dims, periods)? };
    newrank.put(match comm.rank < grid.size().unwrap_or(0) {
        true => comm.rank,
        false => UNDEFINED,
    });
    Ok(())
}

pub fn cartdim_get(comm: Arc<Communicator>, ndims: Out<c_int>) -> Result {
    ndims.put(grid_of(&comm)?.dims.len() as c_int);
    Ok(())
}

pub unsafe fn cart_get(
    comm: Arc<Communicator>,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Result {
    let grid = grid_of(&comm)?;
    check_room(maxdims, grid)?;
    let periodic: Vec<c_int> = grid.periodic.iter().map(|&it| c_int::from(it)).collect();
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        fill(dims, maxdims, &grid.dims, "dims")?;
        fill(periods, maxdims, &periodic, "periods")?;
        fill(coords, maxdims, &grid.coordinates(comm.rank), "coords")
    }
}

/// Checks that the caller's arrays are long enough for all dimensions.
fn check_room(maxdims: c_int, grid: &Grid) -> Result {
    let count = grid.dims.len();
    match usize::try_from(maxdims) {
        Ok(room) if room >= count => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("maxdims is {maxdims}; the grid has {count} dimensions"),
        )),
    }
}

pub unsafe fn cart_rank(comm: Arc<Communicator>, coords: *const c_int, rank: Out<c_int>) -> Result {
    let grid = grid_of(&comm)?;
    // SAFETY: the caller guarantees that the array has an element for each dimension.
    let coordinates = unsafe { array(coords, grid.dims.len() as c_int, "coords")? };
    let found = grid.rank(coordinates).map_err(|at| {
        let (coordinate, last) = (coordinates[at], grid.dims[at] - 1);
        let text = format!("coordinate {at} is {coordinate}; here it is 0 to {last}");
        Error::new(ERR_ARG, text)
    });
    rank.put(found?);
    Ok(())
}

pub unsafe fn cart_coords(
    comm: Arc<Communicator>,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Result {
    let grid = grid_of(&comm)?;
    check_rank(&comm, rank)?;
    check_room(maxdims, grid)?;
    // SAFETY: the caller guarantees that the array has `maxdims` elements.
    unsafe { fill(coords, maxdims, &grid.coordinates(rank), "coords") }
}

pub fn cart_shift(
    comm: Arc<Communicator>,
    direction: c_int,
    disp: c_int,
    rank_source: Out<c_int>,
    rank_dest: Out<c_int>,
) -> Result {
    let grid = grid_of(&comm)?;
    let dimension = usize::try_from(direction).ok();
    let Some(dimension) = dimension.filter(|&it| it < grid.dims.len()) else {
        let count = grid.dims.len();
        let text = format!("direction is {direction}; the grid has {count} dimensions");
        return Err(Error::new(ERR_ARG, text));
    };
    let by = i64::from(disp);
    rank_source.put(grid.shifted(comm.rank, dimension, -by));
    rank_dest.put(grid.shifted(comm.rank, dimension, by));
    Ok(())
}

pub unsafe fn cart_sub(
    comm: Arc<Communicator>,
    remain_dims: *const c_int,
    newcomm: Out<Comm>,
) -> Result {
    let grid = grid_of(&comm)?;
    let count = grid.dims.len();
    // SAFETY: the caller guarantees that the array has an element for each dimension.
    let remain = unsafe { array(remain_dims, count as c_int, "remain_dims")? };
    let part = |kept: bool| {
        let chosen = (0..count).filter(move |&at| (remain[at] != 0) == kept);
        let chosen: Vec<usize> = chosen.collect();
        let part = Grid {
            dims: chosen.iter().map(|&at| grid.dims[at]).collect(),
            periodic: chosen.iter().map(|&at| grid.periodic[at]).collect(),
        };
        let own = grid.coordinates(comm.rank);
        let own: Vec<c_int> = chosen.iter().map(|&at| own[at]).collect();
        let rank = part.rank(&own).unwrap_or(0);
        (part, rank)
    };
    let ((part, key), (_, colour)) = (part(true), part(false));
    let made = communicator::split(&comm, Some(colour), key)?;
    let inherited = Inherited {
        topology: Some(Topology::Grid(Arc::new(part))),
        ..Inherited::of(&comm)
    };
    give(made, inherited, newcomm)
}

pub unsafe fn dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Result {
    if ndims < 0 || (ndims == 0 && nnodes != 1) {
        let text = format!("ndims is {ndims}, for {nnodes} processes");
        return Err(Error::new(ERR_DIMS, text));
    }
    // SAFETY: the caller guarantees that the array has this many elements.
    let given = unsafe { array(dims, ndims, "dims")? };
    if let Some(dim) = given.iter().find(|dim| **dim < 0) {
        let text = format!("a dimension is {dim}; it is 0 (to be chosen) or more");
        return Err(Error::new(ERR_DIMS, text));
    }
    let fixed = given.iter().filter(|dim| **dim != 0);
    let fixed = fixed
        .map(|&dim| i64::from(dim))
        .try_fold(1, i64::checked_mul);
    let count = given.iter().filter(|dim| **dim == 0).count();
    let fixed = match fixed {
        Some(fixed) if nnodes > 0 && i64::from(nnodes) % fixed == 0 => fixed,
        _ => {
            let text = format!("{nnodes} processes do not fill a grid of {given:?}");
            return Err(Error::new(ERR_DIMS, text));
        }
    };
    if count == 0 && fixed != i64::from(nnodes) {
        let text = format!("the grid {given:?} does not have {nnodes} processes");
        return Err(Error::new(ERR_DIMS, text));
    }
    let chosen = dims::balanced((i64::from(nnodes) / fixed) as c_int, count);
    let mut chosen = chosen.into_iter();
    let all: Vec<c_int> = given
        .iter()
        .map(|&dim| match dim {
            0 => chosen.next().unwrap_or(1),
            dim => dim,
        })
        .collect();
    // SAFETY: the caller guarantees that the array has this many elements.
    unsafe { fill(dims, ndims, &all, "dims") }
}
