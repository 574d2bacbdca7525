//! A virtual machine as the console needs it: calls, and notices as plain data.
//!
//! The words are those of PVM: a tid names a task or, with its low bits zero, a host; whoever fails answers with one of its codes.

use crate::events::Event;

/// One of PVM's codes of errors, below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    /// A message that does not read as what it is to be.
    pub const BAD_MESSAGE: Code = Code(-12);
    /// No such name in a mailbox.
    pub const NOT_FOUND: Code = Code(-32);
    /// A host could not be started.
    pub const CANT_START: Code = Code(-29);
    /// Something that is there already.
    pub const DUP_HOST: Code = Code(-28);
}

/// The answer to a question.
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
    /// Its speed compared to others.
    pub speed: i32,
    /// How it represents data.
    pub signature: i32,
}

/// A task of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The task.
    pub tid: i32,
    /// The task that has started it.
    pub parent: i32,
    /// The host it is on.
    pub host: i32,
    /// Its flags, in bits.
    pub flags: i32,
    /// Its program; empty if it was started by hand.
    pub program: String,
    /// The process.
    pub pid: i32,
}

/// The entries of a mailbox that have one name.
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
    /// Which of its class.
    pub index: i32,
    /// The task that put it; 0 if that one is gone.
    pub owner: i32,
    /// The permitted uses of it, in bits.
    pub flags: i32,
}

/// Tasks to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How many tasks.
    pub count: i32,
    /// PVM's flags: where, and how.
    pub flags: i32,
    /// A host or an architecture, and a directory after a colon.
    pub place: String,
    /// The job whose output comes to the console.
    pub job: Option<i32>,
    /// Its events come as well.
    pub traced: bool,
}

/// A notice that the machine sends without being asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A task of a job.
    Job {
        /// The job.
        job: i32,
        /// The task.
        tid: i32,
        /// Its fate.
        what: Output,
    },
    /// An event of a task of a job that is traced.
    Event {
        /// The job.
        job: i32,
        /// The event.
        event: Event,
    },
    /// Hosts that are new, and that the console has not added itself.
    Added(Vec<i32>),
    /// The machine has ended.
    Ended,
}

/// The content of a notice about a task of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It has been started, or is about to be.
    Begun,
    /// It has written this.
    Text(Vec<u8>),
    /// It will write no more.
    End,
}

/// A virtual machine. Implemented over a PVM library, and by tests.
pub trait Machine {
    /// The console's own tid.
    fn tid(&self) -> i32;
    /// The library's version.
    fn version(&self) -> String;
    /// The meaning of a code.
    fn explain(&self, code: Code) -> String;

    /// How many representations of data there are, and the hosts.
    fn hosts(&mut self) -> Answer<(i32, Vec<Host>)>;
    /// Adds hosts; for each its tid, or why it could not be added.
    fn add(&mut self, lines: &[String]) -> Answer<Vec<Answer<i32>>>;
    /// Removes hosts.
    fn delete(&mut self, names: &[String]) -> Answer<Vec<Answer<()>>>;
    /// How a host is.
    fn host_state(&mut self, name: &str) -> Answer<()>;

    /// The tasks of a host, or with 0 of all.
    fn tasks(&mut self, host: i32) -> Answer<Vec<Task>>;
    /// How a task is.
    fn task_state(&mut self, tid: i32) -> Answer<()>;
    /// Starts tasks; for each its tid, or why it could not be started.
    fn spawn(&mut self, order: &Order) -> Answer<Vec<Answer<i32>>>;
    /// Ends a task.
    fn kill(&mut self, tid: i32) -> Answer<()>;
    /// Sends a signal.
    fn signal(&mut self, tid: i32, signal: i32) -> Answer<()>;
    /// The tasks that a reset leaves alone.
    fn lasting(&mut self) -> Answer<Vec<i32>>;
    /// Ends the machine.
    fn halt(&mut self) -> Answer<()>;

    /// The names that match a pattern.
    fn names(&mut self, pattern: &str) -> Answer<Vec<Class>>;
    /// Leaves a number under a name.
    fn put(&mut self, name: &str, flags: i32, value: i32) -> Answer<i32>;
    /// Takes an entry away.
    fn forget(&mut self, name: &str, entry: Entry) -> Answer<()>;

    /// The value of one of the library's options.
    fn option(&mut self, option: i32) -> i32;
    /// Changes it; what it was, or a code.
    fn set_option(&mut self, option: i32, value: i32) -> i32;
    /// The mask of events that tasks started from here will trace.
    fn set_trace_mask(&mut self, mask: &str) -> Answer<()>;
    /// Asks the machine's process something only its author understands.
    fn tickle(&mut self, words: &[i32]) -> Answer<Vec<i32>>;
    /// Tells, on standard error, about the console's memory.
    fn dump(&mut self);

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// Changes it, for the library and for what is started.
    fn set_variable(&mut self, name: &str, value: &str);

    /// The time of day: seconds and microseconds.
    fn now(&self) -> (i32, i32);
    /// The next notice, if there is one. Never waits.
    fn news(&mut self) -> Option<Notice>;
}
