//! `pvm_tickle`: small requests to a daemon, by which those who write daemons look into them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::trace::{self, Value, calls, traced};

/// Maximum number of numbers in a request.
const MAX_NUMBERS: i32 = 10;

/// The requests that are answered; of the others a daemon takes note at most.
mod request {
    /// A request for the mask of a daemon's log.
    pub const MASK: i32 = 5;
    /// That this is to be said from now on.
    pub const SET_MASK: i32 = 6;
    /// Its counts, from which it then begins anew; they go to the log.
    pub const COUNTS: i32 = 8;
}

/// The answer to a request and its argument, if there is one.
fn answer(request: c_int, argument: c_int) -> Option<c_int> {
    /// It is kept for those who ask: there is no daemon that would say something.
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

/// A request of `count` numbers; how many answer it, and these.
///
/// # Safety
/// `numbers` points to so many, `answers` to room for ten or is NULL, and `answered` to a place or is NULL.
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
        // SAFETY: the C contract: as many numbers, and places for the answers or NULL.
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
    // SAFETY: the C contract: as many numbers, and places for the answers or NULL.
    let entry = || [unsafe { trace::numbers(numbers, count) }];
    let exit = |code| {
        // SAFETY: the same.
        let answers = unsafe {
            let count = answered.as_ref().copied().filter(|_| code == 0);
            trace::numbers(answers, count.unwrap_or(0))
        };
        [Value::Int(code), answers]
    };
    traced(calls::TICKLE, entry, tickled, exit)
}
