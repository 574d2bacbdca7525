//! Facts about the application binary interface. These functions may be called at any time.

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::builtin;
use crate::error::{Error, Result, not_null};
use crate::info::{self, Hints};

/// Facts about Fortran that the program has set.
struct Fortran {
    facts: Option<Hints>,
    /// The bytes of .TRUE. and of .FALSE..
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran {
    facts: None,
    booleans: None,
});

fn fortran() -> MutexGuard<'static, Fortran> {
    FORTRAN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn abi_get_version(abi_major: Out<c_int>, abi_minor: Out<c_int>) -> Result {
    abi_major.put(ABI_VERSION);
    abi_minor.put(ABI_SUBVERSION);
    Ok(())
}

pub fn abi_get_info(info: Out<Info>) -> Result {
    let mut hints = Hints::default();
    for (key, size) in [
        (c"mpi_aint_size", size_of::<isize>()),
        (c"mpi_count_size", size_of::<i64>()),
        (c"mpi_offset_size", size_of::<i64>()),
    ] {
        hints.set_text(key, &size.to_string());
    }
    info.put(info::make(hints)?);
    Ok(())
}

/// Info keys for the sizes of Fortran types, with the corresponding predefined datatypes.
const SIZES: [(&CStr, &str, Datatype); 5] = [
    (c"mpi_character_size", "MPI_CHARACTER", CHARACTER),
    (c"mpi_logical_size", "MPI_LOGICAL", LOGICAL),
    (c"mpi_integer_size", "MPI_INTEGER", INTEGER),
    (c"mpi_real_size", "MPI_REAL", REAL),
    (
        c"mpi_double_precision_size",
        "MPI_DOUBLE_PRECISION",
        DOUBLE_PRECISION,
    ),
];

/// Fails if a size differs from that of the predefined datatype: data of that type would be corrupted silently.
fn check_facts(hints: &Hints) -> Result {
    for (key, name, datatype) in SIZES {
        let Some(value) = hints.text(key) else {
            continue;
        };
        let size = builtin::size(datatype).unwrap_or_default();
        if value.trim().parse() != Ok(size) {
            let text = format!(
                "{} is {value}, but {name} has {size} bytes here; compile without options that change the sizes of types",
                key.to_string_lossy()
            );
            return Err(Error::new(ERR_ABI, text));
        }
    }
    Ok(())
}

pub unsafe fn abi_set_fortran_info(info: Info) -> Result {
    let hints = info::hints(info)?;
    check_facts(&hints)?;
    let mut fortran = fortran();
    if fortran.facts.is_some() {
        let text = "the Fortran values have already been set and cannot change";
        return Err(Error::new(ERR_ABI, text));
    }
    fortran.facts = Some(hints);
    Ok(())
}

pub fn abi_get_fortran_info(info: Out<Info>) -> Result {
    let facts = fortran().facts.clone();
    let made = facts.map(info::make).transpose()?;
    info.put(made.unwrap_or(INFO_NULL));
    Ok(())
}

/// Checks the size of a LOGICAL.
fn check_size(logical_size: c_int) -> Result<usize> {
    match logical_size {
        1 | 2 | 4 | 8 | 16 => Ok(logical_size as usize),
        _ => Err(Error::new(
            ERR_ARG,
            format!("logical_size is {logical_size}; it must be 1, 2, 4, 8 or 16"),
        )),
    }
}

pub unsafe fn abi_set_fortran_booleans(
    logical_size: c_int,
    logical_true: Out<*mut c_void>,
    logical_false: Out<*mut c_void>,
) -> Result {
    let size = check_size(logical_size)?;
    let mut fortran = fortran();
    if fortran.booleans.is_some() {
        let text = "the values of Fortran logicals have already been set and cannot change";
        return Err(Error::new(ERR_ABI, text));
    }
    // SAFETY: the caller guarantees that the values have this size.
    let bytes = |value: Out<*mut c_void>| unsafe {
        std::slice::from_raw_parts(value.address().cast::<u8>(), size).to_vec()
    };
    fortran.booleans = Some((bytes(logical_true), bytes(logical_false)));
    Ok(())
}

pub unsafe fn abi_get_fortran_booleans(
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: Out<c_int>,
) -> Result {
    let size = check_size(logical_size)?;
    let booleans = fortran().booleans.clone();
    is_set.put(c_int::from(booleans.is_some()));
    let Some((yes, no)) = booleans else {
        return Ok(());
    };
    if yes.len() != size {
        let set = yes.len();
        let text = format!("logical_size is {size}; the values that were set have {set} bytes");
        return Err(Error::new(ERR_ARG, text));
    }
    for (bytes, to) in [(yes, logical_true), (no, logical_false)] {
        not_null(to, "the pointer to a logical")?;
        // SAFETY: the caller guarantees that the destinations have this size.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), size) };
    }
    Ok(())
}
