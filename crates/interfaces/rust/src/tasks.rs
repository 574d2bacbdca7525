//! Starting, ending and watching tasks; names; named groups.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use regatta_process::control::{self, flags};
use regatta_process::{self as process, GroupId};

pub use regatta_process::Hosted;
pub use regatta_process::control::{Ending, Event, GroupInfo, HostInfo, NameInfo, Place, TaskInfo};

use crate::error::{Error, Result, ours};
use crate::select::tag_number;
use crate::{Group, Task, raw};

/// The program of tasks to start, and the options for starting them.
///
/// ```no_run
/// use regatta::{Place, Spawn};
/// let task = regatta::init()?;
/// let workers = Spawn::new("./worker").arg("--fast").env("DEPTH", "3").at(Place::Any);
/// for worker in task.spawn(&workers, 4)? {
///     task.all().send(&[1u64], worker? as usize, 0)?;
/// }
/// # Ok::<(), regatta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Spawn(control::Spawn, Written);

/// Destination of the output of started tasks.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// The same as the spawner's.
    AsMine,
    /// The job's output.
    Job,
    /// The spawner: tag and group of the messages with output, and whether each is a line.
    Me(u32, GroupId, bool),
}

impl Spawn {
    /// Makes an order for tasks of this program, which is found as `regatta run` finds it.
    pub fn new(program: impl AsRef<OsStr>) -> Spawn {
        let order = control::Spawn {
            place: Place::Any,
            output: control::Output::AsMine,
            ..control::Spawn::one_here(program.as_ref().as_bytes().to_vec())
        };
        Spawn(order, Written::AsMine)
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Spawn {
        self.0.arguments.push(argument.as_ref().as_bytes().to_vec());
        self
    }

    /// Starts the tasks on these hosts. The default is [`Place::Any`]: the hosts with the most free capacity.
    pub fn at(mut self, place: Place) -> Spawn {
        self.0.place = place;
        self
    }

    /// Searches for the program in these directories, separated by `:`, instead of those of PATH.
    pub fn search(mut self, directories: impl AsRef<OsStr>) -> Spawn {
        self.0.search = Some(directories.as_ref().as_bytes().to_vec());
        self
    }

    /// Sets the working directory of the tasks. The default is that of the job.
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Spawn {
        let directory = directory.as_ref().as_os_str().as_bytes();
        self.0.directory = Some(directory.to_vec());
        self
    }

    /// Adds a variable to the tasks' environment, which is otherwise that of the job.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Spawn {
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let variable = (bytes(name.as_ref()), bytes(value.as_ref()));
        self.0.environment.push(variable);
        self
    }

    /// Sends the tasks' output to the spawner. For each line the spawner receives a message from itself with this tag in
    /// this group, which [`output`] reads. The default destination is the same as that of the spawner's own output.
    ///
    /// The spawner has to receive these messages: a task that writes waits, as at a full pipe, while a few hundred
    /// kilobytes of its host's output have not been received.
    pub fn lines_to(mut self, tag: u32, group: &Group) -> Spawn {
        self.1 = Written::Me(tag, group.id(), true);
        self
    }

    /// Like [`lines_to`](Spawn::lines_to), but in pieces as the tasks write them.
    pub fn blocks_to(mut self, tag: u32, group: &Group) -> Spawn {
        self.1 = Written::Me(tag, group.id(), false);
        self
    }

    /// Sends the tasks' output to the job's output, even if the spawner's own output has another destination.
    pub fn output_to_job(mut self) -> Spawn {
        self.1 = Written::Job;
        self
    }
}

/// An event to watch for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The end of this task.
    TaskEnds(u32),
    /// The loss of the host with this number.
    HostLost(u32),
    /// The addition of a host to the virtual machine in which the job runs. This watch sends an event each time, until
    /// it is cancelled.
    HostAdded,
}

/// Options of [`Task::put`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Index of the entry. `None` stands for the lowest free index with `several`, otherwise for 0.
    pub index: Option<u32>,
    /// The entry stays when this task ends, until it is deleted or the job ends.
    pub persistent: bool,
    /// Adds an entry to those under this name, which must all have been put with this option.
    pub several: bool,
    /// Any task may overwrite or delete the entry.
    pub overwritable: bool,
}

/// Options of [`Task::get`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Get {
    /// Index of the entry.
    pub index: u32,
    /// Reads the first entry at or after `index`.
    pub first: bool,
    /// Reads and deletes the entry atomically.
    pub take: bool,
    /// Waits for the entry instead of failing with [`ErrorKind::Name`](crate::ErrorKind::Name).
    pub wait: bool,
}

fn bits(of: &[(bool, u32)]) -> u32 {
    of.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum()
}

fn id(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
}

/// Returns the number of the watch and the event in a message that a [watch](Task::watch) has sent. Returns `None` for any
/// other message.
pub fn event(message: &[u8]) -> Option<(u32, Event)> {
    process::event::read(message)
}

/// Length in bytes of a message that holds an event.
pub const EVENT: usize = process::event::BYTES;

/// Returns the task id, the stream (1: standard output, 2: standard error) and the text in a message with output of a
/// started task ([`Spawn::lines_to`]). An empty text means that the stream has ended. Returns `None` for any other message.
pub fn output(message: &[u8]) -> Option<(u32, u32, &[u8])> {
    process::output::read(message)
}

/// Maximum length in bytes of a message with output.
pub const OUTPUT: usize = process::output::HEAD + process::output::MAX_TEXT_BYTES;

/// # Dynamic tasks
///
/// These methods, except [`all`](Task::all), [`channel`](Task::channel) and [`parent`](Task::parent), ask the launcher of the
/// job and block until it has answered. A task that was started by hand starts a launcher for itself.
impl Task {
    /// Returns the group of all tasks of the job. A task's rank in it is its task id.
    ///
    /// The group grows with the job; [`Group::size`] is the number of tasks when `all` was called. It is for messages
    /// only: collectives need a fixed set of members.
    pub fn all(&self) -> Group<'_> {
        self.channel(0)
    }

    /// Like [`Task::all`], but separate: a message sent in one channel is received in that channel only.
    ///
    /// A channel is just a number on which tasks agree, from 0 ([`Task::all`]) to 2²⁷ − 1.
    pub fn channel(&self, number: u32) -> Group<'_> {
        let number = i32::try_from(number).unwrap_or(i32::MAX).min((1 << 27) - 1);
        Group::channel(self, GroupId(GroupId::ALL.0 + number))
    }

    /// Returns the id of the task that started this one, or `None` if the launcher did.
    pub fn parent(&self) -> Result<Option<u32>> {
        raw::outside()?;
        ours(process::parent())
    }

    /// Starts `count` tasks. Returns for each its id, or the reason why it was not started.
    ///
    /// If some tasks cannot be started, the others run. The started tasks form a world of their own. When the call
    /// returns, messages can be sent to them.
    pub fn spawn(&self, what: &Spawn, count: usize) -> Result<Vec<Result<u32>>> {
        raw::outside()?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let output = match what.1 {
            Written::AsMine => control::Output::AsMine,
            Written::Job => control::Output::Job,
            Written::Me(tag, group, lines) => {
                ours(process::to_me(tag_number(tag)?, group, lines, false))?
            }
        };
        let order = control::Spawn {
            count,
            output,
            ..what.0.clone()
        };
        let spawned = ours(process::spawn(order))?;
        Ok(match spawned.tasks {
            Ok(tasks) => tasks.into_iter().map(Ok).collect(),
            Err(tasks) => {
                let refused =
                    |why| Error::of(process::Error::Refused(why, spawned.sentence.clone()));
                tasks
                    .into_iter()
                    .map(|task| task.map_err(refused))
                    .collect()
            }
        })
    }

    /// Sends a signal to a task. Signal 0 sends nothing and only checks that the task exists.
    ///
    /// Fails with [`ErrorKind::Task`](crate::ErrorKind::Task) if there is no such task.
    pub fn signal(&self, tid: u32, signal: i32) -> Result<()> {
        raw::outside()?;
        ours(process::signal(id(tid), signal, false))
    }

    /// Kills a task with SIGKILL. Its death counts as intended and is no failure of the job.
    pub fn kill(&self, tid: u32) -> Result<()> {
        const KILL: i32 = 9;
        raw::outside()?;
        ours(process::signal(id(tid), KILL, true))
    }

    /// Returns the running tasks, ordered by id.
    pub fn tasks(&self) -> Result<Vec<TaskInfo>> {
        raw::outside()?;
        ours(process::tasks())
    }

    /// Returns the hosts of the job.
    pub fn hosts(&self) -> Result<Vec<HostInfo>> {
        raw::outside()?;
        ours(process::hosts())
    }

    /// Adds hosts to a resident job. Each line is that of a host file: a name, then options, as in `beta lo=joe sp=500`.
    /// Blocks until the result for every host is known.
    pub fn add_hosts(&self, lines: &[&str]) -> Result<Hosted> {
        raw::outside()?;
        ours(process::add_hosts(
            lines.iter().map(|line| (*line).to_owned()).collect(),
        ))
    }

    /// Removes hosts from a resident job, and ends the tasks that run on them.
    pub fn remove_hosts(&self, names: &[&str]) -> Result<Hosted> {
        raw::outside()?;
        ours(process::remove_hosts(
            names.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    /// Adds the hosts of a host file, of which `text` is the contents, to a resident job. The default options in the text, and
    /// its lines for hosts that are only described, also apply to hosts that are added later.
    pub fn add_host_file(&self, text: &str) -> Result<Hosted> {
        raw::outside()?;
        ours(process::add_host_file(text.to_owned()))
    }

    /// Watches for an event, and returns the number of the watch. When the event happens, this task receives a message from
    /// itself with this tag in this group, which [`event`] reads.
    ///
    /// If the task has already ended or the host is already lost, the message is sent at once. The death of a task that a
    /// living task watches is no failure of the job: the watcher is expected to handle it.
    pub fn watch(&self, what: Watch, tag: u32, group: &Group) -> Result<u32> {
        raw::outside()?;
        let (what, subject) = match what {
            Watch::TaskEnds(task) => (control::WatchKind::TaskEnds, task),
            Watch::HostLost(host) => (control::WatchKind::HostLost, host),
            Watch::HostAdded => (control::WatchKind::HostAdded, 0),
        };
        ours(process::watch(what, subject, tag_number(tag)?, group.id()))
    }

    /// Cancels a watch. Returns `false` if its event has already been sent.
    pub fn unwatch(&self, watch: u32) -> Result<bool> {
        raw::outside()?;
        ours(process::unwatch(watch))
    }

    /// Puts an entry under a name, and returns its index.
    pub fn put(&self, name: &str, value: &[u8], how: Put) -> Result<u32> {
        raw::outside()?;
        let flags = bits(&[
            (how.persistent, flags::PERSISTENT),
            (how.several, flags::SEVERAL),
            (how.overwritable, flags::OVERWRITABLE),
        ]);
        ours(process::put(name.into(), how.index, flags, value.to_vec()))
    }

    /// Returns the index and value of an entry. Blocks until the entry exists if `how.wait` is set.
    pub fn get(&self, name: &str, how: Get) -> Result<(u32, Vec<u8>)> {
        raw::outside()?;
        let flags = bits(&[
            (how.first, flags::FIRST),
            (how.take, flags::DELETE),
            (how.wait, flags::WAIT),
        ]);
        ours(process::get(name.into(), how.index, flags))
    }

    /// Atomically adds to an entry that is an 8-byte little-endian number. Returns the number before the addition.
    pub fn add(&self, name: &str, index: u32, amount: i64) -> Result<i64> {
        raw::outside()?;
        ours(process::add(name.into(), index, amount))
    }

    /// Deletes an entry.
    pub fn delete(&self, name: &str, index: u32) -> Result<()> {
        raw::outside()?;
        ours(process::delete(name.into(), index))
    }

    /// Returns the entries whose names match a pattern, in which `*` stands for any text.
    pub fn names(&self, pattern: &str) -> Result<Vec<NameInfo>> {
        raw::outside()?;
        ours(process::names(pattern.into()))
    }

    /// Joins a named group. Returns this task's number in it, which is the lowest free one. A task leaves its groups when
    /// it ends.
    pub fn join(&self, group: &str) -> Result<usize> {
        raw::outside()?;
        ours(process::join_named(group.into())).map(|number| number as usize)
    }

    /// Leaves a named group.
    pub fn leave(&self, group: &str) -> Result<()> {
        raw::outside()?;
        ours(process::leave_named(group.into()))
    }

    /// Returns the task ids of the members of a named group, indexed by their numbers in it. `None` stands for a free
    /// number.
    pub fn members(&self, group: &str) -> Result<Vec<Option<u32>>> {
        raw::outside()?;
        ours(process::members(group.into()))
    }

    /// Returns all named groups, ordered by name.
    pub fn named_groups(&self) -> Result<Vec<GroupInfo>> {
        raw::outside()?;
        ours(process::named_groups())
    }

    /// Blocks until `count` members of a named group have called it. If these are all members of the group, returns their
    /// task ids as [`members`](Task::members) does, otherwise `None`.
    pub fn meet(&self, group: &str, count: usize) -> Result<Option<Vec<Option<u32>>>> {
        raw::outside()?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        ours(process::meet(group, Some(count)))
    }
}
