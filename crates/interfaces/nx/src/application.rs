//! Applications, in the Paragon's terms: a program begins an application of some nodes, and starts programs there, or
//! itself again.
//!
//! The program is a host: its cube is the application, and its pid the one that it sets with `setptype`. A call that
//! fails returns -1 and sets `errno`; none ends the program.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

use crate::error::{
    Answer, EAEXIST, EANOEXIST, EPALLOCERR, EPINVALPRI, EQMEM, EQNODE, EQPARAM, EQPFIL, EQPRIV,
    Fault, check, words,
};
use crate::forms::value_forms;
use crate::host::{self, Program, usual_nodes, wait_for_all};
use crate::life::{enrol_controller, enrolled, is_alone};
use crate::options::{self, Options, Size};
use crate::partition::{WHOLE, is_same};
use crate::rg;
use crate::state::library;
use crate::who::shape;

/// The process id that is reported where the real one cannot be known.
const UNKNOWN_PROCESS: c_long = c_int::MAX as c_long;
/// The highest priority.
pub const MAX_PRIORITY: c_long = 10;

/// Returns a string of the program; NULL gives an empty one.
///
/// # Safety
/// `text` is a NUL-terminated string or NULL.
pub unsafe fn text(text: *const c_char) -> Result<String, Fault> {
    if text.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Fault::plain(EQPARAM))?;
    Ok(text.to_owned())
}

/// Returns the size of an application in a partition: the wanted size, or that of the partition, or the default.
fn size_in(partition: &str, wanted: Option<Size>) -> Result<Size, Fault> {
    let whole = library().partitions.find(partition)?.map(|made| made.size);
    match (wanted, whole) {
        (Some(size), Some(whole)) if size.count() > whole.count() => {
            Err(Fault::of(EPALLOCERR, "size", size.count().into()))
        }
        (Some(size), _) => Ok(size),
        (None, Some(whole)) => Ok(whole),
        (None, None) => usual_nodes().map(Size::Nodes),
    }
}

/// Begins an application, or joins the one that has started this process by `nx_nfork`. Returns its number of nodes.
/// Options take precedence over the arguments of the call.
pub fn begin(partition: &str, wanted: Option<Size>, options: Options) -> Answer {
    let library = library();
    if library.application.is_some() {
        return Err(Fault::plain(EAEXIST));
    }
    let is_node = library.joined || !is_alone()?;
    if is_node && (library.cube.is_some() || enrolled()?.fork == 0) {
        return Err(Fault::plain(EQPRIV));
    }
    let partition = options.partition.unwrap_or_else(|| partition.to_owned());
    if !is_node {
        let size = size_in(&partition, options.size.or(wanted))?;
        enrol_controller(size.count(), size.rows())?;
    }
    library.application = Some(partition);
    Ok(library.nodes.into())
}

/// Parses the options among the program's arguments, and removes them.
///
/// # Safety
/// `argv` has `*argc` NUL-terminated strings and room for one more pointer; both may be NULL.
unsafe fn take_options(argc: *mut c_int, argv: *mut *mut c_char) -> Result<Options, Fault> {
    if argc.is_null() || argv.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: the caller guarantees that `argc` is valid. On a little-endian machine the lower half of a long comes
    // first.
    let count = unsafe { argc.read_unaligned() }.max(0) as usize;
    let places: Vec<*mut c_char> = (0..count)
        // SAFETY: the caller guarantees that the memory is valid.
        .map(|at| unsafe { argv.add(at).read() })
        .collect();
    let said = |&place: &*mut c_char| match place.is_null() {
        true => String::new(),
        // SAFETY: the caller guarantees that the memory is valid.
        false => unsafe { CStr::from_ptr(place) }
            .to_string_lossy()
            .into_owned(),
    };
    let said: Vec<String> = places.iter().map(said).collect();
    let (options, others) = options::take(&said)?;
    for (to, &from) in others.iter().enumerate() {
        // SAFETY: the caller guarantees that `argv` is valid; no string moves behind its old index.
        unsafe { argv.add(to).write(places[from]) };
    }
    if others.len() < count {
        // SAFETY: the caller guarantees that `argv` is valid; no string moves behind its old index.
        unsafe {
            argv.add(others.len()).write(std::ptr::null_mut());
            argc.write_unaligned(others.len() as c_int);
        }
    }
    Ok(options)
}

/// Returns the size that a call passes; 0 and -1 mean that of the partition.
pub fn wanted(size: c_long) -> Result<Option<Size>, Fault> {
    match size {
        0 | -1 => Ok(None),
        size => Size::nodes(size).map(Some),
    }
}

unsafe fn init(
    partition: *const c_char,
    size: c_long,
    _: *const c_char,
    argc: *mut c_int,
    argv: *mut *mut c_char,
) -> Answer {
    // SAFETY: by the C contract the strings are NUL-terminated or NULL.
    let (partition, options) = unsafe { (text(partition)?, take_options(argc, argv)?) };
    begin(&partition, wanted(size)?, options)
}

unsafe fn init_rectangle(
    partition: *const c_char,
    _: c_long,
    rows: c_long,
    columns: c_long,
    _: *const c_char,
    argc: *mut c_int,
    argv: *mut *mut c_char,
) -> Answer {
    // SAFETY: by the C contract the strings are NUL-terminated or NULL.
    let (partition, options) = unsafe { (text(partition)?, take_options(argc, argv)?) };
    begin(&partition, Some(Size::rectangle(rows, columns)?), options)
}

/// Begins an application for `nx_initve_attr`, whose attributes have been read.
///
/// # Safety
/// The same as for `nx_initve`.
pub unsafe fn init_sized(
    partition: *const c_char,
    size: Option<Size>,
    argc: *mut c_int,
    argv: *mut *mut c_char,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (partition, options) = unsafe { (text(partition)?, take_options(argc, argv)?) };
    begin(&partition, size, options)
}

/// Fails unless this program has begun an application and may start programs there.
fn check_controller() -> Result<(), Fault> {
    match (&library().application, &library().cube) {
        (Some(_), Some(_)) => Ok(()),
        (_, None) if library().joined => Err(Fault::plain(EQPRIV)),
        _ => Err(Fault::plain(EANOEXIST)),
    }
}

/// Returns the nodes in a list of `count` numbers; -1 means all nodes of the application.
///
/// # Safety
/// `nodes` has `count` numbers.
unsafe fn listed(nodes: *const c_long, count: c_long) -> Result<Vec<c_int>, Fault> {
    let all = library().nodes;
    if count == -1 {
        return Ok((0..all).collect());
    }
    if count < 1 || count > all.into() || nodes.is_null() {
        return Err(Fault::of(EQPARAM, "number", count));
    }
    let number = |at: usize| {
        // SAFETY: the caller guarantees that the memory is valid.
        let node = unsafe { nodes.add(at).read_unaligned() };
        let checked = c_int::try_from(node).ok();
        let checked = checked.filter(|node| (0..all).contains(node));
        checked.ok_or(Fault::of(EQNODE, "node", node))
    };
    (0..count as usize).map(number).collect()
}

/// Returns the process ids of these tasks.
fn processes_of(tasks: &[c_int]) -> Result<Vec<c_long>, Fault> {
    let mut count = 0;
    // SAFETY: no room is passed.
    check(unsafe { rg::rg_tasks(std::ptr::null_mut(), 0, &mut count) })?;
    // SAFETY: an entry of zeros is valid.
    let mut all: Vec<rg::Task> = vec![unsafe { std::mem::zeroed() }; count.max(0) as usize];
    // SAFETY: `all` has `count` entries.
    check(unsafe { rg::rg_tasks(all.as_mut_ptr(), count, &mut count) })?;
    let process = |&task: &c_int| {
        let known = all.iter().find(|one| one.tid == task);
        known.map_or(UNKNOWN_PROCESS, |one| one.pid.into())
    };
    Ok(tasks.iter().map(process).collect())
}

/// Starts a program on nodes. Returns the process ids.
fn start(nodes: &[c_int], pid: c_long, program: &Program) -> Result<Vec<c_long>, Fault> {
    let tasks = host::load_on(nodes, pid, program)?;
    processes_of(&tasks)
}

/// # Safety
/// `pids` has room for all of them, or is NULL.
unsafe fn tell_processes(pids: *mut c_long, processes: &[c_long]) {
    if !pids.is_null() {
        for (at, &process) in processes.iter().enumerate() {
            // SAFETY: the caller guarantees that the memory is valid.
            unsafe { pids.add(at).write_unaligned(process) };
        }
    }
}

pub unsafe fn load(
    nodes: *const c_long,
    count: c_long,
    pid: c_long,
    pids: *mut c_long,
    file: *const c_char,
) -> Answer {
    let none = std::ptr::null();
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { load_with(nodes, count, pid, pids, file, none, none) }
}

/// Returns the program's strings up to a NULL.
///
/// # Safety
/// `from` is a NULL-terminated array of NUL-terminated strings, or NULL.
unsafe fn texts(from: *const *const c_char) -> Vec<CString> {
    let mut all = Vec::new();
    if !from.is_null() {
        // SAFETY: the caller guarantees that the memory is valid.
        while let text = unsafe { from.add(all.len()).read() }
            && !text.is_null()
        {
            // SAFETY: the caller guarantees that the memory is valid.
            all.push(unsafe { CStr::from_ptr(text) }.to_owned());
        }
    }
    all
}

unsafe fn load_with(
    nodes: *const c_long,
    count: c_long,
    pid: c_long,
    pids: *mut c_long,
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> Answer {
    check_controller()?;
    if file.is_null() {
        return Err(Fault::plain(EQPFIL));
    }
    // SAFETY: by the C contract the strings are NUL-terminated, and the lists NULL-terminated.
    let (file, mut arguments, environment) =
        unsafe { (text(file)?, texts(arguments), texts(environment)) };
    let mut program = Program::named(&file)?;
    // Drop the first one, the program's own name.
    program.arguments = arguments.split_off(1.min(arguments.len()));
    program.environment = environment;
    // SAFETY: by the C contract `nodes` has `count` numbers, and `pids` has room.
    unsafe {
        let processes = start(&listed(nodes, count)?, pid, &program)?;
        tell_processes(pids, &processes);
        Ok(processes.len() as c_long)
    }
}

/// The suffix that Linux appends to the path of an executable that has been deleted.
const DELETED: &[u8] = b" (deleted)";

/// Returns the path of this program. If the file has been replaced since, this is the path of the new one.
fn own_path() -> Result<CString, Fault> {
    let path = std::fs::read_link("/proc/self/exe").map_err(|_| Fault::plain(EQPFIL))?;
    let is_gone = !path.exists();
    let mut path = path.into_os_string().into_vec();
    if is_gone && path.ends_with(DELETED) {
        path.truncate(path.len() - DELETED.len());
    }
    CString::new(path).map_err(|_| Fault::plain(EQPFIL))
}

/// Returns this program with its arguments, to be started again by this call of `nx_nfork`.
fn itself(fork: c_int) -> Result<Program, Fault> {
    let arguments: Result<Vec<CString>, _> = std::env::args_os()
        .skip(1)
        .map(|word| CString::new(word.into_vec()))
        .collect();
    Ok(Program {
        path: own_path()?,
        arguments: arguments.map_err(|_| Fault::plain(EQPARAM))?,
        environment: Vec::new(),
        fork,
    })
}

/// Starts this program on nodes, as if it forked there. The started processes run from their beginning to this call,
/// which returns 0 there.
pub unsafe fn fork(nodes: *const c_long, count: c_long, pid: c_long, pids: *mut c_long) -> Answer {
    let library = library();
    if library.cube.is_none() && library.fork > library.forks {
        library.forks += 1;
        if library.fork == library.forks {
            return Ok(0);
        }
        // An earlier call than the one that has started this process: its processes exist already.
        // SAFETY: by the C contract `nodes` has `count` numbers, and `pids` has room.
        unsafe {
            let count = listed(nodes, count)?.len();
            tell_processes(pids, &vec![UNKNOWN_PROCESS; count]);
            return Ok(count as c_long);
        }
    }
    check_controller()?;
    library.forks += 1;
    let program = itself(library.forks)?;
    // SAFETY: by the C contract `nodes` has `count` numbers, and `pids` has room.
    unsafe {
        let processes = start(&listed(nodes, count)?, pid, &program)?;
        tell_processes(pids, &processes);
        Ok(processes.len() as c_long)
    }
}

pub unsafe fn wait() -> Answer {
    check_controller()?;
    // SAFETY: the call takes plain values only.
    unsafe { wait_for_all(-1, -1) }
}

/// Fails unless `group` is the process group of the application: 0 or the caller's own.
fn check_group(group: c_long) -> Result<(), Fault> {
    enrolled()?;
    // SAFETY: the calls take plain values only.
    let own = unsafe { [libc::getpgrp(), libc::getpid()] };
    match group == 0 || own.into_iter().any(|own| c_long::from(own) == group) {
        true => Ok(()),
        false => Err(Fault::of(EANOEXIST, "group", group)),
    }
}

/// Checks a priority and ignores it: the operating system schedules processes.
pub unsafe fn set_priority(group: c_long, priority: c_long) -> Answer {
    check_group(group)?;
    match (0..=MAX_PRIORITY).contains(&priority) {
        true => Ok(0),
        false => Err(Fault::of(EPINVALPRI, "priority", priority)),
    }
}

pub unsafe fn rectangle(rows: *mut c_long, columns: *mut c_long) -> Answer {
    if rows.is_null() || columns.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let (height, width) = shape()?;
    // SAFETY: by the C contract the results are writable.
    unsafe {
        rows.write_unaligned(height.into());
        columns.write_unaligned(width.into());
    }
    Ok(0)
}

/// Copies numbers to memory that the program frees.
///
/// # Safety
/// `list` and `size` are writable or NULL.
pub unsafe fn give(
    numbers: &[c_long],
    list: *mut *mut c_long,
    size: *mut c_ulong,
) -> Result<(), Fault> {
    if list.is_null() || size.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: the memory has room for the numbers (at least one), and the caller guarantees `list` and `size`.
    unsafe {
        let memory = libc::malloc(size_of_val(numbers).max(size_of::<c_long>()));
        if memory.is_null() {
            return Err(Fault::plain(EQMEM));
        }
        std::ptr::copy_nonoverlapping(numbers.as_ptr(), memory.cast(), numbers.len());
        list.write_unaligned(memory.cast());
        size.write_unaligned(numbers.len() as c_ulong);
    }
    Ok(())
}

/// Returns the nodes of an application, by their numbers in the partition.
pub fn nodes_of_group(group: c_long) -> Result<Vec<c_long>, Fault> {
    check_group(group)?;
    let library = library();
    let partition = library.application.as_deref().unwrap_or(WHOLE);
    let made = library.partitions.find(partition)?;
    let count = library.nodes as usize;
    Ok(match made {
        Some(made) => made.nodes[..count.min(made.nodes.len())].to_vec(),
        None => (0..library.nodes.into()).collect(),
    })
}

unsafe fn application_nodes(group: c_int, list: *mut *mut c_long, size: *mut c_ulong) -> Answer {
    let nodes = nodes_of_group(group.into())?;
    // SAFETY: by the C contract the results are writable.
    unsafe { give(&nodes, list, size) }?;
    Ok(0)
}

/// Returns an empty list: a job has no empty or failed nodes.
unsafe fn no_nodes(list: *mut *mut c_long, size: *mut c_ulong) -> Answer {
    // SAFETY: by the C contract the results are writable.
    unsafe { give(&[], list, size) }?;
    Ok(0)
}

/// Returns the number of nodes of the application that was begun here, if it is in this partition.
pub fn application_in(partition: &str) -> Option<c_int> {
    let library = library();
    let own = library.application.as_deref()?;
    is_same(own, partition).then_some(library.nodes)
}

/// Prints the meaning of `errno` to standard error, after a text of the program.
pub fn say_error(text: &str) {
    // SAFETY: `__errno_location` returns the calling thread's own errno.
    let code = unsafe { *libc::__errno_location() };
    let library = library();
    let who = match library.joined {
        true => format!(
            "(node {}, ptype {}) ",
            library.node_of_mine(),
            library.ptype
        ),
        false => String::new(),
    };
    let prefix = match text.is_empty() {
        true => who,
        false => format!("{who}{text}: "),
    };
    // Ignore write errors: standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{prefix}{}", words(code));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nx_perror(said: *const c_char) {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    say_error(&unsafe { text(said) }.unwrap_or_default());
}

value_forms! {
    c_long, std::convert::identity;
    nx_initve: (partition: *const c_char, size: c_long, account: *const c_char, argc: *mut c_int, argv: *mut *mut c_char) = init;
    nx_initve_rect: (partition: *const c_char, anchor: c_long, rows: c_long, columns: c_long, account: *const c_char, argc: *mut c_int, argv: *mut *mut c_char) = init_rectangle;
    nx_load: (nodes: *const c_long, count: c_long, pid: c_long, pids: *mut c_long, file: *const c_char) = load;
    nx_loadve: (nodes: *const c_long, count: c_long, pid: c_long, pids: *mut c_long, file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) = load_with;
    nx_nfork: (nodes: *const c_long, count: c_long, pid: c_long, pids: *mut c_long) = fork;
    nx_waitall: () = wait;
    nx_pri: (group: c_long, priority: c_long) = set_priority;
    nx_app_rect: (rows: *mut c_long, columns: *mut c_long) = rectangle;
    nx_app_nodes: (group: c_int, list: *mut *mut c_long, size: *mut c_ulong) = application_nodes;
    nx_empty_nodes: (list: *mut *mut c_long, size: *mut c_ulong) = no_nodes;
    nx_failed_nodes: (list: *mut *mut c_long, size: *mut c_ulong) = no_nodes;
}
