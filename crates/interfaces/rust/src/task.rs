//! Joining a job, and leaving it.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard};

use regatta_process as process;

use crate::error::{Error, Result, ours};
use crate::{Group, Loan, raw};

/// Number of [`Task`]s in this process. Dropping the last one leaves the job.
static JOINED: Mutex<usize> = Mutex::new(0);

fn joined() -> MutexGuard<'static, usize> {
    JOINED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// This process as a member of a job.
///
/// Groups, loans and all other objects of this crate are made from a `Task` and borrow it, so that no call can be made
/// before [`init`] or after the task has left the job.
///
/// Dropping the `Task` leaves the job. Receivers can still receive messages that were already sent. If `init` was called
/// several times, dropping the last `Task` leaves the job. A task that has left a job cannot join it again.
///
/// A task that ends without leaving (by `std::process::exit`, or by a panic that drops the `Task`) counts as dead.
///
/// ```compile_fail,E0505
/// let task = regatta::init().unwrap();
/// let world = task.world();
/// task.finalize().unwrap(); // the world still borrows the task
/// world.barrier().unwrap();
/// ```
#[derive(Debug)]
pub struct Task {
    /// Private, so that only [`init`] makes a `Task`.
    _private: (),
}

/// Joins the job in which `regatta run` started this process. A process without a job becomes a world of one task.
///
/// Under Slurm's `srun` the process becomes one of the step's tasks, and the call blocks until all of them have called
/// `init`.
///
/// Fails with [`ErrorKind::Launcher`](crate::ErrorKind::Launcher) under other launchers, such as `mpirun`, because a world of
/// one task would not be what the user intended there.
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
    /// Returns the group of the tasks that were started together with this one, by one `regatta run` or one
    /// [`Task::spawn`], in rank order.
    pub fn world(&self) -> Group<'_> {
        Group::world(self)
    }

    /// Returns this task's id. Ids count from 0 in the order in which tasks are started, and are never used twice in a
    /// job.
    pub fn tid(&self) -> Result<u32> {
        raw::outside()?;
        ours(process::tid())
    }

    /// Borrows a block of `len` bytes of shared memory, in which to write a message that is then sent without a copy; see
    /// [`Loan`]. The initial contents are unspecified.
    ///
    /// Fails with [`ErrorKind::Memory`](crate::ErrorKind::Memory) if there is no memory for it.
    pub fn loan(&self, len: usize) -> Result<Loan<'_>> {
        raw::blocking::lend(self, len).map(Loan::of)
    }

    /// Advances all pending operations, runs the callbacks and wakes the futures of completed ones. Does not block.
    pub fn progress(&self) -> Result<()> {
        raw::outside()?;
        ours(process::progress())
    }

    /// Returns a file descriptor for event loops.
    pub fn descriptor(&self) -> Result<Descriptor<'_>> {
        raw::outside()?;
        let fd = ours(process::descriptor())?;
        Ok(Descriptor {
            fd: raw::borrowed(fd, PhantomData),
        })
    }

    /// Leaves the job, as dropping the task does, and returns errors. Everything that borrows the task must have been
    /// dropped before, such as its groups.
    pub fn finalize(self) -> Result<()> {
        let left = leave();
        std::mem::forget(self);
        left
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // After a panic the task does not leave: to the other tasks it has then died.
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

/// A file descriptor that becomes readable when a message may have arrived, for `poll`, `epoll` and event loops built on
/// them.
///
/// When the descriptor is readable, [`clear`](Descriptor::clear) it, then call [`Task::progress`] or check for messages.
/// Regatta closes the descriptor when the task leaves the job.
///
/// The first call of [`Task::descriptor`] starts a thread that watches for messages. Programs that do not call it do not
/// have this thread.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'t> {
    fd: BorrowedFd<'t>,
}

impl Descriptor<'_> {
    /// Makes the descriptor unreadable until the next message arrives. Call this before checking for messages: a message
    /// that arrives after `clear` makes it readable again.
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
