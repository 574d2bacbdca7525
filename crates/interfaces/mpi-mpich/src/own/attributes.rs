//! Attributes: keys with functions of the program, and predefined values.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

use regatta_mpi::abi;
use regatta_mpi::checked;
use regatta_mpi::error::{Result, not_null};

use crate::callbacks::{self, Key};
use crate::outer::{Comm, Datatype, Handle, Win};
use crate::roles::{code, key, rank, window_flavor, window_model};

/// Makes a key with the core's function for this kind of handle.
macro_rules! create {
    ($handle:ident, $create:path, $copy:ident, $delete:ident, $key:ident, $extra:ident) => {{
        let copy = $copy.map_or(0, |function| function as usize);
        let delete = $delete.map_or(0, |function| function as usize);
        let extra = $extra as usize;
        let kept = Key {
            copy,
            delete,
            extra,
        }
        .kept();
        let mut made = 0;
        not_null($key, stringify!($key))?;
        // SAFETY: the functions here call the program's, and by the C contract the result is writable.
        unsafe {
            $create(
                (copy != 0).then_some(callbacks::copy::<$handle>),
                (delete != 0).then_some(callbacks::delete::<$handle>),
                &mut made,
                kept,
            )?;
            *$key = key::outward(made);
        }
        Ok(())
    }};
}

pub unsafe fn comm_create_keyval(
    copy: abi::Comm_copy_attr_function,
    delete: abi::Comm_delete_attr_function,
    comm_keyval: *mut c_int,
    extra: *mut c_void,
) -> Result {
    create!(
        Comm,
        checked::comm_create_keyval,
        copy,
        delete,
        comm_keyval,
        extra
    )
}

pub unsafe fn keyval_create(
    copy: abi::Copy_function,
    delete: abi::Delete_function,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result {
    // SAFETY: the functions are those of a communicator's key.
    unsafe { comm_create_keyval(copy, delete, keyval, extra) }
}

pub unsafe fn type_create_keyval(
    copy: abi::Type_copy_attr_function,
    delete: abi::Type_delete_attr_function,
    type_keyval: *mut c_int,
    extra: *mut c_void,
) -> Result {
    create!(
        Datatype,
        checked::type_create_keyval,
        copy,
        delete,
        type_keyval,
        extra
    )
}

pub unsafe fn win_create_keyval(
    copy: abi::Win_copy_attr_function,
    delete: abi::Win_delete_attr_function,
    win_keyval: *mut c_int,
    extra: *mut c_void,
) -> Result {
    create!(
        Win,
        checked::win_create_keyval,
        copy,
        delete,
        win_keyval,
        extra
    )
}

/// Returns the value of a predefined attribute in this ABI, where it differs from the core's.
///
/// # Safety
/// `core` points to a readable int.
unsafe fn value(key: c_int, core: *mut c_void) -> *mut c_void {
    static ANYBODY: AtomicI32 = AtomicI32::new(0);
    static NOBODY: AtomicI32 = AtomicI32::new(0);
    static LAST_CODE: AtomicI32 = AtomicI32::new(0);
    static FLAVORS: [AtomicI32; 8] = [const { AtomicI32::new(0) }; 8];
    static MODELS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];
    // SAFETY: the caller guarantees valid pointers.
    let read = || unsafe { *core.cast::<c_int>() };
    let (place, value) = match key {
        abi::IO => (&ANYBODY, rank::outward(read())),
        abi::HOST => (&NOBODY, rank::outward(read())),
        abi::LASTUSEDCODE => (&LAST_CODE, code::outward(read())),
        abi::WIN_CREATE_FLAVOR => {
            let value = window_flavor::outward(read());
            (&FLAVORS[value as usize % FLAVORS.len()], value)
        }
        abi::WIN_MODEL => {
            let value = window_model::outward(read());
            (&MODELS[value as usize % MODELS.len()], value)
        }
        _ => return core,
    };
    place.store(value, Ordering::Relaxed);
    place.as_ptr().cast()
}

/// Converts the value that the core has written.
///
/// # Safety
/// If `*flag` is set, the core has written a value.
unsafe fn outward(key: c_int, attribute_val: *mut c_void, flag: *const c_int) {
    let place = attribute_val.cast::<*mut c_void>();
    // SAFETY: the caller guarantees valid pointers.
    unsafe {
        if *flag != 0 {
            place.write_unaligned(value(key, place.read_unaligned()));
        }
    }
}

pub unsafe fn comm_get_attr(
    comm: Comm,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let key = key::inward(comm_keyval);
    // SAFETY: by the C contract the results are writable.
    unsafe {
        checked::comm_get_attr(comm.inward(), key, attribute_val, flag)?;
        outward(key, attribute_val, flag);
    }
    Ok(())
}

pub unsafe fn attr_get(
    comm: Comm,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result {
    // SAFETY: by the C contract the results are writable.
    unsafe { comm_get_attr(comm, keyval, attribute_val, flag) }
}

pub unsafe fn win_get_attr(
    win: Win,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let key = key::inward(win_keyval);
    // SAFETY: by the C contract the results are writable.
    unsafe {
        checked::win_get_attr(win.inward(), key, attribute_val, flag)?;
        outward(key, attribute_val, flag);
    }
    Ok(())
}
