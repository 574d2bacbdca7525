//! Making windows.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use regatta_sys as rg;

use super::lock_table::{self, LockTable};
use super::{Epochs, Facts, Reach, Target, WINDOWS, Window, copying, epochs, service};
use crate::abi::*;
use crate::attributes::Attributes;
use crate::blocking_collectives::beside;
use crate::communicator::internal_messages::{self, Failed};
use crate::communicator::{self, Communicator, Inherited};
use crate::errhandler::HandlerSlot;
use crate::error::{Error, Result, checked};
use crate::info::Hints;
use crate::segment::{self, File, Segment};

/// The window that a program wants.
pub struct Wish {
    /// MPI_WIN_FLAVOR_.
    pub flavor: c_int,
    /// Its own memory, of MPI_Win_create.
    pub base: usize,
    /// Bytes of it, or that it wants.
    pub size: i64,
    /// Bytes of a unit of displacements.
    pub unit: c_int,
    /// Its hints.
    pub hints: Hints,
}

/// Segments begin with words; memory of the program's is on pages of its own.
const PAGE: usize = 4096;
/// Memory of each process begins at such an address, unless it is to continue that of the process before.
const ALIGNMENT: usize = 64;

/// A word of this process by which others see that they can copy its memory.
static PROBE: AtomicU64 = AtomicU64::new(0);

/// The facts that each process tells of itself.
struct Told {
    size: i64,
    unit: c_int,
    process: c_int,
    probe: u64,
    /// The file of the host's segment; only the first process of a host has one.
    file: segment::Address,
}

fn words(number: u64) -> [c_int; 2] {
    [number as u32 as c_int, (number >> 32) as u32 as c_int]
}

fn number(low: c_int, high: c_int) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// What becomes of a call that makes a window, if it has failed at one process.
const NO_WINDOW: &str = "there is no window";

/// The wish of this process, and what each process tells of itself. An argument of one that is wrong is everybody's error.
fn tell(
    group: rg::Group,
    given: Result<Wish>,
    [file, mark]: segment::Address,
) -> Result<(Wish, Vec<Told>)> {
    let process = std::process::id() as c_int;
    PROBE.store(value_of(process), Ordering::Release);
    let (size, unit) = given.as_ref().map_or((0, 0), |wish| (wish.size, wish.unit));
    let [low, high] = words(size as u64);
    let [probe, probe_high] = words(&raw const PROBE as u64);
    let class = internal_messages::class_of(&given);
    let own = [
        class, low, high, unit, process, probe, probe_high, file, mark,
    ];
    let all = internal_messages::allgather(group, own);
    let (wish, all) = (given?, all?);
    if let Some(failed) = Failed::first(all.iter().map(|it| it[0])) {
        return Err(failed.error(NO_WINDOW));
    }
    let told = |[_, low, high, unit, process, a, b, file, mark]: [c_int; 9]| Told {
        size: number(low, high) as i64,
        unit,
        process,
        probe: number(a, b),
        file: [file, mark],
    };
    Ok((wish, all.into_iter().map(told).collect()))
}

fn value_of(process: c_int) -> u64 {
    0x5265_6761_7474_6100 ^ process as u64
}

/// Memory that the processes of a host share.
struct Shared {
    locks: LockTable,
    /// Where the memory of each local process begins.
    offsets: Vec<usize>,
    /// Whether it is this process' alone, because it cannot map what another one has made.
    alone: bool,
}

/// Bytes of a segment, and where the memory of each of these processes begins.
fn plan(told: &[Told], local: &[c_int], wish: &Wish) -> Option<(usize, Vec<usize>)> {
    let mut end = lock_table::length(local.len(), told.len()).next_multiple_of(PAGE);
    let is_made = is_made(wish);
    let apart = wish.hints.text(c"alloc_shared_noncontig") == Some("true");
    let mut offsets = Vec::new();
    for &rank in local {
        if wish.flavor == WIN_FLAVOR_ALLOCATE || apart {
            end = end.checked_next_multiple_of(ALIGNMENT)?;
        }
        offsets.push(end);
        if is_made {
            end = end.checked_add(told[rank as usize].size as usize)?;
        }
    }
    Some((end.checked_next_multiple_of(PAGE)?, offsets))
}

fn too_large() -> Error {
    Error::new(
        ERR_SIZE,
        "the memory of all processes is longer than addresses are",
    )
}

/// Makes the segment of this host in a file of the first process there, or maps it; nothing if it cannot be mapped.
fn share(
    made: &Communicator,
    told: &[Told],
    local: Vec<c_int>,
    wish: &Wish,
    file: Option<&File>,
) -> Result<Option<Shared>> {
    let (length, offsets) = plan(told, &local, wish).ok_or_else(too_large)?;
    let leader = local[0];
    // Each process reserves its own part, so that its memory is on its own node of the host's memory.
    let own = offsets[local.binary_search(&made.rank).unwrap_or(0)];
    let size = match is_made(wish) {
        true => told[made.rank as usize].size as usize,
        false => 0,
    };
    let parts = [
        0..lock_table::length(local.len(), told.len()),
        own..own + size,
    ];
    let segment = match file {
        Some(file) => Some(file.memory(length, parts)?),
        None if made.rank == leader && local.len() == 1 => Some(Segment::private(length)?),
        None if made.rank == leader => return Err(no_segment(length)),
        None => {
            let leader = &told[leader as usize];
            Segment::open(leader.process, leader.file, length, parts)?
        }
    };
    Ok(segment.map(|segment| Shared {
        locks: LockTable::new(segment, local, made.local.clone()),
        offsets,
        alone: false,
    }))
}

#[cold]
fn no_segment(length: usize) -> Error {
    let text = format!("{length} bytes of memory for the window are not to be had on its host");
    Error::new(ERR_NO_MEM, text)
}

/// Makes memory of this process alone, where the processes of a host cannot share memory.
fn apart(made: &Communicator, told: &[Told], wish: &Wish) -> Result<Option<Shared>> {
    let own = vec![made.rank];
    let (length, offsets) = plan(told, &own, wish).ok_or_else(too_large)?;
    Ok(Some(Shared {
        locks: LockTable::new(Segment::private(length)?, own, made.local.clone()),
        offsets,
        alone: true,
    }))
}

/// Whether the memory of a window is the library's.
fn is_made(wish: &Wish) -> bool {
    matches!(wish.flavor, WIN_FLAVOR_ALLOCATE | WIN_FLAVOR_SHARED)
}

/// Where the memory of this process begins, and whether that of all processes of its host can be copied.
fn own_part(made: &Communicator, told: &[Told], wish: &Wish, shared: &Shared) -> (usize, bool) {
    let own_place = shared.locks.place(made.rank).unwrap_or(0);
    if is_made(wish) {
        let offset = shared.offsets[own_place];
        return (shared.locks.segment.base() as usize + offset, true);
    }
    let can_copy = shared.locks.local.iter().all(|&rank| {
        let it = &told[rank as usize];
        copying::is_possible(it.process, it.probe, value_of(it.process))
    });
    (wish.base, can_copy)
}

/// What each process tells of its part: its class of error, whether it maps the host's segment, whether that is its own, whether memory of its host can
/// be copied, its base, and its inbox.
type PartWords = [c_int; 9];

/// Exchanges [`PartWords`] with all processes; returns this process' base beside them.
fn tell_part(
    made: &Communicator,
    told: &[Told],
    wish: &Wish,
    shared: &Result<Option<Shared>>,
) -> Result<(usize, Vec<PartWords>)> {
    let class = internal_messages::class_of(shared);
    let (mut own, mut base) = ([class, 0, 0, 0, 0, 0, -1, 0, 0], 0);
    if let Ok(Some(shared)) = shared {
        let (place, can_copy) = own_part(made, told, wish, shared);
        let inbox = match can_copy && !is_made(wish) && shared.locks.local.len() > 1 {
            true => service::open(),
            false => service::Address::NONE,
        };
        let ([low, high], [file, mark]) = (words(place as u64), inbox.file);
        let (alone, can_copy) = (shared.alone.into(), can_copy.into());
        own = [
            class,
            1,
            alone,
            can_copy,
            low,
            high,
            file,
            mark,
            inbox.window,
        ];
        base = place;
    }
    Ok((base, internal_messages::allgather(made.group, own)?))
}

/// Makes a window. All processes of the communicator call this, each with its own wish, or with the error of its arguments.
pub fn create(comm: &Communicator, given: Result<Wish>) -> Result<Arc<Window>> {
    let local = comm.local.beside(comm.rank);
    let file = match local.len() > 1 && local[0] == comm.rank && given.is_ok() {
        true => File::new().ok(),
        false => None,
    };
    let address = file.as_ref().map_or(segment::NOWHERE, File::address);
    // In the order of blocking calls: those with a request, in the hidden group, may lie between them in another order in each process.
    let (wish, told) = tell(comm.group, given, address)?;
    let made = communicator::dup(comm)?.with_handle(COMM_NULL, Inherited::named(c""));
    let hosts_apart = local.len() != told.len();
    let mut shared = share(&made, &told, local.clone(), &wish, file.as_ref());
    let mut heard = tell_part(&made, &told, &wish, &shared);
    if let Ok((_, all)) = &heard
        && all.iter().all(|it| it[0] == SUCCESS)
        && all.iter().any(|it| it[1] == 0)
    {
        if local.iter().any(|&rank| all[rank as usize][1] == 0) {
            shared = apart(&made, &told, &wish);
        }
        heard = tell_part(&made, &told, &wish, &shared);
    }
    // The file stays open until all have mapped it.
    drop(file);
    let (shared, (base, all)) = (shared?, heard?);
    if let Some(failed) = Failed::first(all.iter().map(|it| it[0])) {
        return Err(failed.error(NO_WINDOW));
    }
    let shared = shared.ok_or_else(|| Error::new(ERR_INTERN, NO_WINDOW))?;
    let can_copy = all.iter().all(|it| it[3] != 0);
    let some_alone = told.len() > 1 && all.iter().any(|it| it[2] != 0);
    if wish.flavor == WIN_FLAVOR_SHARED && (hosts_apart || some_alone) {
        let text = "the processes do not share memory (MPI_Comm_split_type makes communicators of those that do)";
        return Err(Error::new(ERR_RMA_SHARED, text));
    }
    let targets: Vec<Target> = told
        .iter()
        .zip(&all)
        .zip(0..)
        .map(|((told, words), rank)| {
            let place = shared.locks.place(rank);
            let reach = match place {
                Some(_) if rank == made.rank => Reach::Mapped(base),
                Some(place) if is_made(&wish) => {
                    Reach::Mapped(shared.locks.segment.base() as usize + shared.offsets[place])
                }
                Some(_) if can_copy => Reach::Copied(told.process),
                _ => Reach::Asked,
            };
            target(
                rank,
                reach,
                place,
                number(words[4], words[5]),
                told,
                wish.flavor,
                service::Address {
                    file: [words[6], words[7]],
                    window: words[8],
                },
            )
        })
        .collect();
    let has_service = told.len() > 1 && (hosts_apart || some_alone || !can_copy);
    let rank = made.rank as usize;
    publish(
        made,
        wish,
        base,
        targets,
        shared.locks,
        has_service,
        all[rank][8] as u32,
    )
}

fn target(
    rank: c_int,
    reach: Reach,
    place: Option<usize>,
    base: u64,
    told: &Told,
    flavor: c_int,
    inbox: service::Address,
) -> Target {
    let is_dynamic = flavor == WIN_FLAVOR_DYNAMIC;
    Target {
        rank,
        reach,
        place,
        base,
        size: if is_dynamic { i64::MAX } else { told.size },
        unit: if is_dynamic { 0 } else { i64::from(told.unit) },
        sent: AtomicU64::new(0),
        flushed: AtomicU64::new(0),
        bytes: AtomicUsize::new(0),
        mailbox: service::Mailbox::new(inbox),
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
        // Nobody would answer what is asked of a process without a service.
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
    /// Waits until all processes have come here.
    pub fn meet(&self) -> Result {
        // SAFETY: it takes a group by value.
        beside(|| unsafe { rg::rg_barrier(self.comm.group) })
    }

    /// The words of processes of this host.
    pub(super) fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// An empty message to a process of the window.
    pub(super) fn tell(&self, rank: c_int, tag: c_int) -> Result {
        // SAFETY: there are no bytes.
        checked(unsafe { rg::rg_bsend(std::ptr::null(), 0, rank, tag, self.comm.group) })
    }

    /// The empty message of a process: a request for it.
    pub(super) fn hear(&self, rank: c_int, tag: c_int) -> Result<rg::Request> {
        let mut request = rg::REQUEST_NULL;
        let group = self.comm.group;
        // SAFETY: there are no bytes; the request is written.
        checked(unsafe { rg::rg_irecv(std::ptr::null_mut(), 0, rank, tag, group, &mut request) })?;
        Ok(request)
    }
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs::new()
    }
}
