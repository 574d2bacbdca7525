//! Files.
//!
//! A file is opened by all processes of a communicator, of which it has a duplicate for the library's own messages. Data go
//! through a [`view`], as a [`representation`] has them, to and from the system ([`posix`]) by [`access`]: each process by itself,
//! or all together ([`two_phase`]). The pointer that all have in common is in memory of the host, or an entry of the job ([`shared`]).
//!
//! Nothing of a file is kept in memory: what a call has written is in the system's hands when it returns. So accesses that
//! the program begins and waits for later are done when they are begun: they cost a copy to or from the system's memory,
//! which another thread would make no faster on cores that compute.

pub mod access;
mod gather_writes;
mod mapping;
pub mod opening;
pub mod posix;
pub mod representation;
pub mod shared;
mod sieve;
pub mod two_phase;
pub mod view;

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::communicator::internal_messages::{agree_on_outcome, broadcast_words};
use crate::communicator::{Communicator, Members};
use crate::errhandler::{Handled, HandlerSlot};
use crate::error::{Error, Object, Result};
use crate::info::Hints;
use crate::objects::{Kind, Table};
use crate::process;

use access::{Direction, Position};
use posix::{Outcome, Posix, refused};
use shared::Shared;
use view::View;

/// An open file.
pub struct Open {
    /// How it was opened.
    pub amode: c_int,
    /// The system's file.
    pub posix: Posix,
    /// The processes that have opened it.
    pub comm: Communicator,
    /// The processes, by the communicator that the program has named.
    pub members: Members,
    /// Its error handler.
    pub errhandler: HandlerSlot,
    /// Whether accesses are atomic.
    pub atomic: AtomicBool,
    /// In atomic mode one thread at a time accesses it: locks of files do not tell threads apart.
    pub turn: Mutex<()>,
    /// The pointer of all processes.
    pub shared: Shared,
    state: Mutex<State>,
}

/// The part that calls change.
pub struct State {
    /// The view.
    pub view: Arc<View>,
    /// This process' pointer, in etypes.
    pub position: i64,
    /// The hints that the program has given.
    pub hints: Hints,
    /// A split collective access that has begun.
    pub split: Option<Split>,
}

/// A split collective access.
pub struct Split {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Where it began.
    pub position: Position,
    /// Its buffer.
    pub buffer: usize,
    /// Its outcome.
    pub status: Status,
}

impl Split {
    /// The call that ends it.
    pub fn end(&self) -> &'static str {
        match (self.direction, self.position) {
            (Direction::Read, Position::Own) => "MPI_File_read_all_end",
            (Direction::Read, Position::At(_)) => "MPI_File_read_at_all_end",
            (Direction::Read, Position::Shared) => "MPI_File_read_ordered_end",
            (Direction::Write, Position::Own) => "MPI_File_write_all_end",
            (Direction::Write, Position::At(_)) => "MPI_File_write_at_all_end",
            (Direction::Write, Position::Shared) => "MPI_File_write_ordered_end",
        }
    }
}

static FILES: Table<Arc<Open>> = Table::new(Kind::File);

impl Handled for Open {
    fn errhandler(&self) -> &HandlerSlot {
        &self.errhandler
    }
}

/// The buffer of an access.
#[derive(Clone, Copy)]
pub struct Memory {
    /// Its address; nothing is written there by accesses that write to the file.
    pub buffer: *mut c_void,
    /// How many elements.
    pub count: i64,
    /// Their type.
    pub datatype: Datatype,
}

impl Memory {
    /// The elements of a buffer.
    pub fn new(buffer: *mut c_void, count: i64, datatype: Datatype) -> Memory {
        Memory {
            buffer,
            count,
            datatype,
        }
    }
}

/// Adds a file; its handle.
pub fn insert(file: Arc<Open>) -> Result<File> {
    let handle = FILES.insert(file).map(File);
    handle.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many open files"))
}

/// Takes a file out: its handle is stale from now on.
pub fn remove(file: File) {
    FILES.remove(file.0);
}

/// The file with this handle.
pub fn get(file: File) -> Result<Arc<Open>> {
    FILES.get(file.0).ok_or_else(|| none(file))
}

#[cold]
fn none(file: File) -> Error {
    if let Err(error) = process::require() {
        return error.on(Object::None);
    }
    let text = match file {
        FILE_NULL => "the file is MPI_FILE_NULL".to_owned(),
        File(value) => format!("{value:#x} is no file, or one that has been closed"),
    };
    Error::new(ERR_FILE, text).on(Object::File(FILE_NULL))
}

impl Open {
    /// A file that has just been opened.
    pub fn new(
        posix: Posix,
        amode: c_int,
        comm: Communicator,
        errhandler: HandlerSlot,
        hints: Hints,
        shared: Shared,
    ) -> Result<Open> {
        Ok(Open {
            amode,
            posix,
            members: comm.local.clone(),
            comm,
            errhandler,
            atomic: AtomicBool::new(false),
            turn: Mutex::new(()),
            shared,
            state: Mutex::new(State {
                view: Arc::new(View::of_bytes()?),
                position: 0,
                hints,
                split: None,
            }),
        })
    }

    /// The part that calls change, for as long as no other thread has it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The view.
    pub fn view(&self) -> Arc<View> {
        self.state().view.clone()
    }

    /// The system's error, with a sentence.
    pub fn checked<T>(&self, outcome: Outcome<T>, act: &str) -> Result<T> {
        outcome.map_err(|number| refused(self.posix.name(), act, number))
    }

    /// Whether data may be written.
    pub fn is_writable(&self) -> bool {
        self.amode & RDONLY == 0
    }

    /// The file may be written.
    pub fn check_writable(&self) -> Result {
        match self.is_writable() {
            true => Ok(()),
            false => Err(Error::new(
                ERR_READ_ONLY,
                "the file is open for reading only (MPI_MODE_RDONLY)",
            )),
        }
    }

    /// The file may be read.
    pub fn check_readable(&self) -> Result {
        match self.amode & WRONLY {
            0 => Ok(()),
            _ => Err(Error::new(
                ERR_ACCESS,
                "the file is open for writing only (MPI_MODE_WRONLY)",
            )),
        }
    }

    /// Other accesses than those by the shared pointer are possible.
    pub fn check_not_sequential(&self) -> Result {
        match self.amode & MODE_SEQUENTIAL {
            0 => Ok(()),
            _ => Err(Error::new(
                ERR_UNSUPPORTED_OPERATION,
                "the file is open for sequential access only, by the shared pointer (MPI_MODE_SEQUENTIAL)",
            )),
        }
    }

    /// All processes have given the same number.
    pub fn check_same(&self, number: i64, name: &str) -> Result {
        let mine = two_phase::words(number);
        let all = crate::communicator::internal_messages::allgather(self.comm.hidden, mine)?;
        match all.iter().all(|&it| it == mine) {
            true => Ok(()),
            false => Err(Error::new(
                ERR_NOT_SAME,
                format!("{name} is {number} here, and another number on other processes"),
            )),
        }
    }

    /// Waits for all processes, each with its own outcome so far. An error of one is everybody's.
    pub fn agree<T>(&self, own: Result<T>) -> Result<T> {
        agree_on_outcome(self.comm.hidden, own, "nothing is changed")
    }

    /// Fails while a split collective access is to be ended first.
    pub fn check_no_split(&self) -> Result {
        match &self.state().split {
            None => Ok(()),
            Some(split) => {
                let text = format!("an access has begun that {} is to end first", split.end());
                Err(Error::new(ERR_IO, text))
            }
        }
    }

    /// Waits for all processes.
    pub fn barrier(&self) -> Result {
        crate::communicator::internal_messages::barrier(self.comm.hidden)
    }

    /// The first process does something to the file, and all hear of the outcome.
    pub fn by_first(&self, act: &str, work: impl FnOnce(&Posix) -> Outcome) -> Result {
        let mut number = 0;
        if self.comm.rank == 0 {
            number = posix::number(&work(&self.posix));
        }
        self.posix.note_written();
        match broadcast_words(self.comm.hidden, 0, [number])? {
            [0] => Ok(()),
            [number] => Err(refused(self.posix.name(), act, number)),
        }
    }

    /// The end of the file, in etypes of the view.
    pub fn end(&self) -> Result<i64> {
        let size = self.checked(self.posix.size(), "the query")?;
        Ok(self.view().etypes_before(size))
    }
}

const RDONLY: c_int = MODE_RDONLY;
const WRONLY: c_int = MODE_WRONLY;
