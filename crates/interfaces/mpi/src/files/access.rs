//! Accesses to the data of a file.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::posix::Outcome;
use super::representation::Representation;
use super::view::{Run, View};
use super::{Memory, Open, two_phase};
use crate::abi::*;
use crate::communicator::internal_messages;
use crate::datatype::{Kept, Staging, committed};
use crate::error::{Error, Result};

/// Whether an access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Direction {
    Read,
    Write,
}

/// Where in the view an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// At this offset in etypes.
    At(i64),
    /// At the process' own pointer.
    Own,
    /// At the pointer of all; of a collective access in the order of ranks.
    Shared,
}

/// Bytes in memory, and in the view.
#[derive(Clone, Copy)]
pub struct Transfer<'a> {
    /// The file.
    pub file: &'a Open,
    /// The view.
    pub view: &'a View,
    /// Whether they are read or written.
    pub direction: Direction,
    /// The bytes of the view in front.
    pub from: usize,
    /// Where they are in memory.
    pub data: *mut u8,
    /// How many.
    pub length: usize,
}

impl Transfer<'_> {
    /// Moves one run; how many bytes were moved.
    ///
    /// # Safety
    /// The memory may be read or written.
    unsafe fn run(&self, run: Run) -> Outcome<usize> {
        let data = self.data.wrapping_add(run.at);
        // SAFETY: the caller's promise.
        unsafe {
            match self.direction {
                Direction::Read => self.file.posix.read(data, run.length, run.offset),
                Direction::Write => {
                    let written = self.file.posix.write(data, run.length, run.offset);
                    written.map(|()| run.length)
                }
            }
        }
    }

    /// Moves the bytes; how many there were in front of the file's end.
    ///
    /// # Safety
    /// The memory may be read or written.
    pub unsafe fn alone(&self) -> Outcome<usize> {
        let (mut moved, mut outcome) = (0, Ok(()));
        self.view.runs(self.from, self.length, |run| {
            // SAFETY: the caller's promise.
            match unsafe { self.run(run) } {
                Ok(bytes) => {
                    moved += bytes;
                    bytes == run.length
                }
                Err(number) => {
                    outcome = Err(number);
                    false
                }
            }
        });
        outcome.map(|()| moved)
    }

    /// Moves the bytes while nobody else has those of the file from the first to the last.
    ///
    /// # Safety
    /// The memory may be read or written.
    unsafe fn atomic(&self) -> Outcome<usize> {
        let Some((start, end)) = self.view.range(self.from, self.length) else {
            return Ok(0);
        };
        let turn = &self.file.turn;
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = match self.direction {
            Direction::Read => libc::F_RDLCK,
            Direction::Write => libc::F_WRLCK,
        };
        let posix = &self.file.posix;
        posix.lock(kind as c_int, start, end - start)?;
        // SAFETY: the caller's promise.
        let moved = unsafe { self.alone() };
        let unlocked = posix.lock(libc::F_UNLCK as c_int, start, end - start);
        moved.and_then(|moved| unlocked.map(|()| moved))
    }

    /// Moves the bytes, with all processes or alone.
    ///
    /// # Safety
    /// The memory may be read or written.
    unsafe fn go(&self, all: bool) -> Result<usize> {
        let atomic = self.file.atomic.load(Ordering::Acquire);
        // SAFETY: the caller's promise.
        let outcome = unsafe {
            match (atomic, all) {
                (true, _) => self.atomic(),
                (false, true) => two_phase::access(self)?,
                (false, false) => self.alone(),
            }
        };
        let act = match self.direction {
            Direction::Read => "reading",
            Direction::Write => "writing",
        };
        self.file.checked(outcome, act)
    }
}

/// Checks an access; the type of its elements, and their bytes in the file.
fn check(file: &Open, view: &View, direction: Direction, memory: Memory) -> Result<(Kept, usize)> {
    match direction {
        Direction::Read => file.check_readable()?,
        Direction::Write => file.check_writable()?,
    }
    let of = committed(memory.datatype)?;
    let native = of.packed_size(memory.count)?;
    of.check_buffer(memory.buffer, native)?;
    let length = view.representation.length(&of, memory.count)?;
    if !length.is_multiple_of(view.unit) {
        let unit = view.unit;
        let text = format!(
            "the access is of {length} bytes in the file, the view's etype has {unit}: only whole etypes are accessed"
        );
        return Err(Error::new(ERR_IO, text));
    }
    view.check_data(length)?;
    Ok((Kept::new(memory.datatype, of), length))
}

/// Moves data between memory and the view, from so many bytes of it on. How many bytes in the file and in memory.
///
/// # Safety
/// The memory's elements may be read or written.
unsafe fn transfer(
    transfer: Transfer<'_>,
    memory: Memory,
    of: &Kept,
    all: bool,
) -> Result<(usize, usize)> {
    let Memory { buffer, count, .. } = memory;
    let representation = &transfer.view.representation;
    // SAFETY: the caller's promise.
    unsafe {
        match (representation, transfer.direction) {
            (Representation::Native(_), direction) => {
                let staging = match direction {
                    Direction::Read => Staging::output(buffer, count, of.handle())?,
                    Direction::Write => Staging::input(buffer, count, of.handle())?,
                };
                let data = staging.address().cast();
                let moved = Transfer { data, ..transfer }.go(all)?;
                if direction == Direction::Read {
                    staging.finish(moved);
                }
                Ok((moved, moved))
            }
            (_, Direction::Write) => {
                let mut bytes = representation.encode(buffer, count, of)?;
                let data = bytes.as_mut_ptr();
                let moved = Transfer { data, ..transfer }.go(all)?;
                Ok((moved, of.of().packed_size(count)?))
            }
            (_, Direction::Read) => {
                let mut bytes = vec![0; transfer.length];
                let data = bytes.as_mut_ptr();
                let moved = Transfer { data, ..transfer }.go(all)?;
                let native = representation.decode(bytes, moved, buffer, count, of)?;
                Ok((moved, native))
            }
        }
    }
}

/// Accesses a file, collectively or not; the status.
///
/// # Safety
/// The memory's elements may be read or written.
pub unsafe fn access(
    file: &Open,
    direction: Direction,
    position: Position,
    all: bool,
    memory: Memory,
) -> Result<Status> {
    if position != Position::Shared {
        file.check_not_sequential()?;
    }
    let view = file.view();
    let (of, length) = check(file, &view, direction, memory)?;
    let etypes = (length / view.unit) as i64;
    let offset = match position {
        Position::At(offset) => offset,
        Position::Own => file.state().position,
        Position::Shared if all => file.shared.ordered(&file.comm, etypes)?,
        Position::Shared => file.shared.advance(etypes)?,
    };
    let from = view.bytes(offset)?;
    from.checked_add(length)
        .ok_or(())
        .and_then(|end| view.bytes((end / view.unit) as i64).map_err(drop))
        .map_err(|()| {
            Error::new(
                ERR_ARG,
                format!("the offset is {offset}: the access ends where no file can be"),
            )
        })?;
    let bytes = Transfer {
        file,
        view: &view,
        direction,
        from,
        data: std::ptr::null_mut(),
        length,
    };
    // SAFETY: the caller's promise.
    let (moved, native) = unsafe { transfer(bytes, memory, &of, all)? };
    if position == Position::Own {
        file.state().position = offset + (moved / view.unit) as i64;
    }
    if position == Position::Shared && all && direction == Direction::Write {
        // A read after an ordered access finds the bytes of all processes.
        internal_messages::barrier(file.comm.hidden)?;
    }
    let mut status = Status::empty(ANY_SOURCE);
    status.set_bytes(native as u64);
    Ok(status)
}
