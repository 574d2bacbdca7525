//! `exopen`, `exload` etc.: a program on the host that starts the nodes' program and exchanges messages with it.
//!
//! The host program is not a node. It opens nodes, loads a program into them, and is `HOST` for them: the task that has
//! started them.

use std::ffi::{CStr, CString, c_char, c_int};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::place::{PLACE, Place, place};
use regatta_nodes::rg;

use crate::constants::{ALLNODES, HOST};
use crate::life::call;
use crate::look::expect_former_nodes;
use crate::select::no_node;
use crate::team;

/// Maximum number of nodes of a program. A larger number is taken for a mistake.
const MAX_NODES: c_int = 1 << 20;

/// The nodes that a host program has opened.
struct Opened {
    /// The handle that the program uses.
    handle: c_int,
    nodes: c_int,
    loaded: bool,
    /// This task's place before it opened them.
    before: Place,
}

static OPENED: Own<Option<Opened>> = Own::new(None);
static HANDLES: Own<c_int> = Own::new(0);

fn opened<'a>(handle: c_int) -> Result<&'a mut Opened, Fault> {
    let opened = OPENED.get().as_mut();
    opened
        .filter(|opened| opened.handle == handle)
        .ok_or_else(|| Fault::says(format!("no nodes are open under the number {handle}")))
}

/// Opens nodes; the device and the first node are ignored. Returns a handle, or -1.
#[unsafe(no_mangle)]
extern "C" fn exopen(_device: *const c_char, nprocs: c_int, _first: c_int) -> c_int {
    call("exopen", || {
        if !(1..=MAX_NODES).contains(&nprocs) {
            return Err(Fault::says(format!("there are no {nprocs} nodes")));
        }
        if OPENED.get().is_some() {
            return Err(Fault::says("nodes are already open; call exclose first"));
        }
        if place().host != rg::NONE {
            return Err(Fault::says(
                "this program is a node and has a host program of its own",
            ));
        }
        let handle = *HANDLES.get();
        *HANDLES.get() += 1;
        *OPENED.get() = Some(Opened {
            handle,
            nodes: nprocs,
            loaded: false,
            before: place(),
        });
        Ok(handle)
    })
}

/// Starts a program on all nodes. A name without a slash is a file in the current directory, or is searched for in
/// PATH. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exload(handle: c_int, program: *const c_char) -> c_int {
    call("exload", || {
        let opened = opened(handle)?;
        if opened.loaded {
            return Err(Fault::says("a program is already loaded"));
        }
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let named = (!program.is_null()).then(|| unsafe { CStr::from_ptr(program) });
        let program = match named {
            Some(name) if !name.is_empty() => found(name),
            _ => return Err(Fault::says("the name of the program is NULL")),
        };
        let mut tasks = vec![-1; opened.nodes as usize];
        start(&program, &mut tasks)?;
        opened.loaded = true;
        team::forget();
        *PLACE.get() = Place {
            nodes: opened.nodes,
            node: HOST,
            first: tasks[0],
            // SAFETY: the call takes plain values only.
            host: unsafe { rg::rg_tid() },
        };
        Ok(0)
    })
}

/// Starts as many tasks as `tasks` has elements, or none.
fn start(program: &CStr, tasks: &mut [c_int]) -> Result<(), Fault> {
    let mut started = 0;
    // SAFETY: the name is NUL-terminated, arguments and options may be NULL, and `tasks` has the given length.
    let code = unsafe {
        rg::rg_spawn(
            program.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            tasks.len() as c_int,
            tasks.as_mut_ptr(),
            &mut started,
        )
    };
    // If some are missing, the others would wait for them, so kill these. Keep the error's text, which `rg_kill` may
    // replace.
    let why = checked(code).map_err(Fault::in_words);
    if why.is_err() {
        for &task in tasks.iter().take(started.max(0) as usize) {
            // SAFETY: the call takes plain values only.
            unsafe { rg::rg_kill(task) };
        }
    }
    why
}

/// Returns the path of a program in the current directory, or else its name.
fn found(program: &CStr) -> CString {
    let bytes = program.to_bytes();
    let here = CString::new([b"./", bytes].concat()).unwrap_or_default();
    // SAFETY: the string is NUL-terminated.
    let lies_here = unsafe { libc::access(here.as_ptr(), libc::X_OK) } == 0;
    match lies_here && !bytes.contains(&b'/') {
        true => here,
        false => program.to_owned(),
    }
}

/// Checks that a program is loaded into this node, or into all of them. A loaded program runs already, so there is
/// nothing else to do.
fn running(handle: c_int, node: c_int) -> Result<c_int, Fault> {
    let opened = opened(handle)?;
    if !opened.loaded {
        return Err(Fault::says("no program is loaded; call exload first"));
    }
    match node {
        ALLNODES => Ok(0),
        node if (0..opened.nodes).contains(&node) => Ok(0),
        node => Err(no_node(node)),
    }
}

/// Checks that a program is loaded, which runs already. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exstart(handle: c_int, node: c_int) -> c_int {
    call("exstart", || running(handle, node))
}

/// Checks that a program is loaded, which runs already. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exmain(handle: c_int, node: c_int) -> c_int {
    call("exmain", || running(handle, node))
}

/// Releases the nodes. Programs that still run may continue. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exclose(handle: c_int) -> c_int {
    call("exclose", || {
        let before = opened(handle)?.before;
        *OPENED.get() = None;
        *PLACE.get() = before;
        expect_former_nodes();
        team::forget();
        Ok(0)
    })
}
