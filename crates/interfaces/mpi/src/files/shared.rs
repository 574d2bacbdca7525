//! The pointer that all processes of a file have in common.
//!
//! It is an entry of the job, which is the same for tasks of all hosts and goes with the job. It moves in one step: a process that
//! ends meanwhile has moved it or has not, and nobody waits for it. A file of one process needs no entry.

use std::ffi::{CString, c_int};
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

use super::opening::UNOPENED;
use super::two_phase::{number, words};
use crate::abi::{ERR_INTERN, ERR_NO_MEM, SUCCESS};
use crate::communicator::Communicator;
use crate::communicator::internal_messages::{self, Failed};
use crate::error::{Error, Result, checked};
use crate::numbers::Numbers;

/// Where the pointer is kept.
pub enum Shared {
    /// In this process, which is the only one.
    Own(Mutex<i64>),
    /// In the entry with this name, which is made of a number of the first process.
    Entry(CString, u32),
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
    // SAFETY: a text that ends; the number is written.
    checked(unsafe { rg::rg_add(name.as_ptr(), 0, by, &mut before) })?;
    Ok(before)
}

impl Shared {
    /// A new pointer, made by all processes.
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
        let told = internal_messages::broadcast(comm.hidden, 0, vec![own])?;
        let (first, number) = (comm.local[0], told.first().copied().unwrap_or(NO_NUMBER));
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
            Shared::Entry(name, _) => add(name, by),
        }
    }

    /// Moves the pointer here. Nobody else moves it meanwhile.
    pub fn set(&self, to: i64) -> Result {
        match self {
            Shared::Own(own) => *own.lock().unwrap_or_else(PoisonError::into_inner) = to,
            Shared::Entry(name, _) => put(name, to)?,
        }
        Ok(())
    }

    /// Where the pointer is.
    pub fn get(&self) -> Result<i64> {
        match self {
            Shared::Own(own) => Ok(*own.lock().unwrap_or_else(PoisonError::into_inner)),
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
        let told = internal_messages::broadcast(comm.hidden, 0, vec![class, low, high])?;
        begin?;
        match told[..] {
            [SUCCESS, low, high] => {
                let before: i64 = all[..comm.rank as usize].iter().sum();
                Ok(number([low, high]) + before)
            }
            _ => {
                let class = told.first().copied().unwrap_or(ERR_INTERN);
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
            // SAFETY: a text that ends.
            unsafe { rg::rg_delete(name.as_ptr(), 0) };
            NUMBERS.give_back(*number);
        }
    }
}
