//! Tasks that come and go: starting, ending and watching them; names; named groups.

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

/// The tasks to start, and their place.
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

/// Where goes what started tasks write.
#[derive(Clone, Copy, Debug)]
enum Written {
    AsMine,
    Job,
    Me(u32, GroupId, bool),
}

impl Spawn {
    /// A program, found as `regatta run` finds it.
    pub fn new(program: impl AsRef<OsStr>) -> Spawn {
        let order = control::Spawn {
            place: Place::Any,
            output: control::Output::AsMine,
            ..control::Spawn::one_here(program.as_ref().as_bytes().to_vec())
        };
        Spawn(order, Written::AsMine)
    }

    /// One more argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Spawn {
        self.0.arguments.push(argument.as_ref().as_bytes().to_vec());
        self
    }

    /// On these hosts; otherwise where there is room.
    pub fn at(mut self, place: Place) -> Spawn {
        self.0.place = place;
        self
    }

    /// Search for the program in these directories, with `:` between them, instead of those of PATH.
    pub fn search(mut self, directories: impl AsRef<OsStr>) -> Spawn {
        self.0.search = Some(directories.as_ref().as_bytes().to_vec());
        self
    }

    /// In this directory; otherwise in that of the job.
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Spawn {
        let directory = directory.as_ref().as_os_str().as_bytes();
        self.0.directory = Some(directory.to_vec());
        self
    }

    /// One more variable, added to the job's environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Spawn {
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let variable = (bytes(name.as_ref()), bytes(value.as_ref()));
        self.0.environment.push(variable);
        self
    }

    /// Their output comes to the spawner, each line as a message to itself with this tag in this group that holds an
    /// [`output`]; otherwise it goes where goes what the spawner writes. A task waits when much has not been received.
    pub fn lines_to(mut self, tag: u32, group: &Group) -> Spawn {
        self.1 = Written::Me(tag, group.id(), true);
        self
    }

    /// As `lines_to`, in pieces, as it comes.
    pub fn blocks_to(mut self, tag: u32, group: &Group) -> Spawn {
        self.1 = Written::Me(tag, group.id(), false);
        self
    }

    /// Their output goes with the job's output, also if the spawner's does not.
    pub fn output_to_job(mut self) -> Spawn {
        self.1 = Written::Job;
        self
    }
}

/// The event to be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The end of this task.
    TaskEnds(u32),
    /// The loss of the host with this number.
    HostLost(u32),
    /// Hosts that come, again and again.
    HostAdded,
}

/// How an entry is put under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// At this index; otherwise the next one with `several`, else 0.
    pub index: Option<u32>,
    /// It stays when this task is gone.
    pub persistent: bool,
    /// A further entry, if all under this name were put so.
    pub several: bool,
    /// Anybody may overwrite and delete it.
    pub overwritable: bool,
}

/// How an entry is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Get {
    /// The entry of this index.
    pub index: u32,
    /// Or the first one after it.
    pub first: bool,
    /// Delete it, in one with the reading.
    pub take: bool,
    /// Wait until there is one.
    pub wait: bool,
}

fn bits(of: &[(bool, u32)]) -> u32 {
    of.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum()
}

fn id(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
}

/// The event in a message that a [watch](Task::watch) has sent, and the number of the watch; `None` if it is another
/// message.
pub fn event(message: &[u8]) -> Option<(u32, Event)> {
    process::event::read(message)
}

/// Bytes of a message that holds an event.
pub const EVENT: usize = process::event::BYTES;

/// The task, the stream (1 or 2) and the text in a message with what a started task has written
/// ([`Spawn::lines_to`]); `None` if it is another message. No text: the stream has ended.
pub fn output(message: &[u8]) -> Option<(u32, u32, &[u8])> {
    process::output::read(message)
}

/// Most bytes of a message with output.
pub const OUTPUT: usize = process::output::HEAD + process::output::MAX_TEXT_BYTES;

/// # Tasks that come and go
///
/// These ask the launcher of the job and block until it has answered. A task that was started by hand starts one.
impl Task {
    /// Every task of the job, whoever started it: a task's rank in it is its task id, and it grows with the job
    /// ([`Group::size`] is how many there were when this was called). It is for messages; collectives are for groups
    /// whose members are known.
    pub fn all(&self) -> Group<'_> {
        self.channel(0)
    }

    /// As [`Task::all`], and apart from it: a message of one channel is received in that channel only. A channel
    /// is nothing but a number (0 is [`Task::all`]; the highest is 2²⁷ − 1) on which tasks agree.
    pub fn channel(&self, number: u32) -> Group<'_> {
        let number = i32::try_from(number).unwrap_or(i32::MAX).min((1 << 27) - 1);
        Group::channel(self, GroupId(GroupId::ALL.0 + number))
    }

    /// The task that started this one; `None`: the launcher.
    pub fn parent(&self) -> Result<Option<u32>> {
        raw::outside()?;
        ours(process::parent())
    }

    /// Start `count` tasks. For each its id, or why it was not started; the others were. They are a world of their own,
    /// and can be sent to at once.
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

    /// Send a signal to a task; 0 only tells whether there is such a task.
    pub fn signal(&self, tid: u32, signal: i32) -> Result<()> {
        raw::outside()?;
        ours(process::signal(id(tid), signal, false))
    }

    /// End a task by SIGKILL. It counts as asked for: no failure of the job.
    pub fn kill(&self, tid: u32) -> Result<()> {
        const KILL: i32 = 9;
        raw::outside()?;
        ours(process::signal(id(tid), KILL, true))
    }

    /// The tasks that run, by id.
    pub fn tasks(&self) -> Result<Vec<TaskInfo>> {
        raw::outside()?;
        ours(process::tasks())
    }

    /// The hosts of the job.
    pub fn hosts(&self) -> Result<Vec<HostInfo>> {
        raw::outside()?;
        ours(process::hosts())
    }

    /// Have hosts join a job that was entered, each a line of a host file: a name, then options as in `beta lo=joe sp=500`.
    /// Blocks until it is known what has become of each.
    pub fn add_hosts(&self, lines: &[&str]) -> Result<Hosted> {
        raw::outside()?;
        ours(process::add_hosts(
            lines.iter().map(|line| (*line).to_owned()).collect(),
        ))
    }

    /// Have hosts leave a job that was entered; what runs there is ended.
    pub fn remove_hosts(&self, names: &[&str]) -> Result<Hosted> {
        raw::outside()?;
        ours(process::remove_hosts(
            names.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    /// Have the hosts of a host file join a job that was entered. Its other words count for hosts that are added later.
    pub fn add_host_file(&self, text: &str) -> Result<Hosted> {
        raw::outside()?;
        ours(process::add_host_file(text.to_owned()))
    }

    /// Hear of something: a message of this task to itself, with this tag in this group, that holds an [`event`]. All that
    /// has happened already is told at once. The number of the watch. The death of a task that a living task watches is
    /// no failure of the job: it is the watcher's affair.
    pub fn watch(&self, what: Watch, tag: u32, group: &Group) -> Result<u32> {
        raw::outside()?;
        let (what, subject) = match what {
            Watch::TaskEnds(task) => (control::WatchKind::TaskEnds, task),
            Watch::HostLost(host) => (control::WatchKind::HostLost, host),
            Watch::HostAdded => (control::WatchKind::HostAdded, 0),
        };
        ours(process::watch(what, subject, tag_number(tag)?, group.id()))
    }

    /// Forget a watch. False: its event has been sent already.
    pub fn unwatch(&self, watch: u32) -> Result<bool> {
        raw::outside()?;
        ours(process::unwatch(watch))
    }

    /// Put an entry under a name; its index.
    pub fn put(&self, name: &str, value: &[u8], how: Put) -> Result<u32> {
        raw::outside()?;
        let flags = bits(&[
            (how.persistent, flags::PERSISTENT),
            (how.several, flags::SEVERAL),
            (how.overwritable, flags::OVERWRITABLE),
        ]);
        ours(process::put(name.into(), how.index, flags, value.to_vec()))
    }

    /// The index and value of an entry.
    pub fn get(&self, name: &str, how: Get) -> Result<(u32, Vec<u8>)> {
        raw::outside()?;
        let flags = bits(&[
            (how.first, flags::FIRST),
            (how.take, flags::DELETE),
            (how.wait, flags::WAIT),
        ]);
        ours(process::get(name.into(), how.index, flags))
    }

    /// Add to an entry that is a number of 8 bytes, the lowest first, in one step; the number before.
    pub fn add(&self, name: &str, index: u32, amount: i64) -> Result<i64> {
        raw::outside()?;
        ours(process::add(name.into(), index, amount))
    }

    /// Delete an entry.
    pub fn delete(&self, name: &str, index: u32) -> Result<()> {
        raw::outside()?;
        ours(process::delete(name.into(), index))
    }

    /// The entries whose names match a pattern, in which `*` stands for any text.
    pub fn names(&self, pattern: &str) -> Result<Vec<NameInfo>> {
        raw::outside()?;
        ours(process::names(pattern.into()))
    }

    /// Become a member of a named group: the number in it, the lowest that is free. A task that ends leaves.
    pub fn join(&self, group: &str) -> Result<usize> {
        raw::outside()?;
        ours(process::join_named(group.into())).map(|number| number as usize)
    }

    /// Leave a named group.
    pub fn leave(&self, group: &str) -> Result<()> {
        raw::outside()?;
        ours(process::leave_named(group.into()))
    }

    /// The members of a named group by their numbers in it.
    pub fn members(&self, group: &str) -> Result<Vec<Option<u32>>> {
        raw::outside()?;
        ours(process::members(group.into()))
    }

    /// All named groups, by name.
    pub fn named_groups(&self) -> Result<Vec<GroupInfo>> {
        raw::outside()?;
        ours(process::named_groups())
    }

    /// Blocks until so many members of a named group have called it. The members by their numbers in
    /// it, if they were all.
    pub fn meet(&self, group: &str, count: usize) -> Result<Option<Vec<Option<u32>>>> {
        raw::outside()?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        ours(process::meet(group, Some(count)))
    }
}
