//! A virtual machine accessed through PVM's library. The console is a task like any other.

mod calls;
mod machine;
mod symbols;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use crate::events;
use crate::machine::{Code, Notice};
use crate::options;

use calls::Calls;

/// The tag of notices about hosts. Jobs use their numbers as tags, from 1.
const HOST_ADDED_TAG: c_int = 0x3fff_ffff;

/// A machine accessed through a library.
pub struct Library {
    calls: Calls,
    tid: c_int,
    /// Hosts that this console has added and reported already, so the notices about them are ignored.
    own_additions: Vec<c_int>,
    /// The traced jobs, by the tags of their events.
    traced: BTreeMap<c_int, c_int>,
    events: events::Reader,
    /// Notices that arrived together with another one.
    waiting: VecDeque<Notice>,
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The machine was running.
    Running,
    /// The machine has been started.
    Started,
}

impl Library {
    /// Starts the user's machine, or finds it running. The arguments are those of PVM's daemon.
    pub fn start(arguments: &[String]) -> Result<(Calls, Found), String> {
        let calls = Calls::load()?;
        // A running machine is no error, so the library must not report it.
        let loud = calls.set_option(3, 0);
        let found = match calls.start(arguments) {
            Ok(()) => Found::Started,
            Err(Code::DUP_HOST) => Found::Running,
            Err(code) => {
                let why = calls.explain(code);
                return Err(format!("the virtual machine cannot be started: {why}"));
            }
        };
        calls.set_option(3, loud.max(1));
        Ok((calls, found))
    }

    /// Joins the machine as a console.
    pub fn join(calls: Calls) -> Result<Library, String> {
        let tid = calls.mytid().map_err(|code| {
            format!(
                "the virtual machine cannot be joined: {}",
                calls.explain(code)
            )
        })?;
        const ROUTE: c_int = 1;
        const DONT_ROUTE: c_int = 1;
        const RESERVED_TIDS: c_int = 11;
        /// Trace each event by itself.
        const TRACE_ALL: c_int = 1;
        calls.set_option(ROUTE, DONT_ROUTE);
        calls.set_option(RESERVED_TIDS, 1);
        calls.set_option(options::NO_RESET, 1);
        calls.set_option(options::OUTPUT_CONTEXT, 0);
        calls.set_option(options::TRACE_CONTEXT, 0);
        calls.set_option(options::TRACE_OPTIONS, TRACE_ALL);
        calls.watch_hosts(HOST_ADDED_TAG);
        Ok(Library {
            calls,
            tid,
            own_additions: Vec::new(),
            traced: BTreeMap::new(),
            events: events::Reader::default(),
            waiting: VecDeque::new(),
        })
    }

    /// Returns the descriptors that become readable when there may be notices.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.calls.descriptors()
    }

    /// Leaves the machine, which goes on.
    pub fn leave(self) {
        self.calls.leave();
    }
}
