//! Events of a program for a tracer.

use std::ffi::{CStr, c_char, c_int};

use crate::kept::Kept;
use crate::message::{codes, error};
use crate::send::send_buffer;
use crate::state::library;

/// Whom a program sends its own events to; the library knows where they go.
pub const TID: i32 = -1111;
/// The tag it sends them with.
const CODE: i32 = -2222;

/// The current send buffer is an event: it goes to the tracer, if there is one.
pub fn user_event(tag: i32) -> Result<(), i32> {
    if tag != CODE {
        return Err(codes::BAD_PARAM);
    }
    let (to, tag, context) = library().options.trace();
    if to <= 0 {
        return Ok(());
    }
    crate::message::end_event()?;
    send_buffer(0, to, tag, context)
}

/// Letters of a mask: each says of three events whether they are wanted.
const LETTERS: usize = 36;
/// No event is wanted.
const NOTHING: u8 = b'@';

/// Which events of ours and of our children a tracer wants. Kept for programs that ask; no event is made but a
/// program's own.
static MASKS: Kept<[[u8; LETTERS]; 2]> = Kept::new([[NOTHING; LETTERS]; 2]);

/// Ours (0) or that of children (1).
fn mask(who: c_int, text: *const c_char) -> Result<usize, i32> {
    let which = usize::try_from(who).map_err(|_| codes::BAD_PARAM)?;
    match which < 2 && !text.is_null() {
        true => Ok(which),
        false => Err(codes::BAD_PARAM),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_gettmask(who: c_int, text: *mut c_char) -> c_int {
    let got = mask(who, text).map(|which| {
        let mask = MASKS.get()[which];
        // SAFETY: the C contract: room for a mask and its end.
        unsafe {
            std::ptr::copy_nonoverlapping(mask.as_ptr().cast(), text, LETTERS);
            *text.add(LETTERS) = 0;
        }
    });
    error::result("pvm_gettmask", got.err().unwrap_or(0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_settmask(who: c_int, text: *const c_char) -> c_int {
    let set = mask(who, text).and_then(|which| {
        // SAFETY: the C contract: a text.
        let letters = unsafe { CStr::from_ptr(text) }.to_bytes();
        let letters: [u8; LETTERS] = letters.try_into().map_err(|_| codes::BAD_PARAM)?;
        MASKS.get()[which] = letters;
        Ok(())
    });
    error::result("pvm_settmask", set.err().unwrap_or(0))
}
