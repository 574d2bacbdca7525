//! All that the library knows in between calls, and where processes are.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};

use crate::cube::Cube;
use crate::error::{Answer, EQNOACT, EQNODE, EQPID, Fault};
use crate::files::Moded;
use crate::inbox::Inbox;
use crate::mids::Table;
use crate::partition::Partitions;
use crate::places::Places;
use crate::rg;
use crate::started::Started;

/// Messages of ordinary types.
pub const PLAIN: rg::Group = rg::library_channel(0);
/// Messages of force types.
pub const FORCE: rg::Group = rg::library_channel(1);
/// Ends of processes, for the host.
pub const ENDS: rg::Group = rg::library_channel(2);

/// The node that stands for all others.
pub const ALL_NODES: c_long = -1;
/// No task, or no pid.
pub const NOBODY: c_int = -1;
/// No task is node 0, no pid is that of the processes beside it.
const NO_TASK: c_int = c_int::MIN;
const NO_PID: c_long = -2;

/// The process or processes that a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The task with this number.
    Task(c_int),
    /// The processes with this pid on every node but this one.
    Others(c_long),
}

/// All of it.
pub struct Library {
    /// We are a process that can send and receive.
    pub joined: bool,
    /// A call has ended the program.
    pub failed: bool,
    /// Our process, and our task.
    pub process: u32,
    pub task: c_int,
    /// Our node and how many there are. The host has the number behind the last node's.
    pub me: c_int,
    pub nodes: c_int,
    /// The task that is node 0 of the processes with the pid `peers`. The pids of the other nodes follow it.
    pub first: c_int,
    pub peers: c_long,
    /// Our pid, which the Paragon calls ptype.
    pub ptype: c_long,
    /// Rows of the rectangle that the nodes are; 0 if nobody has said.
    pub rows: c_int,
    /// The partition in which an application has been begun here.
    pub application: Option<String>,
    /// Partitions that the program has made.
    pub partitions: Partitions,
    /// Calls of `nx_nfork` so far, and the one by which this process was started, or 0.
    pub forks: c_int,
    pub fork: c_int,
    /// The processes with our pid that take part in global operations.
    pub group: Option<rg::Group>,
    /// Where other processes are.
    pub places: Places,
    /// The host's cube, if we are the host.
    pub cube: Option<Cube>,
    /// Sends and receives that have been begun.
    pub started: Table<Started>,
    /// Messages that have been taken in, because a receive selected by a mask.
    pub inbox: Inbox,
    /// Descriptors that nodes share, and how.
    pub modes: Vec<Moded>,
    /// Units of a Fortran program that `gopen` has opened.
    pub units: Vec<crate::units::Opened>,
    /// Reads and writes that have been begun.
    pub transfers: Table<Answer>,
    /// Lengths and offsets of the parts of a concatenation.
    pub lengths: Vec<usize>,
    pub offsets: Vec<usize>,
    /// When the clock of `mclock` began, or 0.
    pub began: f64,
}

impl Library {
    /// Our node, as programs count it.
    pub fn node_of_mine(&self) -> c_long {
        c_long::from(self.me)
    }

    /// The pid of the processes that are meant where no pid is named.
    pub fn usual_pid(&self) -> c_long {
        match &self.cube {
            Some(cube) => cube.loaded.map_or(NO_PID, c_long::from),
            None => self.ptype,
        }
    }

    /// Processes of one pid do not follow each other: each is looked up.
    pub fn set_apart(&mut self) {
        (self.first, self.peers) = (NO_TASK, NO_PID);
    }

    /// The task that a host has loaded in the place of one that has ended.
    pub fn successor(&mut self, task: c_int) -> Option<c_int> {
        let (node, pid) = self.process_of(task);
        let next = self.places.look_again(node as c_int, pid, task)?;
        if pid == self.peers {
            self.set_apart();
        }
        Some(next)
    }

    /// The node and the pid that a task is; -1 for what is not known.
    #[inline(always)]
    pub fn process_of(&mut self, task: c_int) -> (c_long, c_long) {
        let node = task.wrapping_sub(self.first);
        match (0..self.nodes).contains(&node) {
            true => (c_long::from(node), self.peers),
            false => self.places.process_of(task, self.nodes),
        }
    }

    /// The destination that a node and a pid are.
    #[inline(always)]
    pub fn destination(&mut self, node: c_long, ptype: c_long) -> Result<To, Fault> {
        if node == ALL_NODES {
            return self.check_pid(ptype).map(|()| To::Others(ptype));
        }
        self.task_of(node, ptype).map(To::Task)
    }

    /// The task that a node and a pid are.
    #[inline(always)]
    pub fn task_of(&mut self, node: c_long, ptype: c_long) -> Result<c_int, Fault> {
        if ptype == self.peers && (0..c_long::from(self.nodes)).contains(&node) {
            return Ok(self.first + node as c_int);
        }
        self.task_elsewhere(node, ptype)
    }

    #[cold]
    fn task_elsewhere(&mut self, node: c_long, ptype: c_long) -> Result<c_int, Fault> {
        if !(0..=c_long::from(self.nodes)).contains(&node) {
            return Err(Fault::of(EQNODE, "node", node));
        }
        self.check_pid(ptype)?;
        let awaits = ptype == self.ptype && self.cube.is_none();
        match self
            .places
            .task_of(node as c_int, ptype, self.nodes, awaits)
        {
            Some(task) => Ok(task),
            None if node == c_long::from(self.nodes) => Err(Fault::of(EQNOACT, "node", node)),
            None => Err(Fault::of(EQNOACT, "pid", ptype)),
        }
    }

    fn check_pid(&self, ptype: c_long) -> Result<(), Fault> {
        match ptype < 0 {
            true => Err(Fault::of(EQPID, "pid", ptype)),
            false => Ok(()),
        }
    }

    /// The source that a selection of nodes and pids means: a task, or any.
    pub fn source(&mut self, nodesel: c_long, ptypesel: c_long) -> Result<c_int, Fault> {
        if nodesel != -1 {
            let host = nodesel == c_long::from(self.nodes);
            let pid = match ptypesel {
                -1 if host => self.places.host_pid(),
                -1 => self.usual_pid(),
                ptype => ptype,
            };
            return self.task_of(nodesel, pid);
        }
        // Any node: of one pid there may be several.
        if ptypesel != -1 && ptypesel != self.usual_pid() {
            self.check_pid(ptypesel)?;
            return Err(Fault::of(EQNOACT, "pid", ptypesel));
        }
        Ok(rg::ANY)
    }
}

struct Cell(UnsafeCell<Library>);

// SAFETY: NX's rule: a program has one thread.
unsafe impl Sync for Cell {}

static LIBRARY: Cell = Cell(UnsafeCell::new(Library {
    joined: false,
    failed: false,
    process: 0,
    task: 0,
    me: 0,
    nodes: 0,
    first: 0,
    peers: 0,
    ptype: 0,
    rows: 0,
    application: None,
    partitions: Partitions::new(),
    forks: 0,
    fork: 0,
    group: None,
    places: Places::new(),
    cube: None,
    started: Table::new(),
    inbox: Inbox::new(),
    modes: Vec::new(),
    units: Vec::new(),
    transfers: Table::new(),
    lengths: Vec::new(),
    offsets: Vec::new(),
    began: 0.0,
}));

/// The state. The reference must be gone before a function of the user is called.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub fn library<'a>() -> &'a mut Library {
    // SAFETY: one thread at a time, and each user of this lets go before it calls anybody who could take it again.
    unsafe { &mut *LIBRARY.0.get() }
}

/// The second attempt of something that failed because a task has ended: with the task in its place, if there is one.
#[cold]
pub fn or_successor<T>(
    task: c_int,
    why: Fault,
    again: impl FnOnce(c_int) -> Result<T, Fault>,
) -> Result<T, Fault> {
    if why.code != EQNOACT || task == rg::ANY {
        return Err(why);
    }
    match library().successor(task) {
        Some(next) => again(next),
        None => Err(why),
    }
}
