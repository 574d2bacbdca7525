//! Windows: memory that other processes can access (RMA).
//!
//! A process accesses the memory of a target in one of three ways:
//!
//! - *Mapped*: the library has allocated it in a segment that all processes of a host map.
//! - *Copied*: it is memory of the program on the same host, and the kernel copies it between processes. For elements
//!   in many blocks, the target is asked to copy them.
//! - *Asked*: in all other cases a thread of the target ([`service`]) acts on behalf of the origin.
//!
//! The first two are complete when the call returns. With the third, puts and accumulates are complete after a flush.
//!
//! Each accumulate, whichever way it is made, holds the target's accumulate lock in the [`lock_table`] of its host, for
//! all of its elements.

pub mod accumulate;
mod attached;
mod copying;
mod epochs;
mod lock_memory;
mod lock_table;
mod making;
mod pieces;
pub mod quick;
pub mod service;
mod sharing;
pub mod targets;
mod telling;
pub mod transfer;

use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use attached::Attached;
pub use epochs::{Epochs, check_assert};
pub use making::{Wish, create};
pub use targets::{Reach, Target};

use crate::abi::*;
use crate::attributes::Attributes;
use crate::communicator::Communicator;
use crate::communicator::internal_messages::{self, Failed, class_of};
use crate::errhandler::{Handled, HandlerSlot};
use crate::error::{Error, Result};
use crate::info::Hints;
use crate::objects::{self, Kind, MAX_OBJECTS, Table};
use crate::process;

/// A window.
pub struct Window {
    /// Its handle.
    pub handle: Win,
    /// The processes, with two groups of the engine: the first one for epochs, the hidden one for requests to services.
    pub comm: Communicator,
    /// Its flavor (MPI_WIN_FLAVOR_).
    pub flavor: c_int,
    /// The memory of each process.
    pub targets: Vec<Target>,
    /// The values of predefined attributes.
    pub facts: Facts,
    /// Its error handler.
    pub errhandler: HandlerSlot,
    /// Its attributes.
    pub attributes: Attributes<Win>,
    /// Whether any process is accessed through its service.
    pub has_service: bool,
    /// Its number in requests to this process's inbox; 0 if it gets none.
    number: u32,
    /// The thread that serves this process's memory.
    server: Mutex<Option<JoinHandle<()>>>,
    locks: lock_table::LockTable,
    epochs: Mutex<Epochs>,
    /// The targets that the present epochs allow to access, as far as one number can express that; checking it takes no
    /// lock.
    open_to: AtomicI32,
    /// Memory that the program has attached.
    attached: Mutex<Attached>,
    /// Number of requests with a reply that have been sent to services.
    replies: AtomicU32,
    described: Mutex<(CString, Hints)>,
}

/// The values of predefined attributes, whose addresses programs get.
#[derive(Debug)]
pub struct Facts {
    /// Address of this process's memory.
    pub base: usize,
    /// Size of this process's memory in bytes.
    pub size: i64,
    /// Displacement unit in bytes.
    pub unit: c_int,
    /// Flavor (MPI_WIN_FLAVOR_).
    pub flavor: c_int,
    /// Memory model (MPI_WIN_UNIFIED).
    pub model: c_int,
}

static WINDOWS: Table<Arc<Window>> = Table::new(Kind::Win);

const CHUNK: usize = 256;

/// Pointers to all windows, for lookup without a lock; null if there is none. `NEAR` has the first ones, which are all
/// that most programs have, and saves one indirection.
static NEAR: [AtomicPtr<Window>; CHUNK] = [const { AtomicPtr::new(null_mut()) }; CHUNK];
static PLACES: [OnceLock<Box<[AtomicPtr<Window>]>>; MAX_OBJECTS / CHUNK] =
    [const { OnceLock::new() }; MAX_OBJECTS / CHUNK];

#[inline(always)]
fn place(win: Win) -> Option<&'static AtomicPtr<Window>> {
    let index = objects::index(Kind::Win, win.0)?;
    match index < CHUNK {
        true => Some(&NEAR[index]),
        false => PLACES[index / CHUNK].get()?.get(index % CHUNK),
    }
}

/// Returns the window with this handle, which must not be freed while it is used. As with communicators, a program that
/// frees it while another thread uses it breaks MPI's rules.
#[inline(always)]
pub fn get(win: Win) -> Result<&'static Window> {
    let found = place(win).map(|place| place.load(Ordering::Acquire));
    // SAFETY: the table owns the window as long as the pointer to it is set.
    let found = found.and_then(|window| unsafe { window.as_ref() });
    match found {
        Some(window) if window.handle == win => Ok(window),
        _ => Err(none(win)),
    }
}

/// Returns the window with this handle, kept alive by the caller.
pub fn held(win: Win) -> Result<Arc<Window>> {
    WINDOWS.get(win.0).ok_or_else(|| none(win))
}

/// Makes a window available to [`get`].
fn open(window: &Arc<Window>) {
    if let Some(index) = objects::index(Kind::Win, window.handle.0)
        && index >= CHUNK
    {
        let empty = || (0..CHUNK).map(|_| AtomicPtr::default()).collect();
        PLACES[index / CHUNK].get_or_init(empty);
    }
    if let Some(place) = place(window.handle) {
        place.store(Arc::as_ptr(window).cast_mut(), Ordering::Release);
    }
}

#[cold]
fn none(win: Win) -> Error {
    if let Err(error) = process::require() {
        return error;
    }
    let text = match win {
        WIN_NULL => "the window is MPI_WIN_NULL".to_owned(),
        Win(value) => format!("{value:#x} is not a valid window; it may have been freed"),
    };
    Error::new(ERR_WIN, text)
}

/// Removes a window; its handle is invalid from now on.
pub fn remove(win: Win) {
    if let Some(window) = WINDOWS.get(win.0) {
        service::remove(&window);
    }
    if let Some(place) = place(win) {
        place.store(null_mut(), Ordering::Release);
    }
    WINDOWS.remove(win.0);
}

/// Ends the services of windows that were never freed, because MPI is being finalized.
pub fn leave_all() {
    for window in WINDOWS.all() {
        window.end_service();
    }
    service::close();
}

impl Window {
    /// Returns the number of processes of the window.
    pub fn size(&self) -> c_int {
        self.comm.size()
    }

    fn described(&self) -> MutexGuard<'_, (CString, Hints)> {
        self.described
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its name.
    pub fn name(&self) -> CString {
        self.described().0.clone()
    }

    /// Sets its name.
    pub fn set_name(&self, name: CString) {
        self.described().0 = name;
    }

    /// Returns the program's hints.
    pub fn hints(&self) -> Hints {
        self.described().1.clone()
    }

    /// Sets these hints; other hints keep their values.
    pub fn set_hints(&self, hints: &Hints) {
        self.described().1.merge(hints);
    }

    /// Returns the target with this rank; `None` for MPI_PROC_NULL.
    pub fn target(&self, rank: c_int) -> Result<Option<&Target>> {
        match usize::try_from(rank)
            .ok()
            .and_then(|it| self.targets.get(it))
        {
            None if rank == PROC_NULL => Ok(None),
            None => {
                let last = self.size() - 1;
                let text = format!("the target is {rank}; ranks of the window are 0 to {last}");
                Err(Error::new(ERR_RANK, text))
            }
            found => Ok(found),
        }
    }

    /// Returns whether other processes may access `length` bytes at this address of this process.
    fn allows(&self, address: u64, length: u64) -> bool {
        if self.flavor == WIN_FLAVOR_DYNAMIC {
            return self.attached().has(address as usize, length as usize);
        }
        let (base, size) = (self.facts.base as u64, self.facts.size as u64);
        let end = address.checked_add(length);
        address >= base && end.is_some_and(|end| end - base <= size)
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches memory of the program.
    pub fn attach(&self, base: usize, length: usize) -> Result {
        self.check_dynamic()?;
        match self.attached().add(base, length) {
            true => Ok(()),
            false => {
                let text = format!("a part of the {length} bytes at {base:#x} is already attached");
                Err(Error::new(ERR_RMA_ATTACH, text))
            }
        }
    }

    /// Detaches memory of the program.
    pub fn detach(&self, base: usize) -> Result {
        self.check_dynamic()?;
        match self.attached().remove(base) {
            true => Ok(()),
            false => {
                let text = format!("no memory that starts at {base:#x} is attached");
                Err(Error::new(ERR_RMA_ATTACH, text))
            }
        }
    }

    fn check_dynamic(&self) -> Result {
        match self.flavor {
            WIN_FLAVOR_DYNAMIC => Ok(()),
            _ => Err(Error::new(
                ERR_RMA_FLAVOR,
                "memory can be attached only to windows of MPI_Win_create_dynamic",
            )),
        }
    }

    /// Waits until all puts and accumulates to these targets are complete at the targets.
    pub fn flush(&self, ranks: impl IntoIterator<Item = c_int>) -> Result {
        fence(Ordering::SeqCst);
        service::serve_own();
        let mut result = Ok(());
        if self.has_service {
            for rank in ranks {
                let flushed = service::flush(self, rank);
                result = result.and(flushed);
            }
        }
        result
    }

    /// Waits until all puts and accumulates are complete at the targets.
    pub fn flush_all(&self) -> Result {
        self.flush(0..self.size())
    }

    fn server(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_server(&self, server: JoinHandle<()>) {
        *self.server() = Some(server);
    }

    fn end_service(&self) {
        let server = self.server().take();
        // If the engine refuses the request to stop, the service is not waited for, since it may never get the request.
        if let Some(server) = server
            && service::stop(self).is_ok()
        {
            let _ = server.join();
        }
    }

    /// Frees the window after all processes have called this. If a process has died, frees the local part only. The
    /// window stays in all processes if one has an open epoch, or cannot delete its attributes, which `delete` does.
    pub fn end(&self, delete: impl FnOnce() -> Result) -> Result {
        const STAYS: &str = "the window is kept";
        let group = self.comm.group;
        let free = self.check_between();
        let flushed = match &free {
            Ok(()) => self.flush_all(),
            Err(_) => Ok(()),
        };
        let has_attributes = c_int::from(!self.attributes.is_empty());
        let came = internal_messages::allgather(group, [class_of(&free), has_attributes]);
        free?;
        let met = match came {
            // If a process has died, the others need not agree on the deletion of attributes.
            Err(gone) => {
                delete()?;
                Err(gone)
            }
            Ok(all) => {
                let met = match Failed::first(all.iter().map(|it| it[0])) {
                    Some(failed) => return Err(failed.error(STAYS)),
                    None if all.iter().all(|it| it[1] == 0) => Ok(()),
                    None => internal_messages::meet_with(group, delete(), STAYS)?.1,
                };
                self.locks.memory.end();
                met
            }
        };
        self.end_service();
        remove(self.handle);
        flushed.and(met)
    }
}

impl Handled for Window {
    fn errhandler(&self) -> &HandlerSlot {
        &self.errhandler
    }
}
