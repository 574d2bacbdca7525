//! Results as codes; the last error as a sentence.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use regatta_process::control::Why;
use regatta_process::{Error, Result};

pub(crate) const OK: c_int = 0;
/// Nothing came in time.
pub(crate) const NOTHING: c_int = -23;

/// The header's name and words for each code, in the order -1, -2, ...
const WORDS: [&CStr; 23] = [
    c"an argument makes no sense",
    c"called before rg_init or after rg_finalize",
    c"no such task or rank",
    c"not a tag: tags are 0 to 2147483647",
    c"stale or made-up handle",
    c"the message was longer than the buffer; the front was kept",
    c"a task this call depends on has died",
    c"a task this call depends on has left",
    c"memory, or a limit on it, is used up",
    c"blocked senders wait for each other in a circle",
    c"not an error code of Regatta",
    c"the request was cancelled",
    c"memory shared with another task is damaged",
    c"started by a launcher Regatta cannot speak to",
    c"launcher and library are of different versions",
    c"the operating system refused",
    c"not supported",
    c"a program to be started is missing, or cannot be executed",
    c"no such host in the job",
    c"nothing has this name",
    c"something has this name already",
    c"it belongs to another task",
    c"no message came in that time",
];

pub(crate) fn code(error: &Error) -> c_int {
    match error {
        Error::Argument(_) => -1,
        Error::State(_) => -2,
        Error::Task(_) => -3,
        Error::Tag(_) => -4,
        Error::Handle(_) => -5,
        Error::Truncated { .. } => -6,
        Error::Dead(_) => -7,
        Error::Left(_) => -8,
        Error::Memory(_) => -9,
        Error::Cycle(_) => -10,
        Error::Cancelled => -12,
        Error::Corrupt { .. } => -13,
        Error::Launcher(_) => -14,
        Error::Version(_) => -15,
        Error::System(_) => -16,
        Error::Refused(why, _) => refusal(*why),
    }
}

/// The code for why the launcher does not do something.
pub(crate) fn refusal(why: Why) -> c_int {
    match why {
        Why::Argument => -1,
        Why::State => -2,
        Why::Task => -3,
        Why::Memory => -9,
        Why::System => -16,
        Why::Program => -18,
        Why::Host => -19,
        Why::Name => -20,
        Why::Exists => -21,
        Why::Denied => -22,
    }
}

/// The reason that a program gives by a code.
pub(crate) fn reason(code: c_int) -> Option<Why> {
    Why::ALL.into_iter().find(|why| refusal(*why) == code)
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Remember an error for `rg_last_error`; gives its code.
#[cold]
pub(crate) fn fail(error: &Error) -> c_int {
    let sentence = regatta_process::sentence(error).replace('\0', " ");
    let text = CString::new(sentence).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
    code(error)
}

#[inline(always)]
pub(crate) fn answer(result: Result<()>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(error) => fail(&error),
    }
}

/// A nonnegative number or an error.
pub(crate) fn number(result: Result<u32>) -> c_int {
    match result {
        Ok(n) => c_int::try_from(n).unwrap_or(c_int::MAX),
        Err(error) => fail(&error),
    }
}

pub(crate) fn argument(what: &str) -> Error {
    Error::Argument(what.into())
}

#[unsafe(no_mangle)]
extern "C" fn rg_strerror(code: c_int) -> *const c_char {
    let words = match code {
        0 => c"no error",
        _ => usize::try_from(-(code as i64) - 1)
            .ok()
            .and_then(|at| WORDS.get(at).copied())
            .unwrap_or(c"not an error code of Regatta"),
    };
    words.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn rg_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}
