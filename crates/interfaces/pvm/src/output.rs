//! The output of tasks that this task has started: as messages, or in a file.
//!
//! Regatta sends output in pieces, each a message of this task to itself with the requested tag and context. A program
//! that has requested messages (`PvmOutputTid`) gets each piece in the format of PVM's daemon. For a program that has
//! passed a file (`pvm_catchout`) whole lines are written to it whenever the program calls the library.

use std::ffi::{c_int, c_void};
use std::io::Write as _;
use std::mem::offset_of;

use crate::arrival::Select;
use crate::life::enrol;
use crate::message::{Body, codes, error};
use crate::notify::told;
use crate::receive::{self, Wait};
use crate::state::library;
use crate::{rg, tid};

/// Tag and context of output that is written to a file, as in PVM.
const TAG: i32 = 0x8003_0005_u32 as i32;
const CONTEXT: i32 = 0x7ffff;
/// Selects the messages of caught output.
pub const CAUGHT: Select = Select {
    from: rg::ANY,
    tag: rg::ANY,
    context: CONTEXT,
    reserved: true,
};
/// Number of streams: standard output and standard error.
const STREAMS: u32 = 2;
/// The stream number that means the start of a task.
const BIRTH: i32 = 0;
/// Codes of PVM's daemon in place of a byte count: the task is new, the task has been started.
const NEW: i32 = -2;
const STARTED: i32 = -1;

/// A task whose output this task receives.
pub struct Writer {
    tid: i32,
    /// Number of streams that have not ended.
    open: u32,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// Whether the output is written to the file.
    caught: bool,
}

/// Returns whether there may be output for the file.
#[inline(always)]
pub fn is_caught() -> bool {
    !library().caught.is_null() || are_writing()
}

/// Returns whether there are tasks whose output goes to the file.
fn are_writing() -> bool {
    library().writers.iter().any(|writer| writer.caught)
}

/// The destination of tasks' output, in Regatta's terms.
#[derive(Clone, Copy, Default)]
pub struct Route {
    pub how: i32,
    /// 1 + the number of the task.
    pub to: i32,
    pub tag: i32,
    pub context: i32,
}

impl Route {
    /// Converts the options: a task (0: none), a tag and a context.
    pub fn of((to, tag, context): (i32, i32, i32)) -> Route {
        let task = tid::task(to);
        Route {
            how: task.map_or(rg::OUTPUT_JOB, |_| rg::OUTPUT_BLOCKS | rg::OUTPUT_BIRTHS),
            to: task.map_or(0, |task| task + 1),
            tag,
            context,
        }
    }
}

/// The header of a piece of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    task: i32,
    stream: i32,
    length: u32,
}

/// Parses a piece of output. Returns `None` if these bytes are not a piece of output.
pub fn piece(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let word = |at: usize| Some(*bytes.get(at..)?.first_chunk()?);
    let mark = u32::from_ne_bytes(word(offset_of!(rg::Output, mark))?);
    let head = Head {
        task: i32::from_ne_bytes(word(offset_of!(rg::Output, tid))?),
        stream: i32::from_ne_bytes(word(offset_of!(rg::Output, stream))?),
        length: u32::from_ne_bytes(word(offset_of!(rg::Output, length))?),
    };
    let text = bytes.get(offset_of!(rg::Output, text)..)?;
    let text = text.get(..head.length as usize)?;
    (mark == rg::OUTPUT_MARK).then_some((head, text))
}

/// Registers a started task whose output this task receives. Returns the first of its messages, unless its output is
/// caught.
fn begin(task: i32, parent: i32, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let caught = (tag, context) == (TAG, CONTEXT);
    library().writers.push(Writer {
        tid: task,
        open: STREAMS,
        line: Vec::new(),
        caught,
    });
    if caught {
        write_mark(task, "BEGIN");
        return Ok(None);
    }
    let message = |what| told(Body::new().int(task).int(what).int(parent), tag, context);
    let first = message(NEW)?;
    receive::keep(message(STARTED)?);
    Ok(Some(first))
}

/// Handles a piece of output. Returns the message for the program, if there is one.
pub fn receive_piece(
    head: &Head,
    text: &[u8],
    tag: i32,
    context: i32,
) -> Result<Option<c_int>, i32> {
    let Some(task) = tid::of_task(head.task) else {
        return Ok(None);
    };
    if head.stream != BIRTH {
        return pass(task, text, head.length == 0, tag, context);
    }
    let parent = text.try_into().map_or(rg::NONE, i32::from_ne_bytes);
    let parent = tid::of_task(parent).unwrap_or(codes::PARENT_NOT_SET);
    begin(task, parent, tag, context)
}

fn pass(task: i32, text: &[u8], ended: bool, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let library = library();
    let Some(at) = library.writers.iter().position(|writer| writer.tid == task) else {
        return Ok(None);
    };
    let writer = &mut library.writers[at];
    writer.open -= u32::from(ended && writer.open > 0);
    let (caught, gone) = (writer.caught, writer.open == 0);
    if caught {
        writer.line.extend_from_slice(text);
        let line = std::mem::take(&mut writer.line);
        let rest = write_lines(task, &line, gone);
        if let Some(writer) = crate::state::library().writers.get_mut(at) {
            writer.line = rest;
        }
    }
    if gone {
        crate::state::library().writers.swap_remove(at);
    }
    match (caught, gone) {
        (true, true) => write_mark(task, "EOF"),
        (true, false) => {}
        (false, true) => return told(Body::new().int(task).int(0), tag, context).map(Some),
        (false, false) if text.is_empty() => {}
        (false, false) => {
            let count = i32::try_from(text.len()).map_err(|_| codes::OVERFLOW)?;
            let body = Body::new().int(task).int(count).bytes(text);
            return told(body, tag, context).map(Some);
        }
    }
    Ok(None)
}

/// Writes complete lines, each prefixed with its task; if `all`, also an incomplete one. Returns what was not written.
fn write_lines(task: i32, text: &[u8], all: bool) -> Vec<u8> {
    let mut rest = text;
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        write_line(task, &rest[..end]);
        rest = &rest[end + 1..];
    }
    if all && !rest.is_empty() {
        write_line(task, rest);
        rest = &[];
    }
    rest.to_vec()
}

fn write_line(task: i32, line: &[u8]) {
    let mut bytes = Vec::with_capacity(line.len() + 16);
    if library().options.shows_tids() {
        bytes.extend_from_slice(format!("[t{task:x}] ").as_bytes());
    }
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    write(&bytes);
}

fn write_mark(task: i32, word: &str) {
    if library().options.shows_tids() {
        write(format!("[t{task:x}] {word}\n").as_bytes());
    }
}

fn write(bytes: &[u8]) {
    let file = library().caught;
    if !file.is_null() {
        // SAFETY: the program has passed the file, and keeps it open while output is caught.
        unsafe {
            libc::fwrite(bytes.as_ptr().cast::<c_void>(), 1, bytes.len(), file);
            libc::fflush(file);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn pvm_catchout(file: *mut libc::FILE) -> c_int {
    let caught = enrol().map(|me| {
        let library = library();
        library.caught = file;
        library.options.set_output(match file.is_null() {
            true => (0, 0, 0),
            false => (me, TAG, CONTEXT),
        });
    });
    error::result("pvm_catchout", caught.err().unwrap_or(0))
}

/// Waits, before this task leaves, until all tasks whose output goes to the file have ended it.
pub fn finish() {
    if !library().caught.is_null() {
        // First take in what has arrived: tasks may have started without being noticed here.
        while matches!(receive::await_in(&[CAUGHT], Wait::Not), Ok(true)) {}
        if are_writing() {
            let me = library().tid;
            let _ = writeln!(
                std::io::stderr(),
                "libpvm [t{me:x}]: child task(s) still running.  waiting..."
            );
        }
        while are_writing() && matches!(receive::await_in(&[CAUGHT], Wait::Forever), Ok(true)) {}
    }
    let library = library();
    library.writers.clear();
    library.caught = std::ptr::null_mut();
    library.options.set_output((0, 0, 0));
}
