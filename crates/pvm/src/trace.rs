//! Events of a program for a tracer.

use crate::message::codes;
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
