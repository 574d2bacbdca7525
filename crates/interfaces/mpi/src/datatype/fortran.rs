//! Datatypes by the precision and range that Fortran programs request, and pairs for MPI_MINLOC and MPI_MAXLOC. They
//! count as predefined, though without a name: each is made once and never freed.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use super::builtin::{self, Basic, Kind};
use super::map::Map;
use super::{Made, Type, Types, get, insert_with};
use crate::abi::*;
use crate::error::{Error, Result};

/// The request for a datatype: the combiner and its two numbers.
type Asked = (c_int, usize, usize);

static MADE: Mutex<Option<HashMap<Asked, Datatype>>> = Mutex::new(None);

/// Returns the datatype for a request. It is made at the first request.
fn once(asked: Asked, make: impl FnOnce(Datatype) -> Option<Type>) -> Result<Datatype> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_with(HashMap::new);
    if let Some(&known) = made.get(&asked) {
        return Ok(known);
    }
    let mut failed = false;
    let handle = insert_with(|handle| {
        make(handle).unwrap_or_else(|| {
            failed = true;
            Type::new(Map::empty(), Made::default())
        })
    })?;
    match failed {
        false => {
            made.insert(asked, handle);
            Ok(handle)
        }
        true => Err(Error::new(ERR_INTERN, "the type has no bounds")),
    }
}

fn of_basic(combiner: c_int, numbers: &[c_int], basic: &'static Basic) -> Result<Datatype> {
    let number = |index: usize| numbers.get(index).map_or(0, |&it| it as u32 as usize);
    once((combiner, number(0), number(1)), |handle| {
        let made = Made {
            combiner,
            integers: numbers.to_vec(),
            ..Made::default()
        };
        let map = Map::of_basic(basic);
        Some(Type::predefined(handle, "", map, made))
    })
}

/// Returns the index of the smallest of three floating-point types with at least `p` decimal digits and exponent range
/// `r`.
fn precision(p: c_int, r: c_int) -> Option<usize> {
    let limits = [(6, 37), (15, 307), (33, 4931)];
    let fits = |&(digits, range): &(c_int, c_int)| {
        (p == UNDEFINED || p <= digits) && (r == UNDEFINED || r <= range)
    };
    let sensible = |number: c_int| number == UNDEFINED || number >= 0;
    let asked = sensible(p) && sensible(r) && (p, r) != (UNDEFINED, UNDEFINED);
    limits.iter().position(fits).filter(|_| asked)
}

#[cold]
fn none(what: &str) -> Error {
    let text = format!("no type of this machine has {what}");
    Error::new(ERR_ARG, text)
}

/// Returns the real datatype with `p` decimal digits and decimal exponent range `r`. One of both may be MPI_UNDEFINED.
pub fn real(p: c_int, r: c_int) -> Result<Datatype> {
    floating(COMBINER_F90_REAL, p, r, [REAL, DOUBLE_PRECISION, REAL16])
}

/// Returns the complex datatype with the precision and range that [`real`] takes.
pub fn complex(p: c_int, r: c_int) -> Result<Datatype> {
    let all = [COMPLEX, DOUBLE_COMPLEX, COMPLEX32];
    floating(COMBINER_F90_COMPLEX, p, r, all)
}

fn floating(combiner: c_int, p: c_int, r: c_int, all: [Datatype; 3]) -> Result<Datatype> {
    let found = precision(p, r).and_then(|index| builtin::basic(all[index]));
    let text = || none(&format!("{p} decimal digits and exponents up to {r}"));
    of_basic(combiner, &[p, r], found.ok_or_else(text)?)
}

/// Returns the integer datatype with `r` decimal digits.
pub fn integer(r: c_int) -> Result<Datatype> {
    let found = match r {
        0..=2 => builtin::basic(INTEGER1),
        3..=4 => builtin::basic(INTEGER2),
        5..=9 => builtin::basic(INTEGER4),
        10..=18 => builtin::basic(INTEGER8),
        19..=38 => builtin::basic(INTEGER16),
        _ => None,
    };
    let text = || none(&format!("{r} decimal digits"));
    of_basic(COMBINER_F90_INTEGER, &[r], found.ok_or_else(text)?)
}

/// Returns the pair of a value and an index: a predefined one if there is one, otherwise one without a name. Returns
/// MPI_DATATYPE_NULL if the two do not form a pair.
pub fn value_index(value: Datatype, index: Datatype) -> Result<Datatype> {
    if let Some(pair) = builtin::pair_of(value, index) {
        return Ok(pair);
    }
    let types = vec![get(value)?, get(index)?];
    let (Some(first), Some(second)) = (builtin::basic(value), builtin::basic(index)) else {
        return Ok(DATATYPE_NULL);
    };
    let is_integer = |basic: &Basic| matches!(basic.kind, Kind::Signed | Kind::Unsigned);
    if !(is_integer(first) || first.kind == Kind::Real) || !is_integer(second) {
        return Ok(DATATYPE_NULL);
    }
    once((COMBINER_VALUE_INDEX, value.0, index.0), |handle| {
        let made = Made {
            combiner: COMBINER_VALUE_INDEX,
            types: Types::from(types),
            ..Made::default()
        };
        let map = Map::of_pair(first, second)?;
        Some(Type::predefined(handle, "", map, made))
    })
}

/// Returns the two elements of a pair, with or without a name.
pub fn elements_of_pair(of: &Type) -> Option<(&'static Basic, &'static Basic)> {
    let handle = of.predefined_handle()?;
    match &of.made().types[..] {
        [value, index] if of.made().combiner == COMBINER_VALUE_INDEX => {
            let basic = |it: &Type| it.predefined_handle().and_then(builtin::basic);
            basic(value).zip(basic(index))
        }
        _ => builtin::pair(handle),
    }
}

/// Returns the element of a predefined datatype of one element, with or without a name.
pub fn element(of: &Type) -> Option<&'static Basic> {
    of.predefined_handle()?;
    match *of.map().signature {
        super::signature::Signature::Of(basic, 1) => Some(basic),
        _ => None,
    }
}
