//! Calls that take functions of the program, except those for attributes.

use std::ffi::{c_char, c_int, c_void};

use regatta_mpi::abi::{self, Conversion, ERR_ARG, UserFunction};
use regatta_mpi::checked;
use regatta_mpi::errhandler::{self, Of};
use regatta_mpi::error::{Error, Result, not_null};

use crate::callbacks::{self, Generalized, Representation};
use crate::outer::{Errhandler, Handle, Op, Request, Status};
use crate::places::Place;

pub unsafe fn op_create(user_fn: UserFunction, commute: c_int, op: *mut Op) -> Result {
    let mut op = Place::out(op);
    // SAFETY: by the C contract the result is writable.
    let result = unsafe { checked::op_create(callbacks::operator(user_fn), commute, op.pass()) };
    op.give();
    result
}

unsafe fn create_handler(of: Of, function: usize, errhandler: *mut Errhandler) -> Result {
    if function == 0 {
        let text = "the function of the error handler is a null pointer";
        return Err(Error::new(ERR_ARG, text));
    }
    not_null(errhandler, "errhandler")?;
    let made = errhandler::make(callbacks::error_handler(of, function))?;
    // SAFETY: by the C contract the result is writable.
    unsafe { *errhandler = Errhandler::outward(made) };
    Ok(())
}

pub unsafe fn comm_create_errhandler(
    function: abi::Comm_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    let function = function.map_or(0, |function| function as usize);
    // SAFETY: by the C contract the result is writable.
    unsafe { create_handler(Of::Comm, function, errhandler) }
}

pub unsafe fn file_create_errhandler(
    function: abi::File_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    let function = function.map_or(0, |function| function as usize);
    // SAFETY: by the C contract the result is writable.
    unsafe { create_handler(Of::File, function, errhandler) }
}

pub unsafe fn session_create_errhandler(
    function: abi::Session_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    let function = function.map_or(0, |function| function as usize);
    // SAFETY: by the C contract the result is writable.
    unsafe { create_handler(Of::Session, function, errhandler) }
}

pub unsafe fn win_create_errhandler(
    function: abi::Win_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    let function = function.map_or(0, |function| function as usize);
    // SAFETY: by the C contract the result is writable.
    unsafe { create_handler(Of::Win, function, errhandler) }
}

pub unsafe fn errhandler_create(
    function: abi::Comm_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    // SAFETY: by the C contract the result is writable.
    unsafe { comm_create_errhandler(function, errhandler) }
}

pub unsafe fn grequest_start(
    query: abi::Grequest_query_function,
    free: abi::Grequest_free_function,
    cancel: abi::Grequest_cancel_function,
    extra: *mut c_void,
    request: *mut Request,
) -> Result {
    type Query = Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>;
    // SAFETY: the program's function takes a status of this ABI, not of the core's.
    let query: Query = unsafe { std::mem::transmute(query) };
    not_null(request, "request")?;
    let of = Box::into_raw(Box::new(Generalized {
        query,
        free,
        cancel,
        extra,
    }));
    let mut request = Place::out(request);
    // SAFETY: the functions take this box, which the last one frees, and by the C contract the result is writable.
    let result = unsafe {
        checked::grequest_start(
            Some(callbacks::query),
            Some(callbacks::free),
            Some(callbacks::cancel),
            of.cast(),
            request.pass(),
        )
    };
    request.give();
    result
}

/// Returns the address of a program's function, and the function here that calls it.
fn conversion<const WRITES: bool>(given: Conversion) -> (usize, Conversion) {
    match given {
        Conversion::Small(function) => (
            function.map_or(0, |function| function as usize),
            Conversion::Small(function.map(|_| callbacks::convert::<c_int, WRITES> as _)),
        ),
        Conversion::Large(function) => (
            function.map_or(0, |function| function as usize),
            Conversion::Large(function.map(|_| callbacks::convert::<i64, WRITES> as _)),
        ),
    }
}

/// Registers a data representation. It is never freed.
pub unsafe fn register_datarep(
    datarep: *const c_char,
    read: Conversion,
    write: Conversion,
    extent: abi::Datarep_extent_function,
    extra: *mut c_void,
) -> Result {
    let (own_read, read) = conversion::<false>(read);
    let (own_write, write) = conversion::<true>(write);
    let own = Box::leak(Box::new(Representation {
        read: own_read,
        write: own_write,
        extent: extent.map_or(0, |function| function as usize),
        extra,
    }));
    let extent: abi::Datarep_extent_function = extent.map(|_| callbacks::extent as _);
    let own = std::ptr::from_mut(own).cast();
    // SAFETY: by the C contract the name is NUL-terminated, and the functions here call the program's.
    unsafe { checked::register_datarep(datarep, read, write, extent, own) }
}
