//! Blocking sends.
//!
//! A send returns when its buffer may be reused, and does not wait for the receiver: NX programs rely on the system's
//! buffers when two nodes send to each other before either receives.
//!
//! *Rules of `csend` and `crecv` for small messages: no allocation, no system call, no lock except those of `rg_bsend`
//! and `rg_recv_within`.* (docs/hot-paths.md names the test.)

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQLEN, EQNOACT, EQPBUF, Fault, check, fault};
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::state::{FORCE, Library, PLAIN, To, or_successor};
use crate::types;

/// A message of the program, whose arguments have been checked.
#[derive(Clone, Copy)]
pub struct Message {
    memory: *const c_void,
    length: usize,
    tag: c_int,
    channel: rg::Group,
}

impl Message {
    /// Checks the arguments of a message.
    #[inline(always)]
    pub fn new(kind: c_long, memory: *const c_void, count: c_long) -> Result<Message, Fault> {
        let (tag, force) = types::sent(kind)?;
        let length = length(memory, count)?;
        let channel = if force { FORCE } else { PLAIN };
        Ok(Message {
            memory,
            length,
            tag,
            channel,
        })
    }

    /// Sends the message to a task, or to its successor if the task has ended.
    #[inline(always)]
    pub fn send(self, task: c_int) -> Result<(), Fault> {
        match self.try_send(task) {
            rg::OK => Ok(()),
            code => or_successor(task, fault(code), |task| check(self.try_send(task))),
        }
    }

    #[inline(always)]
    fn try_send(self, task: c_int) -> c_int {
        // SAFETY: by the C contract the memory has this length.
        unsafe { rg::rg_bsend(self.memory, self.length, task, self.tag, self.channel) }
    }

    /// Starts a send to a task, or to its successor if the task has ended.
    pub fn start(self, task: c_int) -> Result<rg::Request, Fault> {
        self.try_start(task)
            .or_else(|why| or_successor(task, why, |task| self.try_start(task)))
    }

    fn try_start(self, task: c_int) -> Result<rg::Request, Fault> {
        let mut request = rg::REQUEST_NULL;
        // SAFETY: by the C contract the memory has this length, and stays valid until the send is complete.
        check(unsafe {
            rg::rg_isend(
                self.memory,
                self.length,
                task,
                self.tag,
                self.channel,
                &mut request,
            )
        })?;
        Ok(request)
    }
}

/// Checks the length that a program passes for its memory.
#[inline(always)]
pub fn length(memory: *const c_void, count: c_long) -> Result<usize, Fault> {
    let Ok(length) = usize::try_from(count) else {
        return Err(Fault::of(EQLEN, "length", count));
    };
    if memory.is_null() && length > 0 {
        return Err(Fault::plain(EQPBUF));
    }
    Ok(length)
}

/// Returns the tasks with this pid on all other nodes. If they were not loaded together, they are looked up, and nodes
/// without such a process are skipped.
pub fn others(
    library: &mut Library,
    ptype: c_long,
) -> Result<impl Iterator<Item = c_int> + use<>, Fault> {
    let me = library.task;
    let mut together = 0..0;
    let mut apart = Vec::new();
    if ptype == library.peers {
        together = library.first..library.first + library.nodes;
    } else {
        let nodes = 0..c_long::from(library.nodes);
        apart.extend(nodes.filter_map(|node| library.task_of(node, ptype).ok()));
        if apart.is_empty() {
            return Err(Fault::of(EQNOACT, "pid", ptype));
        }
    }
    Ok(together.chain(apart).filter(move |&task| task != me))
}

/// # Safety
/// `memory` has `count` bytes.
#[inline(always)]
pub unsafe fn send(
    kind: c_long,
    memory: *const c_void,
    count: c_long,
    node: c_long,
    ptype: c_long,
) -> Answer {
    let library = enrolled()?;
    let message = Message::new(kind, memory, count)?;
    match library.destination(node, ptype)? {
        To::Task(task) => message.send(task)?,
        To::Others(ptype) => send_to_all(others(library, ptype)?, message)?,
    }
    Ok(0)
}

/// Sends to all tasks, even if one of them is gone. Returns the first fault.
#[inline(never)]
pub fn send_to_all(tasks: impl Iterator<Item = c_int>, message: Message) -> Result<(), Fault> {
    let mut first = Ok(());
    for task in tasks {
        first = first.and(message.send(task));
    }
    first
}

/// Sends to a list of nodes, in C's or Fortran's numbers.
unsafe fn send_to_list<T: Copy + Into<c_long>>(
    kind: c_long,
    memory: *const c_void,
    count: c_long,
    nodes: *const T,
    number: c_long,
) -> Answer {
    let library = enrolled()?;
    let message = Message::new(kind, memory, count)?;
    let number = length(nodes.cast(), number)?;
    // SAFETY: by the C contract `nodes` has `number` entries.
    let listed = |index| unsafe { nodes.add(index).read_unaligned().into() };
    let pid = library.usual_pid();
    // Check all of them before anything is sent.
    for index in 0..number {
        library.task_of(listed(index), pid)?;
    }
    let tasks = (0..number).filter_map(|index| library.task_of(listed(index), pid).ok());
    send_to_all(tasks, message)?;
    Ok(0)
}

c_forms! {
    csend, _csend: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long) = send;
    gsendx, _gsendx: (kind: c_long, memory: *const c_void, count: c_long, nodes: *const c_long, number: c_long) = send_to_list;
}

fortran_forms! {
    csend_, _csend_: (kind: c_long, memory: *const c_void, count: c_long, node: c_long, ptype: c_long) = send;
    gsendx_, _gsendx_: (kind: c_long, memory: *const c_void, count: c_long, nodes: *const c_int, number: c_long) = send_to_list;
}
