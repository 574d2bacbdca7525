//! Groups: who is in them, and how they are made. Their messages are in `message.rs` and `parts.rs`, their collectives in `collective.rs`.

use std::ffi::c_int;

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::check;
use crate::waiting::blocking;

/// A group of tasks. The package's class of this name is made of it, and is documented there.
#[pyclass(subclass, frozen, module = "regatta_mpi")]
pub(crate) struct Group {
    /// The number of the C interface.
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
        // SAFETY: a handle, which is checked.
        check(py, unsafe { rg::rg_rank(self.handle()) })
    }

    /// The number of members; of a channel, how many tasks there have been.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<c_int> {
        // SAFETY: a handle, which is checked.
        check(py, unsafe { rg::rg_size(self.handle()) })
    }

    /// Returns the id of the task of a rank.
    fn task_of(&self, py: Python<'_>, rank: c_int) -> PyResult<c_int> {
        // SAFETY: a handle and a number, which are checked.
        check(py, unsafe { rg::rg_tid_of(self.handle(), rank) })
    }

    /// Returns the rank of a task. Raises ValueError if it is no member.
    fn rank_of(&self, py: Python<'_>, task: c_int) -> PyResult<c_int> {
        // SAFETY: the same.
        check(py, unsafe { rg::rg_rank_of(self.handle(), task) })
    }

    /// Forgets the group. Does not wait for the others.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.handle();
        // SAFETY: a handle, which is checked.
        check(py, blocking(py, || unsafe { rg::rg_group_free(group) })).map(drop)
    }

    /// Ends all that is done in the group, at every member, with GroupRevoked; only shrink and agree are left. One member calls.
    ///
    /// Does not wait.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.handle();
        // SAFETY: a handle, which is checked.
        check(py, blocking(py, || unsafe { rg::rg_group_revoke(group) })).map(drop)
    }

    /// Whether it is revoked, as far as is known here.
    #[getter]
    fn is_revoked(&self, py: Python<'_>) -> PyResult<bool> {
        // SAFETY: a handle, which is checked.
        check(py, unsafe { rg::rg_group_is_revoked(self.handle()) }).map(|is| is == 1)
    }

    /// Returns the bits that the flags of all living members have in common, the same to all, whoever dies meanwhile. Blocks.
    ///
    /// Raises TaskDied if a member has died whom not all had acknowledged (acknowledge_dead).
    fn agree(&self, py: Python<'_>, flag: c_int) -> PyResult<c_int> {
        let (group, mut flag) = (self.handle(), flag);
        // SAFETY: a handle, which is checked, and a place for the answer.
        let code = blocking(py, || unsafe { rg::rg_agree(&mut flag, group) });
        check(py, code)?;
        Ok(flag)
    }

    /// Returns the ranks of members that are known to have died.
    fn dead(&self, py: Python<'_>) -> PyResult<Vec<c_int>> {
        let (mut ranks, mut count) = (vec![0; 64], 0);
        loop {
            // SAFETY: as much room as is said.
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

    /// Lets receives from ANY go on among the living; returns how many members are dead.
    fn acknowledge_dead(&self, py: Python<'_>) -> PyResult<c_int> {
        let mut dead = 0;
        // SAFETY: a handle, which is checked, and a place for the answer.
        check(py, unsafe {
            rg::rg_acknowledge_dead(self.handle(), &mut dead)
        })?;
        Ok(dead)
    }
}

/// A call that makes a group, which returns the number of the new one.
fn make(
    py: Python<'_>,
    group: &Group,
    call: impl FnOnce(rg::Group, *mut rg::Group) -> c_int,
) -> PyResult<c_int> {
    let (from, mut made) = (group.handle(), rg::Group { id: -1 });
    check(py, blocking(py, || call(from, &mut made)))?;
    Ok(made.id)
}

/// The number of a group of the same members.
#[pyfunction]
pub(crate) fn dup(py: Python<'_>, group: PyRef<'_, Group>) -> PyResult<c_int> {
    // SAFETY: a handle, which is checked, and a place for the new one; likewise below.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_dup(from, made)
    })
}

/// The number of a group of some of its members.
#[pyfunction]
pub(crate) fn select(
    py: Python<'_>,
    group: PyRef<'_, Group>,
    ranks: Vec<c_int>,
) -> PyResult<c_int> {
    make(py, &group, |from, made| {
        // SAFETY: as many ranks as is said.
        unsafe { rg::rg_group_select(from, ranks.len() as c_int, ranks.as_ptr(), made) }
    })
}

/// The number of the group of those who give the same colour; negative: this task is in none.
#[pyfunction]
pub(crate) fn split(
    py: Python<'_>,
    group: PyRef<'_, Group>,
    colour: Option<c_int>,
    key: c_int,
) -> PyResult<c_int> {
    let colour = colour.unwrap_or(rg::NONE);
    // SAFETY: as of `dup`.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_split(from, colour, key, made)
    })
}

/// The number of the group of those who live.
#[pyfunction]
pub(crate) fn shrink(py: Python<'_>, group: PyRef<'_, Group>) -> PyResult<c_int> {
    // SAFETY: as of `dup`.
    make(py, &group, |from, made| unsafe {
        rg::rg_group_shrink(from, made)
    })
}
