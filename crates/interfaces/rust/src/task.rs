//! Joining a job, and leaving it.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard};

use regatta_process as process;

use crate::error::{Error, Result, ours};
use crate::{Group, Loan, raw};

/// How many [`Task`]s there are in this process. The last one to go leaves the job.
static JOINED: Mutex<usize> = Mutex::new(0);

fn joined() -> MutexGuard<'static, usize> {
    JOINED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// This process as a member of a job: everything else is reached from here, and borrows it, so
/// nothing can be called before [`init`] or after leaving.
///
/// Dropping it leaves the job: messages already sent stay readable by their receivers, and nobody
/// is waited for. Where `init` was called several times, the last `Task` to be dropped leaves.
/// A task that has left a job cannot join it again.
/// A task that ends without leaving (by `std::process::exit`, or a panic that drops this) counts as
/// one that has died.
///
/// ```compile_fail,E0505
/// let task = regatta::init().unwrap();
/// let world = task.world();
/// task.finalize().unwrap(); // the world still borrows the task
/// world.barrier().unwrap();
/// ```
#[derive(Debug)]
pub struct Task {
    /// Only [`init`] makes one.
    _private: (),
}

/// Join the job this process was started in by `regatta run`, or become a world of one.
///
/// Fails with [`ErrorKind::Launcher`](crate::ErrorKind::Launcher) under a launcher Regatta cannot
/// speak to (Slurm, mpirun), because there a world of one is never what was meant.
///
/// ```
/// let task = regatta::init()?;
/// let world = task.world();
/// println!("rank {} of {}", world.rank(), world.size());
/// # Ok::<(), regatta::Error>(())
/// ```
pub fn init() -> Result<Task> {
    raw::outside()?;
    let mut count = joined();
    ours(process::init())?;
    *count += 1;
    Ok(Task { _private: () })
}

impl Task {
    /// The tasks that were started together with this one, in rank order: those of one `regatta run`, or of one
    /// [`Task::spawn`].
    pub fn world(&self) -> Group<'_> {
        Group::world(self)
    }

    /// This task's id. Ids count from 0 in the order in which tasks are started, and are never used twice in a job.
    pub fn tid(&self) -> Result<u32> {
        raw::outside()?;
        ours(process::tid())
    }

    /// Borrow `len` bytes of shared memory to write a message in, which is then sent without a
    /// copy: see [`Loan`]. Its content is whatever was there before.
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory) when none is to be had.
    pub fn loan(&self, len: usize) -> Result<Loan<'_>> {
        raw::blocking::lend(self, len).map(Loan::of)
    }

    /// Advance whatever can advance, run callbacks and wake futures that are due, return.
    pub fn progress(&self) -> Result<()> {
        raw::outside()?;
        ours(process::progress())
    }

    /// A file descriptor for event loops.
    pub fn descriptor(&self) -> Result<Descriptor<'_>> {
        raw::outside()?;
        let fd = ours(process::descriptor())?;
        Ok(Descriptor {
            fd: raw::borrowed(fd, PhantomData),
        })
    }

    /// Leave, as dropping does, and hear of errors. Everything that borrows the task must have been
    /// dropped: its groups first of all.
    pub fn finalize(self) -> Result<()> {
        let left = leave();
        std::mem::forget(self);
        left
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // The others should not take a panic for a departure in good order.
        if !std::thread::panicking() {
            let _ = leave();
        }
    }
}

fn leave() -> Result<()> {
    raw::outside()?;
    let mut count = joined();
    *count -= 1;
    if *count > 0 {
        return Ok(());
    }
    process::finalize().map_err(Error::of)
}

/// A descriptor that is readable when a message may be waiting, for `poll`, `epoll` and the event
/// loops built on them: when it is, [`clear`](Descriptor::clear) it and then call
/// [`Task::progress`] or look for messages. Regatta closes it when the task leaves.
///
/// The first call of [`Task::descriptor`] starts a thread that watches for messages; programs that
/// do not call it do not pay for it.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'t> {
    fd: BorrowedFd<'t>,
}

impl Descriptor<'_> {
    /// Make it unreadable until something new comes. Call this before looking for messages: what
    /// comes in between makes it readable again.
    pub fn clear(&self) -> Result<()> {
        raw::outside()?;
        ours(process::clear_descriptor())
    }
}

impl AsFd for Descriptor<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd
    }
}
