//! `pvmreset`, by which consoles clear the virtual machine: tasks are ended, and what they leave under names goes with them.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::time::{Duration, Instant};

use crate::arrival::{Select, Taken, take_next};
use crate::life::enrol;
use crate::listing::{self, Class};
use crate::mailbox::{self, NO_RESET};
use crate::{rg, tasks, tid};

/// Time limit for the end of the tasks that were told to end, if they have left something that is to go with them.
const TASKS_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Where their ends are told: the channel of what tasks and daemons settle between them.
const ENDS: Select = Select {
    from: rg::ANY,
    tag: rg::ANY,
    context: 0x7fffe,
    reserved: true,
};

/// Which entries go: those under this name, or all; of these that of this index, or all.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    name: Option<&'a CStr>,
    index: Option<c_int>,
}

/// End all tasks but this one and those that are spared.
fn end_tasks(me: c_int) -> Result<Vec<c_int>, i32> {
    let spared = listing::class(NO_RESET)?.map_or_else(Vec::new, |class| class.owners);
    let all = tasks::all()?;
    let all = all.iter().map(|task| tid::of(task.tid, task.host));
    let ended: Vec<c_int> = all
        .filter(|task| *task != me && !spared.contains(task))
        .collect();
    for &task in &ended {
        // A task that has gone in the meantime is gone.
        let _ = tasks::signal(task, libc::SIGTERM);
    }
    Ok(ended)
}

/// Wait until these have ended, or until they have had their time.
fn await_ends(of: &BTreeSet<c_int>) -> Result<(), i32> {
    let mut left = 0;
    for task in of.iter().filter_map(|&number| tid::task(number)) {
        let mut watch = 0;
        // SAFETY: a place for the number.
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

/// Take out what has been left behind: of tasks that have gone, and what is to outlive these.
fn clear(chosen: Chosen, ended: &[c_int]) -> Result<(), i32> {
    let of_ended = |entry: &Entry| entry.persistent && ended.contains(&entry.owner);
    let all = entries(chosen)?;
    await_ends(
        &all.iter()
            .filter(|entry| of_ended(entry))
            .map(|entry| entry.owner)
            .collect(),
    )?;
    // Whose owner has not ended stays its owner's: that is denied.
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

/// The entries under names.
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

/// Clear the virtual machine: end its tasks, if `ends` is not 0, but for `me` and those that are spared; and take out what
/// dead tasks have left under this name (NULL: under all), with this index (negative: with any). Failures are not told.
///
/// # Safety
/// `name` is a text or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmreset(me: c_int, ends: c_int, name: *const c_char, index: c_int) -> c_int {
    let name = match name.is_null() {
        true => c"",
        // SAFETY: the C contract.
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
