//! Attributes: integers in Fortran, pointers in C. An integer that Fortran sets is stored in memory of its own, whose
//! address is the attribute in C. A pointer that C sets is an integer in Fortran; for predefined attributes Fortran
//! gets the value to which the pointer points.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::facts::logicals;
use crate::handles::Handle;
use crate::{Comm, Datatype, SUCCESS, Win, finish};

/// Addresses of the integers that Fortran has set.
static KEPT: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

fn kept() -> MutexGuard<'static, HashSet<usize>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores an integer, and returns its address, which is the attribute in C.
fn keep(value: i64) -> *mut c_void {
    let place = Box::into_raw(Box::new(value));
    kept().insert(place as usize);
    place.cast()
}

/// Returns the integer that an attribute is in Fortran.
fn value(attribute: *mut c_void) -> i64 {
    match kept().contains(&(attribute as usize)) {
        // SAFETY: an address in `KEPT` is valid until `forget`.
        true => unsafe { *attribute.cast::<i64>() },
        false => attribute as i64,
    }
}

/// Frees an integer that `keep` has stored, if the attribute is one.
fn forget(attribute: *mut c_void) {
    if kept().remove(&(attribute as usize)) {
        // SAFETY: `keep` has made it with `Box::into_raw`, and it is no longer in `KEPT`.
        drop(unsafe { Box::from_raw(attribute.cast::<i64>()) });
    }
}

/// Returns a predefined attribute as Fortran gets it. In C it is a pointer to an int or to an address, except the base
/// of a window, which is an address itself.
unsafe fn predefined(keyval: c_int, attribute: *mut c_void) -> Option<i64> {
    const TAG_UB: c_int = 501;
    const UNIVERSE_SIZE: c_int = 507;
    const WIN_BASE: c_int = 601;
    const WIN_DISP_UNIT: c_int = 602;
    const WIN_SIZE: c_int = 603;
    const WIN_MODEL: c_int = 605;
    match keyval {
        WIN_BASE => Some(attribute as i64),
        // SAFETY: by the standard it points to an MPI_Aint.
        WIN_SIZE => Some(unsafe { *attribute.cast::<i64>() }),
        TAG_UB..=UNIVERSE_SIZE | WIN_DISP_UNIT..=WIN_MODEL => {
            // SAFETY: by the standard it points to an int.
            Some(unsafe { *attribute.cast::<c_int>() }.into())
        }
        _ => None,
    }
}

/// The functions of a key, and their extra state.
struct Key {
    copy: *const c_void,
    delete: *const c_void,
    state: i64,
    /// Whether its functions are those of MPI-1, in which all values are INTEGER.
    old: bool,
}

type Copy<Value> = unsafe extern "C" fn(
    *mut c_int,
    *mut c_int,
    *mut Value,
    *mut Value,
    *mut Value,
    *mut c_int,
    *mut c_int,
);

type Delete<Value> =
    unsafe extern "C" fn(*mut c_int, *mut c_int, *mut Value, *mut Value, *mut c_int);

/// Calls the program's copy function of an attribute.
unsafe extern "C" fn copy<H: Handle>(
    object: H,
    mut keyval: c_int,
    key: *mut c_void,
    attribute: *mut c_void,
    copied: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    let key: *mut Key = key.cast();
    let (mut object, mut result, mut copies) = (object.to_int(), SUCCESS, 0);
    let (mut from, mut to) = (value(attribute), 0i64);
    // SAFETY: the program has passed a function of this type with the key, and C passes valid pointers.
    unsafe {
        let numbers = (&raw mut object, &raw mut keyval);
        let state = &raw mut (*key).state;
        let function = (*key).copy;
        if (*key).old {
            let function: Copy<c_int> = std::mem::transmute(function);
            let (from, to): (*mut i64, *mut i64) = (&mut from, &mut to);
            function(
                numbers.0,
                numbers.1,
                state.cast(),
                from.cast(),
                to.cast(),
                &mut copies,
                &mut result,
            );
        } else {
            let function: Copy<i64> = std::mem::transmute(function);
            function(
                numbers.0,
                numbers.1,
                state,
                &mut from,
                &mut to,
                &mut copies,
                &mut result,
            );
        }
        *flag = c_int::from(copies != 0);
        if copies != 0 {
            *copied = keep(if (*key).old { (to as c_int).into() } else { to });
        }
    }
    result
}

/// Calls the program's delete function of an attribute.
unsafe extern "C" fn delete<H: Handle>(
    object: H,
    mut keyval: c_int,
    attribute: *mut c_void,
    key: *mut c_void,
) -> c_int {
    let key: *mut Key = key.cast();
    let (mut object, mut result) = (object.to_int(), SUCCESS);
    let mut from = value(attribute);
    // SAFETY: the program has passed a function of this type with the key. For MPI-1's functions, INTEGER is the lower
    // half of the 64-bit value.
    unsafe {
        let function: Delete<i64> = std::mem::transmute((*key).delete);
        let state = &raw mut (*key).state;
        function(&mut object, &mut keyval, &mut from, state, &mut result);
    }
    if result == SUCCESS {
        forget(attribute);
    }
    result
}

type Create = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_int, *mut c_void) -> c_int;

/// Makes a key. Its functions are never freed, because attributes may outlive it.
unsafe fn create<H: Handle>(call: Create, key: Key, keyval: *mut c_int, ierror: *mut c_int) {
    let key = Box::into_raw(Box::new(key));
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let result = call(
            copy::<H> as *const c_void,
            delete::<H> as *const c_void,
            keyval,
            key.cast(),
        );
        finish(ierror, result);
    }
}

pub unsafe fn keyval_create(
    call: crate::Keyval_create,
    copy_fn: *const c_void,
    delete_fn: *const c_void,
    keyval: *mut c_int,
    extra_state: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let key = Key {
            copy: copy_fn,
            delete: delete_fn,
            state: (*extra_state).into(),
            old: true,
        };
        create::<Comm>(call, key, keyval, ierror);
    }
}

pub unsafe fn attr_put(
    call: crate::Attr_put,
    comm: *mut c_int,
    keyval: *mut c_int,
    attribute_val: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let place = keep((*attribute_val).into());
        let result = call(Comm::of(*comm), *keyval, place);
        if result != SUCCESS {
            forget(place);
        }
        finish(ierror, result);
    }
}

pub unsafe fn attr_get(
    call: crate::Attr_get,
    comm: *mut c_int,
    keyval: *mut c_int,
    attribute_val: *mut c_int,
    flag: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let mut found = 0;
        get(call, Comm::of(*comm), *keyval, &mut found, flag, ierror);
        if *flag != 0 {
            *attribute_val = found as c_int;
        }
    }
}

type Get<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_int) -> c_int;

unsafe fn get<H: Handle>(
    call: Get<H>,
    object: H,
    keyval: c_int,
    to: *mut i64,
    flag: *mut c_int,
    ierror: *mut c_int,
) {
    let mut found: *mut c_void = std::ptr::null_mut();
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        *flag = 0;
        let result = call(object, keyval, (&raw mut found).cast(), flag);
        if result == SUCCESS && *flag != 0 {
            *to = predefined(keyval, found).unwrap_or_else(|| value(found));
        }
        logicals(flag, 1);
        finish(ierror, result);
    }
}

macro_rules! of_objects {
    ($($handle:ident $create:ident $Create:ident $set:ident $Set:ident $get:ident $Get:ident;)*) => {$(
        pub unsafe fn $create(
            call: crate::$Create,
            copy_fn: *const c_void,
            delete_fn: *const c_void,
            keyval: *mut c_int,
            extra_state: *mut i64,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                let key = Key { copy: copy_fn, delete: delete_fn, state: *extra_state, old: false };
                create::<$handle>(call, key, keyval, ierror);
            }
        }

        pub unsafe fn $set(
            call: crate::$Set,
            object: *mut c_int,
            keyval: *mut c_int,
            attribute_val: *mut i64,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                let place = keep(*attribute_val);
                let result = call($handle::of(*object), *keyval, place);
                if result != SUCCESS {
                    forget(place);
                }
                finish(ierror, result);
            }
        }

        pub unsafe fn $get(
            call: crate::$Get,
            object: *mut c_int,
            keyval: *mut c_int,
            attribute_val: *mut i64,
            flag: *mut c_int,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe { get(call, $handle::of(*object), *keyval, attribute_val, flag, ierror) };
        }
    )*};
}

of_objects! {
    Comm comm_create_keyval Comm_create_keyval comm_set_attr Comm_set_attr comm_get_attr Comm_get_attr;
    Datatype type_create_keyval Type_create_keyval type_set_attr Type_set_attr type_get_attr Type_get_attr;
    Win win_create_keyval Win_create_keyval win_set_attr Win_set_attr win_get_attr Win_get_attr;
}
