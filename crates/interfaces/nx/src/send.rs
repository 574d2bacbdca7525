//! Sends that are over when they return.
//!
//! A send returns when its buffer may be used again, and does not wait for the receiver: programs of NX rely on the system's buffers when
//! two nodes send to each other before either receives.
//!
//! *Rules of `csend` and `crecv` of small messages: no allocation, no system call, no lock beyond those of `rg_bsend` and
//! `rg_recv_within`.* (docs/hot-paths.md names the test.)

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQLEN, EQNOACT, EQPBUF, Fault, check, fault};
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::state::{FORCE, Library, PLAIN, To, or_successor};
use crate::types;

/// A message of the program's, checked.
#[derive(Clone, Copy)]
pub struct Message {
    memory: *const c_void,
    length: usize,
    tag: c_int,
    channel: rg::Group,
}

impl Message {
    /// The message of this type and these bytes.
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

    /// Send it to a task.
    #[inline(always)]
    pub fn send(self, task: c_int) -> Result<(), Fault> {
        match self.try_send(task) {
            rg::OK => Ok(()),
            code => or_successor(task, fault(code), |task| check(self.try_send(task))),
        }
    }

    #[inline(always)]
    fn try_send(self, task: c_int) -> c_int {
        // SAFETY: the program's memory is as long as it says.
        unsafe { rg::rg_bsend(self.memory, self.length, task, self.tag, self.channel) }
    }

    /// Start to send it to a task.
    pub fn start(self, task: c_int) -> Result<rg::Request, Fault> {
        self.try_start(task)
            .or_else(|why| or_successor(task, why, |task| self.try_start(task)))
    }

    fn try_start(self, task: c_int) -> Result<rg::Request, Fault> {
        let mut request = rg::REQUEST_NULL;
        // SAFETY: as above, and it stays until the send is over: the contract of `isend`.
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

/// A length that a program gives for its memory.
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

/// The tasks with this pid on all nodes but ours. Where they were not loaded together they are looked up, and where there is none there is none.
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

/// A node that has gone does not keep the message from the others.
#[inline(never)]
pub fn send_to_all(tasks: impl Iterator<Item = c_int>, message: Message) -> Result<(), Fault> {
    let mut first = Ok(());
    for task in tasks {
        first = first.and(message.send(task));
    }
    first
}

/// A list of nodes, in either language's numbers.
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
    // SAFETY: the C contract: as many nodes as are said to be.
    let listed = |index| unsafe { nodes.add(index).read_unaligned().into() };
    let pid = library.usual_pid();
    // All are checked before anything is sent.
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
