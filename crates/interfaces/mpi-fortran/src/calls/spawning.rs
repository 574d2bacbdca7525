//! Starting processes: program names and their arguments are arrays of CHARACTER.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;

use crate::handles::Handles;
use crate::sentinels::{codes, is_no_arguments};
use crate::texts::word;
use crate::{Comm, Info, finish};

const COMM_NULL: c_int = 0x100;

/// The arguments of a program in C's form: up to the first blank one.
struct Arguments {
    _texts: Vec<CString>,
    pointers: Vec<*mut c_char>,
}

impl Arguments {
    /// Takes every `step`-th string of an array, beginning with the one at index `first`.
    unsafe fn of(array: *const u8, length: usize, first: usize, step: usize) -> Arguments {
        // SAFETY: by the standard a blank string ends the array.
        let all =
            (0..).map(|index| unsafe { word(array.add((first + index * step) * length), length) });
        let texts: Vec<CString> = all.take_while(|it| !it.is_empty()).collect();
        let pointers = texts.iter().map(|it| it.as_ptr().cast_mut());
        Arguments {
            pointers: pointers.chain([null_mut()]).collect(),
            _texts: texts,
        }
    }
}

/// Returns whether this process is the root: only the root's arguments are significant.
unsafe fn is_root(comm: *const c_int, root: *const c_int) -> bool {
    let mut rank = 0;
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        crate::PMPI_Comm_rank(Comm::of(*comm), &mut rank);
        rank == *root
    }
}

pub unsafe fn comm_spawn(
    call: crate::Comm_spawn,
    command: *mut u8,
    argv: *mut u8,
    maxprocs: *mut c_int,
    info: *mut c_int,
    root: *mut c_int,
    comm: *mut c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
    ierror: *mut c_int,
    command_length: usize,
    argv_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let command = word(command, command_length);
        let mut arguments = match is_no_arguments(argv) || !is_root(comm, root) {
            true => None,
            false => Some(Arguments::of(argv, argv_length, 0, 1)),
        };
        let mut made = Comm::of(COMM_NULL);
        let result = call(
            command.as_ptr(),
            arguments
                .as_mut()
                .map_or(null_mut(), |it| it.pointers.as_mut_ptr()),
            *maxprocs,
            Info::of(*info),
            *root,
            Comm::of(*comm),
            &mut made,
            codes(array_of_errcodes),
        );
        *intercomm = made.to_int();
        finish(ierror, result);
    }
}

/// Several programs in C's form.
struct Programs {
    _names: Vec<CString>,
    commands: Vec<*mut c_char>,
    _arguments: Vec<Arguments>,
    /// `None` if no program has arguments.
    tables: Option<Vec<*mut *mut c_char>>,
}

impl Programs {
    /// Takes `number` programs from the arrays, whose strings have these lengths.
    unsafe fn of(number: usize, commands: (*const u8, usize), argv: (*mut u8, usize)) -> Programs {
        let (first, length) = commands;
        // SAFETY: by the Fortran contract the array has this many elements.
        let names = (0..number).map(|index| unsafe { word(first.add(index * length), length) });
        let names: Vec<CString> = names.collect();
        let has_arguments = !is_no_arguments(argv.0);
        let with = if has_arguments { number } else { 0 };
        // SAFETY: by the Fortran contract the array has a row for each program.
        let all = (0..with).map(|index| unsafe { Arguments::of(argv.0, argv.1, index, number) });
        let mut all: Vec<Arguments> = all.collect();
        let tables = all.iter_mut().map(|it| it.pointers.as_mut_ptr());
        Programs {
            commands: names.iter().map(|it| it.as_ptr().cast_mut()).collect(),
            tables: has_arguments.then(|| tables.collect()),
            _names: names,
            _arguments: all,
        }
    }
}

pub unsafe fn comm_spawn_multiple(
    call: crate::Comm_spawn_multiple,
    count: *mut c_int,
    array_of_commands: *mut u8,
    array_of_argv: *mut u8,
    array_of_maxprocs: *mut c_int,
    array_of_info: *mut c_int,
    root: *mut c_int,
    comm: *mut c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
    ierror: *mut c_int,
    commands_length: usize,
    argv_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let number = if is_root(comm, root) { *count } else { 0 }.max(0);
        let commands = (array_of_commands.cast_const(), commands_length);
        let argv = (array_of_argv, argv_length);
        let mut programs = Programs::of(number as usize, commands, argv);
        let tables = programs.tables.as_mut();
        let mut infos = Handles::<Info>::take(array_of_info, number.into());
        let mut made = Comm::of(COMM_NULL);
        let result = call(
            *count,
            programs.commands.as_mut_ptr(),
            tables.map_or(null_mut(), |it| it.as_mut_ptr()),
            array_of_maxprocs,
            infos.place(),
            *root,
            Comm::of(*comm),
            &mut made,
            codes(array_of_errcodes),
        );
        *intercomm = made.to_int();
        finish(ierror, result);
    }
}
