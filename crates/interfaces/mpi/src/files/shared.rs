//! The pointer that all processes of a file have in common.
//!
//! Processes of one host have it in memory that all map. Else it is an entry of the job, which is the same for tasks of all hosts and goes with
//! the job. Either way it moves in one step: a process that ends meanwhile has moved it or has not, and nobody waits for it. A file of one process
//! needs neither.

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

/// Where the pointer is kept.
pub enum Shared {
    /// In this process, which is the only one.
    Own(Mutex<i64>),
    /// In memory that all processes map.
    Mapped(Mapped),
    /// In the entry with this name, which is made of a number of the first process.
    Entry(CString, u32),
}

/// Pointers in memory that all processes map. One is current; when all processes set the pointer together, the next one becomes current. It is
/// not used before all have come, and the old one is not used afterwards.
pub struct Mapped {
    segment: Segment,
    /// How often the pointer has been set by all; tells the current one.
    turn: AtomicUsize,
}

/// The pointer's memory as the first process makes it, with the file by which others map it.
pub struct Offer {
    /// The memory, with the pointer set.
    pub segment: Segment,
    /// The file, to stay open until all have mapped it.
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
        // SAFETY: the segment has as many numbers, and stays as long as this object.
        unsafe { &*self.segment.base().cast::<AtomicI64>().add(turn % POINTERS) }
    }

    fn now(&self) -> &AtomicI64 {
        self.pointer(self.turn.load(Ordering::Relaxed))
    }

    /// Makes the next pointer current, with this value. All processes have come, and each calls this with the same value; the first call sets it.
    fn reset(&self, to: i64) {
        let turn = self.turn.load(Ordering::Relaxed) + 1;
        let next = self.pointer(turn);
        let _ = next.compare_exchange(UNSET, to, Ordering::AcqRel, Ordering::Relaxed);
        // Nobody has used that one since all came the last time.
        self.pointer(turn + 1).store(UNSET, Ordering::Release);
        self.turn.store(turn, Ordering::Relaxed);
    }
}

impl Offer {
    /// Makes the memory, if there are several processes and all are on this host.
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

/// Of the files whose first process this is.
static NUMBERS: Numbers = Numbers::below(i32::MAX as u32);
/// In place of a number: there is none left.
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
    /// Returns the pointer in memory: `own` at the first process, mapped from its file at the others. `None`: there is none, or it cannot be mapped.
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

    /// A pointer in an entry, of a number that the first process has.
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

    /// Moves the pointer on: where it was.
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

    /// Sets the pointer. All processes have come, and call this with the same value; nobody reads or moves the pointer meanwhile.
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

    /// Where the pointer is.
    pub fn get(&self) -> Result<i64> {
        match self {
            Shared::Own(own) => Ok(*own.lock().unwrap_or_else(PoisonError::into_inner)),
            Shared::Mapped(mapped) => Ok(mapped.now().load(Ordering::Acquire)),
            Shared::Entry(name, _) => add(name, 0),
        }
    }

    /// All processes advance in the order of their ranks, each by so much: where this process' part begins.
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
                Err(failed.error("the shared pointer stays where it is"))
            }
        }
    }

    /// Nobody will need it any more.
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
