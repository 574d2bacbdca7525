//! The description of a message that has been received or probed.
//!
//! An information array has eight numbers, of which four are set: type, length, and the sender's node and pid. Calls
//! without such an argument set `msginfo`, which the `info...` calls read.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};

use crate::error::Answer;
use crate::forms::{c_forms, fortran_forms};
use crate::rg::Status;
use crate::state::Library;

/// An information array that the program can read.
#[repr(transparent)]
pub struct Info<T>(UnsafeCell<[T; 8]>);

// SAFETY: a program has one thread.
unsafe impl<T> Sync for Info<T> {}

/// The information array of C programs.
#[unsafe(no_mangle)]
pub static msginfo: Info<c_long> = Info(UnsafeCell::new([0; 8]));
/// The common block of Fortran programs. When a program passes it, `msginfo` is set, too.
#[unsafe(no_mangle)]
pub static msginfo_: Info<c_int> = Info(UnsafeCell::new([0; 8]));

/// The array that is set when a message is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoArray {
    /// `msginfo`.
    Global,
    /// An array of a C program, or NULL for `msginfo`.
    C(*mut c_long),
    /// An array of a Fortran program, or NULL for `msginfo`.
    Fortran(*mut c_int),
}

/// Returns the type, length, node and pid of a message.
#[inline(always)]
pub fn describe(library: &mut Library, status: &Status) -> [c_long; 4] {
    let (node, ptype) = library.process_of(status.source);
    [
        c_long::from(status.tag),
        status.length as c_long,
        node,
        ptype,
    ]
}

/// Sets an information array.
#[inline(always)]
pub fn tell(library: &mut Library, place: InfoArray, status: &Status) {
    let told = describe(library, status);
    match place {
        InfoArray::Global => write(msginfo.0.get(), told),
        other => tell_program(other, told),
    }
}

fn tell_program(place: InfoArray, told: [c_long; 4]) {
    match place {
        InfoArray::C(array) if !array.is_null() => write(array.cast(), told),
        InfoArray::Fortran(array) if !array.is_null() => {
            // SAFETY: by the Fortran contract the array has eight INTEGERs.
            unsafe {
                array
                    .cast::<[c_int; 4]>()
                    .write_unaligned(told.map(|number| number as c_int))
            };
            if array == msginfo_.0.get().cast() {
                write(msginfo.0.get(), told);
            }
        }
        _ => write(msginfo.0.get(), told),
    }
}

#[inline(always)]
fn write(array: *mut [c_long; 8], told: [c_long; 4]) {
    // SAFETY: by the C contract the array has eight numbers, as `msginfo` has.
    unsafe { array.cast::<[c_long; 4]>().write_unaligned(told) };
}

/// Replaces the description in `msginfo`, and returns the previous one.
pub fn replace(told: [c_long; 4]) -> [c_long; 4] {
    // SAFETY: `msginfo` is static, and only the program's thread calls this.
    unsafe { std::mem::replace(&mut *msginfo.0.get().cast(), told) }
}

fn number(index: usize) -> Answer {
    // SAFETY: `msginfo` is static, and a program has one thread.
    Ok(unsafe { (*msginfo.0.get())[index] })
}

unsafe fn kind() -> Answer {
    number(0)
}

pub unsafe fn count() -> Answer {
    number(1)
}

unsafe fn node() -> Answer {
    number(2)
}

unsafe fn ptype() -> Answer {
    number(3)
}

c_forms! {
    infotype, _infotype: () = kind;
    infocount, _infocount: () = count;
    infonode, _infonode: () = node;
    infopid, _infopid: () = ptype;
    infoptype, _infoptype: () = ptype;
}

fortran_forms! {
    infotype_, _infotype_: () = kind;
    infocount_, _infocount_: () = count;
    infonode_, _infonode_: () = node;
    infopid_, _infopid_: () = ptype;
    infoptype_, _infoptype_: () = ptype;
}
