//! The task that gets the events of others: `pvm_reg_tracer`.
//!
//! Its number, and the place where it wants events, stand in the mailbox, where tasks look when they become tasks. Their own events
//! (`trace.rs`) they send by themselves. That tasks begin and end a daemon of PVM says; here Regatta's events become its
//! messages, and for who has single tasks traced (`PvmTraceTid`) the words of these tasks (`task_started.rs`).

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};

use super::task_started::TaskStarted;
use super::{Role, events};
use crate::arrival::{Select, in_order, take_all};
use crate::life::enrol;
use crate::message::{Body, Reader, codes, error};
use crate::notify::told;
use crate::state::library;
use crate::trace::record::{Value, record};
use crate::trace::{self, calls, ints, traced};
use crate::{contexts, mailbox, rg, tid};

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
    pub const SPNTASK: i32 = number("spntask") as i32;
    pub const ENDTASK: i32 = number("endtask") as i32;
}

/// The wishes of a tracer.
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

/// The wishes of the present tracer; none: there is none but us.
pub fn wanted() -> Option<Wanted> {
    let body = mailbox::first(TRACER.name).ok()?;
    let wanted = Wanted::read(&mut Reader::new(&body))?;
    (wanted.tracer != library().tid).then_some(wanted)
}

/// Our state as a tracer.
pub struct Tracing {
    /// Regatta's number for the watch of all tasks, if we are the tracer of all.
    all: Option<c_int>,
    /// Single tasks that are traced for us, with the number of the watch of the end of each.
    tasks: Vec<(c_int, i32)>,
    /// All of which it has been said that they have begun.
    known: BTreeSet<i32>,
    /// We have been told what the parts of events mean, and these events have been described to us.
    begun: bool,
    described: [bool; 3],
}

impl Tracing {
    /// Nothing yet.
    pub const fn new() -> Tracing {
        Tracing {
            all: None,
            tasks: Vec::new(),
            known: BTreeSet::new(),
            begun: false,
            described: [false; 3],
        }
    }
}

/// The meanings of the parts of all events.
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
    library().tracing.all = Some(watch);
    mailbox::put_role(TRACER.name, &wanted.write().into_vec(), 0).map(|_| ())
}

fn end(watch: c_int) -> Result<(), i32> {
    // SAFETY: a number and no place for the answer.
    unsafe { rg::rg_notify_cancel(watch, std::ptr::null_mut()) };
    library().tracing = Tracing::new();
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
        if let Some(watch) = library().tracing.all {
            return end(watch);
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
    let registered = || error::result("pvm_reg_tracer", registered().err().unwrap_or(0));
    let entry = || {
        let [context, tag, output_context, output_tag, buffer, options] =
            ints([context, tag, output_context, output_tag, buffer, options]);
        // SAFETY: the C contract: a text, or NULL.
        let mask = unsafe { trace::text(mask) };
        [
            context,
            tag,
            output_context,
            output_tag,
            mask,
            buffer,
            options,
        ]
    };
    traced(calls::REG_TRACER, entry, registered, trace::code)
}

/// Whether an event of Regatta's is one that we hear of as a tracer.
pub fn concerns(event: &rg::Event) -> bool {
    let tracing = &library().tracing;
    let of_one = |&(watch, _): &(c_int, i32)| watch == event.watch;
    tracing.all == Some(event.watch) || tracing.tasks.iter().any(of_one)
}

/// A daemon's report about a task.
enum Said<'a> {
    New {
        parent: i32,
        flags: i32,
        name: &'a [u8],
    },
    Spawned {
        parent: i32,
    },
    Ended {
        status: i32,
    },
}

/// The messages by which it says so: this one, and before the first of all another one.
fn messages_of(task: i32, said: Said, tag: i32, context: i32) -> Result<Vec<c_int>, i32> {
    let (number, which, values) = match said {
        Said::New {
            parent,
            flags,
            name,
        } => {
            let born = vec![
                (format::PARENT, Value::Int(parent)),
                (format::FLAGS, Value::Int(flags)),
                (format::NAME, Value::Text(name)),
            ];
            (format::NEWTASK, 0, born)
        }
        Said::Spawned { parent } => {
            let spawned = vec![(format::PARENT, Value::Int(parent))];
            (format::SPNTASK, 1, spawned)
        }
        Said::Ended { status } => {
            // Nobody counts its resources: 0, in the four places behind the status.
            let usage = (0..4).map(|at| (format::STATUS + 1 + at, Value::Int(0)));
            let ended = [(format::STATUS, Value::Int(status))].into_iter();
            (format::ENDTASK, 2, ended.chain(usage).collect())
        }
    };
    let tracing = &mut library().tracing;
    let mut all = Vec::new();
    if !std::mem::replace(&mut tracing.begun, true) {
        all.push(told(meanings(), tag, context)?);
    }
    let described = std::mem::replace(&mut library().tracing.described[which], true);
    all.push(told(record(number, described, task, values), tag, context)?);
    Ok(all)
}

/// The message that a tracer gets for an event of Regatta's.
pub fn happened(event: &rg::Event, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let name = event.name.map(|letter| letter as u8);
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let said = match (event.kind, event.value) {
        // A task that was started by hand has neither parent nor name for PVM.
        (rg::TASKS, rg::NONE) => Said::New {
            parent: -1,
            flags: -1,
            name: b"-",
        },
        (rg::TASKS, parent) => Said::New {
            parent: tid::of_task(parent).unwrap_or(codes::PARENT_NOT_SET),
            flags: 0,
            name: name.to_bytes(),
        },
        _ => Said::Ended {
            status: super::status(event),
        },
    };
    let tasks = &mut library().tracing.tasks;
    let one = tasks.iter().position(|&(watch, _)| watch == event.watch);
    let task = match one {
        Some(at) => tasks.swap_remove(at).1,
        None => tid::of(event.tid, event.host),
    };
    let mut all = Vec::new();
    if let (Said::Ended { .. }, Some(from)) = (&said, tid::task(task)) {
        // Its earlier reports that we have not taken in yet.
        all = take_all(Select {
            from,
            tag: tag & i32::MAX,
            context,
            reserved: tag < 0,
        });
    }
    all.extend(messages_of(task, said, tag, context)?);
    Ok(in_order(all))
}

/// A task has begun that is traced for us: what its daemon would say of it. The task says so itself, and who has started
/// it, so that it is known before anything else of it; it is said once.
pub fn begun(started: &TaskStarted, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let tracing = &mut library().tracing;
    let Some(task) = tid::task(started.task) else {
        return Ok(None);
    };
    if tracing.all.is_some() || !tracing.known.insert(started.task) {
        return Ok(None);
    }
    let channel = contexts::channel(context, tag);
    let mut watch = 0;
    // SAFETY: a place for the number.
    match unsafe { rg::rg_notify(rg::TASK_EXIT, task, tag & i32::MAX, channel, &mut watch) } {
        rg::OK => tracing.tasks.push((watch, started.task)),
        _ => return Ok(None),
    }
    let (parent, flags, name) = (started.parent, started.flags, started.name);
    let born = Said::New {
        parent,
        flags,
        name,
    };
    let mut all = messages_of(started.task, born, tag, context)?;
    all.extend(messages_of(
        started.task,
        Said::Spawned { parent },
        tag,
        context,
    )?);
    Ok(in_order(all))
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
