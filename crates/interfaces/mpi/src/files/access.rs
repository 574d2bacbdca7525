//! Accesses to the data of a file.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::gather_writes::GatherWrites;
use super::posix::Outcome;
use super::representation::Representation;
use super::sieve::Sieve;
use super::view::View;
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

/// The position in the view at which an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// An explicit offset in etypes.
    At(i64),
    /// The individual file pointer.
    Own,
    /// The shared file pointer. In a collective access processes are ordered by rank.
    Shared,
}

/// A transfer of bytes between memory and the view.
#[derive(Clone, Copy)]
pub struct Transfer<'a> {
    /// The file.
    pub file: &'a Open,
    /// The view.
    pub view: &'a View,
    /// Whether the bytes are read or written.
    pub direction: Direction,
    /// Offset of the first byte in the view, in bytes.
    pub from: usize,
    /// Address of the bytes in memory.
    pub data: *mut u8,
    /// Number of bytes.
    pub length: usize,
    /// Set when the transfer begins: in a collective access that is the part that other processes wait for.
    pub begun: &'a Cell<bool>,
}

impl Transfer<'_> {
    /// Transfers the bytes, noncollectively. Returns how many of them are before the end of the file.
    ///
    /// # Safety
    /// The memory is valid for reads or writes, depending on the direction.
    pub unsafe fn alone(&self) -> Outcome<usize> {
        let (posix, mut outcome) = (&self.file.posix, Ok(()));
        match self.direction {
            Direction::Read => {
                let mut sieve = Sieve::new(posix, self.data);
                self.view.runs(self.from, self.length, |run| {
                    // SAFETY: the caller upholds the safety contract of this function.
                    let added = unsafe { sieve.add(run) };
                    added.unwrap_or_else(|number| {
                        outcome = Err(number);
                        false
                    })
                });
                // SAFETY: the caller upholds the safety contract of this function.
                outcome.and_then(|()| unsafe { sieve.finish() })
            }
            Direction::Write => {
                let mut writes = GatherWrites::new(posix, self.data);
                self.view.runs(self.from, self.length, |run| {
                    // SAFETY: the caller upholds the safety contract of this function.
                    outcome = unsafe { writes.add(run) };
                    outcome.is_ok()
                });
                // SAFETY: the caller upholds the safety contract of this function.
                outcome.and_then(|()| unsafe { writes.finish() })?;
                Ok(self.length)
            }
        }
    }

    /// Transfers the bytes while the range of the file from the first to the last of them is locked.
    ///
    /// # Safety
    /// The memory is valid for reads or writes, depending on the direction.
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
        // SAFETY: the caller upholds the safety contract of this function.
        let moved = unsafe { self.alone() };
        let unlocked = posix.lock(libc::F_UNLCK as c_int, start, end - start);
        moved.and_then(|moved| unlocked.map(|()| moved))
    }

    /// Transfers the bytes, collectively if `all`.
    ///
    /// # Safety
    /// The memory is valid for reads or writes, depending on the direction.
    unsafe fn go(&self, all: bool) -> Result<usize> {
        let atomic = self.file.atomic.load(Ordering::Acquire);
        self.begun.set(true);
        // SAFETY: the caller upholds the safety contract of this function.
        let outcome = unsafe {
            match (atomic, all) {
                (true, _) => self.atomic(),
                (false, true) => two_phase::access(self)?,
                (false, false) => self.alone(),
            }
        };
        if self.direction == Direction::Write {
            // Another process may have written it on behalf of this one.
            self.file.posix.note_written();
        }
        let act = match self.direction {
            Direction::Read => "reading",
            Direction::Write => "writing",
        };
        self.file.checked(outcome, act)
    }
}

/// Checks an access. Returns the datatype of its elements, and their length in the file in bytes.
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
            "the access covers {length} bytes in the file, but the view's etype has {unit} bytes: accesses must cover whole etypes"
        );
        return Err(Error::new(ERR_IO, text));
    }
    view.check_data(length)?;
    Ok((Kept::new(memory.datatype, of), length))
}

/// Transfers data between memory and the view. Returns the number of bytes in the file and in memory.
///
/// # Safety
/// The elements are valid for reads or writes, depending on the direction.
unsafe fn transfer(
    transfer: Transfer<'_>,
    memory: Memory,
    of: &Kept,
    all: bool,
) -> Result<(usize, usize)> {
    let Memory { buffer, count, .. } = memory;
    let representation = &transfer.view.representation;
    // SAFETY: the caller upholds the safety contract of this function.
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

/// The stages of a collective access that this process has reached. The other processes wait for it in each of them.
#[derive(Default)]
struct Stages {
    /// Whether the shared file pointer has been advanced.
    ordered: Cell<bool>,
    /// Whether the transfer has begun.
    begun: Cell<bool>,
    /// Whether the final barrier has been entered.
    ended: Cell<bool>,
}

impl Stages {
    /// Takes part in the remaining stages without any bytes, after an error of this process only, so that the others do
    /// not wait for it.
    fn finish(&self, file: &Open, view: &View, direction: Direction, position: Position) {
        if position == Position::Shared && !self.ordered.replace(true) {
            let _ = file.shared.ordered(&file.comm, 0);
        }
        if !self.begun.get() {
            let nothing = Transfer {
                file,
                view,
                direction,
                from: 0,
                data: std::ptr::null_mut(),
                length: 0,
                begun: &self.begun,
            };
            // SAFETY: the length is 0, so no memory is accessed.
            let _ = unsafe { nothing.go(true) };
        }
        if has_end(position, direction) && !self.ended.replace(true) {
            let _ = internal_messages::barrier(file.comm.hidden);
        }
    }
}

/// Takes part in a collective access without any bytes, because this process's call is invalid. So the others do not
/// wait for it.
pub fn decline(file: &Open, direction: Direction, position: Position) {
    // In this case the call fails in all processes before any of them waits.
    if position != Position::Shared && file.check_not_sequential().is_err() {
        return;
    }
    Stages::default().finish(file, &file.view(), direction, position);
}

/// Returns whether a collective access ends with a barrier: a read after an ordered write must find the bytes of all
/// processes.
fn has_end(position: Position, direction: Direction) -> bool {
    position == Position::Shared && direction == Direction::Write
}

/// Accesses a file, collectively if `all`, and returns the status.
///
/// # Safety
/// The elements are valid for reads or writes, depending on the direction.
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
    let (view, stages) = (file.view(), Stages::default());
    // SAFETY: the caller upholds the safety contract of this function.
    let done = unsafe { access_view(file, &view, (direction, position, all), memory, &stages) };
    if all && done.is_err() {
        stages.finish(file, &view, direction, position);
    }
    done
}

unsafe fn access_view(
    file: &Open,
    view: &View,
    (direction, position, all): (Direction, Position, bool),
    memory: Memory,
    stages: &Stages,
) -> Result<Status> {
    let (of, length) = check(file, view, direction, memory)?;
    let etypes = (length / view.unit) as i64;
    let offset = match position {
        Position::At(offset) => offset,
        Position::Own => file.state().position,
        Position::Shared if all => {
            stages.ordered.set(true);
            file.shared.ordered(&file.comm, etypes)?
        }
        Position::Shared => file.shared.advance(etypes)?,
    };
    let from = view.bytes(offset)?;
    let last = from.checked_add(length.saturating_sub(1));
    if !last.is_some_and(|last| view.has_place(last)) {
        let text = format!("the offset is {offset}: the access exceeds the maximum file size");
        return Err(Error::new(ERR_ARG, text));
    }
    let bytes = Transfer {
        file,
        view,
        direction,
        from,
        data: std::ptr::null_mut(),
        length,
        begun: &stages.begun,
    };
    // SAFETY: the caller upholds the safety contract of this function.
    let (moved, native) = unsafe { transfer(bytes, memory, &of, all)? };
    if position == Position::Own {
        file.state().position = offset + (moved / view.unit) as i64;
    }
    if all && has_end(position, direction) {
        stages.ended.set(true);
        internal_messages::barrier(file.comm.hidden)?;
    }
    let mut status = Status::empty(ANY_SOURCE);
    status.set_bytes(native as u64);
    Ok(status)
}
