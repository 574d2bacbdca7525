//! Requests of tasks to the resource manager. If there was one when a task joined, it decides where tasks are started
//! and which tasks and hosts exist. Requests and answers are PVM messages, matched by wait id.

use std::ffi::{CStr, CString, c_char, c_int};

use super::tag;
use crate::arrival::{Select, take};
use crate::head::Head;
use crate::message::{self, Body, Reader, codes};
use crate::send::{Destination, send_bytes};
use crate::state::library;
use crate::{contexts, receive, rg, tid};

/// Context of requests and answers.
const CONTEXT: i32 = 0;

/// Sends a message to the manager. Returns `false` if there is none.
pub fn send_to_manager(tag: i32, wid: i32, body: Body) -> Result<bool, i32> {
    let library = library();
    let Some(task) = tid::task(library.manager) else {
        return Ok(false);
    };
    let head = Head {
        encoding: codes::XDR,
        wid,
        host: library.host,
    };
    let bytes = [&head.bytes()[..], &body.into_vec()].concat();
    let to = Destination {
        task,
        tag: tag & i32::MAX,
        group: contexts::channel(CONTEXT, tag),
    };
    match send_bytes(&bytes, to) {
        rg::OK => Ok(true),
        rg::ERR_DEAD | rg::ERR_LEFT | rg::ERR_TASK => {
            library.manager = 0;
            Ok(false)
        }
        rg::ERR_MEMORY => Err(codes::NO_MEM),
        _ => Err(codes::SYS_ERR),
    }
}

/// Sends a request to the manager, and waits for the answer. Returns `None` if there is no manager or it has ended; the
/// caller then does the work itself.
fn ask(tag: i32, body: Body) -> Result<Option<Vec<u8>>, i32> {
    let wid = {
        let library = library();
        library.asked = library.asked.wrapping_add(1).max(1);
        library.asked
    };
    if !send_to_manager(tag, wid, body)? {
        return Ok(None);
    }
    let select = Select {
        from: tid::task(library().manager).unwrap_or(rg::NONE),
        tag: tag & i32::MAX,
        context: CONTEXT,
        reserved: true,
    };
    loop {
        let buffer = match take(select, -1.0) {
            Ok(Some(buffer)) => buffer,
            Ok(None) => continue,
            Err(codes::NO_TASK) => {
                library().manager = 0;
                return Ok(None);
            }
            Err(code) => return Err(code),
        };
        let info = message::info(buffer).unwrap_or_default();
        if info.wid != wid {
            receive::keep(buffer);
            continue;
        }
        let body = message::body(buffer).map(<[u8]>::to_vec);
        message::free(buffer);
        return match info.encoding {
            codes::XDR => Ok(body),
            _ => Err(codes::BAD_MSG),
        };
    }
}

/// A host, as a manager describes it.
pub struct Described {
    pub tid: c_int,
    pub name: CString,
    pub architecture: CString,
    pub speed: c_int,
    pub signature: c_int,
}

fn text(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// Reads a host from a message.
fn described(from: &mut Reader) -> Option<Described> {
    Some(Described {
        tid: from.int()?,
        name: text(from.string()?),
        architecture: text(from.string()?),
        speed: from.int()?,
        signature: from.int()?,
    })
}

/// Returns the hosts, if there is a manager.
pub fn hosts() -> Result<Option<Vec<Described>>, i32> {
    let Some(answer) = ask(tag::CONFIG, Body::new())? else {
        return Ok(None);
    };
    let mut from = Reader::new(&answer);
    let mut read = || -> Option<Vec<Described>> {
        let count = from.count()?;
        from.int()?;
        (0..count).map(|_| described(&mut from)).collect()
    };
    read().map(Some).ok_or(codes::BAD_MSG)
}

/// Asks the current manager to let this task take over. Returns its answer and the first host.
pub fn succeed() -> Result<Option<(c_int, Option<Described>)>, i32> {
    let Some(answer) = ask(tag::SCHED, Body::new())? else {
        return Ok(None);
    };
    let mut from = Reader::new(&answer);
    let code = from.int().ok_or(codes::BAD_MSG)?;
    Ok(Some((code, described(&mut from))))
}

fn named(names: &[&CStr]) -> Body {
    let mut body = Body::new().int(names.len() as i32);
    for name in names {
        body = body.string(name.to_bytes());
    }
    body
}

/// Has the manager add hosts. Returns for each its tid or an error.
pub fn add_hosts(names: &[&CStr]) -> Result<Option<Vec<c_int>>, i32> {
    let Some(answer) = ask(tag::ADDHOST, named(names))? else {
        return Ok(None);
    };
    let mut from = Reader::new(&answer);
    let mut all = Vec::new();
    if let (Some(count), Some(_)) = (from.count(), from.int()) {
        // The other fields of a host that could not be added may be invalid.
        all.extend((0..count).map_while(|_| described(&mut from).map(|host| host.tid)));
    }
    match all.len() == names.len() {
        true => Ok(Some(all)),
        false => Err(codes::BAD_MSG),
    }
}

/// Has the manager remove hosts. Returns for each 0 or an error.
pub fn delete_hosts(names: &[&CStr]) -> Result<Option<Vec<c_int>>, i32> {
    let answer = ask(tag::DELHOST, named(names))?;
    answer.map(|answer| numbers(&answer)).transpose()
}

/// Reads a count and that many numbers.
fn numbers(answer: &[u8]) -> Result<Vec<c_int>, i32> {
    let mut from = Reader::new(answer);
    let count = from.count().ok_or(codes::BAD_MSG)?;
    let all: Option<Vec<c_int>> = (0..count).map(|_| from.int()).collect();
    all.ok_or(codes::BAD_MSG)
}

/// A task, as a manager describes it.
pub struct Task {
    pub tid: c_int,
    pub parent: c_int,
    pub host: c_int,
    pub flag: c_int,
    pub program: CString,
    pub pid: c_int,
}

/// Returns the tasks: all (0), those of a host, or one.
pub fn tasks(which: c_int) -> Result<Option<Vec<Task>>, i32> {
    let Some(answer) = ask(tag::TASK, Body::new().int(which))? else {
        return Ok(None);
    };
    let mut from = Reader::new(&answer);
    match from.int() {
        Some(code) if code < 0 => return Err(code),
        Some(_) => {}
        None => return Err(codes::BAD_MSG),
    }
    let mut all = Vec::new();
    while !from.is_empty() {
        let mut read = || {
            Some(Task {
                tid: from.int()?,
                parent: from.int()?,
                host: from.int()?,
                flag: from.int()?,
                program: text(from.string()?),
                pid: from.int()?,
            })
        };
        all.push(read().ok_or(codes::BAD_MSG)?);
    }
    Ok(Some(all))
}

/// Has the manager send a notification. Returns `false` if there is none.
pub fn notify(what: c_int, tag: c_int, count: c_int, tids: &[c_int]) -> Result<bool, i32> {
    if library().manager == 0 {
        return Ok(false);
    }
    let about = Body::new().int(what).int(library().context).int(tag);
    send_to_manager(tag::NOTIFY, 0, about.int(count).ints(tids))
}

/// Has the manager start tasks. Returns for each its tid or an error.
///
/// # Safety
/// `arguments` is NULL or a NULL-terminated array of NUL-terminated strings.
pub unsafe fn spawn(
    program: &CStr,
    arguments: *const *const c_char,
    flags: i32,
    place: Option<&CStr>,
    count: c_int,
) -> Result<Option<Vec<i32>>, i32> {
    if library().manager == 0 {
        return Ok(None);
    }
    let mut words = Vec::new();
    // SAFETY: the caller guarantees valid pointers.
    unsafe {
        while !arguments.is_null() && !(*arguments.add(words.len())).is_null() {
            words.push(CStr::from_ptr(*arguments.add(words.len())).to_bytes());
        }
    }
    let options = &library().options;
    let ((out, out_tag, out_context), trace) = (options.output(), options.children_trace());
    let mut body = Body::new()
        .string(program.to_bytes())
        .int(flags)
        .string(place.unwrap_or_default().to_bytes())
        .int(count)
        .int(words.len() as i32);
    for word in words {
        body = body.string(word);
    }
    body = body.ints(&[out, out_context, out_tag, trace.0, trace.2, trace.1]);
    let environment = crate::spawn::environment(flags);
    body = body.int(environment.len() as i32);
    for variable in &environment {
        body = body.string(variable.to_bytes());
    }
    let Some(answer) = ask(tag::SPAWN, body)? else {
        return Ok(None);
    };
    let mut tids = numbers(&answer)?;
    tids.resize(count as usize, codes::D_SYS_ERR);
    Ok(Some(tids))
}
