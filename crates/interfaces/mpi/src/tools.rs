//! The tool interface: variables that tell settings and count what happens. It has no error handlers: calls return codes.

pub mod control;
pub mod performance;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI64, Ordering};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};

/// How often the interface was initialized and not finalized.
static DEPTH: AtomicI64 = AtomicI64::new(0);

/// A tool begins.
pub fn enter() {
    DEPTH.fetch_add(1, Ordering::AcqRel);
}

/// A tool ends.
pub fn leave() -> Result {
    let left = DEPTH.fetch_update(Ordering::AcqRel, Ordering::Acquire, |depth| {
        (depth > 0).then(|| depth - 1)
    });
    left.map(drop).map_err(|_| not_initialized())
}

/// The interface is initialized.
pub fn require() -> Result {
    match DEPTH.load(Ordering::Acquire) {
        0 => Err(not_initialized()),
        _ => Ok(()),
    }
}

#[cold]
fn not_initialized() -> Error {
    let text = "the tool interface is not initialized: MPI_T_init_thread comes first";
    Error::new(T_ERR_NOT_INITIALIZED, text)
}

/// An index of so many things.
pub fn index(index: c_int, count: usize, name: &str) -> Result<usize> {
    let found = usize::try_from(index).ok().filter(|&it| it < count);
    found.ok_or_else(|| {
        let text = format!("the {name} is {index}; there are {count}, counted from 0");
        Error::new(T_ERR_INVALID_INDEX, text)
    })
}

/// No thing has this name.
#[cold]
pub fn no_name(kind: &str, name: &CStr) -> Error {
    Error::new(T_ERR_INVALID_NAME, format!("no {kind} is called {name:?}"))
}

/// This is no handle, or one that has been freed.
#[cold]
pub fn no_handle(kind: &str) -> Error {
    let text = format!("this is no {kind}, or one that has been freed");
    Error::new(T_ERR_INVALID_HANDLE, text)
}

/// An argument that may not be null.
pub fn given<T>(pointer: *const T, name: &str) -> Result {
    match pointer.is_null() {
        true => Err(Error::new(
            T_ERR_INVALID,
            format!("{name} is a null pointer"),
        )),
        false => Ok(()),
    }
}

/// A text that the caller gives.
///
/// # Safety
/// It is null, or ends and stays.
pub unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    given(text, name)?;
    // SAFETY: the caller upholds the safety contract of this function.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Writes a number where the caller wants it, if anywhere.
///
/// # Safety
/// The place is null or may be written.
pub unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { *to = value };
    }
}

/// Writes a text into the room that the caller has, cut if it does not fit, and the length that it needs.
///
/// # Safety
/// Both are null or may be written, as many bytes of `to` as `length` says.
pub unsafe fn give_text(text: &str, to: *mut c_char, length: *mut c_int) {
    if length.is_null() {
        return;
    }
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        if let Ok(to) = Out::at(to, "the text") {
            crate::text::give(text.as_bytes(), to, *length);
        }
        *length = text.len() as c_int + 1;
    }
}

/// A category: what its variables are about.
pub struct Category {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// How many control variables: all, or none.
    pub control: usize,
    /// How many performance variables: all, or none.
    pub performance: usize,
}

/// All of them.
pub static CATEGORIES: [Category; 2] = [
    Category {
        name: "regatta_settings",
        description: "What the library was told, and what it is",
        control: control::ALL.len(),
        performance: 0,
    },
    Category {
        name: "regatta_traffic",
        description: "Messages of this process, and what is open",
        control: 0,
        performance: performance::ALL.len(),
    },
];
