//! Calls that MPI has removed since its first version, by those that took their places.

use std::ffi::{c_int, c_void};

use regatta_mpi::abi::{self, Ints};
use regatta_mpi::calls::{errhandlers, packing, type_facts, types};
use regatta_mpi::error::Result;

use crate::arrays::{Handles, Room};
use crate::outer::{Comm, Datatype, Errhandler, Handle};
use crate::places::Place;
use crate::values::{LB, UB};

pub unsafe fn address(location: *mut c_void, address: *mut i64) -> Result {
    // SAFETY: the caller's place.
    unsafe { packing::get_address(location, address) }
}

pub unsafe fn errhandler_get(comm: Comm, errhandler: *mut Errhandler) -> Result {
    let mut errhandler = Place::out(errhandler);
    // SAFETY: the caller's place.
    let result = unsafe { errhandlers::comm_get_errhandler(comm.inward(), errhandler.pass()) };
    errhandler.give();
    result
}

pub unsafe fn errhandler_set(comm: Comm, errhandler: Errhandler) -> Result {
    // SAFETY: it takes handles.
    unsafe { errhandlers::comm_set_errhandler(comm.inward(), errhandler.inward()) }
}

/// Writes one of the numbers that a call has two places for.
unsafe fn bound(datatype: Datatype, to: *mut i64, which: impl FnOnce(i64, i64) -> i64) -> Result {
    regatta_mpi::error::not_null(to, "the place of the result")?;
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: places of this function's, and the caller's.
    unsafe {
        type_facts::type_get_extent_x(datatype.inward(), &mut lower, &mut extent)?;
        *to = which(lower, extent);
    }
    Ok(())
}

pub unsafe fn type_extent(datatype: Datatype, extent: *mut i64) -> Result {
    // SAFETY: the caller's place, here and below.
    unsafe { bound(datatype, extent, |_, extent| extent) }
}

pub unsafe fn type_lb(datatype: Datatype, displacement: *mut i64) -> Result {
    // SAFETY: as above.
    unsafe { bound(datatype, displacement, |lower, _| lower) }
}

pub unsafe fn type_ub(datatype: Datatype, displacement: *mut i64) -> Result {
    // SAFETY: as above.
    unsafe { bound(datatype, displacement, |lower, extent| lower + extent) }
}

pub unsafe fn type_hindexed(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let mut newtype = Place::out(newtype);
    // SAFETY: the caller's arrays and place.
    let result = unsafe {
        types::type_create_hindexed(
            count.into(),
            Ints::Small(array_of_blocklengths),
            array_of_displacements,
            oldtype.inward(),
            newtype.pass(),
            false,
        )
    };
    newtype.give();
    result
}

pub unsafe fn type_hvector(
    count: c_int,
    blocklength: c_int,
    stride: i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let mut newtype = Place::out(newtype);
    let (count, length) = (count.into(), blocklength.into());
    // SAFETY: the caller's place.
    let result = unsafe {
        types::type_create_hvector(
            count,
            length,
            stride,
            oldtype.inward(),
            newtype.pass(),
            false,
        )
    };
    newtype.give();
    result
}

/// The markers MPI_LB and MPI_UB among the types are no elements: they say where the type begins and ends.
pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: *mut Datatype,
) -> Result {
    let mut newtype = Place::out(newtype);
    // SAFETY: the caller's arrays and place.
    let result = unsafe {
        let fields = fields(
            count,
            array_of_blocklengths,
            array_of_displacements,
            array_of_types,
        );
        let Some(fields) = fields else {
            return types::type_create_struct(
                count.into(),
                Ints::Small(array_of_blocklengths),
                array_of_displacements,
                Handles::of(array_of_types, count.into(), &mut Room::new()).pass(),
                newtype.pass(),
                false,
            )
            .inspect(|()| newtype.give());
        };
        fields.make(newtype.pass())
    };
    newtype.give();
    result
}

/// The elements of a structure with markers.
#[derive(Default)]
struct Fields {
    lengths: Vec<c_int>,
    places: Vec<i64>,
    types: Vec<abi::Datatype>,
    lower: Option<i64>,
    upper: Option<i64>,
}

/// The elements of the arrays, if there is a marker among them.
///
/// # Safety
/// The arrays are null or have so many elements.
unsafe fn fields(
    count: c_int,
    lengths: *const c_int,
    places: *const i64,
    types: *const Datatype,
) -> Option<Fields> {
    if lengths.is_null() || places.is_null() || types.is_null() {
        return None;
    }
    let mut fields = Fields::default();
    for index in 0..usize::try_from(count).ok()? {
        // SAFETY: the caller's promise.
        let (length, place, of) =
            unsafe { (*lengths.add(index), *places.add(index), *types.add(index)) };
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
    unsafe fn make(self, to: *mut abi::Datatype) -> Result {
        regatta_mpi::error::not_null(to, "newtype")?;
        let mut bare = abi::DATATYPE_NULL;
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: arrays of the length that is told, and places of this function's and the caller's.
        unsafe {
            types::type_create_struct(
                self.types.len() as i64,
                Ints::Small(self.lengths.as_ptr()),
                self.places.as_ptr(),
                self.types.as_ptr(),
                &mut bare,
                false,
            )?;
            type_facts::type_get_extent_x(bare, &mut lower, &mut extent)?;
            let upper = self.upper.unwrap_or(lower + extent);
            let lower = self.lower.unwrap_or(lower);
            let made = types::type_create_resized(bare, lower, upper - lower, to, false);
            types::type_free(&mut bare)?;
            made
        }
    }
}
