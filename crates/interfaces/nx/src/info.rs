//! Information about a message that has been received or seen.
//!
//! An information array has eight numbers, of which four are written: type, length, node and pid of the sender. The calls without such
//! an argument write `msginfo`, which the `info...` calls read.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};

use crate::error::Answer;
use crate::forms::{c_forms, fortran_forms};
use crate::rg::Status;
use crate::state::Library;

/// An array that programs see.
#[repr(transparent)]
pub struct Info<T>(UnsafeCell<[T; 8]>);

// SAFETY: NX's rule: a program has one thread.
unsafe impl<T> Sync for Info<T> {}

/// The information array of C programs.
#[unsafe(no_mangle)]
pub static msginfo: Info<c_long> = Info(UnsafeCell::new([0; 8]));
/// The common block of Fortran programs, which stands for the array above when they name it.
#[unsafe(no_mangle)]
pub static msginfo_: Info<c_int> = Info(UnsafeCell::new([0; 8]));

/// The array that is to be written when a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoArray {
    /// `msginfo`.
    Global,
    /// One of a C program, or NULL.
    C(*mut c_long),
    /// One of a Fortran program.
    Fortran(*mut c_int),
}

/// Type, length, node and pid of a message.
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

/// Tells of a message.
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
            // SAFETY: Fortran's contract: an array of eight INTEGERs.
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
    // SAFETY: the C contract: an array of eight numbers; ours is one.
    unsafe { array.cast::<[c_long; 4]>().write_unaligned(told) };
}

/// Tells something else, and returns what was told.
pub fn replace(told: [c_long; 4]) -> [c_long; 4] {
    // SAFETY: the array is there; the program's thread calls this.
    unsafe { std::mem::replace(&mut *msginfo.0.get().cast(), told) }
}

fn number(index: usize) -> Answer {
    // SAFETY: the array is there, and a program has one thread.
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
