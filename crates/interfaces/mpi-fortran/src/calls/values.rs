//! Values of info keys and names of process sets. Fortran's lengths do not include C's NUL.

use std::ffi::c_int;

use crate::facts::logicals;
use crate::texts::{Room, word};
use crate::{Info, SUCCESS, Session, finish};

pub unsafe fn info_get(
    call: crate::Info_get,
    info: *mut c_int,
    key: *mut u8,
    valuelen: *mut c_int,
    value: *mut u8,
    flag: *mut c_int,
    ierror: *mut c_int,
    key_length: usize,
    value_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = word(key, key_length);
        let mut room = Room::of((*valuelen).max(0) as usize);
        let result = call(Info::of(*info), key.as_ptr(), *valuelen, room.place(), flag);
        if result == SUCCESS && *flag != 0 {
            room.give(result, value, value_length);
        }
        logicals(flag, 1);
        finish(ierror, result);
    }
}

pub unsafe fn info_get_string(
    call: crate::Info_get_string,
    info: *mut c_int,
    key: *mut u8,
    buflen: *mut c_int,
    value: *mut u8,
    flag: *mut c_int,
    ierror: *mut c_int,
    key_length: usize,
    value_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = word(key, key_length);
        let wanted = (*buflen).max(0);
        let mut room = Room::of(wanted as usize);
        let mut length = if wanted == 0 { 0 } else { wanted + 1 };
        let result = call(
            Info::of(*info),
            key.as_ptr(),
            &mut length,
            room.place(),
            flag,
        );
        if result == SUCCESS && *flag != 0 {
            if wanted > 0 {
                room.give(result, value, value_length);
            }
            *buflen = length - 1;
        }
        logicals(flag, 1);
        finish(ierror, result);
    }
}

pub unsafe fn info_get_valuelen(
    call: crate::Info_get_valuelen,
    info: *mut c_int,
    key: *mut u8,
    valuelen: *mut c_int,
    flag: *mut c_int,
    ierror: *mut c_int,
    key_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = word(key, key_length);
        let result = call(Info::of(*info), key.as_ptr(), valuelen, flag);
        logicals(flag, 1);
        finish(ierror, result);
    }
}

pub unsafe fn info_delete(
    call: crate::Info_delete,
    info: *mut c_int,
    key: *mut u8,
    ierror: *mut c_int,
    key_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = word(key, key_length);
        finish(ierror, call(Info::of(*info), key.as_ptr()));
    }
}

pub unsafe fn info_set(
    call: crate::Info_set,
    info: *mut c_int,
    key: *mut u8,
    value: *mut u8,
    ierror: *mut c_int,
    key_length: usize,
    value_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = word(key, key_length);
        let value = word(value, value_length);
        finish(ierror, call(Info::of(*info), key.as_ptr(), value.as_ptr()));
    }
}

pub unsafe fn session_get_nth_pset(
    call: crate::Session_get_nth_pset,
    session: *mut c_int,
    info: *mut c_int,
    n: *mut c_int,
    pset_len: *mut c_int,
    pset_name: *mut u8,
    ierror: *mut c_int,
    pset_name_length: usize,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let wanted = (*pset_len).max(0);
        let mut room = Room::of(wanted as usize);
        let mut length = if wanted == 0 { 0 } else { wanted + 1 };
        let result = call(
            Session::of(*session),
            Info::of(*info),
            *n,
            &mut length,
            room.place(),
        );
        if result == SUCCESS {
            if wanted > 0 {
                room.give(result, pset_name, pset_name_length);
            }
            *pset_len = length - 1;
        }
        finish(ierror, result);
    }
}
