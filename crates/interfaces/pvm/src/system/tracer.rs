//! The tracer: the task that receives the events of other tasks (`pvm_reg_tracer`).
//!
//! Its tid and the destination of events are in a mailbox, which tasks read when they join. Tasks send their own events
//! themselves (`trace.rs`). On PVM daemons report that tasks start and end. Here the library converts Regatta's events
//! to these messages; for the tracer of single tasks (`PvmTraceTid`) it converts messages of the tasks themselves
//! (`task_started.rs`).

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

/// The role of the task that receives the events of others.
pub const TRACER: Role = Role {
    name: c"###_PVM_TRACER_###",
    flag: 0x800,
};

/// Marks and numbers of the trace format, from `pvmtev.h`.
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

/// The settings of a tracer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub tracer: i32,
    /// Destination of events (context and tag) and of output.
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

/// Returns the settings of the present tracer. Returns `None` if there is none, or if it is this task.
pub fn wanted() -> Option<Wanted> {
    let body = mailbox::first(TRACER.name).ok()?;
    let wanted = Wanted::read(&mut Reader::new(&body))?;
    (wanted.tracer != library().tid).then_some(wanted)
}

/// This task's state as a tracer.
pub struct Tracing {
    /// Regatta's id of the notification for all tasks, if this task is the tracer of all.
    all: Option<c_int>,
    /// Single tasks that this task traces: the id of the notification of each end, and the tid.
    tasks: Vec<(c_int, i32)>,
    /// Tasks whose start has been reported.
    known: BTreeSet<i32>,
    /// Whether the meanings of fields have been reported to this tracer, and which kinds of events have been described
    /// to it.
    begun: bool,
    described: [bool; 3],
}

impl Tracing {
    /// Returns the state of a task that traces nothing.
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

/// Returns the descriptions of all fields of events.
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
    // SAFETY: the result points to a local variable.
    if unsafe { rg::rg_notify(rg::TASKS, 0, tag & i32::MAX, channel, &mut watch) } != rg::OK {
        return Err(codes::SYS_ERR);
    }
    library().tracing.all = Some(watch);
    mailbox::put_role(TRACER.name, &wanted.write().into_vec(), 0).map(|_| ())
}

fn end(watch: c_int) -> Result<(), i32> {
    // SAFETY: the result may be NULL.
    unsafe { rg::rg_notify_cancel(watch, std::ptr::null_mut()) };
    library().tracing = Tracing::new();
    mailbox::delete(TRACER.name, 0)
}

/// Registers this task as the tracer. If it is already registered, unregisters it.
///
/// # Safety
/// `mask` is a NUL-terminated string.
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
        // SAFETY: by the C contract the arguments are valid.
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
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
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

/// Returns whether this task receives the event as a tracer.
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

/// Returns the messages for a report. The first report is preceded by the descriptions of fields.
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
            // Resource usage is not counted: report 0 in the four fields after the status.
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

/// Returns the message that a tracer gets for an event of Regatta's.
pub fn happened(event: &rg::Event, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    let name = event.name.map(|letter| letter as u8);
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    let said = match (event.kind, event.value) {
        // A task that was started by hand has neither a parent nor a name in PVM.
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
        // Take in the task's earlier reports before its end.
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

/// Handles the start of a task that this one traces, and returns the messages that a daemon would send. Both the task
/// and its parent report the start, so that it is known before any other event of the task; the second report is
/// ignored.
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
    // SAFETY: the result points to a local variable.
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

/// Applies the tracer's settings to a task that has just joined.
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
