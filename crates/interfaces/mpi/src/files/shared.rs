//! The shared file pointer.
//!
//! Processes on one host have it in shared memory. Otherwise it is a named entry of the job, which tasks on all hosts
//! can access and which ends with the job. In both cases it is changed atomically: a process that ends meanwhile has
//! changed it or has not, and no process waits for another. A file of a single process needs neither.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

use super::Open;
use super::opening::UNOPENED;
use super::two_phase::{number, words};
use crate::abi::{ERR_NO_MEM, SUCCESS};
use crate::communicator::Communicator;
use crate::communicator::internal_messages::{self, Failed};
use crate::error::{Error, Result, checked};
use crate::numbers::Numbers;
use crate::segment::{Address, File, Segment};

/// The location of the pointer.
pub enum Shared {
    /// In this process, which is the only one.
    Own(Mutex<i64>),
    /// In memory that all processes map.
    Mapped(Mapped),
    /// In the entry with this name, which contains a number that the first process has chosen.
    Entry(CString, u32),
}

/// Pointers in memory that all processes map. One of them is current. When all processes set the pointer together, the
/// next one becomes current. It is not used before all have entered that call, and the old one is not used afterwards.
pub struct Mapped {
    segment: Segment,
    /// How often all processes have set the pointer; determines the current one.
    turn: AtomicUsize,
}

/// The pointer's memory as the first process creates it, with the file by which the others map it.
pub struct Offer {
    /// The memory, with the pointer set.
    pub segment: Segment,
    /// The file, to be kept open until all have mapped it.
    pub file: File,
}

/// Number of pointers: the current one, the next one, and the previous one, which slower processes may still read.
const POINTERS: usize = 3;
/// The value of a pointer that is not current yet.
const UNSET: i64 = i64::MIN;
const LENGTH: usize = POINTERS * size_of::<AtomicI64>();

impl Mapped {
    fn new(segment: Segment) -> Mapped {
        Mapped {
            segment,
            turn: AtomicUsize::new(0),
        }
    }

    fn pointer(&self, turn: usize) -> &AtomicI64 {
        // SAFETY: the segment has this many numbers, and lives as long as this object.
        unsafe { &*self.segment.base().cast::<AtomicI64>().add(turn % POINTERS) }
    }

    fn now(&self) -> &AtomicI64 {
        self.pointer(self.turn.load(Ordering::Relaxed))
    }

    /// Makes the next pointer current, with this value. Each process calls this with the same value once all have
    /// entered the collective call; the first call sets it.
    fn reset(&self, to: i64) {
        let turn = self.turn.load(Ordering::Relaxed) + 1;
        let next = self.pointer(turn);
        let _ = next.compare_exchange(UNSET, to, Ordering::AcqRel, Ordering::Relaxed);
        // No process has used that pointer since the last collective call.
        self.pointer(turn + 1).store(UNSET, Ordering::Release);
        self.turn.store(turn, Ordering::Relaxed);
    }
}

impl Offer {
    /// Creates the memory. Returns `None` if there is only one process, if not all are on this host, or if it cannot be
    /// created.
    pub fn new(comm: &Communicator, position: i64) -> Option<Offer> {
        if comm.size() == 1 || comm.local.beside(comm.rank).len() != comm.local.len() {
            return None;
        }
        let file = File::new().ok()?;
        let mapped = Mapped::new(file.memory(LENGTH, Some(0..LENGTH)).ok()?);
        mapped.now().store(position, Ordering::Release);
        mapped.pointer(1).store(UNSET, Ordering::Release);
        let segment = mapped.segment;
        Some(Offer { segment, file })
    }
}

/// Numbers of the files whose first process this is.
static NUMBERS: Numbers = Numbers::below(i32::MAX as u32);
/// Sent instead of a number if none is left.
const NO_NUMBER: c_int = -1;

const FLAGS: c_int = rg::PERSISTENT | rg::OVERWRITABLE;

fn put(name: &CString, position: i64) -> Result {
    let value = position.to_le_bytes();
    let mut placed = 0;
    // SAFETY: the value has this length.
    checked(unsafe {
        rg::rg_put(
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
            FLAGS,
            &mut placed,
        )
    })
}

fn add(name: &CString, by: i64) -> Result<i64> {
    let mut before = 0;
    // SAFETY: the text is NUL-terminated; the number may be written.
    checked(unsafe { rg::rg_add(name.as_ptr(), 0, by, &mut before) })?;
    Ok(before)
}

impl Shared {
    /// Returns the pointer in shared memory: `own` in the first process, mapped from its file in the others. Returns
    /// `None` if there is none, or it cannot be mapped.
    pub fn mapped(own: Option<Segment>, process: c_int, address: Address) -> Option<Shared> {
        let segment =
            own.or_else(|| Segment::open(process, address, LENGTH, Some(0..LENGTH)).ok()?);
        segment.map(|segment| Shared::Mapped(Mapped::new(segment)))
    }

    /// Makes a pointer without shared memory. All processes call this.
    pub fn new(comm: &Communicator, position: i64) -> Result<Shared> {
        if comm.size() == 1 {
            return Ok(Shared::Own(Mutex::new(position)));
        }
        let own = match comm.rank {
            0 => NUMBERS.take(),
            _ => None,
        };
        let made = Shared::entry(comm, own, position);
        if let (Err(_), Some(own)) = (&made, own) {
            NUMBERS.give_back(own);
        }
        made
    }

    /// Makes a pointer in an entry, whose name contains the first process's number.
    fn entry(comm: &Communicator, own: Option<u32>, position: i64) -> Result<Shared> {
        let own = own.map_or(NO_NUMBER, |own| own as c_int);
        let [number] = internal_messages::broadcast_words(comm.hidden, 0, [own])?;
        let first = comm.local[0];
        if number == NO_NUMBER {
            let text = "the first process has too many files open";
            return Err(Error::new(ERR_NO_MEM, text));
        }
        let name = CString::new(format!("mpi file {first}.{number}")).unwrap_or_default();
        let put = match comm.rank {
            0 => put(&name, position),
            _ => Ok(()),
        };
        internal_messages::agree_on_outcome(comm.hidden, put, UNOPENED)?;
        Ok(Shared::Entry(name, number as u32))
    }

    /// Advances the pointer, and returns its value before.
    pub fn advance(&self, by: i64) -> Result<i64> {
        match self {
            Shared::Own(own) => {
                let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
                let before = *own;
                *own = before.wrapping_add(by);
                Ok(before)
            }
            Shared::Mapped(mapped) => Ok(mapped.now().fetch_add(by, Ordering::AcqRel)),
            Shared::Entry(name, _) => add(name, by),
        }
    }

    /// Sets the pointer. All processes call this with the same value once all have entered the collective call; none
    /// reads or advances the pointer meanwhile.
    pub fn set(&self, file: &Open, to: i64) -> Result {
        let set = match self {
            Shared::Own(own) => {
                *own.lock().unwrap_or_else(PoisonError::into_inner) = to;
                return Ok(());
            }
            Shared::Mapped(mapped) => {
                mapped.reset(to);
                return Ok(());
            }
            Shared::Entry(name, _) if file.comm.rank == 0 => put(name, to),
            Shared::Entry(..) => Ok(()),
        };
        file.agree(set)
    }

    /// Returns the pointer's value.
    pub fn get(&self) -> Result<i64> {
        match self {
            Shared::Own(own) => Ok(*own.lock().unwrap_or_else(PoisonError::into_inner)),
            Shared::Mapped(mapped) => Ok(mapped.now().load(Ordering::Acquire)),
            Shared::Entry(name, _) => add(name, 0),
        }
    }

    /// Advances the pointer for all processes in rank order, each by `by`. Returns the start of this process's part.
    pub fn ordered(&self, comm: &Communicator, by: i64) -> Result<i64> {
        let all = internal_messages::allgather(comm.hidden, words(by))?;
        let all: Vec<i64> = all.into_iter().map(number).collect();
        let total = all.iter().sum::<i64>();
        let mut begin = Ok(0);
        if comm.rank == 0 {
            begin = self.advance(total);
        }
        let class = internal_messages::class_of(&begin);
        let [low, high] = words(begin.as_ref().copied().unwrap_or_default());
        let told = internal_messages::broadcast_words(comm.hidden, 0, [class, low, high])?;
        begin?;
        match told {
            [SUCCESS, low, high] => {
                let before: i64 = all[..comm.rank as usize].iter().sum();
                Ok(number([low, high]) + before)
            }
            [class, ..] => {
                let failed = Failed { rank: 0, class };
                Err(failed.error("the shared file pointer is unchanged"))
            }
        }
    }

    /// Deletes the pointer when no process needs it any longer.
    pub fn forget(&self, comm: &Communicator) {
        if let Shared::Entry(name, number) = self
            && comm.rank == 0
        {
            // SAFETY: the text is NUL-terminated.
            unsafe { rg::rg_delete(name.as_ptr(), 0) };
            NUMBERS.give_back(*number);
        }
    }
}
