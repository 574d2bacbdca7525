//! `exopen`, `exload` and their like: a program on the host that starts the nodes' program and talks with it.
//!
//! The host program is no node. It opens nodes, loads a program into them, and is `HOST` to them: the task that has started them.

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

/// Maximum number of nodes of a program: more are a slip of the pen.
const MAX_NODES: c_int = 1 << 20;

/// Nodes that a host program has asked for.
struct Opened {
    /// The number by which the program calls them.
    handle: c_int,
    nodes: c_int,
    loaded: bool,
    /// Our place before there were any.
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

/// Ask for nodes; the device says nothing here, and neither does the first node. Returns a number for them, or -1.
#[unsafe(no_mangle)]
extern "C" fn exopen(_device: *const c_char, nprocs: c_int, _first: c_int) -> c_int {
    call("exopen", || {
        if !(1..=MAX_NODES).contains(&nprocs) {
            return Err(Fault::says(format!("there are no {nprocs} nodes")));
        }
        if OPENED.get().is_some() {
            return Err(Fault::says(
                "nodes are open already; exclose gives them back",
            ));
        }
        if place().host != rg::NONE {
            return Err(Fault::says(
                "this program is a node, and has a host program itself",
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

/// Start a program on all nodes. A name without a slash is that of a file here, or in a directory of PATH. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exload(handle: c_int, program: *const c_char) -> c_int {
    call("exload", || {
        let opened = opened(handle)?;
        if opened.loaded {
            return Err(Fault::says("a program is loaded already"));
        }
        // SAFETY: the C contract: a text, or NULL.
        let named = (!program.is_null()).then(|| unsafe { CStr::from_ptr(program) });
        let program = match named {
            Some(name) if !name.is_empty() => found(name),
            _ => return Err(Fault::says("no program is named")),
        };
        let mut tasks = vec![-1; opened.nodes as usize];
        start(&program, &mut tasks)?;
        opened.loaded = true;
        team::forget();
        *PLACE.get() = Place {
            nodes: opened.nodes,
            node: HOST,
            first: tasks[0],
            // SAFETY: a plain question.
            host: unsafe { rg::rg_tid() },
        };
        Ok(0)
    })
}

/// Starts as many tasks as there are places for their numbers, or none.
fn start(program: &CStr, tasks: &mut [c_int]) -> Result<(), Fault> {
    let mut started = 0;
    // SAFETY: a text, no arguments, no options, places for so many numbers.
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
    // Where some are missing the others would wait for them. The reason is not theirs.
    let why = checked(code).map_err(Fault::in_words);
    if why.is_err() {
        for &task in tasks.iter().take(started.max(0) as usize) {
            // SAFETY: a plain request.
            unsafe { rg::rg_kill(task) };
        }
    }
    why
}

/// The path of a program that lies here, or its name.
fn found(program: &CStr) -> CString {
    let bytes = program.to_bytes();
    let here = CString::new([b"./", bytes].concat()).unwrap_or_default();
    // SAFETY: a text.
    let lies_here = unsafe { libc::access(here.as_ptr(), libc::X_OK) } == 0;
    match lies_here && !bytes.contains(&b'/') {
        true => here,
        false => program.to_owned(),
    }
}

/// Checks that a program is loaded into this node, or all of them. A loaded program runs: there is nothing else to be done.
fn running(handle: c_int, node: c_int) -> Result<c_int, Fault> {
    let opened = opened(handle)?;
    if !opened.loaded {
        return Err(Fault::says("no program is loaded; exload does that"));
    }
    match node {
        ALLNODES => Ok(0),
        node if (0..opened.nodes).contains(&node) => Ok(0),
        node => Err(no_node(node)),
    }
}

/// Start what is loaded. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exstart(handle: c_int, node: c_int) -> c_int {
    call("exstart", || running(handle, node))
}

/// Call the main function of what is loaded. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exmain(handle: c_int, node: c_int) -> c_int {
    call("exmain", || running(handle, node))
}

/// Give the nodes back. Programs that still run end when they like. Returns 0, or -1.
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
