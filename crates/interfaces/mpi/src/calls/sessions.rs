//! Sessions and their process sets.

use std::ffi::{c_char, c_int};

use crate::abi::*;
use crate::error::{Error, Object, Result, not_null};
use crate::groups;
use crate::info::{self, Hints};
use crate::process::level_name;
use crate::session;
use crate::text;

/// The level of thread support that hints ask for; programs with sessions have the highest by default.
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
            "the hint thread_level is {name:?}; it is MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
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
    // SAFETY: the caller's pointer.
    unsafe { *session = begun };
    Ok(())
}

pub unsafe fn session_finalize(session: *mut Session) -> Result {
    not_null(session, "session")?;
    // SAFETY: the caller's pointer.
    unsafe {
        session::end(*session)?;
        *session = SESSION_NULL;
    }
    Ok(())
}

pub unsafe fn session_get_info(session: Session, info_used: *mut Info) -> Result {
    let found = session::get(session)?;
    not_null(info_used, "info_used")?;
    let mut hints = Hints::default();
    hints.set_text(c"thread_level", level_name(found.level));
    hints.set_text(c"mpi_memory_alloc_kinds", "system,mpi");
    // SAFETY: the caller's pointer.
    unsafe { *info_used = info::make(hints)? };
    Ok(())
}

pub unsafe fn session_get_num_psets(
    session: Session,
    info: Info,
    npset_names: *mut c_int,
) -> Result {
    session::get(session)?;
    info::optional(info)?;
    not_null(npset_names, "npset_names")?;
    // SAFETY: the caller's pointer.
    unsafe { *npset_names = session::SETS.len() as c_int };
    Ok(())
}

pub unsafe fn session_get_nth_pset(
    session: Session,
    info: Info,
    n: c_int,
    pset_len: *mut c_int,
    pset_name: *mut c_char,
) -> Result {
    session::get(session)?;
    info::optional(info)?;
    not_null(pset_len, "pset_len")?;
    let name = usize::try_from(n).ok().and_then(|n| session::SETS.get(n));
    let Some(name) = name else {
        let count = session::SETS.len();
        let text = format!("n is {n}; there are {count} process sets, counted from 0");
        return Err(Error::new(ERR_ARG, text));
    };
    // SAFETY: the caller's pointer, and as much room as it says.
    unsafe {
        if *pset_len > 0 {
            not_null(pset_name, "pset_name")?;
            text::give(name.to_bytes(), pset_name, *pset_len);
        }
        *pset_len = name.count_bytes() as c_int + 1;
    }
    Ok(())
}

pub unsafe fn session_get_pset_info(
    session: Session,
    pset_name: *const c_char,
    info: *mut Info,
) -> Result {
    session::get(session)?;
    not_null(info, "info")?;
    // SAFETY: the caller's text and pointer.
    unsafe {
        let name = text::given(pset_name, "pset_name", MAX_PSET_NAME_LEN, ERR_ARG)?;
        *info = info::make(session::set_hints(name)?)?;
    }
    Ok(())
}

pub unsafe fn group_from_session_pset(
    session: Session,
    pset_name: *const c_char,
    newgroup: *mut Group,
) -> Result {
    session::get(session)?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: the caller's text and pointer.
    unsafe {
        let name = text::given(pset_name, "pset_name", MAX_PSET_NAME_LEN, ERR_ARG)?;
        *newgroup = groups::make(session::set(name)?)?;
    }
    Ok(())
}
