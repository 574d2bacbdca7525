//! Nodes, pids and the shape of the machine.

use std::ffi::{c_int, c_long};

use crate::error::{Answer, EQPARAM, EQPID, EQSET, Fault, value_or_errno, value_or_exit};
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;

unsafe fn my_node() -> Answer {
    Ok(enrolled()?.node_of_mine())
}

unsafe fn nodes() -> Answer {
    Ok(c_long::from(enrolled()?.nodes))
}

unsafe fn my_ptype() -> Answer {
    Ok(enrolled()?.ptype)
}

/// Returns the node number of the host, which is the number of nodes.
unsafe fn my_host() -> Answer {
    // SAFETY: the function has no preconditions.
    unsafe { nodes() }
}

/// `INVALID_PTYPE`: the pid of a program that has begun an application, until it sets one.
const NO_PTYPE: c_long = -1;

/// Sets the pid of a program that has begun an application. Any other process has its pid from the start, and keeps it.
unsafe fn set_ptype(ptype: c_long) -> Answer {
    let library = enrolled()?;
    if library.cube.is_some() && library.ptype == NO_PTYPE && ptype >= 0 {
        let pid = c_int::try_from(ptype).map_err(|_| Fault::of(EQPID, "pid", ptype))?;
        library.places.tell_host_pid(pid);
        library.ptype = ptype;
        return Ok(0);
    }
    match ptype {
        same if same == library.ptype => Ok(0),
        0.. => Err(Fault::of(EQSET, "pid", ptype)),
        _ => Err(Fault::of(EQPID, "pid", ptype)),
    }
}

/// Returns the dimension of the smallest cube that contains all nodes.
unsafe fn dimension() -> Answer {
    Ok(c_long::from(dimension_of(enrolled()?.nodes)))
}

fn dimension_of(nodes: c_int) -> u32 {
    (nodes.max(1) as u32).next_power_of_two().trailing_zeros()
}

/// Returns the rows and columns of the most square rectangle of all nodes.
fn rectangle(nodes: c_int) -> (c_int, c_int) {
    let nodes = nodes.max(1);
    let rows = (1..=nodes)
        .take_while(|rows| rows * rows <= nodes)
        .filter(|rows| nodes % rows == 0)
        .last()
        .unwrap_or(1);
    (rows, nodes / rows)
}

/// Returns the rows and columns of the nodes: those of the application if it is a rectangle, otherwise the most square
/// rectangle.
pub fn shape() -> Result<(c_int, c_int), Fault> {
    let library = enrolled()?;
    Ok(match library.rows {
        0 => rectangle(library.nodes),
        rows => (rows, library.nodes / rows),
    })
}

unsafe fn my_part(rows: *mut c_long, columns: *mut c_long) -> Answer {
    if rows.is_null() || columns.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let (height, width) = shape()?;
    // SAFETY: by the C contract the results are writable.
    unsafe {
        rows.write_unaligned(c_long::from(height));
        columns.write_unaligned(c_long::from(width));
    }
    Ok(0)
}

c_forms! {
    mynode, _mynode: () = my_node;
    numnodes, _numnodes: () = nodes;
    mypid, _mypid: () = my_ptype;
    myptype, _myptype: () = my_ptype;
    setptype, _setptype: (ptype: c_long) = set_ptype;
    myhost, _myhost: () = my_host;
    nodedim, _nodedim: () = dimension;
    mypart, _mypart: (rows: *mut c_long, columns: *mut c_long) = my_part;
}

fortran_forms! {
    mynode_, _mynode_: () = my_node;
    numnodes_, _numnodes_: () = nodes;
    mypid_, _mypid_: () = my_ptype;
    myptype_, _myptype_: () = my_ptype;
    setptype_, _setptype_: (ptype: c_long) = set_ptype;
    myhost_, _myhost_: () = my_host;
    nodedim_, _nodedim_: () = dimension;
}

unsafe fn fortran_part(rows: *mut c_int, columns: *mut c_int) -> Answer {
    let (mut height, mut width) = (0, 0);
    // SAFETY: the results point to local variables.
    unsafe { my_part(&mut height, &mut width) }?;
    // SAFETY: by the Fortran contract both are references to INTEGERs.
    unsafe {
        rows.write_unaligned(height as c_int);
        columns.write_unaligned(width as c_int);
    }
    Ok(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mypart_(rows: *mut c_int, columns: *mut c_int) -> c_int {
    // SAFETY: by the Fortran contract the arguments are valid.
    value_or_exit("mypart", unsafe { fortran_part(rows, columns) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _mypart_(rows: *mut c_int, columns: *mut c_int) -> c_int {
    // SAFETY: by the Fortran contract the arguments are valid.
    value_or_errno(unsafe { fortran_part(rows, columns) }) as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_has_as_many_dimensions_as_hold_all_nodes() {
        let dimensions = [1, 2, 3, 4, 5, 8, 9].map(dimension_of);
        assert_eq!(dimensions, [0, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn the_nodes_make_a_rectangle_as_square_as_can_be() {
        let rectangles = [1, 2, 6, 7, 12, 16].map(rectangle);
        assert_eq!(rectangles, [(1, 1), (1, 2), (2, 3), (1, 7), (3, 4), (4, 4)]);
    }
}
