//! Making, committing and freeing datatypes.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::construct::{hindexed, hvector, structure};
use crate::datatype::map::Map;
use crate::datatype::{self, Made, Type, Types, get};
use crate::error::{Error, Result, not_null};

/// Collects the arguments by which a datatype is made, for its envelope and contents. Counts are recorded as integers,
/// or as large counts if the large-count form was called.
pub(crate) struct Making {
    large: bool,
    made: Made,
}

impl Making {
    pub(crate) fn of(combiner: c_int, large: bool) -> Making {
        Making {
            large,
            made: Made {
                combiner,
                ..Made::default()
            },
        }
    }

    /// Reserves space for this many integers or counts.
    pub(crate) fn with_room(mut self, numbers: usize) -> Making {
        match self.large {
            true => self.made.counts.reserve_exact(numbers),
            false => self.made.integers.reserve_exact(numbers),
        }
        self
    }

    /// Records counts, which are integers in the small form.
    pub(crate) fn counts(mut self, values: &[i64]) -> Making {
        match self.large {
            true => self.made.counts.extend(values),
            false => (self.made.integers).extend(values.iter().map(|&value| value as c_int)),
        }
        self
    }

    /// Records displacements in bytes, which are addresses in the small form.
    pub(crate) fn addresses(mut self, values: &[i64]) -> Making {
        match self.large {
            true => self.made.counts.extend(values),
            false => self.made.addresses.extend(values),
        }
        self
    }

    /// Records arguments that are integers in both forms.
    pub(crate) fn integers(mut self, values: &[c_int]) -> Making {
        self.made.integers.extend(values);
        self
    }

    /// Records the datatypes, makes the new datatype and stores its handle in `newtype`.
    pub(crate) fn finish(
        mut self,
        types: impl Into<Types>,
        map: Option<Map>,
        newtype: Out<Datatype>,
    ) -> Result {
        self.made.types = types.into();
        let map = map.ok_or_else(too_large)?;
        newtype.put(datatype::insert(Type::new(map, self.made))?);
        Ok(())
    }
}

#[cold]
fn too_large() -> Error {
    let text = "the datatype's size or bounds exceed 64 bits";
    Error::new(ERR_ARG, text)
}

/// Returns a count as `usize`. Fails if it is negative.
fn length(count: i64) -> Result<usize> {
    usize::try_from(count).map_err(|_| {
        let text = format!("the count is {count}; it must be 0 or more");
        Error::new(ERR_COUNT, text)
    })
}

fn block_length(length: i64) -> Result {
    match length {
        0.. => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("a block length is {length}; it must be 0 or more"),
        )),
    }
}

/// Returns the numbers of an array. It may be null if it is empty.
pub(crate) unsafe fn numbers(array: Ints, length: usize, name: &str) -> Result<Vec<i64>> {
    match array.is_null() {
        true if length != 0 => Err(Error::new(ERR_ARG, format!("{name} is a null pointer"))),
        true => Ok(Vec::new()),
        // SAFETY: the caller guarantees that the array has this length.
        false => Ok(unsafe { array.to_vec(length) }),
    }
}

unsafe fn block_lengths(array: Ints, length: usize) -> Result<Vec<i64>> {
    // SAFETY: the caller upholds the safety contract of this function.
    let lengths = unsafe { numbers(array, length, "array_of_blocklengths")? };
    lengths.iter().try_for_each(|&it| block_length(it))?;
    Ok(lengths)
}

unsafe fn displacements(array: Ints, length: usize) -> Result<Vec<i64>> {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { numbers(array, length, "array_of_displacements") }
}

/// Converts displacements from extents to bytes.
fn in_bytes(displacements: &[i64], old: &Type) -> Result<Vec<i64>> {
    let scaled = displacements.iter().map(|it| it.checked_mul(old.extent()));
    scaled.collect::<Option<_>>().ok_or_else(too_large)
}

pub fn type_contiguous(count: i64, old: Arc<Type>, newtype: Out<Datatype>, large: bool) -> Result {
    length(count)?;
    let map = old.map().block(count);
    let making = Making::of(COMBINER_CONTIGUOUS, large).counts(&[count]);
    making.finish(old, map, newtype)
}

pub fn type_vector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    length(count)?;
    block_length(blocklength)?;
    let distance = stride.checked_mul(old.extent()).ok_or_else(too_large)?;
    let map = hvector(old.map(), count, blocklength, distance);
    let making = Making::of(COMBINER_VECTOR, large).counts(&[count, blocklength, stride]);
    making.finish(old, map, newtype)
}

pub fn type_create_hvector(
    count: i64,
    blocklength: i64,
    stride: i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    length(count)?;
    block_length(blocklength)?;
    let map = hvector(old.map(), count, blocklength, stride);
    let making = Making::of(COMBINER_HVECTOR, large).counts(&[count, blocklength]);
    making.addresses(&[stride]).finish(old, map, newtype)
}

pub unsafe fn type_indexed(
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: Ints,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let count_of = length(count)?;
    // SAFETY: the caller guarantees that the arrays have `count` elements.
    let (lengths, places) = unsafe {
        (
            block_lengths(array_of_blocklengths, count_of)?,
            displacements(array_of_displacements, count_of)?,
        )
    };
    let bytes = in_bytes(&places, &old)?;
    let map = hindexed(old.map(), lengths.iter().copied().zip(bytes));
    let making = Making::of(COMBINER_INDEXED, large).counts(&[count]);
    let making = making.counts(&lengths).counts(&places);
    making.finish(old, map, newtype)
}

pub unsafe fn type_create_hindexed(
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: *const i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let count_of = length(count)?;
    // SAFETY: the caller guarantees that the arrays have `count` elements.
    let (lengths, places) = unsafe {
        (
            block_lengths(array_of_blocklengths, count_of)?,
            displacements(Ints::Large(array_of_displacements), count_of)?,
        )
    };
    let blocks = lengths.iter().copied().zip(places.iter().copied());
    let map = hindexed(old.map(), blocks);
    let making = Making::of(COMBINER_HINDEXED, large).counts(&[count]);
    let making = making.counts(&lengths).addresses(&places);
    making.finish(old, map, newtype)
}

pub unsafe fn type_create_indexed_block(
    count: i64,
    blocklength: i64,
    array_of_displacements: Ints,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    block_length(blocklength)?;
    // SAFETY: the caller guarantees that the array has `count` elements.
    let places = unsafe { displacements(array_of_displacements, length(count)?)? };
    let bytes = in_bytes(&places, &old)?;
    let blocks = bytes.into_iter().map(|place| (blocklength, place));
    let map = hindexed(old.map(), blocks);
    let making = Making::of(COMBINER_INDEXED_BLOCK, large).counts(&[count, blocklength]);
    making.counts(&places).finish(old, map, newtype)
}

pub unsafe fn type_create_hindexed_block(
    count: i64,
    blocklength: i64,
    array_of_displacements: *const i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    block_length(blocklength)?;
    // SAFETY: the caller guarantees that the array has `count` elements.
    let places = unsafe { displacements(Ints::Large(array_of_displacements), length(count)?)? };
    let blocks = places.iter().map(|&place| (blocklength, place));
    let map = hindexed(old.map(), blocks);
    let making = Making::of(COMBINER_HINDEXED_BLOCK, large).counts(&[count, blocklength]);
    making.addresses(&places).finish(old, map, newtype)
}

pub unsafe fn type_create_struct(
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let count_of = length(count)?;
    if count_of != 0 {
        not_null(array_of_types, "array_of_types")?;
    }
    // SAFETY: the caller guarantees that the arrays have `count` elements.
    let (lengths, places, types) = unsafe {
        (
            block_lengths(array_of_blocklengths, count_of)?,
            displacements(Ints::Large(array_of_displacements), count_of)?,
            (0..count_of)
                .map(|index| get(*array_of_types.add(index)))
                .collect::<Result<Vec<_>>>()?,
        )
    };
    let members = lengths.iter().zip(&places).zip(&types);
    let members = members.map(|((&length, &at), old)| (length, at, old.map()));
    let map = structure(members);
    let making = Making::of(COMBINER_STRUCT, large).with_room(1 + count_of);
    let making = making.counts(&[count]);
    let making = making.counts(&lengths).addresses(&places);
    making.finish(types, map, newtype)
}

pub fn type_create_resized(
    old: Arc<Type>,
    lb: i64,
    extent: i64,
    newtype: Out<Datatype>,
    large: bool,
) -> Result {
    let map = old.map().clone().resized(lb, extent);
    let making = Making::of(COMBINER_RESIZED, large).addresses(&[lb, extent]);
    making.finish(old, map, newtype)
}

pub unsafe fn type_dup(oldtype: Datatype, newtype: Out<Datatype>) -> Result {
    let old = get(oldtype)?;
    // SAFETY: the program guarantees that the copy callbacks of the type's attributes may be called.
    let made = unsafe { datatype::duplicate(oldtype, &old) };
    // If a copy callback fails, there is no duplicate.
    newtype.put(*made.as_ref().unwrap_or(&DATATYPE_NULL));
    made.map(drop)
}

pub fn type_commit(datatype: Out<Datatype>) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid.
    datatype::commit(datatype.get())
}

pub unsafe fn type_free(datatype: Out<Datatype>) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid and that the delete callbacks of attributes may be
    // called.
    unsafe {
        datatype::free(datatype.get())?;
        datatype.put(DATATYPE_NULL);
    }
    Ok(())
}
