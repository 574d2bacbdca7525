//! Sessions and their process sets.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Object, Result, not_null};
use crate::groups;
use crate::info::{self, Hints};
use crate::process::level_name;
use crate::session;
use crate::text;

/// Returns the level of thread support that the hints request, by default MPI_THREAD_MULTIPLE.
fn level_of(hints: &Hints) -> Result<c_int> {
    let Some(name) = hints.get(c"thread_level") else {
        return Ok(THREAD_MULTIPLE);
    };
    let levels = [
        THREAD_SINGLE,
        THREAD_FUNNELED,
        THREAD_SERIALIZED,
        THREAD_MULTIPLE,
    ];
    let named = |&level: &c_int| level_name(level).as_bytes() == name.to_bytes();
    levels.into_iter().find(named).ok_or_else(|| {
        let text = format!(
            "the hint thread_level is {name:?}; it must be MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
        );
        Error::new(ERR_INFO_VALUE, text)
    })
}

pub unsafe fn session_init(info: Info, errhandler: Errhandler, session: *mut Session) -> Result {
    let begin = || {
        not_null(session, "session")?;
        session::begin(level_of(&info::optional(info)?)?, errhandler)
    };
    let begun = begin().map_err(|error| error.on(Object::Unmade(errhandler)))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *session = begun };
    Ok(())
}

pub fn session_finalize(session: Out<Session>) -> Result {
    session::end(session.get())?;
    session.put(SESSION_NULL);
    Ok(())
}

pub fn session_get_info(found: Arc<session::Object>, info_used: Out<Info>) -> Result {
    let mut hints = Hints::default();
    hints.set_text(c"thread_level", level_name(found.level));
    hints.set_text(c"mpi_memory_alloc_kinds", "system,mpi");
    info_used.put(info::make(hints)?);
    Ok(())
}

pub fn session_get_num_psets(
    _session: Arc<session::Object>,
    info: Info,
    npset_names: Out<c_int>,
) -> Result {
    info::optional(info)?;
    npset_names.put(session::SETS.len() as c_int);
    Ok(())
}

pub unsafe fn session_get_nth_pset(
    _session: Arc<session::Object>,
    info: Info,
    n: c_int,
    pset_len: Out<c_int>,
    pset_name: *mut c_char,
) -> Result {
    info::optional(info)?;
    let name = usize::try_from(n).ok().and_then(|n| session::SETS.get(n));
    let Some(name) = name else {
        let count = session::SETS.len();
        let text = format!("n is {n}; there are {count} process sets, counted from 0");
        return Err(Error::new(ERR_ARG, text));
    };
    // SAFETY: the caller guarantees that the pointer is valid and has the size that it passes.
    unsafe {
        if pset_len.get() > 0 {
            let to = Out::at(pset_name, "pset_name")?;
            text::give(name.to_bytes(), to, pset_len.get());
        }
        pset_len.put(name.count_bytes() as c_int + 1);
    }
    Ok(())
}

pub unsafe fn session_get_pset_info(
    _session: Arc<session::Object>,
    pset_name: *const c_char,
    info: Out<Info>,
) -> Result {
    // SAFETY: the caller guarantees that the text is NUL-terminated and the pointer valid.
    unsafe {
        let name = text::given(pset_name, "pset_name", MAX_PSET_NAME_LEN, ERR_ARG)?;
        info.put(info::make(session::set_hints(name)?)?);
    }
    Ok(())
}

pub unsafe fn group_from_session_pset(
    _session: Arc<session::Object>,
    pset_name: *const c_char,
    newgroup: Out<Group>,
) -> Result {
    // SAFETY: the caller guarantees that the text is NUL-terminated and the pointer valid.
    unsafe {
        let name = text::given(pset_name, "pset_name", MAX_PSET_NAME_LEN, ERR_ARG)?;
        newgroup.put(groups::make(session::set(name)?)?);
    }
    Ok(())
}
