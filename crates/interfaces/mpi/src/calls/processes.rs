//! Starting processes, and the communicator with the processes that started this one.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use super::communicator_making::give;
use super::communicators::no_intra;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited};
use crate::error::{Error, Result, not_null};
use crate::info;
use crate::spawn::{self, Command};

/// Checks the root of a call on an intracommunicator.
pub(crate) fn check_root(comm: &Communicator, root: c_int) -> Result {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    match (0..comm.size()).contains(&root) {
        true => Ok(()),
        false => Err(Error::new(
            ERR_ROOT,
            format!(
                "the root is {root}; ranks here are 0 to {}",
                comm.size() - 1
            ),
        )),
    }
}

/// The caller's array of one error code for each process to be started, with the function that converts a code to the
/// caller's ABI.
pub struct Codes {
    pub at: *mut c_int,
    pub outward: fn(c_int) -> c_int,
}

impl From<*mut c_int> for Codes {
    fn from(at: *mut c_int) -> Codes {
        let outward = |code| code;
        Codes { at, outward }
    }
}

/// Returns the strings of an array that ends with a null pointer; empty if the array itself is null.
unsafe fn texts(array: *mut *mut c_char) -> Vec<CString> {
    let mut texts = Vec::new();
    if array.is_null() {
        return texts;
    }
    loop {
        // SAFETY: the caller guarantees that the array ends with a null pointer, and none has been found so far.
        let text = unsafe { *array.add(texts.len()) };
        if text.is_null() {
            return texts;
        }
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        texts.push(unsafe { CStr::from_ptr(text) }.to_owned());
    }
}

/// Returns a command that the caller passes.
unsafe fn command(
    program: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Info,
) -> Result<Command> {
    not_null(program, "command")?;
    if maxprocs < 0 {
        let text = format!("maxprocs is {maxprocs}; it must be 0 or more");
        return Err(Error::new(ERR_ARG, text));
    }
    // SAFETY: the caller guarantees that the texts are NUL-terminated.
    let (program, arguments) = unsafe { (CStr::from_ptr(program).to_owned(), texts(argv)) };
    Ok(Command {
        program,
        arguments,
        count: maxprocs,
        hints: info::optional(info)?,
    })
}

unsafe fn start(
    comm: &Communicator,
    root: c_int,
    commands: Result<Vec<Command>>,
    intercomm: *mut Comm,
    codes: Codes,
) -> Result {
    let given = not_null(intercomm, "intercomm").and(commands);
    let (found, made) = spawn::spawn(comm, root, given);
    if !codes.at.is_null() {
        for (at, code) in found.into_iter().enumerate() {
            // SAFETY: the caller guarantees that the array has an element for each process that was to be started.
            unsafe { *codes.at.add(at) = (codes.outward)(code) };
        }
    }
    let made = made?;
    // SAFETY: the caller guarantees that the pointer is valid. It is not null: all processes have agreed on that.
    let intercomm = unsafe { Out::at(intercomm, "intercomm")? };
    give(Some(made), Inherited::of(comm), intercomm)
}

pub unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Info,
    root: c_int,
    comm: Arc<Communicator>,
    intercomm: *mut Comm,
    array_of_errcodes: impl Into<Codes>,
) -> Result {
    check_root(&comm, root)?;
    // SAFETY: the caller guarantees that the texts, pointers and the array are valid. All but the last four are
    // significant only at the root.
    unsafe {
        let commands = match comm.rank == root {
            true => self::command(command, argv, maxprocs, info).map(|command| vec![command]),
            false => Ok(Vec::new()),
        };
        start(&comm, root, commands, intercomm, array_of_errcodes.into())
    }
}

pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const Info,
    root: c_int,
    comm: Arc<Communicator>,
    intercomm: *mut Comm,
    array_of_errcodes: impl Into<Codes>,
) -> Result {
    check_root(&comm, root)?;
    let given = || {
        if count <= 0 {
            let text = format!("count is {count}; it must be 1 or more");
            return Err(Error::new(ERR_COUNT, text));
        }
        not_null(array_of_commands, "array_of_commands")?;
        not_null(array_of_maxprocs, "array_of_maxprocs")?;
        not_null(array_of_info, "array_of_info")?;
        let commands = (0..count as usize).map(|at| {
            // SAFETY: the caller guarantees that the arrays have `count` elements; that of arguments may be
            // MPI_ARGVS_NULL.
            unsafe {
                let argv = match array_of_argv.is_null() {
                    true => std::ptr::null_mut(),
                    false => *array_of_argv.add(at),
                };
                command(
                    *array_of_commands.add(at),
                    argv,
                    *array_of_maxprocs.add(at),
                    *array_of_info.add(at),
                )
            }
        });
        commands.collect()
    };
    let commands = match comm.rank == root {
        true => given(),
        false => Ok(Vec::new()),
    };
    // SAFETY: the caller guarantees that the pointer and the array are valid.
    unsafe { start(&comm, root, commands, intercomm, array_of_errcodes.into()) }
}

pub fn comm_get_parent(parent: Out<Comm>) -> Result {
    crate::process::require()?;
    parent.put(communicator::parent());
    Ok(())
}
