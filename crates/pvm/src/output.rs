//! What children write, told to who wants it: a message for each piece, from the daemon, with the tag that was asked for.
//!
//! It holds the task, then a number: how many bytes follow; 0 for the end of all it writes; or, below zero, a sign that it
//! is new (-2) or being started (-1), and then who has started it.

use std::ffi::c_int;

use crate::message::{Body, codes};
use crate::{contexts, rg, tid};

const END: i32 = 0;
const SPAWNED: i32 = -1;
const NEW: i32 = -2;

/// Who is to hear what tasks write, if these options (a task, a tag, a context) name somebody.
pub fn hearer((to, tag, context): (i32, i32, i32)) -> Option<rg::Hearer> {
    Some(rg::Hearer {
        tid: tid::task(to)?,
        tag: tag & c_int::MAX,
        group: contexts::channel(context, tag),
    })
}

/// The message for what is heard of a task, if these bytes are that.
pub fn heard(bytes: &[u8]) -> Option<Body> {
    let (front, text) = bytes.split_at_checked(size_of::<rg::Heard>())?;
    // SAFETY: long enough, and every value of its fields is one.
    let front = unsafe { front.as_ptr().cast::<rg::Heard>().read_unaligned() };
    if front.mark != rg::HEARD_MARK {
        return None;
    }
    let body = Body::new().int(tid::of_task(front.tid)?);
    let parent = || tid::of_task(front.parent).unwrap_or(codes::PARENT_NOT_SET);
    Some(match front.kind {
        rg::HEARD_NEW => body.int(NEW).int(parent()),
        rg::HEARD_SPAWNED => body.int(SPAWNED).int(parent()),
        rg::HEARD_TEXT => body.int(text.len() as i32).bytes(text),
        _ => body.int(END),
    })
}
