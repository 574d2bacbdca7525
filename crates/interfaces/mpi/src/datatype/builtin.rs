//! The predefined datatypes.

use std::sync::{Arc, OnceLock};

use super::Type;
use super::map::Map;
use crate::abi::*;

/// The number that precedes those of predefined datatypes.
const FIRST: usize = 0x200;

/// Kind of a basic element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating-point number.
    Real,
    /// A complex number: two floating-point numbers.
    Complex,
    /// A logical value.
    Logical,
    /// A character.
    Letter,
    /// Uninterpreted bytes.
    Bytes,
}

/// A predefined datatype of one element.
#[derive(Debug)]
pub struct Basic {
    /// Its handle.
    pub datatype: Datatype,
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Size in memory, in bytes.
    pub size: usize,
    /// Size in external32, in bytes.
    pub external: usize,
}

impl Basic {
    /// Returns its alignment in C, in bytes.
    pub fn alignment(&self) -> usize {
        match self.kind {
            Kind::Complex => self.size / 2,
            _ => self.size,
        }
    }
}

/// A predefined datatype of two elements, with a gap between them if alignment requires one.
struct Pair {
    datatype: Datatype,
    name: &'static str,
    first: Datatype,
    second: Datatype,
}

macro_rules! basics {
    ($($kind:ident: $($name:ident $size:literal $($external:literal)?),*;)*) => {
        /// All predefined datatypes of one element.
        pub static BASICS: &[Basic] = &[$($(Basic {
            datatype: $name,
            name: concat!("MPI_", stringify!($name)),
            kind: Kind::$kind,
            size: $size,
            external: basics!(@ $size $($external)?),
        }),*),*];
    };
    (@ $size:literal) => { $size };
    (@ $size:literal $external:literal) => { $external };
}

// Name, size in memory, and size in external32 if that differs, in bytes. If a datatype has two names, this is the one
// that the standard lists, not its synonym.
basics! {
    Signed: AINT 8, COUNT 8, OFFSET 8, SHORT 2, INT 4, LONG 8 4, LONG_LONG_INT 8, SIGNED_CHAR 1, INT8_T 1, INT16_T 2, INT32_T 4,
        INT64_T 8, INTEGER 4, INTEGER1 1, INTEGER2 2, INTEGER4 4, INTEGER8 8, INTEGER16 16;
    Unsigned: UNSIGNED_CHAR 1, UNSIGNED_SHORT 2, UNSIGNED 4, UNSIGNED_LONG 8 4, UNSIGNED_LONG_LONG 8, UINT8_T 1, UINT16_T 2,
        UINT32_T 4, UINT64_T 8;
    Real: FLOAT 4, DOUBLE 8, LONG_DOUBLE 16, REAL 4, DOUBLE_PRECISION 8, REAL2 2, REAL4 4, REAL8 8, REAL16 16;
    Complex: C_COMPLEX 8, C_DOUBLE_COMPLEX 16, C_LONG_DOUBLE_COMPLEX 32, CXX_FLOAT_COMPLEX 8, CXX_DOUBLE_COMPLEX 16,
        CXX_LONG_DOUBLE_COMPLEX 32, COMPLEX 8, DOUBLE_COMPLEX 16, COMPLEX4 4, COMPLEX8 8, COMPLEX16 16, COMPLEX32 32;
    Logical: C_BOOL 1, CXX_BOOL 1, LOGICAL 4, LOGICAL1 1, LOGICAL2 2, LOGICAL4 4, LOGICAL8 8, LOGICAL16 16;
    Letter: CHAR 1, WCHAR 4 2, CHARACTER 1;
    Bytes: BYTE 1, PACKED 1;
}

macro_rules! pairs {
    ($($name:ident $text:literal $first:ident $second:ident;)*) => {
        static PAIRS: &[Pair] = &[$(Pair {
            datatype: $name,
            name: $text,
            first: $first,
            second: $second,
        }),*];
    };
}

pairs! {
    FLOAT_INT "MPI_FLOAT_INT" FLOAT INT;
    DOUBLE_INT "MPI_DOUBLE_INT" DOUBLE INT;
    LONG_INT "MPI_LONG_INT" LONG INT;
    _2INT "MPI_2INT" INT INT;
    SHORT_INT "MPI_SHORT_INT" SHORT INT;
    LONG_DOUBLE_INT "MPI_LONG_DOUBLE_INT" LONG_DOUBLE INT;
    _2REAL "MPI_2REAL" REAL REAL;
    _2DOUBLE_PRECISION "MPI_2DOUBLE_PRECISION" DOUBLE_PRECISION DOUBLE_PRECISION;
    _2INTEGER "MPI_2INTEGER" INTEGER INTEGER;
}

/// Size in bytes of each contiguous predefined datatype; 0 if there is no datatype with this number, or it has gaps.
static SIZES: [u8; 256] = sizes();

const fn sizes() -> [u8; 256] {
    let mut sizes = [0; 256];
    let mut at = 0;
    while at < BASICS.len() {
        sizes[BASICS[at].datatype.0 - FIRST] = BASICS[at].size as u8;
        at += 1;
    }
    sizes[FLOAT_INT.0 - FIRST] = 8;
    sizes[_2INT.0 - FIRST] = 8;
    sizes[_2REAL.0 - FIRST] = 8;
    sizes[_2DOUBLE_PRECISION.0 - FIRST] = 16;
    sizes[_2INTEGER.0 - FIRST] = 8;
    sizes
}

/// Returns the size of a contiguous predefined datatype in bytes.
#[inline(always)]
pub fn size(datatype: Datatype) -> Option<usize> {
    match SIZES.get(datatype.0.wrapping_sub(FIRST)) {
        Some(&size) if size != 0 => Some(size as usize),
        _ => None,
    }
}

/// Index in `BASICS` plus 1 of each datatype of one element; 0 if there is none with this number.
static PLACES: [u8; 256] = places();

const fn places() -> [u8; 256] {
    let mut places = [0; 256];
    let mut at = 0;
    while at < BASICS.len() {
        places[BASICS[at].datatype.0 - FIRST] = at as u8 + 1;
        at += 1;
    }
    places
}

/// Returns the index in `BASICS` of the datatype with this handle; `usize::MAX` if it has none.
#[inline(always)]
pub fn place(datatype: Datatype) -> usize {
    let place = PLACES.get(datatype.0.wrapping_sub(FIRST));
    usize::from(place.copied().unwrap_or(0)).wrapping_sub(1)
}

/// Returns the predefined datatype of one element with this handle.
#[inline]
pub fn basic(datatype: Datatype) -> Option<&'static Basic> {
    BASICS.get(place(datatype))
}

/// Returns the two elements of a predefined pair.
pub fn pair(datatype: Datatype) -> Option<(&'static Basic, &'static Basic)> {
    let pair = PAIRS.iter().find(|it| it.datatype == datatype)?;
    basic(pair.first).zip(basic(pair.second))
}

/// Returns the predefined pair of these two datatypes.
pub fn pair_of(first: Datatype, second: Datatype) -> Option<Datatype> {
    // Pairs of C and of Fortran whose elements have the same sizes differ in the datatypes of their elements.
    let found = PAIRS
        .iter()
        .find(|it| it.first == first && it.second == second);
    found.map(|it| it.datatype)
}

/// Returns whether this is the handle of a predefined datatype, including those that this library does not support.
pub fn is_predefined(datatype: Datatype) -> bool {
    (FIRST + 1..FIRST + 0x100).contains(&datatype.0)
}

/// Returns the predefined datatype with this handle.
pub fn get(datatype: Datatype) -> Option<Arc<Type>> {
    static TYPES: [OnceLock<Option<Arc<Type>>>; 256] = [const { OnceLock::new() }; 256];
    let place = TYPES.get(datatype.0.wrapping_sub(FIRST))?;
    place.get_or_init(|| make(datatype).map(Arc::new)).clone()
}

fn make(datatype: Datatype) -> Option<Type> {
    if let Some(basic) = basic(datatype) {
        return Some(Type::named(datatype, basic.name, Map::of_basic(basic)));
    }
    let (first, second) = pair(datatype)?;
    let name = PAIRS.iter().find(|it| it.datatype == datatype)?.name;
    let map = Map::of_pair(first, second)?;
    Some(Type::named(datatype, name, map))
}
