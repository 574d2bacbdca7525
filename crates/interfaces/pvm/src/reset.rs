//! `pvmreset`, with which consoles clear the virtual machine: it ends tasks and deletes the entries that they leave.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::time::{Duration, Instant};

use crate::arrival::{Select, Taken, take_next};
use crate::life::enrol;
use crate::listing::{self, Class};
use crate::mailbox::{self, NO_RESET};
use crate::{rg, tasks, tid};

/// Time limit for the end of the tasks that were signalled. Applies only if they have entries that must be deleted
/// afterwards.
const TASKS_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Selects the notifications of their ends, in the context that PVM uses between tasks and daemons.
const ENDS: Select = Select {
    from: rg::ANY,
    tag: rg::ANY,
    context: 0x7fffe,
    reserved: true,
};

/// Selects the entries to delete: by name (`None`: all) and by index (`None`: all).
#[derive(Clone, Copy)]
struct Chosen<'a> {
    name: Option<&'a CStr>,
    index: Option<c_int>,
}

/// Sends SIGTERM to all tasks except `me` and those that a reset spares. Returns their tids.
fn end_tasks(me: c_int) -> Result<Vec<c_int>, i32> {
    let spared = listing::class(NO_RESET)?.map_or_else(Vec::new, |class| class.owners);
    let all = tasks::all()?;
    let all = all.iter().map(|task| tid::of(task.tid, task.host));
    let ended: Vec<c_int> = all
        .filter(|task| *task != me && !spared.contains(task))
        .collect();
    for &task in &ended {
        // Ignore the error: the task may have ended meanwhile.
        let _ = tasks::signal(task, libc::SIGTERM);
    }
    Ok(ended)
}

/// Waits until these tasks have ended, or until the timeout.
fn await_ends(of: &BTreeSet<c_int>) -> Result<(), i32> {
    let mut left = 0;
    for task in of.iter().filter_map(|&number| tid::task(number)) {
        let mut watch = 0;
        // SAFETY: the result points to a local variable.
        let code = unsafe { rg::rg_notify(rg::TASK_EXIT, task, 0, ENDS.channel(), &mut watch) };
        left += usize::from(code == rg::OK);
    }
    let deadline = Instant::now() + TASKS_END_TIMEOUT;
    while left > 0 {
        let patience = deadline.saturating_duration_since(Instant::now());
        match take_next(ENDS, patience.as_secs_f64())? {
            Taken::Nothing => break,
            Taken::Swallowed | Taken::Message(_) => left -= 1,
        }
    }
    Ok(())
}

/// Deletes the selected entries whose owner is gone, and persistent ones of the tasks that were ended.
fn clear(chosen: Chosen, ended: &[c_int]) -> Result<(), i32> {
    let of_ended = |entry: &Entry| entry.persistent && ended.contains(&entry.owner);
    let all = entries(chosen)?;
    await_ends(
        &all.iter()
            .filter(|entry| of_ended(entry))
            .map(|entry| entry.owner)
            .collect(),
    )?;
    // Entries of other living owners are kept.
    for entry in all
        .iter()
        .filter(|entry| entry.owner == 0 || of_ended(entry))
    {
        let _ = mailbox::remove(&entry.name, entry.index);
    }
    Ok(())
}

struct Entry {
    name: CString,
    index: c_int,
    owner: c_int,
    persistent: bool,
}

/// Returns the selected entries.
fn entries(chosen: Chosen) -> Result<Vec<Entry>, i32> {
    let classes = listing::classes(c"*")?;
    let meant = |class: &&Class| chosen.name.is_none_or(|name| *class.name == *name);
    let all = classes.iter().filter(meant).flat_map(|class| {
        (0..class.indices.len()).map(|at| Entry {
            name: class.name.clone(),
            index: class.indices[at],
            owner: class.owners[at],
            persistent: class.flags[at] & rg::PERSISTENT != 0,
        })
    });
    let meant = |entry: &Entry| chosen.index.is_none_or(|index| index == entry.index);
    Ok(all.filter(meant).collect())
}

/// Clears the virtual machine. If `ends` is not 0, ends all tasks except `me` and those that are spared. Deletes
/// entries of dead tasks under this name (NULL: all names) with this index (negative: any). Errors are not reported.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmreset(me: c_int, ends: c_int, name: *const c_char, index: c_int) -> c_int {
    let name = match name.is_null() {
        true => c"",
        // SAFETY: by the C contract the arguments are valid.
        false => unsafe { CStr::from_ptr(name) },
    };
    let chosen = Chosen {
        name: (!name.is_empty()).then_some(name),
        index: (index >= 0).then_some(index),
    };
    let reset = || -> Result<(), i32> {
        enrol()?;
        let ended = match ends {
            0 => Vec::new(),
            _ => end_tasks(me)?,
        };
        clear(chosen, &ended)
    };
    let _ = reset();
    0
}
