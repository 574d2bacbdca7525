//! The calls of a host: it gets a cube, loads processes, waits for their ends, and kills them.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::Path;

use crate::cube::{self, Cube, Process};
use crate::error::{
    Answer, EQBADFIL, EQCUBEEXISTS, EQCUBENOTEXIST, EQNOACT, EQNODE, EQNOPROC, EQNOSET, EQPARAM,
    EQPCCODE, EQPCNODE, EQPCPID, EQPFIL, EQPID, EQPRIV, EQTIME, EQUSEPID, Fault, check, fault,
};
use crate::forms::{c_forms, fortran_forms};
use crate::life::{enrol_host, enrolled};
use crate::places::Place;
use crate::receive::{Buffer, FOR_EVER, receive_within};
use crate::rg;
use crate::state::{ENDS, Library, library};

/// The code of a process that was lost with its host.
const LOST: c_long = -1;

/// Checks that a process can have this pid.
fn checked_pid(pid: c_long) -> Result<c_int, Fault> {
    let checked = c_int::try_from(pid).ok().filter(|&pid| pid >= 0);
    checked.ok_or(Fault::of(EQPID, "pid", pid))
}

unsafe fn set_pid(pid: c_long) -> Answer {
    enrol_host(checked_pid(pid)?)?;
    Ok(0)
}

/// Returns the state, if this is a host that has set its pid.
fn host<'a>() -> Result<&'a mut Library, Fault> {
    let library = library();
    match (&library.cube, library.joined) {
        (Some(_), true) => Ok(library),
        (None, true) => Err(Fault::plain(EQPRIV)),
        (_, false) => Err(Fault::plain(EQNOSET)),
    }
}

fn own_cube(library: &mut Library) -> &mut Cube {
    library.cube.get_or_insert_default()
}

/// Returns a string of the program, or `None` for NULL.
///
/// # Safety
/// `text` is a NUL-terminated string or NULL.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

/// The variable with the size of the default cube, in place of the shell command `getcube` on the iPSC. The name is the
/// Paragon's.
const SHELLS_CUBE: &str = "NX_DFLT_SIZE";

/// Returns the number of nodes of the default cube: as the variable says, or one for each core.
pub fn usual_nodes() -> Result<c_int, Fault> {
    if let Ok(size) = std::env::var(SHELLS_CUBE) {
        let number = size.trim().parse().unwrap_or(0);
        return cube::nodes_of(&size).ok_or(Fault::of(EQPARAM, SHELLS_CUBE, number));
    }
    let cores = std::thread::available_parallelism();
    Ok(cores.map_or(1, |cores| c_int::try_from(cores.get()).unwrap_or(1)))
}

/// Sets the size of the cube. Processes that were loaded into a previous cube do not belong to it.
fn set_nodes(library: &mut Library, nodes: c_int) {
    library.nodes = nodes;
    library.me = nodes;
    library.set_apart();
    own_cube(library).loaded = None;
}

/// Gets a cube whose size is given by its type. No nodes are used until processes are loaded.
pub fn get(name: &str, kind: &str) -> Answer {
    let library = library();
    if library.joined && library.cube.is_none() {
        return Err(Fault::plain(EQPRIV));
    }
    let nodes = match kind.trim().is_empty() {
        true => usual_nodes()?,
        false => cube::nodes_of(kind).ok_or(Fault::plain(EQPARAM))?,
    };
    take_notice()?;
    let cube = own_cube(library);
    if cube.running(-1, -1).is_some() {
        return Err(Fault::plain(EQCUBEEXISTS));
    }
    name.trim().clone_into(&mut cube.name);
    set_nodes(library, nodes);
    Ok(0)
}

unsafe fn get_cube(
    name: *const c_char,
    kind: *const c_char,
    _: *const c_char,
    _: c_long,
) -> Answer {
    // SAFETY: by the C contract the strings are NUL-terminated or NULL.
    let (name, kind) = unsafe { (text(name), text(kind)) };
    get(&name.unwrap_or_default(), &kind.unwrap_or_default())
}

/// Fails unless this is the name of the cube. The empty name matches any cube.
fn check_name(name: &str) -> Result<(), Fault> {
    let cube = library().cube.as_ref();
    let cube = cube.ok_or(Fault::plain(EQCUBENOTEXIST))?;
    match name.trim().is_empty() || cube.name == name.trim() {
        true => Ok(()),
        false => Err(Fault::plain(EQCUBENOTEXIST)),
    }
}

/// Attaches to the existing cube: the program's own, or the one of the variable.
pub fn attach(name: &str) -> Answer {
    if library().cube.is_none() && std::env::var_os(SHELLS_CUBE).is_some() {
        return get(name, "");
    }
    check_name(name)?;
    Ok(0)
}

/// Releases the cube, and kills the processes there.
pub fn release(name: &str) -> Answer {
    check_name(name)?;
    if library().joined {
        kill_loaded(-1, -1);
    }
    let library = library();
    own_cube(library).name.clear();
    set_nodes(library, 0);
    Ok(0)
}

unsafe fn attach_cube(name: *const c_char) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    attach(&unsafe { text(name) }.unwrap_or_default())
}

unsafe fn release_cube(name: *const c_char) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    release(&unsafe { text(name) }.unwrap_or_default())
}

/// A program to be loaded, with arguments and variables in addition to those of the job.
pub struct Program {
    pub path: CString,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    /// Number of the `nx_nfork` call that starts it, or 0.
    pub fork: c_int,
}

impl Program {
    /// Returns the program with this name: a file in the job's directory, otherwise one found as a command is.
    pub fn named(file: &str) -> Result<Program, Fault> {
        let file = file.trim();
        if file.is_empty() {
            return Err(Fault::plain(EQPFIL));
        }
        let path = match !file.contains('/') && Path::new(file).exists() {
            true => CString::new(format!("./{file}")),
            false => CString::new(file),
        };
        Ok(Program {
            path: path.map_err(|_| Fault::plain(EQBADFIL))?,
            arguments: Vec::new(),
            environment: Vec::new(),
            fork: 0,
        })
    }
}

/// Loads a program on a node, or on all (-1), with this pid.
pub fn load_file(file: &str, node: c_long, pid: c_long) -> Answer {
    let library = host()?;
    checked_pid(pid)?;
    let program = Program::named(file)?;
    if library.nodes == 0 {
        set_nodes(library, usual_nodes()?);
    }
    let nodes = match node {
        -1 => 0..library.nodes,
        node if (0..c_long::from(library.nodes)).contains(&node) => {
            node as c_int..node as c_int + 1
        }
        node => return Err(Fault::of(EQNODE, "node", node)),
    };
    load_on(&nodes.collect::<Vec<_>>(), pid, &program)?;
    Ok(0)
}

/// Loads a program on these nodes of the cube, with this pid. Returns their tasks. If one fails, the others are killed.
pub fn load_on(nodes: &[c_int], pid: c_long, program: &Program) -> Result<Vec<c_int>, Fault> {
    let library = host()?;
    let pid = checked_pid(pid)?;
    take_notice()?;
    for (at, &node) in nodes.iter().enumerate() {
        let taken = own_cube(library).running(node.into(), pid.into()).is_some();
        if taken || nodes[..at].contains(&node) {
            return Err(Fault::of(EQUSEPID, "pid", pid.into()));
        }
    }
    let mut tasks = Vec::new();
    // Start consecutive nodes together.
    for run in nodes.chunk_by(|one, next| one + 1 == *next) {
        match start(program, run[0], run.len() as c_int, pid) {
            Ok(started) => tasks.extend(started),
            Err(fault) => {
                for &node in &nodes[..tasks.len()] {
                    kill_loaded(node.into(), pid.into());
                }
                return Err(fault);
            }
        }
    }
    Ok(tasks)
}

/// Starts a program on consecutive nodes.
fn start(program: &Program, first: c_int, count: c_int, pid: c_int) -> Result<Vec<c_int>, Fault> {
    let library = library();
    let place = Place {
        host: library.task,
        host_pid: library.ptype as c_int,
        nodes: library.nodes,
        node: first,
        pid,
        fork: program.fork,
        rows: library.rows,
    };
    let tasks = spawn(program, place, count)?;
    for (node, &task) in (first..).zip(&tasks) {
        own_cube(library).add(task, node, pid);
        library.places.add(task, node, pid);
        watch(task)?;
    }
    if count == library.nodes {
        own_cube(library).loaded = Some(pid);
        (library.first, library.peers) = (tasks[0], pid.into());
    } else if library.peers == pid.into() {
        library.set_apart();
    }
    Ok(tasks)
}

/// Returns the strings as a NULL-terminated array.
fn addresses(texts: &[CString]) -> Vec<*const c_char> {
    let all = texts.iter().map(|text| text.as_ptr());
    all.chain([std::ptr::null()]).collect()
}

/// Starts tasks with this place. If one fails, the others are killed.
fn spawn(program: &Program, place: Place, count: c_int) -> Result<Vec<c_int>, Fault> {
    let variable = CString::new(place.write()).map_err(|_| Fault::plain(EQBADFIL))?;
    let arguments = addresses(&program.arguments);
    let mut environment = addresses(&program.environment);
    environment.insert(0, variable.as_ptr());
    // SAFETY: options of zeros are the defaults.
    let mut options: rg::SpawnOptions = unsafe { std::mem::zeroed() };
    options.environment = environment.as_ptr();
    let mut tasks = vec![rg::NONE; count as usize];
    let mut started = 0;
    // SAFETY: the strings are NUL-terminated, the arrays are NULL-terminated, and `tasks` has `count` entries.
    let code = unsafe {
        rg::rg_spawn(
            program.path.as_ptr(),
            arguments.as_ptr().cast(),
            &options,
            count,
            tasks.as_mut_ptr(),
            &mut started,
        )
    };
    if code == rg::OK {
        return Ok(tasks);
    }
    let mut why = fault(code);
    if code == rg::ERR_MEMORY {
        why = why.as_code(EQNOPROC);
    }
    for &task in &tasks[..started.max(0) as usize] {
        // SAFETY: the call takes plain values only.
        unsafe { rg::rg_kill(task) };
    }
    Err(why)
}

unsafe fn load_program(file: *const c_char, node: c_long, pid: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let file = unsafe { text(file) }.ok_or(Fault::plain(EQPFIL))?;
    load_file(&file, node, pid)
}

/// Kills matching processes of the host's cube, and removes them from it.
///
/// Returns the tasks that were sent the signal. Their ends will be reported to the host.
pub fn kill_loaded(node: c_long, pid: c_long) -> Vec<c_int> {
    let library = library();
    let cube = library.cube.get_or_insert_default();
    let mut killed = Vec::new();
    while let Some(task) = cube.running(node, pid).map(|process| process.task) {
        // SAFETY: the call takes a plain number. A task that has ended cannot be killed, so the error is ignored.
        if unsafe { rg::rg_kill(task) } == rg::OK {
            killed.push(task);
        }
        cube.processes.retain(|process| process.task != task);
        library.places.remove(task);
    }
    killed
}

/// Kills, as a node, processes with its own pid, itself last.
fn kill_beside(library: &mut Library, node: c_long, pid: c_long) {
    if pid != -1 && pid != library.ptype {
        return;
    }
    let (ptype, me) = (library.ptype, library.node_of_mine());
    let meant = |one: c_long| node == -1 || node == one;
    for other in (0..c_long::from(library.nodes)).filter(|&one| meant(one) && one != me) {
        if let Ok(task) = library.task_of(other, ptype) {
            // SAFETY: the call takes a plain number. A task that has ended cannot be killed, so the error is ignored.
            let code = unsafe { rg::rg_kill(task) };
            if code == rg::ERR_STATE && node == -1 {
                // From a signal handler that has interrupted a call, only one request to the launcher is possible: to
                // abort all tasks.
                // SAFETY: the call takes a plain number. A task that has ended cannot be killed, so the error is
                // ignored.
                unsafe { rg::rg_abort(1) };
            }
            let killed = code == rg::OK;
            if let Some(next) = (!killed).then(|| library.successor(task)).flatten() {
                // SAFETY: the call takes a plain number. A task that has ended cannot be killed, so the error is
                // ignored.
                unsafe { rg::rg_kill(next) };
            }
        }
    }
    if meant(me) {
        library.failed = true;
        // SAFETY: a program may call `exit`.
        unsafe { libc::exit(1) };
    }
}

/// Kills the processes that match a node and a pid; -1 matches all. Returns success if none matches: programs begin
/// with this call.
unsafe fn kill(node: c_long, pid: c_long) -> Answer {
    match library().cube {
        Some(_) => {
            host()?;
            let mut dying = kill_loaded(node, pid);
            // Wait until they have ended: another process may be loaded in place of one, and must not be mistaken for
            // it.
            while !dying.is_empty() {
                let ended = await_end(FOR_EVER)?;
                dying.retain(|&task| task != ended);
            }
        }
        None => kill_beside(enrolled()?, node, pid),
    }
    Ok(0)
}

/// Requests notification of a process's end. Its end then does not end the job.
fn watch(task: c_int) -> Result<(), Fault> {
    // SAFETY: the notification's number is not requested, so NULL is passed.
    check(unsafe { rg::rg_notify(rg::TASK_EXIT, task, 0, ENDS, std::ptr::null_mut()) })
}

/// Handles the ends of processes that have been reported.
pub fn take_notice() -> Result<(), Fault> {
    while library().joined {
        match await_end(0.0) {
            Ok(_) => {}
            Err(fault) if fault.code == EQTIME => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// Waits until one more process has ended, at most `seconds` (negative: without a limit). Returns its task.
pub fn await_end(seconds: f64) -> Result<c_int, Fault> {
    // SAFETY: an event of zeros is valid.
    let mut event: rg::Event = unsafe { std::mem::zeroed() };
    let buffer = Buffer {
        memory: (&raw mut event).cast::<c_void>(),
        capacity: size_of::<rg::Event>(),
    };
    receive_within(rg::ANY, ENDS, rg::ANY, buffer, seconds)?;
    let code = match event.how {
        rg::BY_EXIT => event.value.into(),
        rg::BY_SIGNAL => -c_long::from(event.value),
        _ => LOST,
    };
    let library = library();
    library.places.remove(event.tid);
    own_cube(library).end(event.tid, code);
    Ok(event.tid)
}

/// Waits until all matching processes have ended.
pub unsafe fn wait_for_all(node: c_long, pid: c_long) -> Answer {
    host()?;
    while own_cube(library()).running(node, pid).is_some() {
        await_end(FOR_EVER)?;
    }
    while own_cube(library()).take_ended(node, pid).is_some() {}
    Ok(0)
}

/// Waits until a matching process has ended, and returns the first one with its code.
pub fn wait_for_one(node: c_long, pid: c_long) -> Result<(Process, c_long), Fault> {
    host()?;
    if !own_cube(library()).knows(node, pid) {
        return Err(Fault::plain(EQNOACT));
    }
    loop {
        if let Some(ended) = own_cube(library()).take_ended(node, pid) {
            return Ok(ended);
        }
        await_end(FOR_EVER)?;
    }
}

unsafe fn wait_one(
    node: c_long,
    pid: c_long,
    its_node: *mut c_long,
    its_pid: *mut c_long,
    code: *mut c_long,
) -> Answer {
    for (place, missing) in [(its_node, EQPCNODE), (its_pid, EQPCPID), (code, EQPCCODE)] {
        if place.is_null() {
            return Err(Fault::plain(missing));
        }
    }
    let (process, ended) = wait_for_one(node, pid)?;
    // SAFETY: by the C contract the results are writable.
    unsafe {
        its_node.write_unaligned(process.node.into());
        its_pid.write_unaligned(process.pid.into());
        code.write_unaligned(ended);
    }
    Ok(0)
}

c_forms! {
    setpid, _setpid: (pid: c_long) = set_pid;
    getcube, _getcube: (name: *const c_char, kind: *const c_char, machine: *const c_char, keep: c_long) = get_cube;
    attachcube, _attachcube: (name: *const c_char) = attach_cube;
    relcube, _relcube: (name: *const c_char) = release_cube;
    load, _load: (file: *const c_char, node: c_long, pid: c_long) = load_program;
    killcube, _killcube: (node: c_long, pid: c_long) = kill;
    killproc, _killproc: (node: c_long, pid: c_long) = kill;
    waitall, _waitall: (node: c_long, pid: c_long) = wait_for_all;
    waitone, _waitone: (node: c_long, pid: c_long, its_node: *mut c_long, its_pid: *mut c_long, code: *mut c_long) = wait_one;
}

fortran_forms! {
    setpid_, _setpid_: (pid: c_long) = set_pid;
    killcube_, _killcube_: (node: c_long, pid: c_long) = kill;
    killproc_, _killproc_: (node: c_long, pid: c_long) = kill;
    waitall_, _waitall_: (node: c_long, pid: c_long) = wait_for_all;
}
