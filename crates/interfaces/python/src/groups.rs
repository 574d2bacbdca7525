//! Groups: their members, and how they are made. Messages are in `message.rs` and `parts.rs`, collectives in `collective.rs`.

use std::ffi::c_int;

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::check;
use crate::waiting::blocking;

/// A group of tasks. Base class of the package's class of the same name, which is documented there.
#[pyclass(subclass, frozen, module = "regatta_mpi")]
pub(crate) struct Group {
    /// The group's number in the C interface.
    #[pyo3(get)]
    pub(crate) id: c_int,
}

impl Group {
    #[inline(always)]
    pub(crate) fn handle(&self) -> rg::Group {
        rg::Group { id: self.id }
    }
}

#[pymethods]
impl Group {
    #[new]
    fn new(id: c_int) -> Group {
        Group { id }
    }

    /// The rank of this task in the group.
    #[getter]
    fn rank(&self, py: Python<'_>) -> PyResult<c_int> {
        // SAFETY: the function checks the handle.
        check(py, unsafe { rg::rg_rank(self.handle()) })
    }

    /// The number of members. For a channel, the number of tasks that the job has had so far.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<c_int> {
        // SAFETY: the function checks the handle.
        check(py, unsafe { rg::rg_size(self.handle()) })
    }

    /// Returns the id of the task with a rank.
    fn task_of(&self, py: Python<'_>, rank: c_int) -> PyResult<c_int> {
        // SAFETY: the function checks the handle and the rank.
        check(py, unsafe { rg::rg_tid_of(self.handle(), rank) })
    }

    /// Returns the rank of a task. Raises ValueError if it is not a member.
    fn rank_of(&self, py: Python<'_>, task: c_int) -> PyResult<c_int> {
        // SAFETY: the function checks the handle and the id.
        check(py, unsafe { rg::rg_rank_of(self.handle(), task) })
    }

    /// Frees the group in this task. Does not wait for the other members.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.handle();
        // SAFETY: the function checks the handle.
        check(py, blocking(py, || unsafe { rg::rg_group_free(group) })).map(drop)
    }

    /// Ends all operations in the group with GroupRevoked, at every member: blocked calls, started operations and all later calls.
    ///
    /// Only shrink, agree and queries about ranks still work. One or several members call it. Does not block.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.handle();
        // SAFETY: the function checks the handle.
        check(py, blocking(py, || unsafe { rg::rg_group_revoke(group) })).map(drop)
    }

    /// Whether this task knows that the group is revoked.
    #[getter]
    fn is_revoked(&self, py: Python<'_>) -> PyResult<bool> {
        // SAFETY: the function checks the handle.
        check(py, unsafe { rg::rg_group_is_revoked(self.handle()) }).map(|is| is == 1)
    }

    /// Agrees on a flag: returns the bitwise AND of the flags of all members, the same at all that survive. All living members call it. Blocks.
    ///
    /// Raises TaskDied if a member has died and not all members had acknowledged that before (acknowledge_dead).
    fn agree(&self, py: Python<'_>, flag: c_int) -> PyResult<c_int> {
        let (group, mut flag) = (self.handle(), flag);
        // SAFETY: the function checks the handle, and the output is valid.
        let code = blocking(py, || unsafe { rg::rg_agree(&mut flag, group) });
        check(py, code)?;
        Ok(flag)
    }

    /// Returns the ranks of the dead members that this task knows of.
    fn dead(&self, py: Python<'_>) -> PyResult<Vec<c_int>> {
        let (mut ranks, mut count) = (vec![0; 64], 0);
        loop {
            // SAFETY: `ranks` has room for `room` ranks.
            let code = unsafe {
                let room = ranks.len() as c_int;
                rg::rg_dead(self.handle(), ranks.as_mut_ptr(), room, &mut count)
            };
            check(py, code)?;
            let (count, room) = (count as usize, ranks.len());
            ranks.resize(count, 0);
            if count <= room {
                return Ok(ranks);
            }
        }
    }

    /// Acknowledges all deaths that this task knows of, so that receives from ANY match living members. Returns the number of dead members.
    fn acknowledge_dead(&self, py: Python<'_>) -> PyResult<c_int> {
        let mut dead = 0;
        // SAFETY: the function checks the handle, and the output is valid.
        check(py, unsafe {
            rg::rg_acknowledge_dead(self.handle(), &mut dead)
        })?;
        Ok(dead)
    }
}

/// Makes a group by a call of the C interface. Returns the number of the new group.
fn make(
    py: Python<'_>,
    group: &Group,
    call: impl FnOnce(rg::Group, *mut rg::Group) -> c_int,
) -> PyResult<c_int> {
    let (from, mut made) = (group.handle(), rg::Group { id: -1 });
    check(py, blocking(py, || call(from, &mut made)))?;
    Ok(made.id)
}

/// Makes a group of the same members. Returns its number.
#[pyfunction]
pub(crate) fn dup(py: Python<'_>, group: PyRef<'_, Group>) -> PyResult<c_int> {
    // SAFETY: the function checks the handle, and `made` is valid.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_dup(from, made)
    })
}

/// Makes a group of some members. Returns its number.
#[pyfunction]
pub(crate) fn select(
    py: Python<'_>,
    group: PyRef<'_, Group>,
    ranks: Vec<c_int>,
) -> PyResult<c_int> {
    make(py, &group, |from, made| {
        // SAFETY: the function checks the handle, and both the list and `made` are valid.
        unsafe { rg::rg_group_select(from, ranks.len() as c_int, ranks.as_ptr(), made) }
    })
}

/// Makes a group of the members that pass the same colour. Returns its number, which is negative if this task is in no group.
#[pyfunction]
pub(crate) fn split(
    py: Python<'_>,
    group: PyRef<'_, Group>,
    colour: Option<c_int>,
    key: c_int,
) -> PyResult<c_int> {
    let colour = colour.unwrap_or(rg::NONE);
    // SAFETY: the function checks the handle, and `made` is valid.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_split(from, colour, key, made)
    })
}

/// Makes a group of the living members. Returns its number.
#[pyfunction]
pub(crate) fn shrink(py: Python<'_>, group: PyRef<'_, Group>) -> PyResult<c_int> {
    // SAFETY: the function checks the handle, and `made` is valid.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_shrink(from, made)
    })
}
