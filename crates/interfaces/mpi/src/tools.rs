//! The tool interface: control variables for settings, and performance variables that count events. It has no error
//! handlers: calls return codes.

pub mod control;
pub mod performance;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI64, Ordering};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};

/// How often the interface has been initialized without being finalized.
static DEPTH: AtomicI64 = AtomicI64::new(0);

/// Initializes the interface once more.
pub fn enter() {
    DEPTH.fetch_add(1, Ordering::AcqRel);
}

/// Finalizes the interface once. Fails if it is not initialized.
pub fn leave() -> Result {
    let left = DEPTH.fetch_update(Ordering::AcqRel, Ordering::Acquire, |depth| {
        (depth > 0).then(|| depth - 1)
    });
    left.map(drop).map_err(|_| not_initialized())
}

/// Fails unless the interface is initialized.
pub fn require() -> Result {
    match DEPTH.load(Ordering::Acquire) {
        0 => Err(not_initialized()),
        _ => Ok(()),
    }
}

#[cold]
fn not_initialized() -> Error {
    let text = "the tool interface is not initialized: call MPI_T_init_thread first";
    Error::new(T_ERR_NOT_INITIALIZED, text)
}

/// Checks an index of `count` objects.
pub fn index(index: c_int, count: usize, name: &str) -> Result<usize> {
    let found = usize::try_from(index).ok().filter(|&it| it < count);
    found.ok_or_else(|| {
        let text = format!("the {name} is {index}; there are {count}, counted from 0");
        Error::new(T_ERR_INVALID_INDEX, text)
    })
}

/// Returns the error for an unknown name.
#[cold]
pub fn no_name(kind: &str, name: &CStr) -> Error {
    Error::new(T_ERR_INVALID_NAME, format!("no {kind} is called {name:?}"))
}

/// Returns the error for an invalid handle.
#[cold]
pub fn no_handle(kind: &str) -> Error {
    let text = format!("this is not a valid {kind}; it may have been freed");
    Error::new(T_ERR_INVALID_HANDLE, text)
}

/// Fails if the pointer is null.
pub fn given<T>(pointer: *const T, name: &str) -> Result {
    match pointer.is_null() {
        true => Err(Error::new(
            T_ERR_INVALID,
            format!("{name} is a null pointer"),
        )),
        false => Ok(()),
    }
}

/// Returns a string that the caller passes.
///
/// # Safety
/// The string is null, or NUL-terminated and valid for `'a`.
pub unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    given(text, name)?;
    // SAFETY: the caller upholds the safety contract of this function.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Writes a value unless the pointer is null.
///
/// # Safety
/// The pointer is null or valid for writes.
pub unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { *to = value };
    }
}

/// Writes a string into the caller's buffer, truncated if it does not fit, and the size of the buffer that it needs.
///
/// # Safety
/// Both pointers are null or valid for writes, `to` for as many bytes as `length` says.
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

/// A category of variables.
pub struct Category {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Number of control variables: all or none.
    pub control: usize,
    /// Number of performance variables: all or none.
    pub performance: usize,
}

/// All categories.
pub static CATEGORIES: [Category; 2] = [
    Category {
        name: "regatta_settings",
        description: "Settings and properties of the library",
        control: control::ALL.len(),
        performance: 0,
    },
    Category {
        name: "regatta_traffic",
        description: "Messages and open objects of this process",
        control: 0,
        performance: performance::ALL.len(),
    },
];
