//! Error handlers, and those of communicators and sessions.

use std::ffi::c_int;

use crate::abi::*;
use crate::communicator;
use crate::errhandler::{self, Function, Of};
use crate::error::{Error, Object, Result, codes, not_null};
use crate::session;

pub unsafe fn errhandler_free(errhandler: *mut Errhandler) -> Result {
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe {
        errhandler::release(*errhandler)?;
        *errhandler = ERRHANDLER_NULL;
    }
    Ok(())
}

/// The sentence of an error that the program raises itself.
pub(crate) fn raised(code: c_int) -> Result<String> {
    let text = codes::text(code)?;
    let text = text.to_string_lossy();
    Ok(format!("the program raises error {code}: {text}"))
}

pub(crate) fn not_none(given: bool, name: &str) -> Result {
    match given {
        true => Ok(()),
        false => Err(Error::new(ERR_ARG, format!("{name} is a null pointer"))),
    }
}

pub unsafe fn comm_create_errhandler(
    comm_errhandler_fn: Comm_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    not_none(comm_errhandler_fn.is_some(), "comm_errhandler_fn")?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = errhandler::make(Function::Comm(comm_errhandler_fn))? };
    Ok(())
}

pub unsafe fn comm_set_errhandler(comm: Comm, errhandler: Errhandler) -> Result {
    communicator::get(comm)?
        .errhandler
        .set(errhandler, Of::Comm)
}

pub unsafe fn comm_get_errhandler(comm: Comm, errhandler: *mut Errhandler) -> Result {
    let comm = communicator::get(comm)?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = comm.errhandler.give() };
    Ok(())
}

pub unsafe fn comm_call_errhandler(comm: Comm, errorcode: c_int) -> Result {
    let found = communicator::get(comm)?;
    let text = raised(errorcode)?;
    errhandler::call(&found.errhandler, Object::Comm(comm), errorcode, &text);
    Ok(())
}

pub unsafe fn session_create_errhandler(
    session_errhandler_fn: Session_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    not_none(session_errhandler_fn.is_some(), "session_errhandler_fn")?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = errhandler::make(Function::Session(session_errhandler_fn))? };
    Ok(())
}

pub unsafe fn session_set_errhandler(session: Session, errhandler: Errhandler) -> Result {
    let found = session::get(session)?;
    found.errhandler.set(errhandler, Of::Session)
}

pub unsafe fn session_get_errhandler(session: Session, errhandler: *mut Errhandler) -> Result {
    let found = session::get(session)?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = found.errhandler.give() };
    Ok(())
}

pub unsafe fn session_call_errhandler(session: Session, errorcode: c_int) -> Result {
    let found = session::get(session)?;
    let text = raised(errorcode)?;
    let object = Object::Session(session);
    errhandler::call(&found.errhandler, object, errorcode, &text);
    Ok(())
}
