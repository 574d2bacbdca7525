//! The Fortran calls for applications and partitions. The length of a string is passed after all other arguments. A
//! list of numbers is an array of the program, whose length is in the following argument before the call.

use std::ffi::{CString, c_char, c_int, c_long};

use crate::application::{self, begin, nodes_of_group, say_error, wanted};
use crate::error::{Answer, EQPARAM, Fault};
use crate::forms::{Argument, to_fortran, value_forms};
use crate::host_fortran::text;
use crate::options::{self, Options, Size};
use crate::partition::Settings;
use crate::partitions::{self, change, nodes_of, remove, rename};
use crate::state::library;

/// Converts a Fortran list of numbers to C's type.
///
/// # Safety
/// `list` has `count` numbers; a negative count means none.
unsafe fn numbers(list: *const c_int, count: c_long) -> Vec<c_long> {
    (0..count.max(0) as usize)
        // SAFETY: the caller guarantees that the memory is valid.
        .map(|at| unsafe { c_long::take(list.add(at)) })
        .collect()
}

/// Writes as many numbers into the program's array as fit, and the number of all.
///
/// # Safety
/// `list` has room for `*size` numbers.
unsafe fn tell(all: &[c_long], list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let room = unsafe { size.read_unaligned() }.max(0) as usize;
    for (at, &number) in all.iter().take(room).enumerate() {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { list.add(at).write_unaligned(number as c_int) };
    }
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { size.write_unaligned(all.len() as c_int) };
    Ok(0)
}

/// Returns the options on the command line, if they are to be parsed.
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
    // SAFETY: by the Fortran contract strings have the lengths that are passed, and numbers are valid references.
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
    // SAFETY: by the Fortran contract strings have the lengths that are passed, and numbers are valid references.
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

/// Runs a call that starts processes on nodes, and returns their process ids.
///
/// # Safety
/// The lists have `*count` entries; if that is -1, `pids` has as many as there are nodes.
unsafe fn start(
    nodes: *const c_int,
    count: *const c_int,
    pids: *mut c_int,
    call: impl FnOnce(*const c_long, c_long, *mut c_long) -> Answer,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
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
        // SAFETY: the caller guarantees that the memory is valid.
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
    // SAFETY: by the Fortran contract the arguments are valid.
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
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let pid = c_long::take(pid);
        start(nodes, count, pids, |nodes, count, processes| {
            application::fork(nodes, count, pid, processes)
        })
    }
}

unsafe fn rectangle(rows: *mut c_int, columns: *mut c_int) -> Answer {
    let (mut height, mut width) = (0, 0);
    // SAFETY: the numbers are local variables, and by the Fortran contract the results are writable.
    unsafe {
        application::rectangle(&mut height, &mut width)?;
        rows.write_unaligned(height as c_int);
        columns.write_unaligned(width as c_int);
    }
    Ok(0)
}

unsafe fn application_nodes(group: *const c_int, list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { tell(&nodes_of_group(c_long::take(group))?, list, size) }
}

unsafe fn no_nodes(list: *mut c_int, size: *mut c_int) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { tell(&[], list, size) }
}

unsafe fn partition_nodes(
    name: *const c_char,
    list: *mut c_int,
    size: *mut c_int,
    length: usize,
) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { tell(&nodes_of(&text(name, length)?)?, list, size) }
}

/// Converts a name to a C string.
///
/// # Safety
/// `name` has this length.
unsafe fn named(name: *const c_char, length: usize) -> Result<CString, Fault> {
    // SAFETY: the caller guarantees that the memory is valid.
    let name = unsafe { text(name, length) }?;
    CString::new(name).map_err(|_| Fault::plain(EQPARAM))
}

unsafe fn make_partition(
    name: *const c_char,
    size: *const c_int,
    scheduling: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
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
    // SAFETY: by the Fortran contract the arguments are valid.
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
    // SAFETY: by the Fortran contract `nodes` has `*number` entries.
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
    // SAFETY: by the Fortran contract the arguments are valid.
    let (name, force, recursive) = unsafe {
        (
            text(name, length)?,
            c_long::take(force),
            c_long::take(recursive),
        )
    };
    remove(&name, force != 0, recursive != 0)
}

/// Changes a setting of a partition.
///
/// # Safety
/// `name` has this length, and `value` is a valid reference.
unsafe fn change_one(
    name: *const c_char,
    length: usize,
    value: *const c_int,
    with: impl FnOnce(&mut Settings, c_long),
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (name, value) = unsafe { (text(name, length)?, c_long::take(value)) };
    change(&name, |settings| with(settings, value))
}

unsafe fn change_limit(name: *const c_char, priority: *const c_int, length: usize) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        change_one(name, length, priority, |it, value| {
            it.priority_limit = value
        })
    }
}

unsafe fn change_mode(name: *const c_char, mode: *const c_int, length: usize) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { change_one(name, length, mode, |it, value| it.mode = value) }
}

unsafe fn change_quantum(name: *const c_char, quantum: *const c_int, length: usize) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { change_one(name, length, quantum, |it, value| it.quantum = value) }
}

unsafe fn change_scheduling(name: *const c_char, kind: *const c_int, length: usize) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { change_one(name, length, kind, |it, value| it.scheduling = value) }
}

unsafe fn change_owner(
    name: *const c_char,
    owner: *const c_int,
    group: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
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
    // SAFETY: by the Fortran contract the arguments are valid.
    let (name, new) = unsafe { (text(name, length)?, text(new, new_length)?) };
    rename(&name, &new)
}

unsafe fn set_priority(group: *const c_int, priority: *const c_int) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { application::set_priority(c_long::take(group), c_long::take(priority)) }
}

unsafe fn say(said: *const c_char, length: usize) -> Answer {
    // SAFETY: by the Fortran contract the arguments are valid.
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
