//! `exsemaphore`: counters that all nodes share.
//!
//! A semaphore is a name in the job, under which each unit of its count is an entry. Taking a unit reads and deletes an
//! entry atomically (`rg_put`, `rg_get`). The job's launcher keeps the entries, so a node that computes does not delay
//! others.

use std::ffi::{CString, c_int};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::life::call;

/// Maximum number of units that are added at a time. Each is an entry of the launcher, and a larger number is taken for
/// a mistake.
const MAX_UNITS_PER_CHANGE: c_int = 1 << 16;

/// Returns the name of a semaphore. It contains the first task of these nodes, to distinguish it from those of other
/// nodes in the job.
fn name(semaphore: c_int) -> Result<CString, Fault> {
    if semaphore < 0 {
        return Err(Fault::says(format!(
            "{semaphore} is not a valid semaphore; semaphores start at 0"
        )));
    }
    let name = format!("express semaphore {} {semaphore}", place().first);
    CString::new(name).map_err(|_| Fault::says("no name"))
}

/// Adds one to the count. The unit remains when the task ends.
fn put(name: &CString) -> Result<(), Fault> {
    const FLAGS: c_int = rg::PERSISTENT | rg::SEVERAL | rg::OVERWRITABLE;
    let (unit, null) = (1_u8, std::ptr::null_mut());
    // SAFETY: the name is NUL-terminated, and the value has the given size.
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

/// Takes one from the count. Blocks until there is one: the launcher does not answer earlier (`RG_AWAIT`).
fn take(name: &CString) -> Result<(), Fault> {
    const FLAGS: c_int = rg::FIRST | rg::TAKE | rg::AWAIT;
    let (mut unit, mut len, mut index) = (0_u8, 0, 0);
    let to = (&raw mut unit).cast();
    // SAFETY: the name is NUL-terminated, and the results point to local variables.
    checked(unsafe { rg::rg_get(name.as_ptr(), 0, FLAGS, to, 1, &mut len, &mut index) })
}

/// Returns the count.
fn count(name: &CString) -> Result<c_int, Fault> {
    let mut count = 0;
    // SAFETY: the name is NUL-terminated, no room for entries is passed, and the result points to a local variable.
    checked(unsafe { rg::rg_names(name.as_ptr(), std::ptr::null_mut(), 0, &mut count) })?;
    Ok(count)
}

/// Adds to a semaphore's count, which is initially 0; or waits until it is positive and takes one; or returns it.
/// Returns 0 or the count, or -1.
#[unsafe(no_mangle)]
extern "C" fn exsemaphore(semaphore: c_int, change: c_int) -> c_int {
    call("exsemaphore", || {
        let name = name(semaphore)?;
        match change {
            0 => count(&name),
            -1 => take(&name).map(|()| 0),
            1..=MAX_UNITS_PER_CHANGE => (0..change).try_for_each(|_| put(&name)).map(|()| 0),
            _ if change > 0 => Err(Fault::says(format!(
                "a change of {change} is too large: at most {MAX_UNITS_PER_CHANGE} units can be added to a semaphore at a time"
            ))),
            _ => Err(Fault::says(format!(
                "a change of {change} is too large: only one unit can be taken from a semaphore at a time"
            ))),
        }
    })
}
