//! Applications, in the Paragon's words: a program begins one of some nodes, and starts programs there, or itself again.
//!
//! It is a host: its cube is the application, and its pid the one that it gives itself by `setptype`. Each call returns -1 and sets `errno` when
//! it fails; none ends the program.

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

/// The pid of the system's of a process of another program, where nobody can know it.
const UNKNOWN_PROCESS: c_long = c_int::MAX as c_long;
/// The highest priority.
pub const MAX_PRIORITY: c_long = 10;

/// A text of the program's, or none.
///
/// # Safety
/// It is a text, or NULL.
pub unsafe fn text(text: *const c_char) -> Result<String, Fault> {
    if text.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Fault::plain(EQPARAM))?;
    Ok(text.to_owned())
}

/// The size of an application in a partition: as is said, or as large as the partition, or as is usual.
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

/// Begins an application, or goes on as a part of the one that has started this process by `nx_nfork`. Returns its number of nodes. Options
/// go before the arguments of the call.
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

/// The options among the program's arguments, which are taken out.
///
/// # Safety
/// There are as many texts as the number says, and room for one address behind them, or NULL is passed.
unsafe fn take_options(argc: *mut c_int, argv: *mut *mut c_char) -> Result<Options, Fault> {
    if argc.is_null() || argv.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: the caller's. A number of 64 bits has its lower half first.
    let count = unsafe { argc.read_unaligned() }.max(0) as usize;
    let places: Vec<*mut c_char> = (0..count)
        // SAFETY: the caller's.
        .map(|at| unsafe { argv.add(at).read() })
        .collect();
    let said = |&place: &*mut c_char| match place.is_null() {
        true => String::new(),
        // SAFETY: the caller's.
        false => unsafe { CStr::from_ptr(place) }
            .to_string_lossy()
            .into_owned(),
    };
    let said: Vec<String> = places.iter().map(said).collect();
    let (options, others) = options::take(&said)?;
    for (to, &from) in others.iter().enumerate() {
        // SAFETY: as above, no further than they were.
        unsafe { argv.add(to).write(places[from]) };
    }
    if others.len() < count {
        // SAFETY: as above.
        unsafe {
            argv.add(others.len()).write(std::ptr::null_mut());
            argc.write_unaligned(others.len() as c_int);
        }
    }
    Ok(options)
}

/// The size that a call names: 0 and -1 leave it to the partition.
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
    // SAFETY: the C contract: texts, or NULL.
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
    // SAFETY: as above.
    let (partition, options) = unsafe { (text(partition)?, take_options(argc, argv)?) };
    begin(&partition, Some(Size::rectangle(rows, columns)?), options)
}

/// Begins an application for `nx_initve_attr`, which has read its attributes.
///
/// # Safety
/// As of `nx_initve`.
pub unsafe fn init_sized(
    partition: *const c_char,
    size: Option<Size>,
    argc: *mut c_int,
    argv: *mut *mut c_char,
) -> Answer {
    // SAFETY: the caller's.
    let (partition, options) = unsafe { (text(partition)?, take_options(argc, argv)?) };
    begin(&partition, size, options)
}

/// The state, as the program that has begun an application, and may start programs there.
fn check_controller() -> Result<(), Fault> {
    match (&library().application, &library().cube) {
        (Some(_), Some(_)) => Ok(()),
        (_, None) if library().joined => Err(Fault::plain(EQPRIV)),
        _ => Err(Fault::plain(EANOEXIST)),
    }
}

/// The nodes that a list means: so many, or all of the application.
///
/// # Safety
/// There are as many numbers as is said.
unsafe fn listed(nodes: *const c_long, count: c_long) -> Result<Vec<c_int>, Fault> {
    let all = library().nodes;
    if count == -1 {
        return Ok((0..all).collect());
    }
    if count < 1 || count > all.into() || nodes.is_null() {
        return Err(Fault::of(EQPARAM, "number", count));
    }
    let number = |at: usize| {
        // SAFETY: the caller's.
        let node = unsafe { nodes.add(at).read_unaligned() };
        let checked = c_int::try_from(node).ok();
        let checked = checked.filter(|node| (0..all).contains(node));
        checked.ok_or(Fault::of(EQNODE, "node", node))
    };
    (0..count as usize).map(number).collect()
}

/// The system's numbers of the processes that are these tasks.
fn processes_of(tasks: &[c_int]) -> Result<Vec<c_long>, Fault> {
    let mut count = 0;
    // SAFETY: no room, which is said.
    check(unsafe { rg::rg_tasks(std::ptr::null_mut(), 0, &mut count) })?;
    // SAFETY: entries made of zeros are some.
    let mut all: Vec<rg::Task> = vec![unsafe { std::mem::zeroed() }; count.max(0) as usize];
    // SAFETY: as much room as is said.
    check(unsafe { rg::rg_tasks(all.as_mut_ptr(), count, &mut count) })?;
    let process = |&task: &c_int| {
        let known = all.iter().find(|one| one.tid == task);
        known.map_or(UNKNOWN_PROCESS, |one| one.pid.into())
    };
    Ok(tasks.iter().map(process).collect())
}

/// Starts a program on nodes. Returns the numbers of the processes.
fn start(nodes: &[c_int], pid: c_long, program: &Program) -> Result<Vec<c_long>, Fault> {
    let tasks = host::load_on(nodes, pid, program)?;
    processes_of(&tasks)
}

/// # Safety
/// There is room for them, or NULL is passed.
unsafe fn tell_processes(pids: *mut c_long, processes: &[c_long]) {
    if !pids.is_null() {
        for (at, &process) in processes.iter().enumerate() {
            // SAFETY: the caller's.
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
    // SAFETY: the caller's.
    unsafe { load_with(nodes, count, pid, pids, file, none, none) }
}

/// Texts of the program's, up to NULL.
///
/// # Safety
/// They end with NULL, or it is NULL itself.
unsafe fn texts(from: *const *const c_char) -> Vec<CString> {
    let mut all = Vec::new();
    if !from.is_null() {
        // SAFETY: the caller's.
        while let text = unsafe { from.add(all.len()).read() }
            && !text.is_null()
        {
            // SAFETY: the caller's.
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
    // SAFETY: the C contract: texts, and lists that end with NULL.
    let (file, mut arguments, environment) =
        unsafe { (text(file)?, texts(arguments), texts(environment)) };
    let mut program = Program::named(&file)?;
    // The first one is the program's own name.
    program.arguments = arguments.split_off(1.min(arguments.len()));
    program.environment = environment;
    // SAFETY: the C contract: lists as long as is said.
    unsafe {
        let processes = start(&listed(nodes, count)?, pid, &program)?;
        tell_processes(pids, &processes);
        Ok(processes.len() as c_long)
    }
}

/// The mark that the system puts behind the path of a program whose file is not there any more.
const DELETED: &[u8] = b" (deleted)";

/// The path of this program. A file that has been built anew since then stands there for the old one.
fn own_path() -> Result<CString, Fault> {
    let path = std::fs::read_link("/proc/self/exe").map_err(|_| Fault::plain(EQPFIL))?;
    let is_gone = !path.exists();
    let mut path = path.into_os_string().into_vec();
    if is_gone && path.ends_with(DELETED) {
        path.truncate(path.len() - DELETED.len());
    }
    CString::new(path).map_err(|_| Fault::plain(EQPFIL))
}

/// This program again, with its arguments as they were.
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

/// Starts this program on nodes, as if it had forked there: what is started runs from its beginning to this call, which returns 0 there.
pub unsafe fn fork(nodes: *const c_long, count: c_long, pid: c_long, pids: *mut c_long) -> Answer {
    let library = library();
    if library.cube.is_none() && library.fork > library.forks {
        library.forks += 1;
        if library.fork == library.forks {
            return Ok(0);
        }
        // A call before that one: what it has started is there.
        // SAFETY: the C contract: lists as long as is said.
        unsafe {
            let count = listed(nodes, count)?.len();
            tell_processes(pids, &vec![UNKNOWN_PROCESS; count]);
            return Ok(count as c_long);
        }
    }
    check_controller()?;
    library.forks += 1;
    let program = itself(library.forks)?;
    // SAFETY: as above.
    unsafe {
        let processes = start(&listed(nodes, count)?, pid, &program)?;
        tell_processes(pids, &processes);
        Ok(processes.len() as c_long)
    }
}

pub unsafe fn wait() -> Answer {
    check_controller()?;
    // SAFETY: a plain call.
    unsafe { wait_for_all(-1, -1) }
}

/// A group of processes that is the application, by its number; 0 is the caller's own.
fn check_group(group: c_long) -> Result<(), Fault> {
    enrolled()?;
    // SAFETY: plain questions.
    let own = unsafe { [libc::getpgrp(), libc::getpid()] };
    match group == 0 || own.into_iter().any(|own| c_long::from(own) == group) {
        true => Ok(()),
        false => Err(Fault::of(EANOEXIST, "group", group)),
    }
}

/// A priority is taken, and has no meaning: the system shares its processors out.
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
    // SAFETY: the C contract: places for two numbers.
    unsafe {
        rows.write_unaligned(height.into());
        columns.write_unaligned(width.into());
    }
    Ok(0)
}

/// Numbers in memory that the program frees.
///
/// # Safety
/// There are places for an address and a number.
pub unsafe fn give(
    numbers: &[c_long],
    list: *mut *mut c_long,
    size: *mut c_ulong,
) -> Result<(), Fault> {
    if list.is_null() || size.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: a plain call; room for the numbers, and for one if there is none.
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

/// The nodes of an application, by their numbers in the partition.
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
    // SAFETY: the C contract: places for the answer.
    unsafe { give(&nodes, list, size) }?;
    Ok(0)
}

/// A job has no nodes that are not there.
unsafe fn no_nodes(list: *mut *mut c_long, size: *mut c_ulong) -> Answer {
    // SAFETY: as above.
    unsafe { give(&[], list, size) }?;
    Ok(0)
}

/// The partition of the application that has been begun here, if it is this one, and its size.
pub fn application_in(partition: &str) -> Option<c_int> {
    let library = library();
    let own = library.application.as_deref()?;
    is_same(own, partition).then_some(library.nodes)
}

/// Prints the meaning of `errno` on the standard error, behind a text of the program's.
pub fn say_error(text: &str) {
    // SAFETY: the calling thread's own errno.
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
    // Nobody may read it, and the program goes on all the same.
    let _ = writeln!(std::io::stderr(), "{prefix}{}", words(code));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nx_perror(said: *const c_char) {
    // SAFETY: the C contract: a text, or NULL.
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
