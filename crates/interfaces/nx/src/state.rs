//! The library's state between calls, and the mapping from processes to tasks.

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

/// Channel of messages of ordinary types.
pub const PLAIN: rg::Group = rg::library_channel(0);
/// Channel of messages of force types.
pub const FORCE: rg::Group = rg::library_channel(1);
/// Channel of notifications of processes' ends, for the host.
pub const ENDS: rg::Group = rg::library_channel(2);

/// The node number that means all other nodes.
pub const ALL_NODES: c_long = -1;
/// No task, or no pid.
pub const NOBODY: c_int = -1;
/// Values of `first` and `peers` if the processes were not loaded together: no task is node 0, and no pid matches.
const NO_TASK: c_int = c_int::MIN;
const NO_PID: c_long = -2;

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// This task.
    Task(c_int),
    /// The processes with this pid on all other nodes.
    Others(c_long),
}

/// The state.
pub struct Library {
    /// Whether this process has joined, so that it can send and receive.
    pub joined: bool,
    /// Whether a call has ended the program.
    pub failed: bool,
    /// This process's id, and its task.
    pub process: u32,
    pub task: c_int,
    /// This process's node, and the number of nodes. The host's node is the number of nodes.
    pub me: c_int,
    pub nodes: c_int,
    /// The task that is node 0 of the processes with the pid `peers`. The tasks of the other nodes follow it.
    pub first: c_int,
    pub peers: c_long,
    /// This process's pid, which the Paragon calls ptype.
    pub ptype: c_long,
    /// Rows of the rectangle of nodes; 0 if not given.
    pub rows: c_int,
    /// Partition of the application that was begun here.
    pub application: Option<String>,
    /// Partitions that this program has made.
    pub partitions: Partitions,
    /// Number of calls of `nx_nfork` so far, and the one by which this process was started, or 0.
    pub forks: c_int,
    pub fork: c_int,
    /// The group of global operations: the processes with this pid on all nodes.
    pub group: Option<rg::Group>,
    /// Tasks of other processes.
    pub places: Places,
    /// The host's cube, if this is the host.
    pub cube: Option<Cube>,
    /// Sends and receives in progress.
    pub started: Table<Started>,
    /// Messages that have been taken in because a receive selects by a mask.
    pub inbox: Inbox,
    /// Descriptors that nodes share, with their modes.
    pub modes: Vec<Moded>,
    /// Units of a Fortran program that `gopen` has opened.
    pub units: Vec<crate::units::Opened>,
    /// Reads and writes in progress.
    pub transfers: Table<Answer>,
    /// Lengths and offsets of the contributions to a concatenation.
    pub lengths: Vec<usize>,
    pub offsets: Vec<usize>,
    /// Time at which the clock of `mclock` started, or 0.
    pub began: f64,
}

impl Library {
    /// Returns this process's node, as programs get it.
    pub fn node_of_mine(&self) -> c_long {
        c_long::from(self.me)
    }

    /// Returns the pid of the processes that a call without a pid means.
    pub fn usual_pid(&self) -> c_long {
        match &self.cube {
            Some(cube) => cube.loaded.map_or(NO_PID, c_long::from),
            None => self.ptype,
        }
    }

    /// Records that the processes of one pid do not have consecutive tasks, so that each has to be looked up.
    pub fn set_apart(&mut self) {
        (self.first, self.peers) = (NO_TASK, NO_PID);
    }

    /// Returns the task that a host has loaded in place of one that has ended, if there is one.
    pub fn successor(&mut self, task: c_int) -> Option<c_int> {
        let (node, pid) = self.process_of(task);
        let next = self.places.look_again(node as c_int, pid, task)?;
        if pid == self.peers {
            self.set_apart();
        }
        Some(next)
    }

    /// Returns the node and the pid of a task; -1 for what is unknown.
    #[inline(always)]
    pub fn process_of(&mut self, task: c_int) -> (c_long, c_long) {
        let node = task.wrapping_sub(self.first);
        match (0..self.nodes).contains(&node) {
            true => (c_long::from(node), self.peers),
            false => self.places.process_of(task, self.nodes),
        }
    }

    /// Returns the destination that a node and a pid mean.
    #[inline(always)]
    pub fn destination(&mut self, node: c_long, ptype: c_long) -> Result<To, Fault> {
        if node == ALL_NODES {
            return self.check_pid(ptype).map(|()| To::Others(ptype));
        }
        self.task_of(node, ptype).map(To::Task)
    }

    /// Returns the task of a node and a pid.
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

    /// Returns the source that selectors of a node and a pid mean: a task, or any.
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
        // Any node: only one pid can be selected, the usual one.
        if ptypesel != -1 && ptypesel != self.usual_pid() {
            self.check_pid(ptypesel)?;
            return Err(Fault::of(EQNOACT, "pid", ptypesel));
        }
        Ok(rg::ANY)
    }
}

struct Cell(UnsafeCell<Library>);

// SAFETY: a program has one thread.
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

/// Returns the state. Drop the reference before calling a function of the program.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub fn library<'a>() -> &'a mut Library {
    // SAFETY: a program has one thread, and every user drops the reference before it calls what could take it again.
    unsafe { &mut *LIBRARY.0.get() }
}

/// Retries something that failed because a task has ended, with the task that has replaced it, if there is one.
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
