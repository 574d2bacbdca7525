//! Files.
//!
//! A file is opened by all processes of a communicator; it has a duplicate of the communicator for the library's own
//! messages. Data go through a [`view`], in the form of a [`representation`], to and from the operating system
//! ([`posix`]) by [`access`]: each process by itself, or all together ([`two_phase`]). The shared file pointer is in
//! shared memory of the host, or in a named entry of the job ([`shared`]).
//!
//! The library caches no data of files: when a call returns, what it has written has been passed to the kernel. So
//! nonblocking accesses are done when they are begun. They cost a copy to or from the page cache, which another thread
//! would not make faster on cores that are busy computing.

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
    /// Its access mode (MPI_MODE_).
    pub amode: c_int,
    /// The file of the operating system.
    pub posix: Posix,
    /// The duplicate of the communicator, for the library's own messages.
    pub comm: Communicator,
    /// The processes, by rank in the communicator that the program has passed.
    pub members: Members,
    /// Its error handler.
    pub errhandler: HandlerSlot,
    /// Whether accesses are atomic.
    pub atomic: AtomicBool,
    /// Locked by the thread that accesses the file in atomic mode: file locks do not exclude threads of one process.
    pub turn: Mutex<()>,
    /// The shared file pointer.
    pub shared: Shared,
    state: Mutex<State>,
}

/// The mutable state of a file.
pub struct State {
    /// The view.
    pub view: Arc<View>,
    /// The individual file pointer, in etypes.
    pub position: i64,
    /// The hints that the program has set.
    pub hints: Hints,
    /// The active split collective access.
    pub split: Option<Split>,
}

/// A split collective access.
pub struct Split {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// The position at which it began.
    pub position: Position,
    /// The address of its buffer.
    pub buffer: usize,
    /// Its status, for the call that ends it.
    pub status: Status,
}

impl Split {
    /// Returns the name of the function that ends it.
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
    /// Its address. Accesses that write to the file only read it.
    pub buffer: *mut c_void,
    /// Number of elements.
    pub count: i64,
    /// Datatype of the elements.
    pub datatype: Datatype,
}

impl Memory {
    /// Returns a buffer with these elements.
    pub fn new(buffer: *mut c_void, count: i64, datatype: Datatype) -> Memory {
        Memory {
            buffer,
            count,
            datatype,
        }
    }
}

/// Adds a file and returns its handle.
pub fn insert(file: Arc<Open>) -> Result<File> {
    let handle = FILES.insert(file).map(File);
    handle.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many open files"))
}

/// Removes a file; its handle is invalid from now on.
pub fn remove(file: File) {
    FILES.remove(file.0);
}

/// Returns the file with this handle.
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
        File(value) => format!("{value:#x} is not a valid file; it may have been closed"),
    };
    Error::new(ERR_FILE, text).on(Object::File(FILE_NULL))
}

impl Open {
    /// Returns a file that has just been opened.
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

    /// Locks the mutable state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current view.
    pub fn view(&self) -> Arc<View> {
        self.state().view.clone()
    }

    /// Converts an error of the operating system to one with a text.
    pub fn checked<T>(&self, outcome: Outcome<T>, act: &str) -> Result<T> {
        outcome.map_err(|number| refused(self.posix.name(), act, number))
    }

    /// Returns whether the access mode allows writing.
    pub fn is_writable(&self) -> bool {
        self.amode & RDONLY == 0
    }

    /// Fails if the access mode does not allow writing.
    pub fn check_writable(&self) -> Result {
        match self.is_writable() {
            true => Ok(()),
            false => Err(Error::new(
                ERR_READ_ONLY,
                "the file is open for reading only (MPI_MODE_RDONLY)",
            )),
        }
    }

    /// Fails if the access mode does not allow reading.
    pub fn check_readable(&self) -> Result {
        match self.amode & WRONLY {
            0 => Ok(()),
            _ => Err(Error::new(
                ERR_ACCESS,
                "the file is open for writing only (MPI_MODE_WRONLY)",
            )),
        }
    }

    /// Fails if the access mode allows only accesses by the shared file pointer.
    pub fn check_not_sequential(&self) -> Result {
        match self.amode & MODE_SEQUENTIAL {
            0 => Ok(()),
            _ => Err(Error::new(
                ERR_UNSUPPORTED_OPERATION,
                "the file is open for sequential access only, through the shared file pointer (MPI_MODE_SEQUENTIAL)",
            )),
        }
    }

    /// Fails if the processes have passed different numbers.
    pub fn check_same(&self, number: i64, name: &str) -> Result {
        let mine = two_phase::words(number);
        let all = crate::communicator::internal_messages::allgather(self.comm.hidden, mine)?;
        match all.iter().all(|&it| it == mine) {
            true => Ok(()),
            false => Err(Error::new(
                ERR_NOT_SAME,
                format!("{name} is {number} here, but differs on other processes"),
            )),
        }
    }

    /// Waits for all processes, each with its own outcome so far. If one has failed, all fail.
    pub fn agree<T>(&self, own: Result<T>) -> Result<T> {
        agree_on_outcome(self.comm.hidden, own, "nothing is changed")
    }

    /// Fails if a split collective access is active.
    pub fn check_no_split(&self) -> Result {
        match &self.state().split {
            None => Ok(()),
            Some(split) => {
                let text = format!(
                    "an access is in progress; call {} to end it first",
                    split.end()
                );
                Err(Error::new(ERR_IO, text))
            }
        }
    }

    /// Waits for all processes.
    pub fn barrier(&self) -> Result {
        crate::communicator::internal_messages::barrier(self.comm.hidden)
    }

    /// Lets the first process do something with the file, and all get its outcome.
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

    /// Returns the end of the file, in etypes of the view.
    pub fn end(&self) -> Result<i64> {
        let size = self.checked(self.posix.size(), "the query")?;
        Ok(self.view().etypes_before(size))
    }
}

const RDONLY: c_int = MODE_RDONLY;
const WRONLY: c_int = MODE_WRONLY;
