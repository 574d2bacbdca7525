//! A virtual machine as the console uses it: calls, and notices as plain data.
//!
//! The terms are PVM's: a tid names a task or, with its low bits zero, a host. Failures are PVM's error codes.

use crate::events::Event;

/// One of PVM's error codes, below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    /// A malformed message.
    pub const BAD_MESSAGE: Code = Code(-12);
    /// A name without an entry in the mailbox.
    pub const NOT_FOUND: Code = Code(-32);
    /// A host could not be started.
    pub const CANT_START: Code = Code(-29);
    /// A host that is in the machine already.
    pub const DUP_HOST: Code = Code(-28);
}

/// The result of a call.
pub type Answer<T> = Result<T, Code>;

/// A host of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The tid of the host itself.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub arch: String,
    /// Its speed relative to other hosts.
    pub speed: i32,
    /// Its data representation.
    pub signature: i32,
}

/// A task of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The task.
    pub tid: i32,
    /// The tid of its parent.
    pub parent: i32,
    /// The tid of its host.
    pub host: i32,
    /// Its flags, a bit mask.
    pub flags: i32,
    /// Its program, empty if it was started by hand.
    pub program: String,
    /// The pid.
    pub pid: i32,
}

/// The mailbox entries with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The name.
    pub name: String,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// An entry of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The entry's index under its name.
    pub index: i32,
    /// The task that put it, or 0 if that task is gone.
    pub owner: i32,
    /// Flags for its permitted uses, a bit mask.
    pub flags: i32,
}

/// Tasks to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The number of tasks.
    pub count: i32,
    /// PVM's flags for placement and mode.
    pub flags: i32,
    /// A host or an architecture, optionally with a directory after a colon.
    pub place: String,
    /// The job whose output goes to the console.
    pub job: Option<i32>,
    /// Whether its events go to the console as well.
    pub traced: bool,
}

/// A notice that the machine sends on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// News about a task of a job.
    Job {
        /// The job.
        job: i32,
        /// The task.
        tid: i32,
        /// What has happened.
        what: Output,
    },
    /// An event of a task of a traced job.
    Event {
        /// The job.
        job: i32,
        /// The event.
        event: Event,
    },
    /// New hosts that the console has not added itself.
    Added(Vec<i32>),
    /// The machine has ended.
    Ended,
}

/// The content of a notice about a task of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The task has been started, or is about to be.
    Begun,
    /// The task has written this.
    Text(Vec<u8>),
    /// The task has closed its output.
    End,
}

/// A virtual machine. Implemented for PVM's library, and by tests.
pub trait Machine {
    /// Returns the console's own tid.
    fn tid(&self) -> i32;
    /// Returns the library's version.
    fn version(&self) -> String;
    /// Returns the meaning of a code.
    fn explain(&self, code: Code) -> String;

    /// Returns the number of data representations, and the hosts.
    fn hosts(&mut self) -> Answer<(i32, Vec<Host>)>;
    /// Adds hosts. Returns for each its tid, or why it could not be added.
    fn add(&mut self, lines: &[String]) -> Answer<Vec<Answer<i32>>>;
    /// Removes hosts.
    fn delete(&mut self, names: &[String]) -> Answer<Vec<Answer<()>>>;
    /// Returns whether a host is up.
    fn host_state(&mut self, name: &str) -> Answer<()>;

    /// Returns the tasks of a host, or of all hosts for 0.
    fn tasks(&mut self, host: i32) -> Answer<Vec<Task>>;
    /// Returns whether a task is running.
    fn task_state(&mut self, tid: i32) -> Answer<()>;
    /// Starts tasks. Returns for each its tid, or why it could not be started.
    fn spawn(&mut self, order: &Order) -> Answer<Vec<Answer<i32>>>;
    /// Ends a task.
    fn kill(&mut self, tid: i32) -> Answer<()>;
    /// Sends a signal.
    fn signal(&mut self, tid: i32, signal: i32) -> Answer<()>;
    /// Returns the tasks that a reset spares.
    fn lasting(&mut self) -> Answer<Vec<i32>>;
    /// Ends the machine.
    fn halt(&mut self) -> Answer<()>;

    /// Returns the names that match a pattern.
    fn names(&mut self, pattern: &str) -> Answer<Vec<Class>>;
    /// Puts a number under a name.
    fn put(&mut self, name: &str, flags: i32, value: i32) -> Answer<i32>;
    /// Removes an entry.
    fn forget(&mut self, name: &str, entry: Entry) -> Answer<()>;

    /// Returns the value of one of the library's options.
    fn option(&mut self, option: i32) -> i32;
    /// Sets an option. Returns the previous value, or an error code.
    fn set_option(&mut self, option: i32, value: i32) -> i32;
    /// Sets the mask of events to be traced in tasks started from here.
    fn set_trace_mask(&mut self, mask: &str) -> Answer<()>;
    /// Sends the machine's process a debugging request.
    fn tickle(&mut self, words: &[i32]) -> Answer<Vec<i32>>;
    /// Prints the console's memory usage on standard error.
    fn dump(&mut self);

    /// Returns an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Sets an environment variable, for the library and for started tasks.
    fn set_variable(&mut self, name: &str, value: &str);

    /// Returns the time of day: seconds and microseconds.
    fn now(&self) -> (i32, i32);
    /// Returns the next notice, if there is one. Never blocks.
    fn news(&mut self) -> Option<Notice>;
}
