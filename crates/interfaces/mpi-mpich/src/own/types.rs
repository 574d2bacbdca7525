//! Datatypes: calls with arrays of numbers that have roles, calls that return arrays of datatypes, and the markers
//! MPI_LB and MPI_UB.

use std::ffi::{CStr, c_char, c_int};

use regatta_mpi::abi::{self, Ints};
use regatta_mpi::checked;
use regatta_mpi::datatype;
use regatta_mpi::error::{Result, not_null};

use crate::arrays::{Handles, Room};
use crate::outer::{Datatype, Handle};
use crate::places::Place;
use crate::roles::{distribution, distribution_argument, order};
use crate::values::{LB, UB};

/// Returns the name of the marker MPI_LB or MPI_UB.
fn marker(datatype: Datatype) -> Option<&'static CStr> {
    match datatype.to_int() as u32 {
        LB => Some(c"MPI_LB"),
        UB => Some(c"MPI_UB"),
        _ => None,
    }
}

pub unsafe fn type_get_name(
    datatype: Datatype,
    type_name: *mut c_char,
    resultlen: *mut c_int,
) -> Result {
    let Some(name) = marker(datatype) else {
        // SAFETY: by the C contract the results are writable.
        return unsafe { checked::type_get_name(datatype.inward(), type_name, resultlen) };
    };
    not_null(type_name, "type_name")?;
    not_null(resultlen, "resultlen")?;
    // SAFETY: by the C contract the string has room for the longest name.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr(), type_name, name.count_bytes() + 1);
        *resultlen = name.count_bytes() as c_int;
    }
    Ok(())
}

/// Makes a structure. The types MPI_LB and MPI_UB are markers and not elements: they set where the type begins and
/// ends.
pub unsafe fn type_create_struct(
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: *mut Datatype,
    large: bool,
) -> Result {
    let mut newtype = Place::out(newtype);
    // SAFETY: by the C contract the arrays and the result are valid.
    let result = unsafe {
        let fields = fields(
            count,
            array_of_blocklengths,
            array_of_displacements,
            array_of_types,
        );
        match fields {
            Some(fields) => fields.make(newtype.pass(), large),
            None => checked::type_create_struct(
                count,
                array_of_blocklengths,
                array_of_displacements,
                Handles::of(array_of_types, count, &mut Room::new()).pass(),
                newtype.pass(),
                large,
            ),
        }
    };
    newtype.give();
    result
}

/// The elements of a structure with markers.
#[derive(Default)]
struct Fields {
    lengths: Vec<i64>,
    places: Vec<i64>,
    types: Vec<abi::Datatype>,
    lower: Option<i64>,
    upper: Option<i64>,
}

/// Separates the elements from the markers. Returns `None` if there is no marker.
///
/// # Safety
/// The arrays have `count` elements or are null.
unsafe fn fields(
    count: i64,
    lengths: Ints,
    places: *const i64,
    types: *const Datatype,
) -> Option<Fields> {
    if lengths.is_null() || places.is_null() || types.is_null() {
        return None;
    }
    let mut fields = Fields::default();
    for index in 0..usize::try_from(count).ok()? {
        // SAFETY: the caller guarantees `count` elements.
        let (length, place, of) =
            unsafe { (lengths.get(index), *places.add(index), *types.add(index)) };
        match of.to_int() as u32 {
            LB => fields.lower = Some(fields.lower.map_or(place, |it| it.min(place))),
            UB => fields.upper = Some(fields.upper.map_or(place, |it| it.max(place))),
            _ => {
                fields.lengths.push(length);
                fields.places.push(place);
                fields.types.push(of.inward());
            }
        }
    }
    (fields.lower.is_some() || fields.upper.is_some()).then_some(fields)
}

impl Fields {
    unsafe fn make(self, to: *mut abi::Datatype, large: bool) -> Result {
        not_null(to, "newtype")?;
        let mut bare = abi::DATATYPE_NULL;
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: the arrays have the length that is passed, and the results are writable.
        unsafe {
            checked::type_create_struct(
                self.types.len() as i64,
                Ints::Large(self.lengths.as_ptr()),
                self.places.as_ptr(),
                self.types.as_ptr(),
                &mut bare,
                large,
            )?;
            checked::type_get_extent_x(bare, &mut lower, &mut extent)?;
            let upper = self.upper.unwrap_or(lower + extent);
            let lower = self.lower.unwrap_or(lower);
            let made = checked::type_create_resized(bare, lower, upper - lower, to, large);
            checked::type_free(&mut bare)?;
            made
        }
    }
}

/// Converts a caller's array of `count` numbers; empty if the array is null.
unsafe fn translated(array: *const c_int, count: c_int, inward: fn(c_int) -> c_int) -> Vec<c_int> {
    let count = match array.is_null() {
        true => 0,
        false => usize::try_from(count).unwrap_or(0),
    };
    // SAFETY: by the C contract the array has `count` elements.
    (0..count)
        .map(|index| inward(unsafe { *array.add(index) }))
        .collect()
}

/// Returns the address of the converted array, or null if the original is null.
fn address(array: *const c_int, translated: &[c_int]) -> *const c_int {
    match array.is_null() {
        true => array,
        false => translated.as_ptr(),
    }
}

pub unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: Ints,
    distribs: *const c_int,
    dargs: *const c_int,
    psizes: *const c_int,
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
    large: bool,
) -> Result {
    let mut newtype = Place::out(newtype);
    // SAFETY: by the C contract the arrays have an element for each dimension.
    let result = unsafe {
        let kinds = translated(distribs, ndims, distribution::inward);
        let arguments = translated(dargs, ndims, distribution_argument::inward);
        checked::type_create_darray(
            size,
            rank,
            ndims,
            gsizes,
            address(distribs, &kinds),
            address(dargs, &arguments),
            psizes,
            order::inward(order),
            oldtype.inward(),
            newtype.pass(),
            large,
        )
    };
    newtype.give();
    result
}

/// Converts the integers of a type's contents: the order comes last, and for a distributed array the distributions come
/// before it.
unsafe fn numbers_outward(datatype: abi::Datatype, integers: *mut c_int) -> Result {
    let found = datatype::get(datatype)?;
    let made = found.made();
    let count = made.integers.len();
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the core has written this many integers.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, count) };
    match made.combiner {
        abi::COMBINER_SUBARRAY => {}
        abi::COMBINER_DARRAY => {
            let dimensions = integers[2] as usize;
            // In the variant for large counts the sizes are in another array.
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

/// Gets the contents of a type. If the caller passes an array for datatypes, the core writes them into an array here,
/// whose length is that of the caller's or the number of datatypes, whichever is less.
unsafe fn contents(
    datatype: Datatype,
    most: i64,
    integers: *mut c_int,
    to: *mut Datatype,
    core: impl FnOnce(abi::Datatype, *mut abi::Datatype) -> Result,
) -> Result {
    let datatype = datatype.inward();
    let found = datatype::get(datatype).map_or(0, |found| found.made().types.len());
    let length = found.min(usize::try_from(most).unwrap_or(0));
    let mut types = vec![abi::DATATYPE_NULL; length];
    core(
        datatype,
        match to.is_null() {
            true => std::ptr::null_mut(),
            false => types.as_mut_ptr(),
        },
    )?;
    for (index, of) in types.into_iter().enumerate() {
        // SAFETY: by the C contract the array has room for `most` datatypes.
        unsafe { *to.add(index) = Datatype::outward(of) };
    }
    // SAFETY: the core has written the integers.
    unsafe { numbers_outward(datatype, integers) }
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
    let most = max_datatypes.into();
    // SAFETY: by the C contract the arrays have the given lengths.
    unsafe {
        contents(
            datatype,
            most,
            array_of_integers,
            array_of_datatypes,
            |of, types| {
                checked::type_get_contents(
                    of,
                    max_integers,
                    max_addresses,
                    max_datatypes,
                    array_of_integers,
                    array_of_addresses,
                    types,
                )
            },
        )
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
    // SAFETY: by the C contract the arrays have the given lengths.
    unsafe {
        contents(
            datatype,
            max_datatypes,
            array_of_integers,
            array_of_datatypes,
            |of, types| {
                checked::type_get_contents_c(
                    of,
                    max_integers,
                    max_addresses,
                    max_large_counts,
                    max_datatypes,
                    array_of_integers,
                    array_of_addresses,
                    array_of_large_counts,
                    types,
                )
            },
        )
    }
}
