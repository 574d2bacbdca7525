//! What processes exchange when they create a window.
//!
//! Each sends its request, its process, and the pool that it has mapped. Often each has already mapped the pool with
//! the lock words of its host and can copy its host's memory, as at the second window of the program's memory. Then one
//! exchange is enough. Otherwise they exchange their parts in a second one, after they have created or mapped the
//! memory.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use regatta_sys as rg;
use rustc_hash::FxHashMap;

use super::lock_memory::{self, Piece};
use super::making::Wish;
use super::sharing::{Shared, own_part};
use super::{lock_table, service};
use crate::communicator::Communicator;
use crate::communicator::internal_messages::{self, Failed};
use crate::error::Result;
use crate::segment::{self, File};

/// A word of this process by which others check whether they can copy its memory.
static PROBE: AtomicU64 = AtomicU64::new(0);

/// The facts that each process sends about itself.
pub(super) struct Told {
    pub(super) size: i64,
    pub(super) unit: c_int,
    pub(super) process: c_int,
    pub(super) probe: u64,
    /// The file of the host's segment, or of the pool that has the host's lock words. Only the first process of a host
    /// has one.
    pub(super) file: segment::Address,
    /// Offset of the lock words in that pool in bytes; -1 if the file is not a pool.
    pub(super) offset: c_int,
    /// Its part, valid if all processes have mapped the pools that they need, and can copy.
    pub(super) part: Part,
    /// The file of the pool of its host's first process, if it has mapped it.
    pub(super) mapped: segment::Address,
}

/// The memory that the first process of a host offers to the others there.
pub(super) enum Offer {
    Nothing,
    /// A new segment.
    File(File),
    /// A piece of its pool, the pool's file, and the offset there.
    Piece(Piece, segment::Address, usize),
}

impl Offer {
    /// Creates what this process offers if it is the first one of its host.
    pub(super) fn new(comm: &Communicator, local: &[c_int], given: &Result<Wish>) -> Offer {
        let Some(wish) = given.as_ref().ok().filter(|_| local[0] == comm.rank) else {
            return Offer::Nothing;
        };
        if !wish.is_made()
            && let Some((piece, file, offset)) =
                lock_memory::take(lock_table::length(local.len(), comm.local.len()))
        {
            return Offer::Piece(piece, file, offset);
        }
        match local.len() {
            1 => Offer::Nothing,
            _ => File::new().map_or(Offer::Nothing, Offer::File),
        }
    }

    /// Takes back what all know not to be there.
    fn take_back(&self) {
        if let Offer::Piece(piece, ..) = self {
            piece.end();
        }
    }

    fn address(&self) -> segment::Address {
        match self {
            Offer::Nothing => segment::NOWHERE,
            Offer::File(file) => file.address(),
            Offer::Piece(_, file, _) => *file,
        }
    }

    fn offset(&self) -> c_int {
        match self {
            Offer::Piece(_, _, offset) => *offset as c_int,
            _ => -1,
        }
    }
}

fn words(number: u64) -> [c_int; 2] {
    [number as u32 as c_int, (number >> 32) as u32 as c_int]
}

fn number(low: c_int, high: c_int) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// The consequence, in error messages, of a call that has failed at one process.
pub(super) const NO_WINDOW: &str = "there is no window";

/// Exchanges the facts of all processes. Returns the request of this process, and the facts of each. If one process
/// passes an invalid argument, all fail.
pub(super) fn tell(
    comm: &Communicator,
    local: &[c_int],
    given: Result<Wish>,
    offer: &Offer,
) -> Result<(Wish, Vec<Told>)> {
    let process = std::process::id() as c_int;
    PROBE.store(value_of(process), Ordering::Release);
    let (size, unit) = given.as_ref().map_or((0, 0), |wish| (wish.size, wish.unit));
    let [low, high] = words(size as u64);
    let [probe, probe_high] = words(&raw const PROBE as u64);
    let class = internal_messages::class_of(&given);
    let [file, mark] = offer.address();
    let [mapped, mapped_mark] = match offer {
        Offer::Piece(_, own, _) => *own,
        _ => lock_memory::mapped(comm.local[local[0] as usize]),
    };
    let part = match &given {
        Ok(wish) if !wish.is_made() => early_part(comm, local, wish),
        _ => Part::default(),
    };
    let [base, base_high] = words(part.base);
    let own = [
        class,
        low,
        high,
        unit,
        process,
        probe,
        probe_high,
        file,
        mark,
        offer.offset(),
        mapped,
        mapped_mark,
        part.can_copy.into(),
        base,
        base_high,
        part.inbox.file[0],
        part.inbox.file[1],
        part.inbox.window,
    ];
    let all = internal_messages::allgather(comm.group, own);
    let (wish, all) = (given?, all?);
    if let Some(failed) = Failed::first(all.iter().map(|it| it[0])) {
        offer.take_back();
        return Err(failed.error(NO_WINDOW));
    }
    let told = |it: [c_int; 18]| Told {
        size: number(it[1], it[2]) as i64,
        unit: it[3],
        process: it[4],
        probe: number(it[5], it[6]),
        file: [it[7], it[8]],
        offset: it[9],
        mapped: [it[10], it[11]],
        part: Part {
            alone: false,
            can_copy: it[12] != 0,
            base: number(it[13], it[14]),
            inbox: service::Address {
                file: [it[15], it[16]],
                window: it[17],
            },
        },
    };
    Ok((wish, all.into_iter().map(told).collect()))
}

/// Returns the part of this process in a window of the program's memory, as far as it is known before the exchange.
fn early_part(comm: &Communicator, local: &[c_int], wish: &Wish) -> Part {
    let can_copy = local.iter().all(|&rank| {
        rank == comm.rank || lock_memory::can_copy(comm.local[rank as usize], value_of)
    });
    Part {
        alone: false,
        can_copy,
        base: wish.base as u64,
        inbox: inbox(can_copy && local.len() > 1),
    }
}

fn inbox(has_one: bool) -> service::Address {
    match has_one {
        true => service::open(),
        false => service::Address::NONE,
    }
}

/// Returns whether each process has mapped the pool with the lock words of its host and can copy its host's memory, so
/// that no second exchange is needed.
pub(super) fn is_prepared(comm: &Communicator, told: &[Told]) -> bool {
    let mut pools: FxHashMap<c_int, segment::Address> = FxHashMap::default();
    comm.local.iter().zip(told).all(|(&task, it)| {
        // SAFETY: the call takes a number and no pointers.
        let host = unsafe { rg::rg_host_of(task) };
        let pool = *pools.entry(host).or_insert(match it.offset {
            0.. => it.file,
            _ => segment::NOWHERE,
        });
        it.part.can_copy && pool != segment::NOWHERE && it.mapped == pool
    })
}

pub(super) fn value_of(process: c_int) -> u64 {
    0x5265_6761_7474_6100 ^ process as u64
}

/// The part of a process in a window.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Whether only this process uses its segment.
    pub(super) alone: bool,
    /// Whether the memory of its host can be copied.
    pub(super) can_copy: bool,
    /// Address of its memory.
    pub(super) base: u64,
    /// The inbox to which others on its host send requests.
    pub(super) inbox: service::Address,
}

impl Default for Part {
    fn default() -> Part {
        Part {
            alone: false,
            can_copy: false,
            base: 0,
            inbox: service::Address::NONE,
        }
    }
}

/// The words that each process sends about its part: its error class, whether it has mapped the host's segment, and the
/// [`Part`].
pub(super) type PartWords = [c_int; 9];

/// Exchanges [`PartWords`] with all processes.
pub(super) fn tell_part(
    made: &Communicator,
    told: &[Told],
    wish: &Wish,
    shared: &Result<Option<Shared>>,
) -> Result<Vec<PartWords>> {
    let class = internal_messages::class_of(shared);
    let mut own = [class, 0, 0, 0, 0, 0, -1, 0, 0];
    if let Ok(Some(shared)) = shared {
        let (place, can_copy) = own_part(made, told, wish, shared);
        let inbox = inbox(can_copy && !wish.is_made() && shared.locks.local.len() > 1);
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
    }
    internal_messages::allgather(made.group, own)
}

/// Returns the parts in the words of all processes.
pub(super) fn parts_of(all: Vec<PartWords>) -> Vec<Part> {
    let part = |it: PartWords| Part {
        alone: it[2] != 0,
        can_copy: it[3] != 0,
        base: number(it[4], it[5]),
        inbox: service::Address {
            file: [it[6], it[7]],
            window: it[8],
        },
    };
    all.into_iter().map(part).collect()
}
