//! Handles and statuses in MPICH's ABI, as programs have them.
//!
//! The core's handle of an object that is not predefined has 31 bits. With the highest bit set it is the program's
//! handle, an int, so neither conversion needs a lookup. MPICH's predefined handles with this bit cannot be mistaken
//! for these: a handle of the core has its kind in the four bits below, and theirs are of no such kind.

use std::ffi::c_int;

use regatta_mpi::abi;
use regatta_mpi::objects::{FIRST, KIND_SHIFT, Kind};

/// A handle in MPICH's ABI.
pub trait Handle: Copy {
    /// The core's handle type.
    type Core: Copy + PartialEq;
    /// A value that is not a handle of the core.
    const NOTHING: Self::Core;
    /// Converts to the core's handle. An invalid handle becomes one that the core does not know.
    fn inward(self) -> Self::Core;
    /// Converts from the core's handle.
    fn outward(core: Self::Core) -> Self;
}

const DYNAMIC: u32 = 1 << 31;
/// The bit above all bits of a core's handle: no valid handle has it.
const UNKNOWN: usize = 1 << 32;
const PLACES: usize = 512;
/// Upper bound of the standard ABI's predefined handles.
const PREDEFINED_END: usize = 0x300;

/// Returns a hash of a predefined handle, which is unique within its kind: the two highest and the seven lowest bits.
const fn place(value: u32) -> usize {
    (value & 0x7f | value >> 30 << 7) as usize
}

/// Makes the table from hashes to MPICH's and the core's handles. Unused entries contain a handle with another hash.
const fn inward(pairs: &[(u32, u16)]) -> [(u32, u16); PLACES] {
    const NOBODY: (u32, u16) = (u32::MAX, 0);
    let mut table = [NOBODY; PLACES];
    let mut at = 0;
    while at < pairs.len() {
        let place = place(pairs[at].0);
        assert!(table[place].1 == 0, "two handles share one slot");
        table[place] = pairs[at];
        at += 1;
    }
    table
}

/// Makes the table from the core's handles to MPICH's. If two of MPICH's correspond to the same core's handle, the
/// second one is used.
const fn outward(pairs: &[(u32, u16)]) -> [u32; PREDEFINED_END] {
    let mut table = [0; PREDEFINED_END];
    let mut at = 0;
    while at < pairs.len() {
        table[pairs[at].1 as usize] = pairs[at].0;
        at += 1;
    }
    table
}

macro_rules! handles {
    ($($name:ident $pairs:ident)*) => {
        $(
            #[doc = concat!("`MPI_", stringify!($name), "`.")]
            #[repr(transparent)]
            #[derive(Clone, Copy)]
            pub struct $name(u32);

            impl $name {
                pub fn from_int(value: c_int) -> $name {
                    $name(value as u32)
                }

                pub fn to_int(self) -> c_int {
                    self.0 as c_int
                }
            }

            impl Handle for $name {
                type Core = abi::$name;
                const NOTHING: abi::$name = abi::$name(0);

                #[inline(always)]
                fn inward(self) -> abi::$name {
                    static INWARD: [(u32, u16); PLACES] = inward($pairs);
                    const MARK: u32 = DYNAMIC >> KIND_SHIFT | Kind::$name as u32;
                    if self.0 >> KIND_SHIFT == MARK {
                        return abi::$name((self.0 & !DYNAMIC) as usize);
                    }
                    match INWARD[place(self.0)] {
                        (value, found) if value == self.0 => abi::$name(found as usize),
                        _ => abi::$name(self.0 as usize | UNKNOWN),
                    }
                }

                #[inline(always)]
                fn outward(core: abi::$name) -> $name {
                    match core.0 {
                        FIRST..UNKNOWN => $name(core.0 as u32 | DYNAMIC),
                        value if value >= UNKNOWN => $name(value as u32),
                        value => $name(OUTWARD.$name.get(value).copied().unwrap_or(0)),
                    }
                }
            }
        )*

        /// MPICH's values of the core's predefined handles.
        #[allow(non_snake_case)]
        struct Outward {
            $($name: [u32; PREDEFINED_END],)*
        }

        static OUTWARD: Outward = Outward {
            $($name: outward($pairs),)*
        };
    };
}

// Defines all handle types but MPI_File; generated from the table.
include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// `MPI_File`, which is a pointer in this ABI, too.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct File(usize);

/// MPI_FILE_NULL, in this ABI and in the core.
const NO_FILE: (u32, u16) = FILE[0];

impl File {
    pub fn from_int(value: c_int) -> File {
        File(value as u32 as usize)
    }

    pub fn to_int(self) -> c_int {
        self.0 as c_int
    }
}

impl Handle for File {
    type Core = abi::File;
    const NOTHING: abi::File = abi::File(0);

    fn inward(self) -> abi::File {
        match self.0 == NO_FILE.0 as usize {
            true => abi::File(NO_FILE.1 as usize),
            false => abi::File(self.0),
        }
    }

    fn outward(core: abi::File) -> File {
        match core.0 == NO_FILE.1 as usize {
            true => File(NO_FILE.0 as usize),
            false => File(core.0),
        }
    }
}

/// `MPI_Status`: the low 32 bits of the length; the other bits of the length, shifted left by one, with the cancelled
/// flag in bit 0; and the members that programs read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Status {
    low: u32,
    high_and_cancelled: u32,
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
}

impl Status {
    /// A status that has not been set.
    pub const NOTHING: Status = Status {
        low: 0,
        high_and_cancelled: 0,
        source: 0,
        tag: 0,
        error: 0,
    };

    /// Sets the length and the cancelled flag from the core's status.
    #[inline(always)]
    pub fn take(&mut self, core: &abi::Status) {
        let bytes = core.bytes();
        self.low = bytes as u32;
        self.high_and_cancelled = ((bytes >> 32) as u32) << 1 | u32::from(core.cancelled());
    }

    /// Copies them to the core's status.
    pub fn give(&self, core: &mut abi::Status) {
        core.set_bytes(u64::from(self.high_and_cancelled >> 1) << 32 | u64::from(self.low));
        core.set_cancelled(self.high_and_cancelled & 1 != 0);
    }
}
