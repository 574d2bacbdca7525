//! Windows: making them, their properties, names and hints, and freeing them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::communicators::no_intra;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator};
use crate::error::{Error, Result, not_null};
use crate::groups;
use crate::info::{self, Hints};
use crate::text;
use crate::window::{self, Reach, Window, Wish, get, held};

/// Checks the arguments of a call that makes a window.
fn wish(flavor: c_int, base: usize, size: i64, unit: i64, info: Info) -> Result<Wish> {
    if size < 0 {
        let text = format!("the size is {size}; it must be 0 or more");
        return Err(Error::new(ERR_SIZE, text));
    }
    let unit = c_int::try_from(unit)
        .ok()
        .filter(|&it| it > 0)
        .ok_or_else(|| {
            let text = format!("disp_unit is {unit}; it must be a positive int");
            Error::new(ERR_DISP, text)
        })?;
    Ok(Wish {
        flavor,
        base,
        size,
        unit,
        hints: info::optional(info)?,
    })
}

fn of_one_side(comm: Comm) -> Result<std::sync::Arc<Communicator>> {
    let comm = communicator::get(comm)?;
    match comm.remote {
        None => Ok(comm),
        Some(_) => Err(no_intra()),
    }
}

/// Makes a window and stores its handle, if all processes have passed valid arguments.
unsafe fn give(
    comm: &Communicator,
    given: Result<Wish>,
    to: *mut Win,
) -> Result<std::sync::Arc<Window>> {
    let given = given.and_then(|wish| not_null(to, "win").map(|()| wish));
    let made = window::create(comm, given)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *to = made.handle };
    Ok(made)
}

pub unsafe fn win_create(
    base: *mut c_void,
    size: i64,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    win: *mut Win,
) -> Result {
    let comm = of_one_side(comm)?;
    let given = wish(WIN_FLAVOR_CREATE, base as usize, size, disp_unit, info);
    let given = given.and_then(|wish| match base.is_null() && size != 0 {
        true => {
            let text = format!("base is a null pointer, but the size is {size}");
            Err(Error::new(ERR_BASE, text))
        }
        false => Ok(wish),
    });
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { give(&comm, given, win).map(drop) }
}

unsafe fn allocate(
    flavor: c_int,
    (size, unit, info): (i64, i64, Info),
    comm: Comm,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result {
    let comm = of_one_side(comm)?;
    let given = not_null(baseptr, "baseptr").and_then(|()| wish(flavor, 0, size, unit, info));
    // SAFETY: the caller guarantees that the pointers are valid, and that `baseptr` points to a pointer.
    unsafe {
        let made = give(&comm, given, win)?;
        let base = made.facts.base as *mut c_void;
        baseptr.cast::<*mut c_void>().write_unaligned(base);
    }
    Ok(())
}

pub unsafe fn win_allocate(
    size: i64,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        allocate(
            WIN_FLAVOR_ALLOCATE,
            (size, disp_unit, info),
            comm,
            baseptr,
            win,
        )
    }
}

pub unsafe fn win_allocate_shared(
    size: i64,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        allocate(
            WIN_FLAVOR_SHARED,
            (size, disp_unit, info),
            comm,
            baseptr,
            win,
        )
    }
}

pub unsafe fn win_create_dynamic(info: Info, comm: Comm, win: *mut Win) -> Result {
    let comm = of_one_side(comm)?;
    let given = wish(WIN_FLAVOR_DYNAMIC, 0, 0, 1, info);
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { give(&comm, given, win).map(drop) }
}

pub unsafe fn win_attach(window: &Window, base: *mut c_void, size: i64) -> Result {
    let length = usize::try_from(size).map_err(|_| {
        Error::new(
            ERR_SIZE,
            format!("the size is {size}; it must be 0 or more"),
        )
    })?;
    if base.is_null() && length != 0 || (base as usize).checked_add(length).is_none() {
        let text = format!("{size} bytes at {base:?} cannot be attached");
        return Err(Error::new(ERR_BASE, text));
    }
    window.attach(base as usize, length)
}

pub unsafe fn win_detach(window: &Window, base: *const c_void) -> Result {
    window.detach(base as usize)
}

pub unsafe fn win_shared_query(
    window: &Window,
    rank: c_int,
    size: Out<i64>,
    disp_unit: OutCount,
    baseptr: Out<*mut c_void>,
) -> Result {
    if window.flavor == WIN_FLAVOR_DYNAMIC {
        let text = "a dynamic window has no shared memory";
        return Err(Error::new(ERR_RMA_FLAVOR, text));
    }
    if disp_unit.is_null() {
        return Err(Error::new(ERR_ARG, "disp_unit is a null pointer"));
    }
    let found = match window.target(rank)? {
        Some(target) => Some(target),
        None => window.targets.iter().find(|it| it.size > 0),
    };
    let (bytes, unit, base) = match found {
        Some(target) => match target.reach {
            // The address of an empty part would be that of a neighbour's part.
            Reach::Mapped(base) if target.size > 0 => {
                (target.size, target.unit, base as *mut c_void)
            }
            _ => (0, target.unit, null_mut()),
        },
        None => (0, 1, null_mut()),
    };
    size.put(bytes);
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { disp_unit.set(unit) };
    baseptr.put(base);
    Ok(())
}

pub unsafe fn win_free(win: Out<Win>) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid.
    let handle = win.get();
    let window = held(handle)?;
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let ended = window.end(|| unsafe { window.attributes.delete_all(handle) });
    if held(handle).is_err() {
        win.put(WIN_NULL);
    }
    ended
}

pub fn win_get_group(window: &Window, group: Out<Group>) -> Result {
    group.put(groups::make(window.comm.local.clone())?);
    Ok(())
}

pub fn win_set_name(window: &Window, win_name: &CStr) -> Result {
    // A name that is too long is truncated.
    let most = MAX_OBJECT_NAME as usize - 1;
    let bytes: Vec<u8> = win_name.to_bytes().iter().copied().take(most).collect();
    window.set_name(CString::new(bytes).unwrap_or_default());
    Ok(())
}

pub unsafe fn win_get_name(win: Win, win_name: Out<c_char>, resultlen: Out<c_int>) -> Result {
    let name = match win {
        WIN_NULL => c"MPI_WIN_NULL".to_owned(),
        _ => get(win)?.name(),
    };
    // SAFETY: the caller guarantees room for the longest name.
    resultlen.put(unsafe { text::give(name.to_bytes(), win_name, MAX_OBJECT_NAME) });
    Ok(())
}

/// The hints of windows that have a meaning; other hints are not returned to programs.
const HINTS: [&CStr; 7] = [
    c"accumulate_ops",
    c"accumulate_ordering",
    c"alloc_shared_noncontig",
    c"mpi_accumulate_granularity",
    c"no_locks",
    c"same_disp_unit",
    c"same_size",
];

pub fn win_set_info(window: &Window, info: Info) -> Result {
    window.set_hints(&info::hints(info)?);
    Ok(())
}

pub fn win_get_info(window: &Window, info_used: Out<Info>) -> Result {
    let mut hints = Hints::default();
    hints.set_text(c"no_locks", "false");
    hints.set_text(c"accumulate_ordering", "rar,raw,war,waw");
    hints.set_text(c"accumulate_ops", "same_op_no_op");
    hints.set_text(c"mpi_accumulate_granularity", "0");
    hints.set_text(c"same_size", "false");
    hints.set_text(c"same_disp_unit", "false");
    if window.flavor == WIN_FLAVOR_SHARED {
        hints.set_text(c"alloc_shared_noncontig", "false");
    }
    hints.merge(&window.hints().among(&HINTS));
    info_used.put(info::make(hints)?);
    Ok(())
}
