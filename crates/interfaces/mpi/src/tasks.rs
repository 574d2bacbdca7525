//! The tasks of the job, as the launcher reports them.

use std::ffi::c_int;

use regatta_sys as rg;

use crate::error::{Result, checked};

/// Returns all running tasks.
pub fn running() -> Result<Vec<rg::Task>> {
    let (mut room, mut count) = (0, 0);
    loop {
        // SAFETY: all-zero bytes are a valid value of this struct of numbers and bytes.
        let nothing: rg::Task = unsafe { std::mem::zeroed() };
        let mut tasks = vec![nothing; room as usize];
        // SAFETY: the array has this length.
        checked(unsafe { rg::rg_tasks(tasks.as_mut_ptr(), room, &mut count) })?;
        if count <= room {
            tasks.truncate(count.max(0) as usize);
            return Ok(tasks);
        }
        // More tasks may be started between two queries.
        room = count.saturating_add(16);
    }
}

/// Returns those of these tasks that are no longer running.
pub fn ended(tasks: &[c_int]) -> Result<Vec<c_int>> {
    let running: std::collections::HashSet<c_int> =
        running()?.iter().map(|task| task.tid).collect();
    let ended = tasks.iter().copied().filter(|it| !running.contains(it));
    Ok(ended.collect())
}
