//! Starting processes: arrays of infos, and of codes.

use std::ffi::{c_char, c_int};

use regatta_mpi::abi;
use regatta_mpi::calls::processes;
use regatta_mpi::communicator::get;
use regatta_mpi::error::Result;

use crate::arrays::{Handles, Room};
use crate::outer::{Comm, Handle, Info};
use crate::places::Place;
use crate::roles::code;

/// Translates the codes of the processes that were to be started; at the root alone it is certain how many they are.
unsafe fn outward(codes: *mut c_int, count: i64) {
    if codes.is_null() {
        return;
    }
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's array has an element for each process.
        unsafe {
            let place = codes.add(index);
            *place = code::outward(*place);
        }
    }
}

pub unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Info,
    root: c_int,
    comm: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> Result {
    let mut intercomm = Place::out(intercomm);
    let comm = comm.inward();
    // SAFETY: the caller's texts, place and array.
    let result = unsafe {
        processes::comm_spawn(
            command,
            argv,
            maxprocs,
            info.inward(),
            root,
            comm,
            intercomm.pass(),
            array_of_errcodes,
        )
    };
    // SAFETY: as above.
    unsafe { outward(array_of_errcodes, started(intercomm.value, maxprocs.into())) };
    intercomm.give();
    result
}

/// How many processes are on the other side of a new communicator, or were asked for if there is none.
fn started(made: abi::Comm, asked: i64) -> i64 {
    match get(made) {
        Ok(comm) => comm.peers().len() as i64,
        Err(_) => asked,
    }
}

pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const Info,
    root: c_int,
    comm: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> Result {
    let mut intercomm = Place::out(intercomm);
    let comm = comm.inward();
    // Elsewhere than at the root the arrays mean nothing, and may not be there.
    let here = get(comm).is_ok_and(|comm| comm.rank == root);
    let length = if here { count } else { 0 };
    let mut room = Room::new();
    let mut infos = Handles::of(array_of_info, length.into(), &mut room);
    // SAFETY: as above.
    let (result, asked) = unsafe {
        let result = processes::comm_spawn_multiple(
            count,
            array_of_commands,
            array_of_argv,
            array_of_maxprocs,
            infos.pass(),
            root,
            comm,
            intercomm.pass(),
            array_of_errcodes,
        );
        let readable = !array_of_maxprocs.is_null();
        let elements = (0..length.max(0) as usize).filter(|_| readable);
        let asked: i64 = elements
            .map(|at| i64::from(*array_of_maxprocs.add(at)))
            .sum();
        (result, asked)
    };
    // SAFETY: as above.
    unsafe { outward(array_of_errcodes, started(intercomm.value, asked)) };
    intercomm.give();
    result
}
