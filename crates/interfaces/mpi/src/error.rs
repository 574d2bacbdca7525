//! Errors: an error class of MPI and a text. The class is also the error code. Each thread keeps the text of its last
//! error for MPI_Error_string.

pub mod codes;

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::mem::ManuallyDrop;

use regatta_sys as rg;

use crate::abi::*;
use crate::{errhandler, process};

/// The result of a call.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// An error.
#[derive(Debug)]
pub struct Error(Box<Fault>);

/// The contents of an error.
#[derive(Debug)]
pub struct Fault {
    /// The class, which is also the code.
    pub class: c_int,
    /// A sentence without a full stop: which argument, its value, and what is allowed.
    pub text: String,
    /// The object whose error handler is called, if it is not the first object of the call.
    pub object: Option<Object>,
}

/// An object that has an error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Object {
    /// No object: errors are raised on MPI_COMM_SELF.
    None,
    Comm(Comm),
    Win(Win),
    File(File),
    Session(Session),
    /// The object that the call is to make; errors go to this handler.
    Unmade(Errhandler),
}

impl Error {
    /// Returns an error of this class.
    #[cold]
    pub fn new(class: c_int, text: impl Into<String>) -> Error {
        Error(Box::new(Fault {
            class,
            text: text.into(),
            object: None,
        }))
    }

    /// Sets the object on which it is raised, unless one is set already.
    pub fn on(mut self, object: Object) -> Error {
        self.0.object = self.0.object.or(Some(object));
        self
    }

    /// Returns its class.
    pub fn class(&self) -> c_int {
        self.0.class
    }

    /// Returns the object on which it is raised, if it is not the call's.
    pub fn object(&self) -> Option<Object> {
        self.0.object
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the engine's last error in this thread, which has this code.
    #[cold]
    pub fn of_engine(code: c_int) -> Error {
        // SAFETY: the engine's texts are NUL-terminated and live until its next error in this thread.
        let text = unsafe { CStr::from_ptr(rg::rg_last_error()) }.to_string_lossy();
        let text = match text.is_empty() {
            // SAFETY: the engine's texts are NUL-terminated and live until its next error in this thread; this one
            // stays for ever.
            true => unsafe { CStr::from_ptr(rg::rg_strerror(code)) }.to_string_lossy(),
            false => text,
        };
        Error::new(class_of(code), text)
    }
}

/// Returns the class of an error code of the engine.
pub fn class_of(code: c_int) -> c_int {
    match code {
        rg::OK => SUCCESS,
        rg::ERR_TASK => ERR_RANK,
        rg::ERR_TAG => ERR_TAG,
        rg::ERR_TRUNCATED => ERR_TRUNCATE,
        rg::ERR_DEAD | rg::ERR_LEFT => PROC_FAILED,
        rg::ERR_REVOKED => REVOKED,
        rg::ERR_MEMORY => ERR_NO_MEM,
        rg::ERR_HANDLE => ERR_REQUEST,
        rg::ERR_PROGRAM | rg::ERR_HOST => ERR_SPAWN,
        rg::ERR_NAME => ERR_NAME,
        rg::ERR_STATE => ERR_OTHER,
        _ => ERR_OTHER,
    }
}

/// The class for the failure of a process on which the call depends. The standard does not define it; it and the next
/// two are above the standard's classes and below MPI_ERR_LASTCODE.
pub const PROC_FAILED: c_int = MPIX_ERR_PROC_FAILED;
/// The class for a receive that may still match once failures are acknowledged.
pub const PROC_FAILED_PENDING: c_int = MPIX_ERR_PROC_FAILED_PENDING;
/// The class for a revoked communicator.
pub const REVOKED: c_int = MPIX_ERR_REVOKED;

/// Fails with the engine's error if the code is one.
#[inline(always)]
pub fn checked(code: c_int) -> Result {
    match code {
        0.. => Ok(()),
        _ => Err(Error::of_engine(code)),
    }
}

/// Fails if the pointer is null.
pub fn not_null<T>(pointer: *const T, name: &str) -> Result {
    match pointer.is_null() {
        true => Err(Error::new(ERR_ARG, format!("{name} is a null pointer"))),
        false => Ok(()),
    }
}

/// The class of an error, and its text.
type Sentence = Option<(c_int, String)>;

thread_local! {
    /// This thread's last error. MPI may be called in `atexit` functions and in destructors, when thread-locals with a
    /// destructor are gone. So this one has no destructor, and [`EMPTIES`] frees its contents.
    static LAST: Cell<ManuallyDrop<Sentence>> = const { Cell::new(ManuallyDrop::new(None)) };
    static EMPTIES: Empties = const { Empties };
}

/// Frees the thread's last error when the thread ends. An error of a call in a destructor that runs later is leaked.
struct Empties;

impl Drop for Empties {
    fn drop(&mut self) {
        set_last(None);
    }
}

fn set_last(sentence: Sentence) {
    drop(ManuallyDrop::into_inner(
        LAST.replace(ManuallyDrop::new(sentence)),
    ));
}

/// Keeps the text as that of this thread's last error.
fn remember(class: c_int, text: String) {
    // Registers the destructor; fails harmlessly if it has run already.
    let _ = EMPTIES.try_with(|_| ());
    set_last(Some((class, text)));
}

/// Returns the text of this thread's last error if it has this code.
pub fn last(code: c_int) -> Option<String> {
    let kept = ManuallyDrop::into_inner(LAST.replace(ManuallyDrop::new(None)));
    let text = match &kept {
        Some((class, text)) if *class == code => Some(text.clone()),
        _ => None,
    };
    set_last(kept);
    text
}

/// Returns the value that a call returns to its caller. An error first goes to the error handler of its object.
#[inline(always)]
pub fn finish(result: Result, object: Object, call: &str) -> c_int {
    match result {
        Ok(()) => SUCCESS,
        Err(error) => raise(error, object, call),
    }
}

/// Returns the value of a call of the tool interface, which has no error handlers.
#[inline(always)]
pub fn finish_tool(result: Result, call: &str) -> c_int {
    match result {
        Ok(()) => SUCCESS,
        Err(error) => keep(&error, call),
    }
}

#[cold]
fn keep(error: &Error, call: &str) -> c_int {
    let text = format!("{call}: {}", error.text());
    remember(error.class(), text);
    error.class()
}

/// Returns the value of a call that the library does not implement.
#[cold]
pub fn unsupported(object: Object, call: &str) -> c_int {
    let text = "Regatta does not have this call";
    let error = Error::new(ERR_UNSUPPORTED_OPERATION, text);
    raise(error, object, call)
}

#[cold]
#[inline(never)]
fn raise(error: Error, object: Object, call: &str) -> c_int {
    let Fault {
        class,
        text,
        object: other,
    } = *error.0;
    let text = format!("{call}: {text}");
    remember(class, text.clone());
    errhandler::handle(other.unwrap_or(object), class, &text)
}

/// Returns the handle at a pointer; the handle 0 if the pointer is null.
///
/// # Safety
/// The pointer is null or valid for reads.
#[inline(always)]
pub unsafe fn pointed<T: Copy + Nothing>(pointer: *mut T) -> T {
    match pointer.is_null() {
        true => T::NOTHING,
        // SAFETY: the caller upholds the safety contract of this function.
        false => unsafe { *pointer },
    }
}

/// Handles of objects with error handlers.
pub trait Nothing {
    /// The handle 0.
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($name:ident)*) => { $(impl Nothing for $name { const NOTHING: $name = $name(0); })* };
}
nothing!(Comm Win File Session);

/// Writes to standard error why the job ends, and ends it.
#[cold]
pub fn fatal(text: &str, class: c_int) -> ! {
    fatal_line(text.as_bytes(), class)
}

/// Does the same as [`fatal`]. It may be called in a signal handler: it takes no lock and does not allocate.
#[cold]
pub fn fatal_line(text: &[u8], class: c_int) -> ! {
    let part = |bytes: &[u8]| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let parts = [part(b"regatta: "), part(text), part(b"\n")];
    // One write, because other processes write there too.
    // SAFETY: the parts live across the call, which reads them.
    unsafe { libc::writev(2, parts.as_ptr(), parts.len() as c_int) };
    process::abort(class)
}
