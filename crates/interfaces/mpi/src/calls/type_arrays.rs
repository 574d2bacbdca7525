//! Datatypes for subarrays and distributed arrays.

use std::ffi::c_int;
use std::sync::Arc;

use super::types::{Making, numbers};
use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::Type;
use crate::datatype::construct::{Share, darray, subarray};
use crate::error::{Error, Result, not_null};

fn check_order(order: c_int) -> Result {
    match order {
        ORDER_C | ORDER_FORTRAN => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the order is {order}; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN"),
        )),
    }
}

fn dimensions(count: c_int) -> Result<usize> {
    match count {
        1.. => Ok(count as usize),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the number of dimensions is {count}; it must be 1 or more"),
        )),
    }
}

pub unsafe fn type_create_subarray(
    ndims: c_int,
    array_of_sizes: Ints,
    array_of_subsizes: Ints,
    array_of_starts: Ints,
    order: c_int,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let count = dimensions(ndims)?;
    check_order(order)?;
    // SAFETY: the caller guarantees that the arrays have `ndims` elements.
    let (sizes, parts, starts) = unsafe {
        (
            numbers(array_of_sizes, count, "array_of_sizes")?,
            numbers(array_of_subsizes, count, "array_of_subsizes")?,
            numbers(array_of_starts, count, "array_of_starts")?,
        )
    };
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let (size, part, start) = (sizes[index], parts[index], starts[index]);
        if size < 1 || part < 1 || part > size || start < 0 || start > size - part {
            let text = format!(
                "dimension {index} has the size {size}, but the part covers {part} elements from {start} on; it must lie inside the dimension"
            );
            return Err(Error::new(ERR_ARG, text));
        }
        all.push([size, part, start]);
    }
    let map = subarray(old.map(), &all, order);
    let making = Making::of(COMBINER_SUBARRAY, large).with_room(3 * count + 2);
    let making = making.integers(&[ndims]);
    let making = making.counts(&sizes).counts(&parts).counts(&starts);
    making.integers(&[order]).finish(old, map, newtype)
}

pub unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: Ints,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let count = dimensions(ndims)?;
    check_order(order)?;
    not_null(array_of_distribs, "array_of_distribs")?;
    not_null(array_of_dargs, "array_of_dargs")?;
    not_null(array_of_psizes, "array_of_psizes")?;
    // SAFETY: the caller guarantees that the arrays have `ndims` elements.
    let (sizes, kinds, arguments, processes) = unsafe {
        (
            numbers(array_of_gsizes, count, "array_of_gsizes")?,
            std::slice::from_raw_parts(array_of_distribs, count),
            std::slice::from_raw_parts(array_of_dargs, count),
            std::slice::from_raw_parts(array_of_psizes, count),
        )
    };
    let coordinates = coordinates(size, rank, processes)?;
    let mut shares = Vec::new();
    for index in 0..count {
        let share = Share {
            size: sizes[index],
            block: 0,
            processes: i64::from(processes[index]),
            coordinate: coordinates[index],
        };
        shares.push(share_of(share, kinds[index], arguments[index])?);
    }
    let map = darray(old.map(), &shares, order);
    let making = Making::of(COMBINER_DARRAY, large).integers(&[size, rank, ndims]);
    let making = making.counts(&sizes).integers(kinds).integers(arguments);
    let making = making.integers(processes).integers(&[order]);
    making.finish(old, map, newtype)
}

/// Returns the coordinates of a process in the grid. The last coordinate varies fastest.
fn coordinates(size: c_int, rank: c_int, processes: &[c_int]) -> Result<Vec<i64>> {
    let all = processes.iter().map(|&it| i64::from(it));
    let product = all.clone().try_fold(1i64, |product, it| {
        product.checked_mul(it).filter(|_| it >= 1)
    });
    if product != Some(i64::from(size)) || !(0..size).contains(&rank) {
        let text = format!(
            "the grid of processes is {processes:?}, the number of processes {size}, the rank {rank}: the grid must have {size} positions, and the rank must be less than {size}"
        );
        return Err(Error::new(ERR_ARG, text));
    }
    let mut left = i64::from(rank);
    let mut coordinates: Vec<i64> = all
        .rev()
        .map(|count| {
            let coordinate = left % count;
            left /= count;
            coordinate
        })
        .collect();
    coordinates.reverse();
    Ok(coordinates)
}

/// Sets the block length of a share: the number of elements that are distributed to a process at a time.
fn share_of(mut share: Share, kind: c_int, argument: c_int) -> Result<Share> {
    let Share {
        size, processes, ..
    } = share;
    let wrong = |text: String| Err(Error::new(ERR_ARG, text));
    if size < 1 {
        return wrong(format!(
            "a dimension of the array has {size} elements; it must be 1 or more"
        ));
    }
    let default = argument == DISTRIBUTE_DFLT_DARG;
    share.block = match kind {
        DISTRIBUTE_NONE if processes == 1 => size,
        DISTRIBUTE_NONE => {
            return wrong(format!(
                "a dimension that is not distributed has {processes} processes; it must have 1"
            ));
        }
        DISTRIBUTE_BLOCK if default => size / processes + i64::from(size % processes != 0),
        DISTRIBUTE_CYCLIC if default => 1,
        DISTRIBUTE_BLOCK | DISTRIBUTE_CYCLIC if argument < 1 => {
            return wrong(format!(
                "a distribution argument is {argument}; it must be 1 or more"
            ));
        }
        DISTRIBUTE_BLOCK if i64::from(argument) * processes < size => {
            return wrong(format!(
                "blocks of {argument} elements on {processes} processes do not hold {size} elements"
            ));
        }
        DISTRIBUTE_BLOCK | DISTRIBUTE_CYCLIC => i64::from(argument),
        _ => return wrong(format!("{kind} is not a kind of distribution")),
    };
    Ok(share)
}
