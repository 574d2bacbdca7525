//! Lock words of the processes of a host, in shared memory. Each process has one word for passive-target epochs, which
//! is held for an epoch, and one for accumulates, which is held for an operation.
//!
//! A word contains the rank of its holder. A process that waits for long checks whether that process is still running,
//! so a lock whose holder has died is an error instead of a hang.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use super::lock_memory::Piece;
use super::service;
use crate::communicator::Members;
use crate::error::{Error, PROC_FAILED, Result};
use crate::tasks;

/// Size of a process's words in bytes, without the list of sharers.
const RECORD: usize = 128;
/// Offset of the accumulate word in bytes: in a cache line of its own.
const ACCUMULATE: usize = 64;
/// Offset from a word to the number of processes that sleep on it, in bytes.
const SLEEPERS: usize = 4;
/// Bit of a word that is held exclusively. The other bits are the rank of the holder.
const EXCLUSIVE: u32 = 1 << 31;

/// Value of a sharer's word: the process has a shared lock, or is trying to take it.
const SHARES: u32 = 1;

/// The lock words of the processes of a host.
pub struct LockTable {
    /// The memory, which begins with the words.
    pub memory: Piece,
    /// The ranks of the processes that share it.
    pub local: Vec<c_int>,
    /// All processes of the window.
    members: Members,
}

/// Returns the size in bytes of the lock words of `local` processes on a host; `all` processes may hold them.
pub fn length(local: usize, all: usize) -> usize {
    local * (RECORD + all * size_of::<u32>())
}

/// Number of attempts of a short wait before it sleeps.
const SPINS: u32 = 200;
/// One of this many attempts yields the core.
const PAUSES: u32 = 8;
/// Duration of a sleep in nanoseconds, after which the holder is checked.
const MAX_SLEEP_NANOS: libc::c_long = 50_000_000;
/// Duration of a sleep in nanoseconds while waiting for an accumulate lock, which is held only for one operation.
const NAP: libc::c_long = 200_000;

impl LockTable {
    /// Returns the table for the processes `local` of `members`.
    pub fn new(memory: Piece, local: Vec<c_int>, members: Members) -> LockTable {
        LockTable {
            memory,
            local,
            members,
        }
    }

    /// Returns the index of a process in the table.
    pub fn place(&self, rank: c_int) -> Option<usize> {
        self.local.binary_search(&rank).ok()
    }

    fn word(&self, place: usize, offset: usize) -> &AtomicU32 {
        debug_assert!(place < self.local.len());
        // SAFETY: the memory begins with a record for each index, and lives as long as this object.
        unsafe { &*self.memory.base().add(place * RECORD + offset).cast() }
    }

    fn passive(&self, place: usize) -> &AtomicU32 {
        self.word(place, 0)
    }

    /// Returns the word that says whether the process `rank` shares the lock of another one: 0 or [`SHARES`].
    fn hold(&self, place: usize, rank: c_int) -> &AtomicU32 {
        let lists = self.local.len() * RECORD;
        let index = place * self.members.len() + rank as usize;
        // SAFETY: behind the records there is a list for each index, with a word for each process.
        unsafe { &*self.memory.base().add(lists + index * 4).cast() }
    }

    /// Takes a passive-target lock if it is free.
    pub fn try_lock(&self, place: usize, own: c_int, exclusive: bool) -> bool {
        let word = self.passive(place);
        if exclusive {
            let held = EXCLUSIVE | own as u32;
            let taken = word.compare_exchange(0, held, Ordering::Acquire, Ordering::Relaxed);
            return taken.is_ok();
        }
        let hold = self.hold(place, own);
        // This is stored before the lock counts the process: so if a process dies at any moment, it is known to have
        // the lock.
        hold.store(SHARES, Ordering::Release);
        let free = |held: u32| (held & EXCLUSIVE == 0).then_some(held + 1);
        let taken = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, free);
        if taken.is_err() {
            hold.store(0, Ordering::Release);
        }
        taken.is_ok()
    }

    /// Takes a passive-target lock, waiting until it is free.
    pub fn lock(&self, place: usize, own: c_int, exclusive: bool) -> Result {
        let mut turns = 0;
        while !self.try_lock(place, own, exclusive) {
            let word = self.passive(place);
            turns += 1;
            if turns > SPINS {
                self.sleep(place, 0, word.load(Ordering::Relaxed), MAX_SLEEP_NANOS);
                self.check_holders(place)?;
            } else {
                // The holder may have sent a request to this process.
                service::serve_own();
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Releases a passive-target lock.
    pub fn unlock(&self, place: usize, own: c_int, exclusive: bool) {
        let word = self.passive(place);
        if exclusive {
            word.store(0, Ordering::SeqCst);
        } else {
            word.fetch_sub(1, Ordering::SeqCst);
            self.hold(place, own).store(0, Ordering::Release);
        }
        self.wake(place, 0);
    }

    /// Fails if a process that holds this passive-target lock has died.
    pub fn check_holders(&self, place: usize) -> Result {
        let word = self.passive(place).load(Ordering::Acquire);
        if word & EXCLUSIVE != 0 {
            return self.check((word & !EXCLUSIVE) as c_int);
        }
        self.sharers(place).try_for_each(|rank| self.check(rank))
    }

    /// Returns the processes that a shared lock may count.
    fn sharers(&self, place: usize) -> impl Iterator<Item = c_int> {
        let all = 0..self.members.len() as c_int;
        all.filter(move |&rank| self.hold(place, rank).load(Ordering::Acquire) != 0)
    }

    fn check(&self, rank: c_int) -> Result {
        let Some(&task) = self.members.get(rank as usize) else {
            return Ok(());
        };
        match tasks::ended(&[task])?.is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                PROC_FAILED,
                format!(
                    "process {rank} (task {task}) has ended while it held a lock of the window, whose memory may be half written; free the window"
                ),
            )),
        }
    }

    /// Calls `act` while holding the accumulate lock of a process.
    pub fn exclusively<T>(
        &self,
        place: usize,
        own: c_int,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.begin_accumulate(place, own)?;
        let result = act();
        self.end_accumulate(place);
        result
    }

    /// Takes the accumulate lock of a process. Without contention this costs one atomic instruction.
    #[inline(always)]
    pub fn begin_accumulate(&self, place: usize, own: c_int) -> Result {
        let word = self.word(place, ACCUMULATE);
        let held = EXCLUSIVE | own as u32;
        let taken = word.compare_exchange(0, held, Ordering::Acquire, Ordering::Relaxed);
        match taken {
            Ok(_) => Ok(()),
            Err(other) => self.await_accumulate(place, held, other),
        }
    }

    /// Releases the accumulate lock of a process.
    #[inline(always)]
    pub fn end_accumulate(&self, place: usize) {
        self.word(place, ACCUMULATE).store(0, Ordering::Release);
        // A process may begin to sleep between the store and the load, and then sleeps for `NAP`. A memory order that
        // excludes this would cost as much as the lock.
        if self
            .word(place, ACCUMULATE + SLEEPERS)
            .load(Ordering::Relaxed)
            != 0
        {
            self.wake(place, ACCUMULATE);
        }
    }

    #[cold]
    fn await_accumulate(&self, place: usize, held: u32, mut other: u32) -> Result {
        let word = self.word(place, ACCUMULATE);
        let mut turns = 0;
        loop {
            turns += 1;
            if turns > SPINS {
                self.sleep(place, ACCUMULATE, other, NAP);
                self.check((other & !EXCLUSIVE) as c_int)?;
            } else if turns % PAUSES == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            match word.compare_exchange(0, held, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => other = now,
            }
        }
    }

    /// Sleeps for up to `limit` nanoseconds, or until a word with this value is released.
    fn sleep(&self, place: usize, offset: usize, value: u32, limit: libc::c_long) {
        if value == 0 {
            return;
        }
        let sleepers = self.word(place, offset + SLEEPERS);
        // The process that releases the word checks the sleepers afterwards, and the kernel checks the word before the
        // sleep. So one of both notices.
        sleepers.fetch_add(1, Ordering::SeqCst);
        let limit = libc::timespec {
            tv_sec: 0,
            tv_nsec: limit,
        };
        let word = self.word(place, offset);
        // SAFETY: the word is never freed; the call reads the limit.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, &limit) };
        sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes the processes that sleep on a word. A sleeper that has died costs only this call.
    fn wake(&self, place: usize, offset: usize) {
        if self.word(place, offset + SLEEPERS).load(Ordering::SeqCst) != 0 {
            let word = self.word(place, offset);
            // SAFETY: the word is never freed.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, c_int::MAX) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::ptr::null_mut;

    use super::*;
    use crate::segment::File;

    const ROUNDS: u32 = 500;
    const PLACE: usize = 0;
    const CHILD: c_int = 1;

    /// A child takes a shared lock and releases it until it is killed at some moment.
    #[test]
    fn whoever_has_died_with_a_shared_lock_is_known_to_have_it() {
        let local = vec![0, CHILD];
        let length = length(local.len(), local.len());
        let segment = File::new().and_then(|file| file.memory(length, Some(0..length)));
        let members = Members::from(local.clone());
        let table = LockTable::new(Piece::whole(segment.expect("memory")), local, members);
        let hold = table.hold(PLACE, CHILD);
        let mut left = 0;
        let (mut begun, mut begins) = std::io::pipe().expect("a pipe");
        for _ in 0..ROUNDS {
            // SAFETY: the child accesses only words of the table.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                // SAFETY: the call takes numbers and no pointers. The child does not outlive the test.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let _ = begins.write_all(&[0]);
                loop {
                    table.try_lock(PLACE, CHILD, false);
                    table.unlock(PLACE, CHILD, false);
                }
            }
            begun.read_exact(&mut [0]).expect("a child that has begun");
            // SAFETY: the process was started by this test.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                assert_eq!(libc::waitpid(child, null_mut(), 0), child);
            }
            if table.passive(PLACE).swap(0, Ordering::AcqRel) != 0 {
                left += 1;
                assert!(table.sharers(PLACE).eq([CHILD]));
            }
            hold.store(0, Ordering::Release);
        }
        assert!(left > 0, "it was never killed with the lock");
    }
}
