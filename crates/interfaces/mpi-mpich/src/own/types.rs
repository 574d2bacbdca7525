//! Datatypes: calls with arrays of numbers that have roles, and arrays of datatypes for results.

use std::ffi::c_int;

use regatta_mpi::abi::{self, Ints};
use regatta_mpi::calls::{type_arrays, type_facts};
use regatta_mpi::datatype;
use regatta_mpi::error::Result;

use crate::outer::{Datatype, Handle};
use crate::places::Place;
use crate::roles::{distribution, distribution_argument, order};

/// A caller's array of so many numbers, translated; empty if there is none.
unsafe fn translated(array: *const c_int, count: c_int, inward: fn(c_int) -> c_int) -> Vec<c_int> {
    let count = match array.is_null() {
        true => 0,
        false => usize::try_from(count).unwrap_or(0),
    };
    // SAFETY: callers of MPI give as many elements as they say.
    (0..count)
        .map(|index| inward(unsafe { *array.add(index) }))
        .collect()
}

/// The address of the translated array, or null for null.
fn address(array: *const c_int, translated: &[c_int]) -> *const c_int {
    match array.is_null() {
        true => array,
        false => translated.as_ptr(),
    }
}

unsafe fn distributed(
    numbers: [c_int; 3],
    sizes: Ints,
    [distribs, dargs, psizes]: [*const c_int; 3],
    ordered: c_int,
    [oldtype, newtype]: [*mut Datatype; 2],
    large: bool,
) -> Result {
    let [size, rank, ndims] = numbers;
    let mut newtype = Place::out(newtype);
    // SAFETY: the caller's arrays have an element for each dimension.
    let result = unsafe {
        let kinds = translated(distribs, ndims, distribution::inward);
        let arguments = translated(dargs, ndims, distribution_argument::inward);
        type_arrays::type_create_darray(
            size,
            rank,
            ndims,
            sizes,
            address(distribs, &kinds),
            address(dargs, &arguments),
            psizes,
            order::inward(ordered),
            (*oldtype).inward(),
            newtype.pass(),
            large,
        )
    };
    newtype.give();
    result
}

pub unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: *const c_int,
    distribs: *const c_int,
    dargs: *const c_int,
    psizes: *const c_int,
    order: c_int,
    mut oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let sizes = Ints::Small(gsizes);
    let types = [&raw mut oldtype, newtype];
    // SAFETY: the caller's arrays and place.
    unsafe {
        distributed(
            [size, rank, ndims],
            sizes,
            [distribs, dargs, psizes],
            order,
            types,
            false,
        )
    }
}

pub unsafe fn type_create_darray_c(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: *const i64,
    distribs: *const c_int,
    dargs: *const c_int,
    psizes: *const c_int,
    order: c_int,
    mut oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let sizes = Ints::Large(gsizes);
    let types = [&raw mut oldtype, newtype];
    // SAFETY: the caller's arrays and place.
    unsafe {
        distributed(
            [size, rank, ndims],
            sizes,
            [distribs, dargs, psizes],
            order,
            types,
            true,
        )
    }
}

/// Translates the numbers of a type's making: its order comes last, and a distributed array's distributions before.
unsafe fn numbers_outward(datatype: abi::Datatype, integers: *mut c_int) -> Result {
    let found = datatype::get(datatype)?;
    let made = found.made();
    let count = made.integers.len();
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the core has written so many numbers.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, count) };
    match made.combiner {
        abi::COMBINER_SUBARRAY => {}
        abi::COMBINER_DARRAY => {
            let dimensions = integers[2] as usize;
            // In the form for large counts the sizes are elsewhere.
            let first = match count == 4 * dimensions + 4 {
                true => 3 + dimensions,
                false => 3,
            };
            let (kinds, rest) = integers[first..].split_at_mut(dimensions);
            for kind in kinds {
                *kind = distribution::outward(*kind);
            }
            for argument in &mut rest[..dimensions] {
                *argument = distribution_argument::outward(*argument);
            }
        }
        _ => return Ok(()),
    }
    if let Some(last) = integers.last_mut() {
        *last = order::outward(*last);
    }
    Ok(())
}

/// A place for as many datatypes as there is room for, or as there are, if that is less.
fn room(datatype: abi::Datatype, most: i64) -> Vec<abi::Datatype> {
    let found = datatype::get(datatype).map_or(0, |found| found.made().types.len());
    vec![abi::DATATYPE_NULL; found.min(usize::try_from(most).unwrap_or(0))]
}

/// Gives the caller the datatypes.
unsafe fn types_outward(types: &[abi::Datatype], to: *mut Datatype) {
    for (index, &of) in types.iter().enumerate() {
        // SAFETY: the caller's array has room for them.
        unsafe { *to.add(index) = Datatype::outward(of) };
    }
}

pub unsafe fn type_get_contents(
    datatype: Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_datatypes: *mut Datatype,
) -> Result {
    let datatype = datatype.inward();
    let mut types = room(datatype, max_datatypes.into());
    let place = match array_of_datatypes.is_null() {
        true => std::ptr::null_mut(),
        false => types.as_mut_ptr(),
    };
    // SAFETY: the caller's arrays.
    unsafe {
        type_facts::type_get_contents(
            datatype,
            max_integers,
            max_addresses,
            max_datatypes,
            array_of_integers,
            array_of_addresses,
            place,
        )?;
        types_outward(&types, array_of_datatypes);
        numbers_outward(datatype, array_of_integers)
    }
}

pub unsafe fn type_get_contents_c(
    datatype: Datatype,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_large_counts: *mut i64,
    array_of_datatypes: *mut Datatype,
) -> Result {
    let datatype = datatype.inward();
    let mut types = room(datatype, max_datatypes);
    let place = match array_of_datatypes.is_null() {
        true => std::ptr::null_mut(),
        false => types.as_mut_ptr(),
    };
    // SAFETY: the caller's arrays.
    unsafe {
        type_facts::type_get_contents_c(
            datatype,
            max_integers,
            max_addresses,
            max_large_counts,
            max_datatypes,
            array_of_integers,
            array_of_addresses,
            array_of_large_counts,
            place,
        )?;
        types_outward(&types, array_of_datatypes);
        numbers_outward(datatype, array_of_integers)
    }
}
