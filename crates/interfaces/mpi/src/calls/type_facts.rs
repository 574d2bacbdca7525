//! Properties of a datatype: size, bounds, name, envelope and contents. Also finds datatypes by class and size.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::{self, Type, builtin, fortran, get};
use crate::error::{Error, Result};
use crate::text;

pub unsafe fn type_size(datatype: Datatype, size: OutCount) -> Result {
    if size.is_null() {
        return Err(Error::new(ERR_ARG, "size is a null pointer"));
    }
    let found = match get(datatype) {
        // A predefined datatype that this machine does not support is no error here.
        Err(_) if builtin::is_predefined(datatype) => i64::from(UNDEFINED),
        found => found?.size(),
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { size.set(found) };
    Ok(())
}

pub unsafe fn type_size_x(datatype: Datatype, size: *mut i64) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { type_size(datatype, OutCount::Large(size)) }
}

pub fn type_get_extent(found: Arc<Type>, lb: Out<i64>, extent: Out<i64>) -> Result {
    lb.put(found.lb());
    extent.put(found.extent());
    Ok(())
}

pub fn type_get_extent_x(found: Arc<Type>, lb: Out<i64>, extent: Out<i64>) -> Result {
    type_get_extent(found, lb, extent)
}

pub fn type_get_true_extent(found: Arc<Type>, true_lb: Out<i64>, true_extent: Out<i64>) -> Result {
    true_lb.put(found.true_lb());
    true_extent.put(found.true_extent());
    Ok(())
}

pub fn type_get_true_extent_x(
    found: Arc<Type>,
    true_lb: Out<i64>,
    true_extent: Out<i64>,
) -> Result {
    type_get_true_extent(found, true_lb, true_extent)
}

pub unsafe fn type_get_name(
    datatype: Datatype,
    type_name: Out<c_char>,
    resultlen: Out<c_int>,
) -> Result {
    // The null handle has a name, too.
    let name = match datatype {
        DATATYPE_NULL => b"MPI_DATATYPE_NULL".to_vec(),
        _ => get(datatype)?.name(),
    };
    // SAFETY: the caller guarantees room for the longest name.
    resultlen.put(unsafe { text::give(&name, type_name, MAX_OBJECT_NAME) });
    Ok(())
}

pub fn type_set_name(found: Arc<Type>, type_name: &CStr) -> Result {
    let bytes = type_name.to_bytes();
    let bytes = &bytes[..bytes.len().min(MAX_OBJECT_NAME as usize - 1)];
    found.set_name(bytes.to_vec());
    Ok(())
}

pub fn type_get_envelope(
    found: Arc<Type>,
    num_integers: Out<c_int>,
    num_addresses: Out<c_int>,
    num_datatypes: Out<c_int>,
    combiner: Out<c_int>,
) -> Result {
    let made = found.made();
    refuse_counts(&found)?;
    num_integers.put(made.integers.len() as c_int);
    num_addresses.put(made.addresses.len() as c_int);
    num_datatypes.put(made.types.len() as c_int);
    combiner.put(made.combiner);
    Ok(())
}

/// Fails if the datatype was made with large counts, which the functions for ints cannot return.
fn refuse_counts(of: &Type) -> Result {
    match of.made().counts.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            ERR_TYPE,
            "the datatype was made with large counts; use the call with the suffix _c",
        )),
    }
}

pub fn type_get_envelope_c(
    found: Arc<Type>,
    num_integers: Out<i64>,
    num_addresses: Out<i64>,
    num_large_counts: Out<i64>,
    num_datatypes: Out<i64>,
    combiner: Out<c_int>,
) -> Result {
    let made = found.made();
    num_integers.put(made.integers.len() as i64);
    num_addresses.put(made.addresses.len() as i64);
    num_large_counts.put(made.counts.len() as i64);
    num_datatypes.put(made.types.len() as i64);
    combiner.put(made.combiner);
    Ok(())
}

pub unsafe fn type_get_contents(
    found: Arc<Type>,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_datatypes: *mut Datatype,
) -> Result {
    refuse_counts(&found)?;
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        type_get_contents_c(
            found,
            max_integers.into(),
            max_addresses.into(),
            0,
            max_datatypes.into(),
            array_of_integers,
            array_of_addresses,
            std::ptr::null_mut(),
            array_of_datatypes,
        )
    }
}

pub unsafe fn type_get_contents_c(
    found: Arc<Type>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_large_counts: *mut i64,
    array_of_datatypes: *mut Datatype,
) -> Result {
    let made = found.made();
    if made.combiner == COMBINER_NAMED {
        let text = format!("{} is predefined and has no contents", found.called());
        return Err(Error::new(ERR_TYPE, text));
    }
    room(
        max_datatypes,
        made.types.len(),
        array_of_datatypes,
        "datatypes",
    )?;
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        tell(&made.integers, max_integers, array_of_integers, "integers")?;
        tell(
            &made.addresses,
            max_addresses,
            array_of_addresses,
            "addresses",
        )?;
        tell(
            &made.counts,
            max_large_counts,
            array_of_large_counts,
            "large counts",
        )?;
    }
    for (index, of) in made.types.iter().enumerate() {
        let handle = handle_of(of)?;
        // SAFETY: the caller guarantees that the array has room for them.
        unsafe { *array_of_datatypes.add(index) = handle };
    }
    Ok(())
}

/// Returns the handle of a predefined datatype, or a new handle of any other one.
fn handle_of(of: &Arc<Type>) -> Result<Datatype> {
    match of.predefined_handle() {
        Some(handle) => Ok(handle),
        None => datatype::insert(of.again()),
    }
}

fn room<T>(most: i64, length: usize, array: *mut T, name: &str) -> Result {
    if most < length as i64 || length != 0 && array.is_null() {
        let text = format!("there is room for {most} {name}, and the datatype has {length}");
        return Err(Error::new(ERR_ARG, text));
    }
    Ok(())
}

unsafe fn tell<T: Copy>(values: &[T], most: i64, array: *mut T, name: &str) -> Result {
    room(most, values.len(), array, name)?;
    for (index, value) in values.iter().enumerate() {
        // SAFETY: the caller guarantees that the array has room for them.
        unsafe { *array.add(index) = *value };
    }
    Ok(())
}

pub fn type_get_value_index(
    value_type: Datatype,
    index_type: Datatype,
    pair_type: Out<Datatype>,
) -> Result {
    let pair = fortran::value_index(value_type, index_type)?;
    pair_type.put(pair);
    Ok(())
}

pub fn type_match_size(typeclass: c_int, size: c_int, datatype: Out<Datatype>) -> Result {
    let found = match (typeclass, size) {
        (TYPECLASS_INTEGER, 1) => INTEGER1,
        (TYPECLASS_INTEGER, 2) => INTEGER2,
        (TYPECLASS_INTEGER, 4) => INTEGER4,
        (TYPECLASS_INTEGER, 8) => INTEGER8,
        (TYPECLASS_INTEGER, 16) => INTEGER16,
        (TYPECLASS_REAL, 2) => REAL2,
        (TYPECLASS_REAL, 4) => REAL4,
        (TYPECLASS_REAL, 8) => REAL8,
        (TYPECLASS_REAL, 16) => REAL16,
        (TYPECLASS_COMPLEX, 4) => COMPLEX4,
        (TYPECLASS_COMPLEX, 8) => COMPLEX8,
        (TYPECLASS_COMPLEX, 16) => COMPLEX16,
        (TYPECLASS_COMPLEX, 32) => COMPLEX32,
        (MPIX_TYPECLASS_LOGICAL, 1) => LOGICAL1,
        (MPIX_TYPECLASS_LOGICAL, 2) => LOGICAL2,
        (MPIX_TYPECLASS_LOGICAL, 4) => LOGICAL4,
        (MPIX_TYPECLASS_LOGICAL, 8) => LOGICAL8,
        (MPIX_TYPECLASS_LOGICAL, 16) => LOGICAL16,
        _ => {
            let text = format!("there is no type of the class {typeclass} with {size} bytes");
            return Err(Error::new(ERR_ARG, text));
        }
    };
    datatype.put(found);
    Ok(())
}

pub fn type_create_f90_real(p: c_int, r: c_int, newtype: Out<Datatype>) -> Result {
    let found = fortran::real(p, r)?;
    newtype.put(found);
    Ok(())
}

pub fn type_create_f90_complex(p: c_int, r: c_int, newtype: Out<Datatype>) -> Result {
    let found = fortran::complex(p, r)?;
    newtype.put(found);
    Ok(())
}

pub fn type_create_f90_integer(r: c_int, newtype: Out<Datatype>) -> Result {
    let found = fortran::integer(r)?;
    newtype.put(found);
    Ok(())
}
