//! `pvm_tickle`: small requests to a daemon, for debugging daemons.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::trace::{self, Value, calls, traced};

/// Maximum number of arguments of a request.
const MAX_NUMBERS: i32 = 10;

/// The requests that have an effect here. A daemon would only log others.
mod request {
    /// Returns the debug mask of a daemon.
    pub const MASK: i32 = 5;
    /// Sets the debug mask.
    pub const SET_MASK: i32 = 6;
    /// Prints the daemon's statistics to its log, and resets them.
    pub const COUNTS: i32 = 8;
}

/// Returns the answer to a request with its argument, if it has one.
fn answer(request: c_int, argument: c_int) -> Option<c_int> {
    /// Stored only to be returned: there is no daemon whose debugging it could control.
    static MASK: AtomicI32 = AtomicI32::new(0);
    match request {
        request::MASK => Some(MASK.load(Ordering::Relaxed)),
        request::SET_MASK => {
            MASK.store(argument, Ordering::Relaxed);
            None
        }
        request::COUNTS => Some(0),
        _ => None,
    }
}

/// Makes a request of `count` numbers. Writes the answers and their number.
///
/// # Safety
/// `numbers` points to `count` numbers; `answers` has room for ten or is NULL; `answered` is valid or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_tickle(
    count: c_int,
    numbers: *const c_int,
    answered: *mut c_int,
    answers: *mut c_int,
) -> c_int {
    let tickled = || -> Result<(), i32> {
        if !(1..=MAX_NUMBERS).contains(&count) || numbers.is_null() {
            return Err(codes::BAD_PARAM);
        }
        enrol()?;
        // SAFETY: by the C contract the array has `count` numbers, and the results are writable or NULL.
        unsafe {
            let argument = if count > 1 { *numbers.add(1) } else { 0 };
            let answer = answer(*numbers, argument);
            if let (Some(answer), false) = (answer, answers.is_null()) {
                *answers = answer;
            }
            if !answered.is_null() {
                *answered = answer.is_some().into();
            }
        }
        Ok(())
    };
    let tickled = || error::result("pvm_tickle", tickled().err().unwrap_or(0));
    // SAFETY: by the C contract the array has `count` numbers, and the results are writable or NULL.
    let entry = || [unsafe { trace::numbers(numbers, count) }];
    let exit = |code| {
        // SAFETY: by the C contract the array has `count` numbers, and the results are writable or NULL.
        let answers = unsafe {
            let count = answered.as_ref().copied().filter(|_| code == 0);
            trace::numbers(answers, count.unwrap_or(0))
        };
        [Value::Int(code), answers]
    };
    traced(calls::TICKLE, entry, tickled, exit)
}
