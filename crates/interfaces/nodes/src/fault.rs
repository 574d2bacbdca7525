//! Failures of calls: a sentence on standard error, and -1.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::io::Write;

use crate::place::place;
use crate::rg;

/// The reason why a call has failed.
#[derive(Debug)]
pub enum Fault {
    /// Regatta's last error says it.
    Regatta,
    /// This sentence says it.
    Says(Cow<'static, str>),
}

impl Fault {
    pub fn says(words: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Says(words.into())
    }

    /// With the words of Regatta's last error, which further calls may change.
    pub fn in_words(self) -> Fault {
        Fault::Says(self.sentence().into_owned().into())
    }

    fn sentence(&self) -> Cow<'_, str> {
        match self {
            // SAFETY: a text that stays until the next failure.
            Fault::Regatta => unsafe { CStr::from_ptr(rg::rg_last_error()) }.to_string_lossy(),
            Fault::Says(words) => Cow::Borrowed(&**words),
        }
    }
}

/// Passes on the code of a function of Regatta's.
#[inline(always)]
pub fn checked(code: c_int) -> Result<(), Fault> {
    match code {
        rg::OK => Ok(()),
        _ => Err(Fault::Regatta),
    }
}

/// The return value of a function of a library.
#[inline(always)]
pub fn answer(library: &str, function: &str, result: Result<c_int, Fault>) -> c_int {
    match result {
        Ok(value) => value,
        Err(fault) => failed(library, function, &fault),
    }
}

/// Says why; these functions have no codes of errors.
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
    // Where standard error is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
    -1
}
