//! Opening and closing files.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use super::posix::{self, Outcome, Posix, refused};
use super::shared::{Offer, Shared};
use super::{Open, get, insert, remove};
use crate::abi::*;
use crate::communicator::internal_messages::{self, Failed};
use crate::communicator::{self, Communicator, Inherited};
use crate::errhandler::OF_NO_FILE;
use crate::error::{Error, Result};
use crate::info::Hints;
use crate::segment::NOWHERE;

/// The consequence, in error messages, of an open that has failed at one process.
pub(super) const UNOPENED: &str = "no process opens the file";

/// Checks an access mode.
fn check_amode(amode: c_int) -> Result {
    let ways = [MODE_RDONLY, MODE_WRONLY, MODE_RDWR];
    let all = ways.iter().sum::<c_int>()
        | MODE_CREATE
        | MODE_EXCL
        | MODE_DELETE_ON_CLOSE
        | MODE_UNIQUE_OPEN
        | MODE_SEQUENTIAL
        | MODE_APPEND;
    let wrong = |text: &str| Err(Error::new(ERR_AMODE, format!("amode is {amode}: {text}")));
    if amode & !all != 0 {
        return wrong("it has bits other than the MPI_MODE_ constants for files");
    }
    if ways.iter().filter(|&&it| amode & it != 0).count() != 1 {
        return wrong(
            "it must contain exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR",
        );
    }
    if amode & MODE_RDONLY != 0 && amode & (MODE_CREATE | MODE_EXCL) != 0 {
        return wrong("MPI_MODE_CREATE and MPI_MODE_EXCL cannot be combined with MPI_MODE_RDONLY");
    }
    if amode & MODE_RDWR != 0 && amode & MODE_SEQUENTIAL != 0 {
        return wrong("MPI_MODE_SEQUENTIAL cannot be combined with MPI_MODE_RDWR");
    }
    Ok(())
}

/// Returns the flags of `open` for an access mode.
fn flags(amode: c_int) -> c_int {
    let way = match amode {
        _ if amode & MODE_RDONLY != 0 => libc::O_RDONLY,
        _ if amode & MODE_WRONLY != 0 => libc::O_WRONLY,
        _ => libc::O_RDWR,
    };
    let create = match amode & MODE_CREATE {
        0 => 0,
        _ => libc::O_CREAT,
    };
    way | create
}

/// Opens the file in this process. The first process creates it if necessary. Returns the file, and the initial value
/// of the file pointers in bytes.
fn open_one(name: &CStr, amode: c_int, first: bool) -> Outcome<(Posix, i64)> {
    let exclusive = match amode & MODE_EXCL != 0 && amode & MODE_CREATE != 0 && first {
        true => libc::O_EXCL,
        false => 0,
    };
    let opened = Posix::open(name, flags(amode) | exclusive)?;
    if opened.is_directory() {
        return Err(libc::EISDIR);
    }
    let begin = match amode & MODE_APPEND {
        0 => 0,
        _ => opened.size()?,
    };
    Ok((opened, begin))
}

/// Deletes a newly created file that could not be opened by all processes.
fn discard(comm: &Communicator, name: &CStr, amode: c_int) {
    if comm.rank == 0 && amode & MODE_CREATE != 0 && amode & MODE_EXCL != 0 {
        let _ = posix::delete(name);
    }
}

/// Opens a file in all processes or in none. Returns the file, the shared file pointer, and the initial value of the
/// individual one.
fn open_all(comm: &Communicator, name: &CStr, amode: c_int) -> Result<(Posix, Shared, i64)> {
    let (mut own, mut offer) = (None, None);
    if comm.rank == 0 {
        let opened = open_one(name, amode, true);
        if let Ok((_, begin)) = &opened {
            offer = Offer::new(comm, *begin);
        }
        own = Some(opened);
    }
    let first = own.as_ref().map_or(0, posix::number);
    let process = std::process::id() as c_int;
    let [file, mark] = offer.as_ref().map_or(NOWHERE, |it| it.file.address());
    let told = [first, process, file, mark];
    let told = internal_messages::broadcast_words(comm.hidden, 0, told)?;
    let [first, process, file, mark] = told;
    if first != 0 {
        return Err(refused(name, "opening", first));
    }
    let own = own.unwrap_or_else(|| open_one(name, amode, false));
    // The first process keeps the file of the shared memory open until all have mapped it.
    let (segment, _file) = offer.map(|offer| (offer.segment, offer.file)).unzip();
    let shared = Shared::mapped(segment, process, [file, mark]);
    let outcome = [posix::number(&own), c_int::from(shared.is_some())];
    let all = internal_messages::allgather(comm.hidden, outcome)?;
    if let Some(&[number, _]) = all.iter().find(|it| it[0] != 0) {
        discard(comm, name, amode);
        return Err(refused(name, "opening", number));
    }
    let (posix, begin) = own.map_err(|number| refused(name, "opening", number))?;
    let shared = match shared {
        Some(shared) if all.iter().all(|it| it[1] == 1) => shared,
        _ => Shared::new(comm, begin).inspect_err(|_| discard(comm, name, amode))?,
    };
    Ok((posix, shared, begin))
}

/// Opens a file. Each process passes its name and hints, or the error of an invalid argument; then all fail.
pub fn open(comm: &Communicator, amode: c_int, given: Result<(&CStr, Hints)>) -> Result<File> {
    if comm.remote.is_some() {
        let text = "the communicator is an intercommunicator; use a communicator of one side";
        return Err(Error::new(ERR_COMM, text));
    }
    // An error in some processes is an error in all, so none waits for the others.
    let checked = given.and_then(|given| check_amode(amode).map(|()| given));
    let class = internal_messages::class_of(&checked);
    let all = internal_messages::allgather(comm.hidden, [amode, class])?;
    let (name, hints) = checked?;
    if let Some(failed) = Failed::first(all.iter().map(|it| it[1])) {
        return Err(failed.error(UNOPENED));
    }
    if all.iter().any(|it| it[0] != amode) {
        let text = format!("amode is {amode} here, but differs on other processes");
        return Err(Error::new(ERR_NOT_SAME, text));
    }
    let inherited = Inherited::named(c"");
    let comm = communicator::dup(comm)?.with_handle(COMM_NULL, inherited);
    let (posix, shared, begin) = open_all(&comm, name, amode)?;
    let errhandler = OF_NO_FILE.clone();
    let file = Open::new(posix, amode, comm, errhandler, hints, shared)?;
    file.state().position = begin;
    insert(Arc::new(file))
}

/// Closes a file in all processes. The first process deletes it if the access mode says so. If a process has failed,
/// only the local file is closed. If a process has an active split collective access, the file stays open in all.
pub fn close(handle: File) -> Result {
    let file = get(handle)?;
    let ready = file.check_no_split();
    let ((), met) = internal_messages::meet_with(file.comm.hidden, ready, "the file stays open")?;
    remove(handle);
    // If not all have called it, the others may still use the shared file pointer.
    met?;
    file.shared.forget(&file.comm);
    match file.amode & MODE_DELETE_ON_CLOSE {
        0 => Ok(()),
        _ => file.by_first("deletion", |posix| posix::delete(posix.name())),
    }
}

/// Deletes a file.
pub fn delete(name: &CStr) -> Result {
    posix::delete(name).map_err(|number| match number {
        libc::EPERM if std::path::Path::new(&*name.to_string_lossy()).is_dir() => {
            refused(name, "deletion", libc::EISDIR)
        }
        _ => refused(name, "deletion", number),
    })
}
