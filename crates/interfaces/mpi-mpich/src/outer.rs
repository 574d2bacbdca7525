//! Handles and statuses as MPICH's programs have them.
//!
//! The core's handle of an object that is no predefined one has 31 bits. With the highest bit set it is the program's
//! int, so neither way needs a lookup. MPICH's own predefined handles that have this bit are of a kind that the core's never
//! are: a handle of the core's has its kind in the four bits below.

use std::ffi::c_int;

use regatta_mpi::abi;
use regatta_mpi::objects::{FIRST, KIND_SHIFT, Kind};

/// A handle of MPICH's programs.
pub trait Handle: Copy {
    /// The core's.
    type Core: Copy + PartialEq;
    /// None that the core knows.
    const NOTHING: Self::Core;
    /// The core's handle. One that is none leads to one that the core does not know.
    fn inward(self) -> Self::Core;
    /// The program's handle.
    fn outward(core: Self::Core) -> Self;
}

const DYNAMIC: u32 = 1 << 31;
/// The bit above all of a core's handle: no handle has it.
const UNKNOWN: usize = 1 << 32;
const PLACES: usize = 512;
/// Upper bound of the standard ABI's predefined handles, which are all below it.
const PREDEFINED_END: usize = 0x300;

/// A different place for every predefined handle of a kind: the two highest and the seven lowest bits.
const fn place(value: u32) -> usize {
    (value & 0x7f | value >> 30 << 7) as usize
}

/// From the places to MPICH's handles and the core's. Places that nobody has hold a handle that leads to another place.
const fn inward(pairs: &[(u32, u16)]) -> [(u32, u16); PLACES] {
    const NOBODY: (u32, u16) = (u32::MAX, 0);
    let mut table = [NOBODY; PLACES];
    let mut at = 0;
    while at < pairs.len() {
        let place = place(pairs[at].0);
        assert!(table[place].1 == 0, "two handles have one place");
        table[place] = pairs[at];
        at += 1;
    }
    table
}

/// From the core's handles to MPICH's. Of two that the core takes for one the second is given.
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

// Made of the table: all kinds but MPI_File.
include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// `MPI_File`, which is a pointer in this ABI too.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct File(usize);

/// MPI_FILE_NULL, here and in the core.
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

/// `MPI_Status`: the lowest 32 bits of the length, whether the operation was cancelled with the other bits above that, and
/// the members that programs read.
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
    /// One that nobody has written.
    pub const NOTHING: Status = Status {
        low: 0,
        high_and_cancelled: 0,
        source: 0,
        tag: 0,
        error: 0,
    };

    /// Takes the length, and whether it was cancelled.
    #[inline(always)]
    pub fn take(&mut self, core: &abi::Status) {
        let bytes = core.bytes();
        self.low = bytes as u32;
        self.high_and_cancelled = ((bytes >> 32) as u32) << 1 | u32::from(core.cancelled());
    }

    /// Gives them.
    pub fn give(&self, core: &mut abi::Status) {
        core.set_bytes(u64::from(self.high_and_cancelled >> 1) << 32 | u64::from(self.low));
        core.set_cancelled(self.high_and_cancelled & 1 != 0);
    }
}
