//! Conversion of results to codes, and of the last error to a sentence.

use std::ffi::{CStr, CString, c_char, c_int};

use regatta_abi as abi;
pub(crate) use regatta_abi::{ERR_NOTHING as NOTHING, OK};
use regatta_process::control::RequestError;
use regatta_process::{Error, Reason, Result};

use crate::last_error;

pub(crate) fn code(error: &Error) -> c_int {
    match error {
        Error::Argument(_) => abi::ERR_ARGUMENT,
        Error::State(_) => abi::ERR_STATE,
        Error::Task(_) => abi::ERR_TASK,
        Error::Tag(_) => abi::ERR_TAG,
        Error::Handle(_) => abi::ERR_HANDLE,
        Error::Truncated { .. } => abi::ERR_TRUNCATED,
        Error::Dead(_) => abi::ERR_DEAD,
        Error::Left(_) => abi::ERR_LEFT,
        Error::Memory(_) => abi::ERR_MEMORY,
        Error::Cycle(_) => abi::ERR_CYCLE,
        Error::Revoked => abi::ERR_REVOKED,
        Error::Cancelled => abi::ERR_CANCELLED,
        Error::Corrupt { .. } => abi::ERR_CORRUPT,
        Error::Launcher(_) => abi::ERR_LAUNCHER,
        Error::Version(_) => abi::ERR_VERSION,
        Error::System(_) => abi::ERR_SYSTEM,
        Error::Refused(why, _) => refusal(*why),
        Error::Member { reason, .. } => class(*reason),
    }
}

/// Returns the code of an error that another member has reported.
fn class(reason: Reason) -> c_int {
    match reason {
        Reason::Argument => abi::ERR_ARGUMENT,
        Reason::State => abi::ERR_STATE,
        Reason::Task => abi::ERR_TASK,
        Reason::Tag => abi::ERR_TAG,
        Reason::Handle => abi::ERR_HANDLE,
        Reason::Truncated => abi::ERR_TRUNCATED,
        Reason::Dead => abi::ERR_DEAD,
        Reason::Left => abi::ERR_LEFT,
        Reason::Memory => abi::ERR_MEMORY,
        Reason::Cycle => abi::ERR_CYCLE,
        Reason::Cancelled => abi::ERR_CANCELLED,
        Reason::Corrupt => abi::ERR_CORRUPT,
        Reason::Launcher => abi::ERR_LAUNCHER,
        Reason::Version => abi::ERR_VERSION,
        Reason::System => abi::ERR_SYSTEM,
        Reason::Refused(why) => refusal(why),
    }
}

/// Returns the code of an error that the launcher has reported.
pub(crate) fn refusal(why: RequestError) -> c_int {
    match why {
        RequestError::Argument => abi::ERR_ARGUMENT,
        RequestError::State => abi::ERR_STATE,
        RequestError::Task => abi::ERR_TASK,
        RequestError::Memory => abi::ERR_MEMORY,
        RequestError::System => abi::ERR_SYSTEM,
        RequestError::Program => abi::ERR_PROGRAM,
        RequestError::Host => abi::ERR_HOST,
        RequestError::Name => abi::ERR_NAME,
        RequestError::Exists => abi::ERR_EXISTS,
        RequestError::Denied => abi::ERR_DENIED,
    }
}

/// Returns the error that a program reports by a code. Returns `None` if the code stands for no such error.
pub(crate) fn reason(code: c_int) -> Option<RequestError> {
    RequestError::ALL
        .into_iter()
        .find(|why| refusal(*why) == code)
}

/// Returns the task that an error concerns.
fn task(error: &Error) -> Option<u32> {
    match error {
        Error::Dead(peer) | Error::Left(peer) => Some(*peer),
        Error::Corrupt { peer, .. } | Error::Member { peer, .. } => Some(*peer),
        _ => None,
    }
}

/// Stores an error for `rg_last_error`. Returns its code.
#[cold]
pub(crate) fn fail(error: &Error) -> c_int {
    last_error::set_task(task(error));
    match error {
        // A signal handler may get this error, and must not allocate.
        Error::State(text) => last_error::set_constant(text),
        _ => {
            let sentence = regatta_process::sentence(error).replace('\0', " ");
            last_error::set(&CString::new(sentence).unwrap_or_default());
        }
    }
    code(error)
}

#[inline(always)]
pub(crate) fn answer(result: Result<()>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(error) => fail(&error),
    }
}

/// Returns the number, or the negative code of the error.
pub(crate) fn number(result: Result<u32>) -> c_int {
    match result {
        Ok(n) => c_int::try_from(n).unwrap_or(c_int::MAX),
        Err(error) => fail(&error),
    }
}

pub(crate) fn argument(what: &str) -> Error {
    Error::Argument(what.into())
}

/// Returns the meaning of a code.
fn words(code: c_int) -> &'static CStr {
    match code {
        abi::OK => c"no error",
        abi::ERR_ARGUMENT => c"an argument is not valid",
        abi::ERR_STATE => {
            c"called before rg_init, after rg_finalize, in a forked child, or inside another call"
        }
        abi::ERR_TASK => c"no such task or rank",
        abi::ERR_TAG => c"the tag is not valid: tags are 0 to 2147483647",
        abi::ERR_HANDLE => c"the handle is not valid: it was completed, freed, or never existed",
        abi::ERR_TRUNCATED => {
            c"the message was longer than the buffer, which holds its first bytes"
        }
        abi::ERR_DEAD => c"a task this call depends on has died",
        abi::ERR_LEFT => c"a task this call depends on has left with rg_finalize",
        abi::ERR_MEMORY => c"memory, or a limit on it, is used up",
        abi::ERR_CYCLE => c"waiting senders form a cycle, and all buffers are full",
        abi::ERR_CANCELLED => c"the request was cancelled, or the program ended the wait",
        abi::ERR_CORRUPT => c"shared memory holds data that no task of this version writes",
        abi::ERR_LAUNCHER => c"the launcher is not supported, cannot be reached, or has ended",
        abi::ERR_VERSION => c"launcher and library have incompatible versions",
        abi::ERR_SYSTEM => c"a system call failed",
        abi::ERR_UNSUPPORTED => c"not supported",
        abi::ERR_PROGRAM => c"a program to be started is missing, or cannot be executed",
        abi::ERR_HOST => c"no such host in the job",
        abi::ERR_NAME => c"no entry or named group has this name",
        abi::ERR_EXISTS => c"the name, host or role is already taken",
        abi::ERR_DENIED => c"the entry belongs to another task",
        abi::ERR_NOTHING => c"no message arrived in that time",
        abi::ERR_REVOKED => c"a member has revoked the group",
        _ => c"not an error code of Regatta",
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_strerror(code: c_int) -> *const c_char {
    words(code).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn rg_last_error() -> *const c_char {
    last_error::get()
}

#[unsafe(no_mangle)]
extern "C" fn rg_last_error_task() -> c_int {
    let task = last_error::task();
    task.and_then(|task| c_int::try_from(task).ok())
        .unwrap_or(abi::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_another_member_has_the_code_of_its_class() {
        let text = || "why".to_owned();
        let mut errors = vec![
            Error::Argument(text()),
            Error::Task(9),
            Error::Tag(-1),
            Error::Handle("request"),
            Error::Truncated {
                length: 8,
                capacity: 4,
            },
            Error::Dead(1),
            Error::Left(1),
            Error::Memory(text()),
            Error::Cycle(vec![1]),
            Error::Cancelled,
            Error::Corrupt { peer: 1, what: "" },
            Error::State(c"why"),
            Error::Launcher(text()),
            Error::Version(text()),
            Error::System(text()),
        ];
        errors.extend(RequestError::ALL.map(|why| Error::Refused(why, text())));
        let mut tried = Vec::new();
        for error in errors {
            let reason = Reason::of(&error).expect("a class");
            tried.push(reason);
            let elsewhere = Error::Member { peer: 1, reason };
            assert_eq!(code(&elsewhere), code(&error), "{error:?}");
            let sentence = regatta_process::sentence(&elsewhere);
            assert!(
                sentence.starts_with("task 1 cannot complete a collective"),
                "{sentence}"
            );
        }
        for reason in Reason::all() {
            assert!(tried.contains(&reason), "{reason:?} is not tried");
        }
    }
}
