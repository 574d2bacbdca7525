//! `exsemaphore`: counts that all nodes share.
//!
//! A semaphore is a name of the job's, under which each unit of its count is an entry: to take one is to take an entry, in one with the
//! reading (`rg_put`, `rg_get`). The job's launcher has them, so a node that computes keeps nobody from them.

use std::ffi::{CString, c_int};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::life::call;

/// Maximum number of units added at a time: each is an entry of the launcher's, and more are a slip of the pen.
const MAX_UNITS_PER_CHANGE: c_int = 1 << 16;

/// The name of a semaphore of these nodes: others of the job, whose first task is another, have their own.
fn name(semaphore: c_int) -> Result<CString, Fault> {
    if semaphore < 0 {
        return Err(Fault::says(format!(
            "{semaphore} is no semaphore; they count from 0"
        )));
    }
    let name = format!("express semaphore {} {semaphore}", place().first);
    CString::new(name).map_err(|_| Fault::says("no name"))
}

/// Add one to the count. The unit stays when the task ends.
fn put(name: &CString) -> Result<(), Fault> {
    const FLAGS: c_int = rg::PERSISTENT | rg::SEVERAL | rg::OVERWRITABLE;
    let (unit, null) = (1_u8, std::ptr::null_mut());
    // SAFETY: a text, and a value of the length that is said.
    checked(unsafe {
        rg::rg_put(
            name.as_ptr(),
            (&raw const unit).cast(),
            1,
            rg::ANY,
            FLAGS,
            null,
        )
    })
}

/// Take one from the count, as soon as there is one: the launcher answers no earlier (`RG_AWAIT`).
fn take(name: &CString) -> Result<(), Fault> {
    const FLAGS: c_int = rg::FIRST | rg::TAKE | rg::AWAIT;
    let (mut unit, mut len, mut index) = (0_u8, 0, 0);
    let to = (&raw mut unit).cast();
    // SAFETY: a text, and places for the answers.
    checked(unsafe { rg::rg_get(name.as_ptr(), 0, FLAGS, to, 1, &mut len, &mut index) })
}

/// How much the count is.
fn count(name: &CString) -> Result<c_int, Fault> {
    let mut count = 0;
    // SAFETY: a text, no room for entries, and a place for their number.
    checked(unsafe { rg::rg_names(name.as_ptr(), std::ptr::null_mut(), 0, &mut count) })?;
    Ok(count)
}

/// Add to a semaphore's count, which begins with 0; or wait until it is more than 0 and take one; or tell it. Returns 0, or the count, or -1.
#[unsafe(no_mangle)]
extern "C" fn exsemaphore(semaphore: c_int, change: c_int) -> c_int {
    call("exsemaphore", || {
        let name = name(semaphore)?;
        match change {
            0 => count(&name),
            -1 => take(&name).map(|()| 0),
            1..=MAX_UNITS_PER_CHANGE => (0..change).try_for_each(|_| put(&name)).map(|()| 0),
            _ if change > 0 => Err(Fault::says(format!(
                "a change of {change}: to a semaphore {MAX_UNITS_PER_CHANGE} are added at a time at most"
            ))),
            _ => Err(Fault::says(format!(
                "a change of {change}: from a semaphore one is taken at a time"
            ))),
        }
    })
}
