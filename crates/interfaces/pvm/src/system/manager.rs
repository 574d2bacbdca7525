//! The resource manager: the task that decides where tasks are started (`pvm_reg_rm`).
//!
//! On PVM it gets the requests of tasks, and has daemons execute its decisions. Here the library executes them in place
//! of the daemons, through Regatta's launcher, on behalf of the requesting task. The launcher also reports every task
//! that starts or ends, and changes of hosts.

use std::ffi::{CStr, CString, c_char, c_int};

use super::{MANAGER, asking, tag};
use crate::arrival::{Select, in_order, take_all};
use crate::last_results::Kept;
use crate::life::enrol;
use crate::machine::{self, HostInfo};
use crate::message::{Body, Reader, codes, error};
use crate::notify::told_with;
use crate::output::Route;
use crate::spawn::{self, Order};
use crate::state::library;
use crate::trace::{self, calls, traced};
use crate::{contexts, listing, mailbox, receive, rg, tid};

/// Context of messages from daemons to the manager.
const CONTEXT: i32 = 0;
/// Selects the requests of tasks.
const REQUESTS: Select = Select {
    from: rg::ANY,
    tag: rg::ANY,
    context: CONTEXT,
    reserved: true,
};

/// Requests notifications of an event from Regatta. They become messages of daemons.
fn watch(kind: c_int, what: c_int) -> Result<(), i32> {
    let channel = contexts::channel(CONTEXT, tag::TASKX);
    let mut number = 0;
    // SAFETY: the result points to a local variable.
    match unsafe { rg::rg_notify(kind, what, tag::TASKX & i32::MAX, channel, &mut number) } {
        rg::OK => library().managing.push(number),
        // The host is already gone.
        rg::ERR_HOST => {}
        _ => return Err(codes::SYS_ERR),
    }
    Ok(())
}

fn register() -> Result<Vec<asking::Described>, i32> {
    let me = enrol()?;
    if let Some((code, host)) = asking::succeed()? {
        return match code {
            code if code < 0 => Err(code),
            _ => Ok(host.into_iter().collect()),
        };
    }
    if listing::owners(MANAGER.name)?
        .iter()
        .any(|&(_, owner)| owner != me)
    {
        return Err(codes::ALREADY);
    }
    contexts::note(CONTEXT);
    let hosts = machine::hosts()?;
    watch(rg::TASKS, 0)?;
    watch(rg::HOST_ADDED, 0)?;
    for host in &hosts {
        watch(rg::HOST_LOST, host.host)?;
    }
    mailbox::take_role(MANAGER.name)?;
    Ok(hosts.iter().map(machine::described).collect())
}

/// Registers this task as the resource manager.
///
/// # Safety
/// `host` is NULL or points to a pointer, which is set to the first host's description.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_reg_rm(host: *mut *mut HostInfo) -> c_int {
    static FIRST: Kept<Vec<asking::Described>> = Kept::new(Vec::new());
    static INFO: Kept<Vec<HostInfo>> = Kept::new(Vec::new());
    let registered = || {
        let hosts = match register() {
            Ok(hosts) => hosts,
            Err(code) => return error::result("pvm_reg_rm", code),
        };
        let (kept, infos) = (FIRST.get(), INFO.get());
        *kept = hosts;
        *infos = kept.iter().map(HostInfo::of).collect();
        if !host.is_null() {
            // SAFETY: by the C contract the arguments are valid.
            unsafe { *host = infos.as_mut_ptr() };
        }
        0
    };
    traced(calls::REG_RM, || [], registered, trace::code)
}

/// Returns whether this task receives the event as the manager.
pub fn concerns(event: &rg::Event) -> bool {
    library().managing.contains(&event.watch)
}

/// Makes a message from a daemon to the manager.
fn daemon_message(tag: i32, wid: i32, body: Body) -> Result<c_int, i32> {
    told_with(wid, body, tag, CONTEXT)
}

/// Returns the message that the manager gets for an event, if there is one.
pub fn happened(event: &rg::Event) -> Result<Option<c_int>, i32> {
    let task = tid::of(event.tid, event.host);
    match event.kind {
        // The manager itself decides about tasks that tasks start, so report only the others.
        rg::TASKS if event.value == rg::NONE => {
            daemon_message(tag::EXECACK, 0, Body::new().int(1).int(task)).map(Some)
        }
        rg::TASK_EXIT => {
            let usage = [0; 4];
            let ended = Body::new().int(task).int(super::status(event));
            // A task that wants to be notified of this end has sent its request earlier: take in the requests first.
            let mut all = take_all(REQUESTS);
            all.push(daemon_message(tag::TASKX, 0, ended.ints(&usage))?);
            Ok(in_order(all))
        }
        rg::HOST_ADDED => watch(rg::HOST_LOST, event.host).map(|()| None),
        rg::HOST_LOST => {
            let host = tid::of_daemon(event.host);
            daemon_message(tag::HOSTX, 0, Body::new().int(host)).map(Some)
        }
        _ => Ok(None),
    }
}

fn owned(texts: Vec<&[u8]>) -> Option<Vec<CString>> {
    texts
        .into_iter()
        .map(|text| CString::new(text).ok())
        .collect()
}

/// A manager's order to start tasks on a host.
struct Execution {
    parent: i32,
    program: CString,
    flags: i32,
    count: i32,
    arguments: Vec<CString>,
    output: (i32, i32, i32),
    environment: Vec<CString>,
}

impl Execution {
    fn read(from: &mut Reader) -> Option<Execution> {
        let (parent, program) = (from.int()?, from.string()?);
        let (flags, count) = (from.int()?, from.int()?);
        let arguments = owned(from.strings()?)?;
        let (out, out_context, out_tag) = (from.int()?, from.int()?, from.int()?);
        // The destination of events: the tasks get it from their environment.
        for _ in 0..3 {
            from.int()?;
        }
        Some(Execution {
            parent,
            program: CString::new(program).ok()?,
            flags,
            count: (1..=1 << 16).contains(&count).then_some(count)?,
            arguments,
            output: (out, out_tag, out_context),
            environment: owned(from.strings()?)?,
        })
    }

    fn start(&self, daemon: c_int) -> Result<Vec<i32>, i32> {
        let number = tid::host(daemon).unwrap_or(library().host);
        let hosts = machine::hosts()?;
        let host = hosts.iter().find(|host| host.host == number);
        let host = machine::described(host.ok_or(codes::NO_HOST)?).name;
        let parent = tid::task(self.parent).ok_or(codes::BAD_PARAM)?;
        let mut order = Order::on(host, self.flags, parent + 1);
        order.environment = self.environment.clone();
        order.output = Route::of(self.output);
        let arguments = self.arguments.iter().map(|text| text.as_ptr());
        let arguments: Vec<*const c_char> = arguments.chain([std::ptr::null()]).collect();
        Ok(spawn::start(
            &order,
            &self.program,
            arguments.as_ptr(),
            self.count,
        ))
    }
}

/// Handles `SM_EXEC`: starts tasks, and answers with `SM_EXECACK`.
pub fn execute(daemon: c_int, wid: i32, body: &mut Reader) -> Result<(), i32> {
    let execution = Execution::read(body).ok_or(codes::BAD_MSG)?;
    let started = execution.start(daemon);
    let started = started.unwrap_or_else(|code| vec![code; execution.count as usize]);
    let body = Body::new().int(started.len() as i32).ints(&started);
    let answer = daemon_message(tag::EXECACK, wid, body)?;
    receive::keep(answer);
    Ok(())
}

/// Handles `SM_ADD`: adds hosts, and answers with `SM_ADDACK`.
pub fn add(wid: i32, body: &mut Reader) -> Result<(), i32> {
    let names = body.strings().and_then(owned).ok_or(codes::BAD_MSG)?;
    let names: Vec<&CStr> = names.iter().map(CString::as_c_str).collect();
    let added = machine::add(&names)?;
    let hosts: Vec<_> = machine::hosts()?.iter().map(machine::described).collect();
    let kinds: std::collections::BTreeSet<_> =
        hosts.iter().map(|host| &host.architecture).collect();
    let mut body = Body::new().int(added.len() as i32).int(kinds.len() as i32);
    for tid in added {
        body = match hosts.iter().find(|host| host.tid == tid) {
            Some(host) => body
                .int(tid)
                .string(host.name.to_bytes())
                .string(host.architecture.to_bytes())
                .ints(&[host.speed, host.signature]),
            None => body.int(tid).string("").string("").ints(&[0, 0]),
        };
    }
    let answer = daemon_message(tag::ADDACK, wid, body)?;
    receive::keep(answer);
    Ok(())
}
