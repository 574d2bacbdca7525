//! The task that gets the events of others: `pvm_reg_tracer`.
//!
//! Who it is, and where it wants events, stands in the mailbox, where tasks look when they become tasks. Their own events
//! (`trace.rs`) they send by themselves. That tasks begin and end a daemon of PVM says; here Regatta's events become its
//! messages.

use std::ffi::{CStr, c_char, c_int};

use super::{Role, events};
use crate::life::enrol;
use crate::message::{Body, Reader, codes, error};
use crate::notify::told;
use crate::state::library;
use crate::trace::record::{Value, record};
use crate::{contexts, mailbox, rg, tid, trace};

/// It gets the events of others.
pub const TRACER: Role = Role {
    name: c"###_PVM_TRACER_###",
    flag: 0x800,
};

/// Marks and numbers of the format of traces, those of `pvmtev.h`.
mod format {
    use super::events::{meaning, number};

    pub const MEANINGS: i32 = -3;
    pub const MEANINGS_END: i32 = -4;
    pub const PARENT: i32 = meaning("PT");
    pub const FLAGS: i32 = meaning("TF");
    pub const NAME: i32 = meaning("TN");
    pub const STATUS: i32 = meaning("TST");
    pub const NEWTASK: i32 = number("newtask") as i32;
    pub const ENDTASK: i32 = number("endtask") as i32;
}

/// What a tracer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub tracer: i32,
    /// Where events are sent: the context and the tag; and output.
    pub context: i32,
    pub tag: i32,
    output: (i32, i32),
    pub mask: Vec<u8>,
    pub buffer: i32,
    pub options: i32,
}

impl Wanted {
    fn write(&self) -> Body {
        Body::new()
            .ints(&[self.tracer, self.context, self.tag])
            .ints(&[self.output.0, self.output.1])
            .string(&self.mask)
            .ints(&[self.buffer, self.options])
    }

    fn read(from: &mut Reader) -> Option<Wanted> {
        Some(Wanted {
            tracer: from.int()?,
            context: from.int()?,
            tag: from.int()?,
            output: (from.int()?, from.int()?),
            mask: from.string()?.to_vec(),
            buffer: from.int()?,
            options: from.int()?,
        })
    }
}

/// What the tracer that there is wants; none: there is none but us.
pub fn wanted() -> Option<Wanted> {
    let body = mailbox::first(TRACER.name).ok()?;
    let wanted = Wanted::read(&mut Reader::new(&body))?;
    (wanted.tracer != library().tid).then_some(wanted)
}

/// What we do as the tracer.
pub struct Tracing {
    watch: c_int,
    /// The events that have been described to it.
    described: [bool; 2],
}

/// What the parts of all events mean.
fn meanings() -> Body {
    let mut all = Body::new().int(format::MEANINGS);
    for (number, (name, words)) in events::MEANINGS.iter().enumerate() {
        all = all.int(number as i32).string(name.to_bytes());
        all = all.string(words.to_bytes());
    }
    all.int(format::MEANINGS_END)
}

fn begin(wanted: &Wanted) -> Result<(), i32> {
    let (tag, context) = (wanted.tag, wanted.context);
    contexts::note(context);
    let channel = contexts::channel(context, tag);
    let mut watch = 0;
    // SAFETY: a place for the number.
    if unsafe { rg::rg_notify(rg::TASKS, 0, tag & i32::MAX, channel, &mut watch) } != rg::OK {
        return Err(codes::SYS_ERR);
    }
    library().tracing = Some(Tracing {
        watch,
        described: [false; 2],
    });
    mailbox::put_role(TRACER.name, &wanted.write().into_vec(), 0).map(|_| ())
}

fn end(watch: c_int) -> Result<(), i32> {
    // SAFETY: a number and no place for the answer.
    unsafe { rg::rg_notify_cancel(watch, std::ptr::null_mut()) };
    library().tracing = None;
    mailbox::delete(TRACER.name, 0)
}

/// Become the task that gets the events of others; of who is it already: be it no more.
///
/// # Safety
/// `mask` is a text.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_reg_tracer(
    context: c_int,
    tag: c_int,
    output_context: c_int,
    output_tag: c_int,
    mask: *const c_char,
    buffer: c_int,
    options: c_int,
) -> c_int {
    let registered = || -> Result<(), i32> {
        let me = enrol()?;
        if let Some(tracing) = &library().tracing {
            return end(tracing.watch);
        }
        if mask.is_null() {
            return Err(codes::BAD_PARAM);
        }
        if mailbox::first(TRACER.name).is_ok() {
            return Err(codes::ALREADY);
        }
        // SAFETY: the C contract.
        let mask = unsafe { CStr::from_ptr(mask) }.to_bytes().to_vec();
        begin(&Wanted {
            tracer: me,
            context,
            tag,
            output: (output_context, output_tag),
            mask,
            buffer,
            options,
        })
    };
    error::result("pvm_reg_tracer", registered().err().unwrap_or(0))
}

/// Whether an event of Regatta's is one that we hear of as the tracer.
pub fn concerns(event: &rg::Event) -> bool {
    let tracing = library().tracing.as_ref();
    tracing.is_some_and(|tracing| tracing.watch == event.watch)
}

/// The message that a tracer gets for it.
pub fn happened(event_of: &rg::Event, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let Some(tracing) = &mut library().tracing else {
        return Ok(None);
    };
    let task = tid::of(event_of.tid, event_of.host);
    let name = event_of.name.map(|letter| letter as u8);
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let (number, which, values) = match (event_of.kind, event_of.value) {
        // Who was started by hand has neither parent nor name for PVM.
        (rg::TASKS, rg::NONE) => {
            let nobody = [
                (format::PARENT, Value::Int(-1)),
                (format::FLAGS, Value::Int(-1)),
                (format::NAME, Value::Text(b"-")),
            ];
            (format::NEWTASK, 0, nobody.to_vec())
        }
        (rg::TASKS, parent) => {
            let parent = tid::of_task(parent).unwrap_or(codes::PARENT_NOT_SET);
            let born = [
                (format::PARENT, Value::Int(parent)),
                (format::FLAGS, Value::Int(0)),
                (format::NAME, Value::Text(name.to_bytes())),
            ];
            (format::NEWTASK, 0, born.to_vec())
        }
        _ => {
            let ended = super::status(event_of);
            // What it has used nobody counts: 0, in the four places behind the status.
            let usage = (0..4).map(|at| (format::STATUS + 1 + at, Value::Int(0)));
            let ended = [(format::STATUS, Value::Int(ended))].into_iter();
            (format::ENDTASK, 1, ended.chain(usage).collect::<Vec<_>>())
        }
    };
    let first = tracing.described == [false; 2];
    let described = std::mem::replace(&mut tracing.described[which], true);
    let said = told(record(number, described, task, values), tag, context)?;
    if !first {
        return Ok(Some(said));
    }
    library().queue.push_back(said);
    told(meanings(), tag, context).map(Some)
}

/// Take up what the tracer wants, as a task that has just become one.
pub fn follow() {
    let Some(wanted) = wanted() else { return };
    library().options.trace_to(&wanted);
    trace::begin(&wanted.mask);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_as_it_was_written() {
        let wanted = Wanted {
            tracer: 0x40002,
            context: 7,
            tag: 666,
            output: (8, 667),
            mask: b"@@A@".to_vec(),
            buffer: 0,
            options: 1,
        };
        let bytes = wanted.write().into_vec();
        assert_eq!(Wanted::read(&mut Reader::new(&bytes)), Some(wanted));
        for end in 0..bytes.len() {
            assert_eq!(Wanted::read(&mut Reader::new(&bytes[..end])), None);
        }
    }
}
