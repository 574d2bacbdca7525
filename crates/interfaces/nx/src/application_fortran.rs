//! The calls for applications and partitions from Fortran. A text has a length, which comes behind all other arguments; a list of numbers is an
//! array of the program's, as long as the number behind it says before the call.

use std::ffi::{CString, c_char, c_int, c_long};

use crate::application::{self, begin, nodes_of_group, say_error, wanted};
use crate::error::{Answer, EQPARAM, Fault};
use crate::forms::{Argument, to_fortran, value_forms};
use crate::host_fortran::text;
use crate::options::{self, Options, Size};
use crate::partition::Settings;
use crate::partitions::{self, change, nodes_of, remove, rename};
use crate::state::library;

/// A list that the program has, as C has it.
///
/// # Safety
/// There are as many numbers as the number says; no number behind -1 is read.
unsafe fn numbers(list: *const c_int, count: c_long) -> Vec<c_long> {
    (0..count.max(0) as usize)
        // SAFETY: the caller's.
        .map(|at| unsafe { c_long::take(list.add(at)) })
        .collect()
}

/// Writes numbers into the program's array, as many as fit there, and how many there are.
///
/// # Safety
/// The array is as long as the size says.
unsafe fn tell(all: &[c_long], list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: the caller's.
    let room = unsafe { size.read_unaligned() }.max(0) as usize;
    for (at, &number) in all.iter().take(room).enumerate() {
        // SAFETY: the caller's.
        unsafe { list.add(at).write_unaligned(number as c_int) };
    }
    // SAFETY: the caller's.
    unsafe { size.write_unaligned(all.len() as c_int) };
    Ok(0)
}

/// The options of the command, if they are meant.
fn options_of(command: bool) -> Result<Options, Fault> {
    if !command {
        return Ok(Options::default());
    }
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Ok(options::take(&words)?.0)
}

unsafe fn init(
    partition: *const c_char,
    size: *const c_int,
    _: *const c_char,
    parse: *const c_int,
    length: usize,
    _: usize,
) -> Answer {
    // SAFETY: the program's contract: texts as long as is said, numbers by reference.
    let (partition, size, parse) = unsafe {
        (
            text(partition, length)?,
            c_long::take(size),
            c_long::take(parse),
        )
    };
    begin(&partition, wanted(size)?, options_of(parse != 0)?)
}

#[allow(clippy::too_many_arguments)]
unsafe fn init_rectangle(
    partition: *const c_char,
    _: *const c_int,
    rows: *const c_int,
    columns: *const c_int,
    _: *const c_char,
    parse: *const c_int,
    length: usize,
    _: usize,
) -> Answer {
    // SAFETY: as above.
    let (partition, rows, columns, parse) = unsafe {
        (
            text(partition, length)?,
            c_long::take(rows),
            c_long::take(columns),
            c_long::take(parse),
        )
    };
    let size = Size::rectangle(rows, columns)?;
    begin(&partition, Some(size), options_of(parse != 0)?)
}

/// A call that starts processes on nodes, and tells of them.
///
/// # Safety
/// Lists are as long as the number says; of -1 that of processes is as long as there are nodes.
unsafe fn start(
    nodes: *const c_int,
    count: *const c_int,
    pids: *mut c_int,
    call: impl FnOnce(*const c_long, c_long, *mut c_long) -> Answer,
) -> Answer {
    // SAFETY: the caller's.
    let (count, nodes) = unsafe {
        let count = c_long::take(count);
        (count, numbers(nodes, count))
    };
    let room = match count {
        -1 => library().nodes.max(0) as usize,
        count => count.max(0) as usize,
    };
    let mut processes = vec![0; room];
    let started = call(nodes.as_ptr(), count, processes.as_mut_ptr())?;
    for (at, &process) in processes.iter().take(started as usize).enumerate() {
        // SAFETY: the caller's.
        unsafe { pids.add(at).write_unaligned(process as c_int) };
    }
    Ok(started)
}

unsafe fn load(
    nodes: *const c_int,
    count: *const c_int,
    pid: *const c_int,
    pids: *mut c_int,
    file: *const c_char,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract.
    unsafe {
        let file = text(file, length)?;
        let file = CString::new(file).map_err(|_| Fault::plain(EQPARAM))?;
        let pid = c_long::take(pid);
        start(nodes, count, pids, |nodes, count, processes| {
            application::load(nodes, count, pid, processes, file.as_ptr())
        })
    }
}

unsafe fn fork(
    nodes: *const c_int,
    count: *const c_int,
    pid: *const c_int,
    pids: *mut c_int,
) -> Answer {
    // SAFETY: the program's contract.
    unsafe {
        let pid = c_long::take(pid);
        start(nodes, count, pids, |nodes, count, processes| {
            application::fork(nodes, count, pid, processes)
        })
    }
}

unsafe fn rectangle(rows: *mut c_int, columns: *mut c_int) -> Answer {
    let (mut height, mut width) = (0, 0);
    // SAFETY: places for two numbers, and two of the program's.
    unsafe {
        application::rectangle(&mut height, &mut width)?;
        rows.write_unaligned(height as c_int);
        columns.write_unaligned(width as c_int);
    }
    Ok(0)
}

unsafe fn application_nodes(group: *const c_int, list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: the program's contract.
    unsafe { tell(&nodes_of_group(c_long::take(group))?, list, size) }
}

unsafe fn no_nodes(list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: the program's contract.
    unsafe { tell(&[], list, size) }
}

unsafe fn partition_nodes(
    name: *const c_char,
    list: *mut c_int,
    size: *mut c_int,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract.
    unsafe { tell(&nodes_of(&text(name, length)?)?, list, size) }
}

/// A name, as C has it.
///
/// # Safety
/// It has that length.
unsafe fn named(name: *const c_char, length: usize) -> Result<CString, Fault> {
    // SAFETY: the caller's.
    let name = unsafe { text(name, length) }?;
    CString::new(name).map_err(|_| Fault::plain(EQPARAM))
}

unsafe fn make_partition(
    name: *const c_char,
    size: *const c_int,
    scheduling: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract.
    unsafe {
        let (size, scheduling) = (c_long::take(size), c_long::take(scheduling));
        partitions::make_sized(named(name, length)?.as_ptr(), size, scheduling)
    }
}

unsafe fn make_rectangle(
    name: *const c_char,
    rows: *const c_int,
    columns: *const c_int,
    scheduling: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract.
    unsafe {
        let (rows, columns) = (c_long::take(rows), c_long::take(columns));
        let scheduling = c_long::take(scheduling);
        partitions::make_rectangle(named(name, length)?.as_ptr(), rows, columns, scheduling)
    }
}

unsafe fn make_of(
    name: *const c_char,
    number: *const c_int,
    nodes: *const c_int,
    scheduling: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract: as many nodes as the number says.
    unsafe {
        let (number, scheduling) = (c_long::take(number), c_long::take(scheduling));
        let nodes = numbers(nodes, number);
        partitions::make_of(
            named(name, length)?.as_ptr(),
            number,
            nodes.as_ptr(),
            scheduling,
        )
    }
}

unsafe fn remove_partition(
    name: *const c_char,
    force: *const c_int,
    recursive: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the program's contract.
    let (name, force, recursive) = unsafe {
        (
            text(name, length)?,
            c_long::take(force),
            c_long::take(recursive),
        )
    };
    remove(&name, force != 0, recursive != 0)
}

/// Changes one setting of a partition.
///
/// # Safety
/// The name has that length, and the value is a number.
unsafe fn change_one(
    name: *const c_char,
    length: usize,
    value: *const c_int,
    with: impl FnOnce(&mut Settings, c_long),
) -> Answer {
    // SAFETY: the caller's.
    let (name, value) = unsafe { (text(name, length)?, c_long::take(value)) };
    change(&name, |settings| with(settings, value))
}

unsafe fn change_limit(name: *const c_char, priority: *const c_int, length: usize) -> Answer {
    // SAFETY: the program's contract.
    unsafe {
        change_one(name, length, priority, |it, value| {
            it.priority_limit = value
        })
    }
}

unsafe fn change_mode(name: *const c_char, mode: *const c_int, length: usize) -> Answer {
    // SAFETY: as above.
    unsafe { change_one(name, length, mode, |it, value| it.mode = value) }
}

unsafe fn change_quantum(name: *const c_char, quantum: *const c_int, length: usize) -> Answer {
    // SAFETY: as above.
    unsafe { change_one(name, length, quantum, |it, value| it.quantum = value) }
}

unsafe fn change_scheduling(name: *const c_char, kind: *const c_int, length: usize) -> Answer {
    // SAFETY: as above.
    unsafe { change_one(name, length, kind, |it, value| it.scheduling = value) }
}

unsafe fn change_owner(
    name: *const c_char,
    owner: *const c_int,
    group: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: as above, of both numbers.
    unsafe {
        let group = c_long::take(group);
        change_one(name, length, owner, |it, owner| {
            (it.owner, it.group) = (owner, group);
        })
    }
}

unsafe fn change_name(
    name: *const c_char,
    new: *const c_char,
    length: usize,
    new_length: usize,
) -> Answer {
    // SAFETY: as above, of both texts.
    let (name, new) = unsafe { (text(name, length)?, text(new, new_length)?) };
    rename(&name, &new)
}

unsafe fn set_priority(group: *const c_int, priority: *const c_int) -> Answer {
    // SAFETY: the program's contract.
    unsafe { application::set_priority(c_long::take(group), c_long::take(priority)) }
}

unsafe fn say(said: *const c_char, length: usize) -> Answer {
    // SAFETY: the program's contract.
    say_error(&unsafe { text(said, length) }?);
    Ok(0)
}

value_forms! {
    c_int, to_fortran;
    nx_initve_: (partition: *const c_char, size: *const c_int, account: *const c_char, parse: *const c_int, length: usize, account_length: usize) = init;
    nx_initve_rect_: (partition: *const c_char, anchor: *const c_int, rows: *const c_int, columns: *const c_int, account: *const c_char, parse: *const c_int, length: usize, account_length: usize) = init_rectangle;
    nx_load_: (nodes: *const c_int, count: *const c_int, pid: *const c_int, pids: *mut c_int, file: *const c_char, length: usize) = load;
    nx_nfork_: (nodes: *const c_int, count: *const c_int, pid: *const c_int, pids: *mut c_int) = fork;
    nx_waitall_: () = application::wait;
    nx_pri_: (group: *const c_int, priority: *const c_int) = set_priority;
    nx_app_rect_: (rows: *mut c_int, columns: *mut c_int) = rectangle;
    nx_app_nodes_: (group: *const c_int, list: *mut c_int, size: *mut c_int) = application_nodes;
    nx_empty_nodes_: (list: *mut c_int, size: *mut c_int) = no_nodes;
    nx_failed_nodes_: (list: *mut c_int, size: *mut c_int) = no_nodes;
    nx_perror_: (said: *const c_char, length: usize) = say;
    nx_mkpart_: (name: *const c_char, size: *const c_int, scheduling: *const c_int, length: usize) = make_partition;
    nx_mkpart_rect_: (name: *const c_char, rows: *const c_int, columns: *const c_int, scheduling: *const c_int, length: usize) = make_rectangle;
    nx_mkpart_map_: (name: *const c_char, number: *const c_int, nodes: *const c_int, scheduling: *const c_int, length: usize) = make_of;
    nx_rmpart_: (name: *const c_char, force: *const c_int, recursive: *const c_int, length: usize) = remove_partition;
    nx_chpart_epl_: (name: *const c_char, priority: *const c_int, length: usize) = change_limit;
    nx_chpart_mod_: (name: *const c_char, mode: *const c_int, length: usize) = change_mode;
    nx_chpart_name_: (name: *const c_char, new: *const c_char, length: usize, new_length: usize) = change_name;
    nx_chpart_owner_: (name: *const c_char, owner: *const c_int, group: *const c_int, length: usize) = change_owner;
    nx_chpart_rq_: (name: *const c_char, quantum: *const c_int, length: usize) = change_quantum;
    nx_chpart_sched_: (name: *const c_char, kind: *const c_int, length: usize) = change_scheduling;
    nx_part_nodes_: (name: *const c_char, list: *mut c_int, size: *mut c_int, length: usize) = partition_nodes;
}
