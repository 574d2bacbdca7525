//! What children write, told to the task that PvmOutputTid names: a message for each piece, from the daemon, with the tag and
//! in the context that were asked for.
//!
//! It holds the task, then a number: how many bytes follow; 0 for the end of all it writes; or, below zero, a sign that it
//! is new (-2) or being started (-1), and then who has started it.

use std::collections::BTreeSet;
use std::ffi::c_int;

use crate::kept::Kept;
use crate::message::{Body, codes};
use crate::state::library;
use crate::{contexts, notify, rg, tid};

const END: i32 = 0;
const SPAWNED: i32 = -1;
const NEW: i32 = -2;

/// Where Regatta sends what children write.
pub struct Destination {
    pub manner: c_int,
    pub tag: c_int,
    pub group: rg::Group,
}

/// As the options say: to this task, to whoever gets what it writes itself, or with the log.
pub fn destination() -> Destination {
    let library = library();
    let (to, tag, context) = library.options.output();
    let manner = match to {
        0 => rg::OUTPUT_JOB,
        own if own == library.tid => rg::OUTPUT_BLOCKS | rg::OUTPUT_BIRTHS,
        _ => rg::OUTPUT_AS_MINE,
    };
    Destination {
        manner,
        tag: tag & c_int::MAX,
        group: contexts::channel(context, tag),
    }
}

/// Something that a task has written, or its beginning or end.
pub struct Written<'a> {
    task: c_int,
    stream: i32,
    text: &'a [u8],
}

impl Written<'_> {
    /// What these bytes say, if they are that.
    pub fn read(bytes: &[u8]) -> Option<Written<'_>> {
        let (front, text) = bytes.split_at_checked(size_of::<rg::Output>())?;
        // SAFETY: long enough, and every value of its fields is one.
        let front = unsafe { front.as_ptr().cast::<rg::Output>().read_unaligned() };
        (front.mark == rg::OUTPUT_MARK).then_some(Written {
            task: front.tid,
            stream: front.stream,
            text,
        })
    }

    /// The message for it, if it is one of its own: PVM knows one stream of a task, which has ended when both have.
    pub fn told(&self, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
        static HALF_ENDED: Kept<BTreeSet<c_int>> = Kept::new(BTreeSet::new());
        let Some(task) = tid::of_task(self.task) else {
            return Ok(None);
        };
        let body = Body::new().int(task);
        let body = match (self.stream, self.text) {
            (0, parent) => {
                let parent = parent.try_into().map_or(-1, i32::from_ne_bytes);
                let parent = tid::of_task(parent).unwrap_or(codes::PARENT_NOT_SET);
                let spawned = notify::told(body.clone().int(SPAWNED).int(parent), tag, context)?;
                library().queue.push_back(spawned);
                body.int(NEW).int(parent)
            }
            (_, []) if HALF_ENDED.get().insert(self.task) => return Ok(None),
            (_, []) => {
                HALF_ENDED.get().remove(&self.task);
                body.int(END)
            }
            (_, text) => body.int(text.len() as i32).bytes(text),
        };
        notify::told(body, tag, context).map(Some)
    }
}
