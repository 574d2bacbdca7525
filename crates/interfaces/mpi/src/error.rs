//! Errors: a class of MPI's and a sentence. The class is also the error's code; the sentence of a thread's last error is
//! there for MPI_Error_string.

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

/// The parts of an error.
#[derive(Debug)]
pub struct Fault {
    /// The class, which is the code too.
    pub class: c_int,
    /// A sentence without its end: which argument, its value, what is allowed.
    pub text: String,
    /// The object whose error handler is called, if it is not the call's first.
    pub object: Option<Object>,
}

/// An object that has an error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Object {
    /// None: errors are raised on MPI_COMM_SELF.
    None,
    Comm(Comm),
    Win(Win),
    File(File),
    Session(Session),
    /// The one that the call is to make, by this handler of its.
    Unmade(Errhandler),
}

impl Error {
    /// An error of this class.
    #[cold]
    pub fn new(class: c_int, text: impl Into<String>) -> Error {
        Error(Box::new(Fault {
            class,
            text: text.into(),
            object: None,
        }))
    }

    /// Raised on another object than the call's.
    pub fn on(mut self, object: Object) -> Error {
        self.0.object = self.0.object.or(Some(object));
        self
    }

    /// Its class.
    pub fn class(&self) -> c_int {
        self.0.class
    }

    /// The object on which it is raised, if that is another than the call's.
    pub fn object(&self) -> Option<Object> {
        self.0.object
    }

    /// Its sentence.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The engine's last error in this thread, with this code.
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

/// The class of an error of the engine's.
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

/// A process that the call depends on has failed. The standard has no number for it yet; this one and the next two are
/// beyond its classes and below MPI_ERR_LASTCODE.
pub const PROC_FAILED: c_int = MPIX_ERR_PROC_FAILED;
/// The receive may still match, once the failures are acknowledged.
pub const PROC_FAILED_PENDING: c_int = MPIX_ERR_PROC_FAILED_PENDING;
/// The communicator is revoked.
pub const REVOKED: c_int = MPIX_ERR_REVOKED;

/// An error of the engine's, if the code is one.
#[inline(always)]
pub fn checked(code: c_int) -> Result {
    match code {
        0.. => Ok(()),
        _ => Err(Error::of_engine(code)),
    }
}

/// An argument that may not be null.
pub fn not_null<T>(pointer: *const T, name: &str) -> Result {
    match pointer.is_null() {
        true => Err(Error::new(ERR_ARG, format!("{name} is a null pointer"))),
        false => Ok(()),
    }
}

/// The class of an error, and its sentence.
type Sentence = Option<(c_int, String)>;

thread_local! {
    /// This thread's last error. Calls are made in functions of `atexit` and in destructors, where values with a destructor are gone: this one
    /// has none, and [`EMPTIES`] frees what is in it.
    static LAST: Cell<ManuallyDrop<Sentence>> = const { Cell::new(ManuallyDrop::new(None)) };
    static EMPTIES: Empties = const { Empties };
}

/// Frees the sentence of the thread at its end. One of a call in a destructor that runs later is left.
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

/// Keeps the sentence as this thread's last one.
fn remember(class: c_int, text: String) {
    // That it is gone is no matter.
    let _ = EMPTIES.try_with(|_| ());
    set_last(Some((class, text)));
}

/// The sentence of this thread's last error, if it has this code.
pub fn last(code: c_int) -> Option<String> {
    let kept = ManuallyDrop::into_inner(LAST.replace(ManuallyDrop::new(None)));
    let text = match &kept {
        Some((class, text)) if *class == code => Some(text.clone()),
        _ => None,
    };
    set_last(kept);
    text
}

/// The value that a call returns to its caller: an error goes to the error handler of its object first.
#[inline(always)]
pub fn finish(result: Result, object: Object, call: &str) -> c_int {
    match result {
        Ok(()) => SUCCESS,
        Err(error) => raise(error, object, call),
    }
}

/// The value of a call of the tool interface, which has no error handlers.
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

/// The value of a call that the library does not have.
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

/// The handle that a pointer leads to; 0 if it leads nowhere.
///
/// # Safety
/// It is null or may be read.
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
    /// No handle.
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($name:ident)*) => { $(impl Nothing for $name { const NOTHING: $name = $name(0); })* };
}
nothing!(Comm Win File Session);

/// Says on standard error why the job ends, and ends it.
#[cold]
pub fn fatal(text: &str, class: c_int) -> ! {
    fatal_line(text.as_bytes(), class)
}

/// As [`fatal`]. It may come from a signal handler: it takes no lock and no memory.
#[cold]
pub fn fatal_line(text: &[u8], class: c_int) -> ! {
    let part = |bytes: &[u8]| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let parts = [part(b"regatta: "), part(text), part(b"\n")];
    // Written at once: other processes write there too.
    // SAFETY: the parts live across the call, which reads them.
    unsafe { libc::writev(2, parts.as_ptr(), parts.len() as c_int) };
    process::abort(class)
}
