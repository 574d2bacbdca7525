//! All that the library knows in between calls, and where processes are.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};

use crate::error::{EQNOACT, EQNODE, EQPID, Fault};
use crate::inbox::Inbox;
use crate::mids::Table;
use crate::rg;
use crate::started::Started;

/// The channels of NX begin here, so that a program's own use of Regatta, and PVM's contexts, do not meet them.
const FIRST_CHANNEL: i32 = 1 << 27;
/// Messages of ordinary types.
pub const PLAIN: rg::Group = rg::channel(FIRST_CHANNEL);
/// Messages of force types.
pub const FORCE: rg::Group = rg::channel(FIRST_CHANNEL + 1);

/// The node that stands for all others.
pub const ALL_NODES: c_long = -1;

/// The process or processes that a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The task with this number.
    Task(c_int),
    /// Every node but this one.
    Others,
}

/// All of it.
pub struct Library {
    /// We are a node.
    pub joined: bool,
    /// A call has ended the program.
    pub failed: bool,
    /// Our node and how many there are.
    pub me: c_int,
    pub nodes: c_int,
    /// The task that is node 0. Nodes are tasks with consecutive numbers.
    pub first: c_int,
    /// Our pid, which the Paragon calls ptype.
    pub ptype: c_long,
    /// Sends and receives that have been begun.
    pub started: Table<Started>,
    /// Messages that have been taken in, because a receive selected by a mask.
    pub inbox: Inbox,
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

    /// The node that a task is, or -1.
    #[inline(always)]
    pub fn node_of(&self, task: c_int) -> c_long {
        let node = task.wrapping_sub(self.first);
        match (0..self.nodes).contains(&node) {
            true => c_long::from(node),
            false => -1,
        }
    }

    /// The destination that a node and a pid are.
    #[inline(always)]
    pub fn destination(&self, node: c_long, ptype: c_long) -> Result<To, Fault> {
        self.check_ptype(ptype)?;
        if node == ALL_NODES {
            return Ok(To::Others);
        }
        self.task_of(node).map(To::Task)
    }

    /// The task that a node is.
    #[inline(always)]
    pub fn task_of(&self, node: c_long) -> Result<c_int, Fault> {
        if (0..c_long::from(self.nodes)).contains(&node) {
            return Ok(self.first + node as c_int);
        }
        // The host has the number behind the last node's.
        let code = match node == c_long::from(self.nodes) {
            true => EQNOACT,
            false => EQNODE,
        };
        Err(Fault::of(code, "node", node))
    }

    /// Every process that can be sent to has our pid.
    #[inline(always)]
    fn check_ptype(&self, ptype: c_long) -> Result<(), Fault> {
        if ptype == self.ptype {
            return Ok(());
        }
        let code = match ptype < 0 {
            true => EQPID,
            false => EQNOACT,
        };
        Err(Fault::of(code, "pid", ptype))
    }

    /// The source that a selection of nodes and pids means: a task, or any.
    pub fn source(&self, nodesel: c_long, ptypesel: c_long) -> Result<c_int, Fault> {
        if ptypesel != -1 {
            self.check_ptype(ptypesel)?;
        }
        if nodesel == -1 {
            return Ok(rg::ANY);
        }
        self.task_of(nodesel)
    }
}

struct Cell(UnsafeCell<Library>);

// SAFETY: NX's rule: a program has one thread.
unsafe impl Sync for Cell {}

static LIBRARY: Cell = Cell(UnsafeCell::new(Library {
    joined: false,
    failed: false,
    me: 0,
    nodes: 0,
    first: 0,
    ptype: 0,
    started: Table::new(),
    inbox: Inbox::new(),
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
