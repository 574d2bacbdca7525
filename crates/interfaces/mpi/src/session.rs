//! Sessions: a part of a program uses MPI independently of others.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::Members;
use crate::errhandler::{Handled, HandlerSlot, Of};
use crate::error::{Error, Result, checked};
use crate::info::Hints;
use crate::objects::{Kind, Table};
use crate::process;

/// A session.
pub struct Object {
    /// The error handler.
    pub errhandler: HandlerSlot,
    /// The level of thread support.
    pub level: c_int,
}

impl Handled for Object {
    fn errhandler(&self) -> &HandlerSlot {
        &self.errhandler
    }
}

static SESSIONS: Table<Arc<Object>> = Table::new(Kind::Session);

/// Begins a session.
pub fn begin(level: c_int, errhandler: Errhandler) -> Result<Session> {
    let errhandler = HandlerSlot::with(errhandler, Of::Session)?;
    process::begin_session(level)?;
    match SESSIONS.insert(Arc::new(Object { errhandler, level })) {
        Some(session) => Ok(Session(session)),
        None => {
            process::end_session()?;
            Err(Error::new(ERR_NO_MEM, "there are too many sessions"))
        }
    }
}

/// Ends a session.
pub fn end(session: Session) -> Result {
    SESSIONS.remove(session.0).ok_or_else(|| none(session))?;
    process::end_session()
}

/// Returns the session with this handle.
pub fn get(session: Session) -> Result<Arc<Object>> {
    SESSIONS.get(session.0).ok_or_else(|| none(session))
}

#[cold]
fn none(session: Session) -> Error {
    let text = match session {
        SESSION_NULL => "the session is MPI_SESSION_NULL".to_owned(),
        Session(value) => format!("{value:#x} is not a valid session; it may have been finalized"),
    };
    Error::new(ERR_SESSION, text)
}

/// The names of the process sets.
pub const SETS: [&CStr; 2] = [c"mpi://WORLD", c"mpi://SELF"];

/// Returns the processes of a set. Names are case-insensitive.
pub fn set(name: &CStr) -> Result<Members> {
    let index = SETS
        .iter()
        .position(|it| it.to_bytes().eq_ignore_ascii_case(name.to_bytes()));
    match index {
        Some(0) => Members::of_world(),
        Some(_) => {
            // SAFETY: the call has no arguments and no preconditions.
            let own = unsafe { rg::rg_tid() };
            checked(own)?;
            Ok(Members::from(vec![own]))
        }
        None => Err(Error::new(
            ERR_ARG,
            format!("there is no process set {name:?}; the sets are mpi://WORLD and mpi://SELF"),
        )),
    }
}

/// Returns the properties of a process set.
pub fn set_hints(name: &CStr) -> Result<Hints> {
    let mut hints = Hints::default();
    hints.set_text(c"mpi_size", &set(name)?.len().to_string());
    Ok(hints)
}
