//! Error handlers, and those of communicators and sessions.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator};
use crate::errhandler::{self, Function, Of};
use crate::error::{Error, Object, Result, codes};
use crate::session;

pub unsafe fn errhandler_free(errhandler: Out<Errhandler>) -> Result {
    errhandler::release(errhandler.get())?;
    errhandler.put(ERRHANDLER_NULL);
    Ok(())
}

/// Returns the message of an error that the program raises itself.
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

pub fn comm_create_errhandler(
    comm_errhandler_fn: Comm_errhandler_function,
    errhandler: Out<Errhandler>,
) -> Result {
    not_none(comm_errhandler_fn.is_some(), "comm_errhandler_fn")?;
    errhandler.put(errhandler::make(Function::Comm(comm_errhandler_fn))?);
    Ok(())
}

pub fn comm_set_errhandler(comm: Comm, errhandler: Errhandler) -> Result {
    communicator::with(comm, |comm| comm.errhandler.set(errhandler, Of::Comm))?
}

pub fn comm_get_errhandler(comm: Comm, errhandler: Out<Errhandler>) -> Result {
    errhandler.put(communicator::with(comm, |comm| comm.errhandler.give())?);
    Ok(())
}

pub fn comm_call_errhandler(comm: Arc<Communicator>, errorcode: c_int) -> Result {
    let text = raised(errorcode)?;
    errhandler::call(
        &comm.errhandler,
        Object::Comm(comm.handle),
        errorcode,
        &text,
    );
    Ok(())
}

pub fn session_create_errhandler(
    session_errhandler_fn: Session_errhandler_function,
    errhandler: Out<Errhandler>,
) -> Result {
    not_none(session_errhandler_fn.is_some(), "session_errhandler_fn")?;
    errhandler.put(errhandler::make(Function::Session(session_errhandler_fn))?);
    Ok(())
}

pub fn session_set_errhandler(found: Arc<session::Object>, errhandler: Errhandler) -> Result {
    found.errhandler.set(errhandler, Of::Session)
}

pub fn session_get_errhandler(found: Arc<session::Object>, errhandler: Out<Errhandler>) -> Result {
    errhandler.put(found.errhandler.give());
    Ok(())
}

pub unsafe fn session_call_errhandler(session: Session, errorcode: c_int) -> Result {
    let found = session::get(session)?;
    let text = raised(errorcode)?;
    let object = Object::Session(session);
    errhandler::call(&found.errhandler, object, errorcode, &text);
    Ok(())
}
