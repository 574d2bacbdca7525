//! Windows: memory of processes that others reach.
//!
//! A process reaches the memory of another one in one of three ways. *Mapped*: the library has made it, in a segment that all
//! processes of a host map. *Copied*: it is memory of the program's on the same host, and the system copies it from process to
//! process; elements in many blocks are asked for. *Asked*: all else; a thread of the target's ([`service`]) acts for whoever asks. The first two are complete when the
//! call is; of the third one, puts and accumulates are complete after a flush.
//!
//! Each accumulate, whichever way it comes, holds the target's word for accumulates on the [`lock_table`] of its host, for all of its
//! elements.

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
    /// The processes, and two groups of the engine's: the first for epochs, the hidden one for requests to services.
    pub comm: Communicator,
    /// MPI_WIN_FLAVOR_.
    pub flavor: c_int,
    /// The memory of each process.
    pub targets: Vec<Target>,
    /// Predefined attributes.
    pub facts: Facts,
    /// Its error handler.
    pub errhandler: HandlerSlot,
    /// Its attributes.
    pub attributes: Attributes<Win>,
    /// Whether some process is reached through its service.
    pub has_service: bool,
    /// Its number in requests to this process' inbox; 0 if none come.
    number: u32,
    /// The thread that serves this process' memory.
    server: Mutex<Option<JoinHandle<()>>>,
    locks: lock_table::LockTable,
    epochs: Mutex<Epochs>,
    /// Which targets the epochs let this process reach, as far as one number tells it: a look at it takes no lock.
    open_to: AtomicI32,
    /// Memory that the program has attached.
    attached: Mutex<Attached>,
    /// Requests to services that have a reply.
    replies: AtomicU32,
    described: Mutex<(CString, Hints)>,
}

/// The values of predefined attributes, which programs are given the addresses of.
#[derive(Debug)]
pub struct Facts {
    /// The memory of this process.
    pub base: usize,
    /// Its bytes.
    pub size: i64,
    /// Bytes of a unit of displacements.
    pub unit: c_int,
    /// MPI_WIN_FLAVOR_.
    pub flavor: c_int,
    /// MPI_WIN_UNIFIED.
    pub model: c_int,
}

static WINDOWS: Table<Arc<Window>> = Table::new(Kind::Win);

const CHUNK: usize = 256;

/// The windows again, to be found without a lock; null where there is none. The first of them, which is all that most programs
/// have, are a step nearer.
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

/// The window with this handle, which stays until it is freed. As with communicators, a program that frees it while another
/// thread uses it breaks MPI's rules.
#[inline(always)]
pub fn get(win: Win) -> Result<&'static Window> {
    let found = place(win).map(|place| place.load(Ordering::Acquire));
    // SAFETY: the window is in the table as long as its place leads to it.
    let found = found.and_then(|window| unsafe { window.as_ref() });
    match found {
        Some(window) if window.handle == win => Ok(window),
        _ => Err(none(win)),
    }
}

/// The window with this handle, held by whoever asks.
pub fn held(win: Win) -> Result<Arc<Window>> {
    WINDOWS.get(win.0).ok_or_else(|| none(win))
}

/// Lets a window be found.
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
        Win(value) => format!("{value:#x} is no window, or one that has been freed"),
    };
    Error::new(ERR_WIN, text)
}

/// The handle of a window leads nowhere from now on.
pub fn remove(win: Win) {
    if let Some(window) = WINDOWS.get(win.0) {
        service::remove(&window);
    }
    if let Some(place) = place(win) {
        place.store(null_mut(), Ordering::Release);
    }
    WINDOWS.remove(win.0);
}

/// Ends the services of windows that were never freed: MPI is being finalized.
pub fn leave_all() {
    for window in WINDOWS.all() {
        window.end_service();
    }
    service::close();
}

impl Window {
    /// The processes of the window.
    pub fn size(&self) -> c_int {
        self.comm.size()
    }

    fn described(&self) -> MutexGuard<'_, (CString, Hints)> {
        self.described
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name.
    pub fn name(&self) -> CString {
        self.described().0.clone()
    }

    /// Gives it a name.
    pub fn set_name(&self, name: CString) {
        self.described().0 = name;
    }

    /// The program's hints.
    pub fn hints(&self) -> Hints {
        self.described().1.clone()
    }

    /// Sets hints; others stay.
    pub fn set_hints(&self, hints: &Hints) {
        self.described().1.merge(hints);
    }

    /// The target with this rank; nothing of MPI_PROC_NULL.
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

    /// Where memory of this process begins that others may reach at this address, if so many bytes are.
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

    /// Lets others reach memory of the program's.
    pub fn attach(&self, base: usize, length: usize) -> Result {
        self.check_dynamic()?;
        match self.attached().add(base, length) {
            true => Ok(()),
            false => {
                let text = format!("a part of the {length} bytes at {base:#x} is attached already");
                Err(Error::new(ERR_RMA_ATTACH, text))
            }
        }
    }

    /// Takes that back.
    pub fn detach(&self, base: usize) -> Result {
        self.check_dynamic()?;
        match self.attached().remove(base) {
            true => Ok(()),
            false => {
                let text = format!("no memory that begins at {base:#x} is attached");
                Err(Error::new(ERR_RMA_ATTACH, text))
            }
        }
    }

    fn check_dynamic(&self) -> Result {
        match self.flavor {
            WIN_FLAVOR_DYNAMIC => Ok(()),
            _ => Err(Error::new(
                ERR_RMA_FLAVOR,
                "memory is attached to windows of MPI_Win_create_dynamic alone",
            )),
        }
    }

    /// Puts and accumulates to these targets have happened there.
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

    /// Puts and accumulates to all targets have happened there.
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
        // If the engine refuses, nobody waits for the service, which may not hear of it.
        if let Some(server) = server
            && service::stop(self).is_ok()
        {
            let _ = server.join();
        }
    }

    /// The end of a window, after all processes have come here; of this process' part alone if one has died. The window stays for all while one
    /// has an epoch open, or cannot delete its attributes, which `delete` does.
    pub fn end(&self, delete: impl FnOnce() -> Result) -> Result {
        const STAYS: &str = "the window stays";
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
            // One that has died has no attributes any more that others would have to hear of.
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
