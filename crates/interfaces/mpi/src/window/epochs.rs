//! Epochs: which targets may be accessed when.

use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicI32, Ordering, fence};
use std::sync::{MutexGuard, PoisonError};

use regatta_sys as rg;

use super::{Window, service};
use crate::abi::*;
use crate::communicator::Members;
use crate::error::{Error, Result, checked};
use crate::groups;
use crate::progress;

/// Tags of messages for epochs, in the first group of a window.
const POSTED: c_int = 1;
const COMPLETED: c_int = 2;

/// The open epochs.
pub struct Epochs {
    access: Access,
    /// Receives of the completion messages that MPI_Win_wait waits for.
    exposure: Option<Vec<rg::Request>>,
}

enum Access {
    None,
    /// Between fences; whether any target has been accessed.
    Fence(bool),
    /// Started by MPI_Win_start, with these targets.
    Started(Vec<c_int>),
    /// Locked targets. For each, whether the lock is exclusive; `None` if no lock was taken (MPI_MODE_NOCHECK).
    Locked(Vec<(c_int, Option<bool>)>),
    /// All targets (MPI_Win_lock_all); whether locks were taken.
    All(bool),
}

/// No target, or the epochs have to be checked.
pub(super) const NOBODY: c_int = c_int::MAX;
/// All targets, in an epoch of MPI_Win_lock_all.
const ALL_LOCKED: c_int = -2;
/// All targets, in an epoch between fences in which a target has been accessed.
const ALL_FENCED: c_int = -4;

/// The locked epochs of a window. When it is dropped, updates the window's `open_to`.
struct Held<'a> {
    epochs: MutexGuard<'a, Epochs>,
    open_to: &'a AtomicI32,
}

impl Deref for Held<'_> {
    type Target = Epochs;

    fn deref(&self) -> &Epochs {
        &self.epochs
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Epochs {
        &mut self.epochs
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let open_to = match &self.epochs.access {
            Access::All(_) => ALL_LOCKED,
            Access::Fence(true) => ALL_FENCED,
            Access::Locked(locks) => match locks[..] {
                [(rank @ 0.., _)] => rank,
                _ => NOBODY,
            },
            Access::None | Access::Fence(false) | Access::Started(_) => NOBODY,
        };
        self.open_to.store(open_to, Ordering::Relaxed);
    }
}

fn wrong(text: impl Into<String>) -> Error {
    Error::new(ERR_RMA_SYNC, text)
}

/// Fails if a call has other assertions than those allowed.
pub fn check_assert(given: c_int, allowed: c_int) -> Result {
    match given & !allowed {
        0 => Ok(()),
        _ => Err(Error::new(
            ERR_ASSERT,
            format!(
                "assert is {given}; this call accepts only MPI_MODE_ constants that are bits of {allowed}"
            ),
        )),
    }
}

impl Epochs {
    /// Returns a state without open epochs.
    pub const fn new() -> Epochs {
        Epochs {
            access: Access::None,
            exposure: None,
        }
    }

    /// Fails if an access epoch is open.
    fn check_free(&self) -> Result {
        match self.access {
            Access::None | Access::Fence(false) => Ok(()),
            Access::Fence(true) => Err(wrong(
                "an epoch between fences is open: MPI_Win_fence ends it",
            )),
            Access::Started(..) => Err(wrong("an epoch of MPI_Win_start is open")),
            Access::Locked(_) => Err(wrong("an epoch of MPI_Win_lock is open")),
            Access::All(_) => Err(wrong("an epoch of MPI_Win_lock_all is open")),
        }
    }
}

impl Window {
    fn epochs(&self) -> Held<'_> {
        Held {
            epochs: self.epochs.lock().unwrap_or_else(PoisonError::into_inner),
            open_to: &self.open_to,
        }
    }

    /// Fails unless an epoch allows access to the target.
    #[inline]
    pub fn check_access(&self, rank: c_int) -> Result {
        let open_to = self.open_to.load(Ordering::Relaxed);
        match open_to == rank || open_to <= ALL_LOCKED {
            true => Ok(()),
            false => self.check_epoch(rank),
        }
    }

    #[inline(never)]
    fn check_epoch(&self, rank: c_int) -> Result {
        let mut epochs = self.epochs();
        let right = match &mut epochs.access {
            Access::None => false,
            Access::Fence(used) => {
                *used = true;
                true
            }
            Access::Started(ranks) => ranks.contains(&rank),
            Access::Locked(locks) => locks.iter().any(|it| it.0 == rank),
            Access::All(_) => true,
        };
        match right || rank == PROC_NULL {
            true => Ok(()),
            false => Err(wrong(format!(
                "no epoch for process {rank} is open (MPI_Win_fence, MPI_Win_start or MPI_Win_lock starts one)"
            ))),
        }
    }

    /// Fails unless the target is locked.
    #[inline]
    pub fn check_passive(&self, rank: c_int) -> Result {
        let open_to = self.open_to.load(Ordering::Relaxed);
        match open_to == rank || open_to == ALL_LOCKED {
            true => Ok(()),
            false => self.check_lock(rank),
        }
    }

    #[inline(never)]
    fn check_lock(&self, rank: c_int) -> Result {
        let right = match &self.epochs().access {
            Access::Locked(locks) => rank == PROC_NULL || locks.iter().any(|it| it.0 == rank),
            Access::All(_) => true,
            _ => false,
        };
        match right {
            true => Ok(()),
            false => Err(wrong(format!("process {rank} is not locked"))),
        }
    }

    /// Fails unless any target is locked.
    pub fn check_any_passive(&self) -> Result {
        match self.epochs().access {
            Access::Locked(_) | Access::All(_) => Ok(()),
            _ => Err(wrong("no process is locked")),
        }
    }

    /// Fails unless a collective call may be made now: no epoch may be open.
    pub fn check_between(&self) -> Result {
        let epochs = self.epochs();
        if epochs.exposure.is_some() {
            return Err(wrong("an epoch of MPI_Win_post is open"));
        }
        epochs.check_free()
    }

    /// Checks whether a fence with these assertions is allowed now.
    fn check_fence(&self, assert: c_int) -> Result {
        let allowed = MODE_NOSTORE | MODE_NOPUT | MODE_NOPRECEDE | MODE_NOSUCCEED;
        check_assert(assert, allowed)?;
        let epochs = self.epochs();
        if !matches!(epochs.access, Access::Fence(_)) {
            epochs.check_free()?;
        }
        match epochs.exposure {
            None => Ok(()),
            Some(_) => Err(wrong("an epoch of MPI_Win_post is open")),
        }
    }

    /// Ends the epoch between fences, and begins the next one. If this process fails, it still takes part in the
    /// barrier, so that the others do not wait.
    pub fn fence(&self, assert: c_int) -> Result {
        if let Err(error) = self.check_fence(assert) {
            let _ = self.meet();
            return Err(error);
        }
        let flushed = self.flush_all();
        let met = self.meet();
        fence(Ordering::SeqCst);
        self.epochs().access = match assert & MODE_NOSUCCEED {
            0 => Access::Fence(false),
            _ => Access::None,
        };
        flushed.and(met)
    }

    fn ranks_of(&self, group: Group) -> Result<Vec<c_int>> {
        let members: Members = groups::get(group)?;
        let all: Vec<c_int> = (0..members.len() as c_int).collect();
        let ranks = groups::translate(&members, &all, &self.comm.local)?;
        match ranks.contains(&UNDEFINED) {
            true => {
                let text = "the group has processes that are not in the window";
                Err(Error::new(ERR_GROUP, text))
            }
            false => Ok(ranks),
        }
    }

    /// Begins an exposure epoch for the processes of this group.
    pub fn post(&self, group: Group, assert: c_int) -> Result {
        let ranks = self.ranks_of(group)?;
        let mut epochs = self.epochs();
        if epochs.exposure.is_some() {
            return Err(wrong(
                "an epoch of MPI_Win_post is open: MPI_Win_wait ends it",
            ));
        }
        if matches!(epochs.access, Access::Fence(true)) {
            epochs.check_free()?;
        }
        fence(Ordering::SeqCst);
        let completions = ranks.iter().map(|&rank| self.hear(rank, COMPLETED));
        let completions = completions.collect::<Result<Vec<_>>>()?;
        epochs.exposure = Some(completions);
        drop(epochs);
        match assert & MODE_NOCHECK {
            0 => self.tell_all(&ranks, POSTED),
            _ => Ok(()),
        }
    }

    /// Sends an empty message to all of these processes, even if one of the sends fails.
    fn tell_all(&self, ranks: &[c_int], tag: c_int) -> Result {
        let told = ranks.iter().map(|&rank| self.tell(rank, tag));
        told.fold(Ok(()), Result::and)
    }

    /// Begins an access epoch to the processes of this group, after waiting until they have posted.
    pub fn start(&self, group: Group, assert: c_int) -> Result {
        let ranks = self.ranks_of(group)?;
        self.epochs().check_free()?;
        if assert & MODE_NOCHECK == 0 {
            self.await_posted(&ranks)?;
        }
        fence(Ordering::SeqCst);
        self.epochs().access = Access::Started(ranks);
        Ok(())
    }

    /// Waits until these processes have posted. If one of them has failed, the others get a completion message: there
    /// is no epoch whose end they could wait for.
    fn await_posted(&self, ranks: &[c_int]) -> Result {
        let (mut posted, mut result) = (Vec::new(), Ok(()));
        for &rank in ranks {
            let heard = self
                .hear(rank, POSTED)
                .and_then(|request| checked(progress::wait(request, &mut rg::Status::default())));
            if heard.is_ok() {
                posted.push(rank);
            }
            result = result.and(heard);
        }
        if result.is_err() {
            let _ = self.tell_all(&posted, COMPLETED);
        }
        result
    }

    /// Ends the access epoch of MPI_Win_start. The targets are notified even if a flush has failed.
    pub fn complete(&self) -> Result {
        let mut epochs = self.epochs();
        let access = std::mem::replace(&mut epochs.access, Access::None);
        let Access::Started(ranks) = access else {
            epochs.access = access;
            return Err(wrong("no epoch of MPI_Win_start is open"));
        };
        drop(epochs);
        let flushed = self.flush(ranks.iter().copied());
        flushed.and(self.tell_all(&ranks, COMPLETED))
    }

    /// Returns whether all origins of the exposure epoch have completed. Waits until they have if `waits`.
    pub fn exposed(&self, waits: bool) -> Result<bool> {
        let taken = self.epochs().exposure.take();
        let Some(mut completions) = taken else {
            return Err(wrong("no epoch of MPI_Win_post is open"));
        };
        let mut result = Ok(());
        while let Some(&request) = completions.last() {
            if !waits && !is_complete(request)? {
                self.epochs().exposure = Some(completions);
                return Ok(false);
            }
            completions.pop();
            let waited = checked(progress::wait(request, &mut rg::Status::default()));
            result = result.and(waited);
        }
        fence(Ordering::SeqCst);
        result.map(|()| true)
    }

    fn take_lock(&self, rank: c_int, exclusive: bool) -> Result {
        let target = &self.targets[rank as usize];
        match target.place {
            Some(place) => self.locks().lock(place, self.comm.rank, exclusive),
            None => service::lock(self, rank, exclusive),
        }
    }

    fn give_lock(&self, rank: c_int, exclusive: bool) -> Result {
        match self.targets[rank as usize].place {
            Some(place) => {
                fence(Ordering::SeqCst);
                self.locks().unlock(place, self.comm.rank, exclusive);
                Ok(())
            }
            None => service::unlock(self, rank, exclusive),
        }
    }

    /// Begins a passive-target epoch with an exclusive or a shared lock.
    pub fn lock(&self, kind: c_int, rank: c_int, assert: c_int) -> Result {
        let exclusive = match kind {
            LOCK_EXCLUSIVE => true,
            LOCK_SHARED => false,
            _ => {
                let text = format!(
                    "lock_type is {kind}; it must be MPI_LOCK_EXCLUSIVE ({LOCK_EXCLUSIVE}) or MPI_LOCK_SHARED ({LOCK_SHARED})"
                );
                return Err(Error::new(ERR_LOCKTYPE, text));
            }
        };
        let target = self.target(rank)?;
        {
            let epochs = self.epochs();
            match &epochs.access {
                Access::Locked(locks) if locks.iter().any(|it| it.0 == rank) => {
                    return Err(wrong(format!("process {rank} is already locked")));
                }
                Access::Locked(_) => {}
                _ => epochs.check_free()?,
            }
        }
        let taken = target.is_some() && assert & MODE_NOCHECK == 0;
        if taken {
            self.take_lock(rank, exclusive)?;
        }
        fence(Ordering::SeqCst);
        let lock = (rank, taken.then_some(exclusive));
        match &mut self.epochs().access {
            Access::Locked(locks) => locks.push(lock),
            other => *other = Access::Locked(vec![lock]),
        }
        Ok(())
    }

    /// Ends the epoch of [`Window::lock`].
    pub fn unlock(&self, rank: c_int) -> Result {
        self.target(rank)?;
        let mut epochs = self.epochs();
        let Access::Locked(locks) = &mut epochs.access else {
            return Err(wrong(format!("process {rank} is not locked")));
        };
        let Some(index) = locks.iter().position(|it| it.0 == rank) else {
            return Err(wrong(format!("process {rank} is not locked")));
        };
        let (_, lock) = locks.swap_remove(index);
        if locks.is_empty() {
            epochs.access = Access::None;
        }
        drop(epochs);
        let flushed = match rank {
            PROC_NULL => Ok(()),
            _ => self.flush([rank]),
        };
        match lock {
            Some(exclusive) => flushed.and(self.give_lock(rank, exclusive)),
            None => flushed,
        }
    }

    /// Begins a passive-target epoch with shared locks at all processes.
    pub fn lock_all(&self, assert: c_int) -> Result {
        self.epochs().check_free()?;
        let taken = assert & MODE_NOCHECK == 0;
        if taken {
            for rank in 0..self.size() {
                if let Err(error) = self.take_lock(rank, false) {
                    // Releases the locks that have been taken so far.
                    for taken in 0..rank {
                        let _ = self.give_lock(taken, false);
                    }
                    return Err(error);
                }
            }
        }
        fence(Ordering::SeqCst);
        self.epochs().access = Access::All(taken);
        Ok(())
    }

    /// Ends the epoch of [`Window::lock_all`].
    pub fn unlock_all(&self) -> Result {
        let mut epochs = self.epochs();
        let Access::All(taken) = epochs.access else {
            return Err(wrong("no epoch of MPI_Win_lock_all is open"));
        };
        epochs.access = Access::None;
        drop(epochs);
        let mut result = self.flush_all();
        for rank in 0..self.size() {
            if taken {
                let given = self.give_lock(rank, false);
                result = result.and(given);
            }
        }
        result
    }
}

fn is_complete(request: rg::Request) -> Result<bool> {
    let mut done = 0;
    progress::advance();
    // SAFETY: the call may write the number and the status.
    checked(unsafe { rg::rg_look(request, &mut done, &mut rg::Status::default()) })?;
    Ok(done != 0)
}
