//! Functions of MPI-1 that the standard has removed. Fortran passes their addresses and extents as INTEGER, so an
//! address keeps only its low 32 bits. Differences of two addresses are still correct if they fit into 32 bits.

use std::ffi::{c_int, c_void};

use crate::handles::Handles;
use crate::sentinels::choice;
use crate::{
    Comm, Datatype, Errhandler, PMPI_Comm_call_errhandler, PMPI_Comm_create_errhandler,
    PMPI_Comm_get_errhandler, PMPI_Comm_set_errhandler, PMPI_Get_address,
    PMPI_Type_create_hindexed, PMPI_Type_create_hvector, PMPI_Type_create_struct,
    PMPI_Type_get_extent, SUCCESS, finish,
};

const COMM_SELF: c_int = 0x102;
const ERR_VALUE_TOO_LARGE: c_int = 59;

pub unsafe fn address(location: *mut c_void, address: *mut c_int, ierror: *mut c_int) {
    let mut found = 0;
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let result = PMPI_Get_address(choice(location), &mut found);
        *address = found as c_int;
        finish(ierror, result);
    }
}

pub unsafe fn errhandler_create(
    comm_errhandler_fn: *const c_void,
    errhandler: *mut c_int,
    ierror: *mut c_int,
) {
    let call = PMPI_Comm_create_errhandler as crate::Comm_create_errhandler;
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        super::errhandlers::comm_create_errhandler(call, comm_errhandler_fn, errhandler, ierror);
    }
}

pub unsafe fn errhandler_get(comm: *mut c_int, errhandler: *mut c_int, ierror: *mut c_int) {
    let mut found = Errhandler::of(0x140);
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let result = PMPI_Comm_get_errhandler(Comm::of(*comm), &mut found);
        *errhandler = found.to_int();
        finish(ierror, result);
    }
}

pub unsafe fn errhandler_set(comm: *mut c_int, errhandler: *mut c_int, ierror: *mut c_int) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let errhandler = Errhandler::of(*errhandler);
        finish(
            ierror,
            PMPI_Comm_set_errhandler(Comm::of(*comm), errhandler),
        );
    }
}

/// Returns one of a type's bounds as an INTEGER. It is an error if it does not fit.
unsafe fn bound(
    datatype: *mut c_int,
    choose: fn(i64, i64) -> i64,
    to: *mut c_int,
    ierror: *mut c_int,
) {
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let datatype = Datatype::of(*datatype);
        let mut result = PMPI_Type_get_extent(datatype, &mut lower, &mut extent);
        if result == SUCCESS {
            match c_int::try_from(choose(lower, extent)) {
                Ok(value) => *to = value,
                Err(_) => {
                    result = ERR_VALUE_TOO_LARGE;
                    PMPI_Comm_call_errhandler(Comm::of(COMM_SELF), result);
                }
            }
        }
        finish(ierror, result);
    }
}

pub unsafe fn type_extent(datatype: *mut c_int, extent: *mut c_int, ierror: *mut c_int) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { bound(datatype, |_, extent| extent, extent, ierror) };
}

pub unsafe fn type_lb(datatype: *mut c_int, displacement: *mut c_int, ierror: *mut c_int) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { bound(datatype, |lower, _| lower, displacement, ierror) };
}

pub unsafe fn type_ub(datatype: *mut c_int, displacement: *mut c_int, ierror: *mut c_int) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        bound(
            datatype,
            |lower, extent| lower + extent,
            displacement,
            ierror,
        )
    };
}

/// Converts INTEGER displacements to `i64`, the type that MPI_Type_create_hindexed and MPI_Type_create_struct take.
unsafe fn displacements(first: *const c_int, count: *const c_int) -> Vec<i64> {
    // SAFETY: by the Fortran contract the array has `*count` elements.
    unsafe {
        let all = 0..(*count).max(0) as usize;
        all.map(|index| (*first.add(index)).into()).collect()
    }
}

pub unsafe fn type_hindexed(
    count: *mut c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *mut c_int,
    oldtype: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let places = displacements(array_of_displacements, count);
        let mut made = Datatype::of(0x200);
        let result = PMPI_Type_create_hindexed(
            *count,
            array_of_blocklengths,
            places.as_ptr(),
            Datatype::of(*oldtype),
            &mut made,
        );
        *newtype = made.to_int();
        finish(ierror, result);
    }
}

pub unsafe fn type_hvector(
    count: *mut c_int,
    blocklength: *mut c_int,
    stride: *mut c_int,
    oldtype: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let mut made = Datatype::of(0x200);
        let old = Datatype::of(*oldtype);
        let result =
            PMPI_Type_create_hvector(*count, *blocklength, (*stride).into(), old, &mut made);
        *newtype = made.to_int();
        finish(ierror, result);
    }
}

pub unsafe fn type_struct(
    count: *mut c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *mut c_int,
    array_of_types: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let places = displacements(array_of_displacements, count);
        let mut types = Handles::<Datatype>::take(array_of_types, (*count).into());
        let mut made = Datatype::of(0x200);
        let result = PMPI_Type_create_struct(
            *count,
            array_of_blocklengths,
            places.as_ptr(),
            types.place(),
            &mut made,
        );
        *newtype = made.to_int();
        finish(ierror, result);
    }
}
