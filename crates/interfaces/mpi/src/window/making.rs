//! Making windows.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use regatta_sys as rg;

use super::lock_table::LockTable;
use super::sharing::{agree_on_parts, share};
use super::telling::{NO_WINDOW, Offer, Part, Told, is_prepared, tell};
use super::{Epochs, Facts, Reach, Target, WINDOWS, Window, epochs, service};
use crate::abi::*;
use crate::attributes::Attributes;
use crate::blocking_collectives::beside;
use crate::communicator::{self, Communicator, Inherited, internal_messages};
use crate::errhandler::HandlerSlot;
use crate::error::{Error, Result, checked};
use crate::info::Hints;

/// The window that a program requests.
pub struct Wish {
    /// Its flavor (MPI_WIN_FLAVOR_).
    pub flavor: c_int,
    /// Address of the program's memory, for MPI_Win_create.
    pub base: usize,
    /// Size of the memory in bytes.
    pub size: i64,
    /// Displacement unit in bytes.
    pub unit: c_int,
    /// Its hints.
    pub hints: Hints,
}

impl Wish {
    /// Returns whether the library allocates the window's memory.
    pub(super) fn is_made(&self) -> bool {
        matches!(self.flavor, WIN_FLAVOR_ALLOCATE | WIN_FLAVOR_SHARED)
    }
}

/// Makes a window. All processes of the communicator call this, each with its own request, or with the error of an
/// invalid argument.
pub fn create(comm: &Communicator, given: Result<Wish>) -> Result<Arc<Window>> {
    let local = comm.local.beside(comm.rank);
    let offer = Offer::new(comm, &local, &given);
    // The exchange uses blocking collectives, which have the same order in all processes. Nonblocking ones, in the
    // hidden group, may be ordered differently relative to these in each process.
    let (wish, told) = tell(comm, &local, given, &offer)?;
    let made = communicator::dup(comm)?.with_handle(COMM_NULL, Inherited::named(c""));
    let hosts_apart = local.len() != told.len();
    let (shared, parts) = match is_prepared(comm, &told) {
        true => {
            let (shared, _) = share(&made, &told, local.clone(), &wish, offer)?;
            let shared = shared.ok_or_else(|| Error::new(ERR_INTERN, NO_WINDOW))?;
            (shared, told.iter().map(|it| it.part).collect())
        }
        false => agree_on_parts(&made, &told, &local, &wish, offer)?,
    };
    let can_copy = parts.iter().all(|it| it.can_copy);
    let some_alone = told.len() > 1 && parts.iter().any(|it| it.alone);
    if wish.flavor == WIN_FLAVOR_SHARED && (hosts_apart || some_alone) {
        let text = "the processes do not share memory (MPI_Comm_split_type makes communicators of processes that do)";
        return Err(Error::new(ERR_RMA_SHARED, text));
    }
    let base = parts[made.rank as usize].base as usize;
    let targets = (told.iter().zip(&parts).zip(0..)).map(|((told, part), rank)| {
        let place = shared.locks.place(rank);
        let reach = match place {
            Some(_) if rank == made.rank => Reach::Mapped(base),
            Some(place) if wish.is_made() => {
                Reach::Mapped(shared.locks.memory.base() as usize + shared.offsets[place])
            }
            Some(_) if can_copy => Reach::Copied(told.process),
            _ => Reach::Asked,
        };
        target(rank, reach, place, part, told, wish.flavor)
    });
    let targets = targets.collect();
    let has_service = told.len() > 1 && (hosts_apart || some_alone || !can_copy);
    let number = parts[made.rank as usize].inbox.window as u32;
    publish(made, wish, base, targets, shared.locks, has_service, number)
}

fn target(
    rank: c_int,
    reach: Reach,
    place: Option<usize>,
    part: &Part,
    told: &Told,
    flavor: c_int,
) -> Target {
    let is_dynamic = flavor == WIN_FLAVOR_DYNAMIC;
    Target {
        rank,
        reach,
        place,
        base: part.base,
        size: if is_dynamic { i64::MAX } else { told.size },
        unit: if is_dynamic { 0 } else { i64::from(told.unit) },
        sent: AtomicU64::new(0),
        flushed: AtomicU64::new(0),
        bytes: AtomicUsize::new(0),
        mailbox: service::Mailbox::new(part.inbox),
    }
}

fn publish(
    comm: Communicator,
    wish: Wish,
    base: usize,
    targets: Vec<Target>,
    locks: LockTable,
    has_service: bool,
    number: u32,
) -> Result<Arc<Window>> {
    let facts = Facts {
        base,
        size: wish.size,
        unit: wish.unit,
        flavor: wish.flavor,
        model: WIN_UNIFIED,
    };
    let make = |handle: usize| {
        Arc::new(Window {
            handle: Win(handle),
            comm,
            flavor: wish.flavor,
            targets,
            facts,
            errhandler: HandlerSlot::new(ERRORS_ARE_FATAL),
            attributes: Attributes::new(),
            has_service,
            number,
            server: Mutex::new(None),
            locks,
            epochs: Mutex::default(),
            open_to: AtomicI32::new(epochs::NOBODY),
            attached: Mutex::default(),
            replies: AtomicU32::new(0),
            described: Mutex::new((c"".to_owned(), wish.hints)),
        })
    };
    let handle = WINDOWS.insert_with(make);
    let handle = handle.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many windows"))?;
    let window = super::held(Win(handle))?;
    super::open(&window);
    if number != 0 {
        service::add(&window);
    }
    if has_service {
        let started = service::start(window.clone()).map(|server| window.set_server(server));
        // If a process has no service, requests to it would never be answered.
        let agreed = internal_messages::agree_on_outcome(window.comm.group, started, NO_WINDOW);
        if let Err(error) = agreed {
            window.end_service();
            super::remove(window.handle);
            return Err(error);
        }
    }
    Ok(window)
}

impl Window {
    /// Waits until all processes have called this.
    pub fn meet(&self) -> Result {
        // SAFETY: the call takes the group by value and no pointers.
        beside(|| unsafe { rg::rg_barrier(self.comm.group) })
    }

    /// Returns the lock words of processes of this host.
    pub(super) fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// Sends an empty message to a process of the window.
    pub(super) fn tell(&self, rank: c_int, tag: c_int) -> Result {
        // SAFETY: the length is 0, so no memory is accessed.
        checked(unsafe { rg::rg_bsend(std::ptr::null(), 0, rank, tag, self.comm.group) })
    }

    /// Begins to receive an empty message from a process. Returns the request.
    pub(super) fn hear(&self, rank: c_int, tag: c_int) -> Result<rg::Request> {
        let mut request = rg::REQUEST_NULL;
        let group = self.comm.group;
        // SAFETY: the length is 0, so no memory is accessed; the call may write the request.
        checked(unsafe { rg::rg_irecv(std::ptr::null_mut(), 0, rank, tag, group, &mut request) })?;
        Ok(request)
    }
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs::new()
    }
}
