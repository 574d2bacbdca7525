//! Failures of calls: an error message on standard error, and -1.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::io::Write;

use crate::place::place;
use crate::rg;

/// The reason why a call has failed.
#[derive(Debug)]
pub enum Fault {
    /// Regatta's last error describes it.
    Regatta,
    /// This text describes it.
    Says(Cow<'static, str>),
}

impl Fault {
    pub fn says(words: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Says(words.into())
    }

    /// Keeps the text of Regatta's last error, which later calls may replace.
    pub fn in_words(self) -> Fault {
        Fault::Says(self.sentence().into_owned().into())
    }

    fn sentence(&self) -> Cow<'_, str> {
        match self {
            // SAFETY: the string is NUL-terminated and valid until the next failure.
            Fault::Regatta => unsafe { CStr::from_ptr(rg::rg_last_error()) }.to_string_lossy(),
            Fault::Says(words) => Cow::Borrowed(&**words),
        }
    }
}

/// Converts the code of a Regatta call.
#[inline(always)]
pub fn checked(code: c_int) -> Result<(), Fault> {
    match code {
        rg::OK => Ok(()),
        _ => Err(Fault::Regatta),
    }
}

/// Returns the result of a function to the program, and prints an error.
#[inline(always)]
pub fn answer(library: &str, function: &str, result: Result<c_int, Fault>) -> c_int {
    match result {
        Ok(value) => value,
        Err(fault) => failed(library, function, &fault),
    }
}

/// Prints the reason. These interfaces have no error codes.
#[cold]
#[inline(never)]
fn failed(library: &str, function: &str, fault: &Fault) -> c_int {
    let sentence = fault.sentence();
    let place = place();
    let line = match place.nodes {
        0 => format!("{library}: {function}: {sentence}\n"),
        _ if place.node < 0 => format!("{library}: host: {function}: {sentence}\n"),
        _ => format!("{library}: node {}: {function}: {sentence}\n", place.node),
    };
    // Ignore write errors: standard error may be closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
    -1
}
