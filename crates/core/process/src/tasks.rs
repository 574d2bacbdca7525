//! Starting, ending and watching tasks; names; named groups. These calls send requests to the launcher, which carries them out.

use regatta_engine::{Error, GroupId, Result};
use regatta_wire::control::{
    Ask, GroupInfo, HostInfo, NameInfo, Output, OutputFormat, RequestError, Route, Spawn, TaskInfo,
    Tell, WatchKind,
};

use crate::launcher::{ask, ask_to_watch};
use crate::launcher_socket::Watch;
use crate::state::enter;

/// The result of starting tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// The number of each task; or, if any was not started, for each the number or the reason.
    pub tasks: std::result::Result<Vec<u32>, Vec<std::result::Result<u32, RequestError>>>,
    /// The reason why the first failed task was not started, as a sentence.
    pub sentence: String,
}

/// Returns the error of an answer of the launcher that does not match the request.
pub(crate) fn astray() -> Error {
    Error::Launcher("the launcher's answer does not match the request".into())
}

pub(crate) fn value(answer: Tell) -> Result<u64> {
    match answer {
        Tell::Done { value, .. } => Ok(value),
        _ => Err(astray()),
    }
}

/// Starts tasks. Blocks until they were started; they may not have joined yet.
pub fn spawn(order: Spawn) -> Result<Spawned> {
    let count = order.count as usize;
    match ask(|id| Ask::Spawn { id, order })? {
        Tell::Spawned {
            tasks, sentence, ..
        } if tasks.len() == count => {
            let all: std::result::Result<Vec<u32>, RequestError> = tasks.iter().copied().collect();
            Ok(Spawned {
                tasks: all.map_err(|_| tasks),
                sentence,
            })
        }
        _ => Err(astray()),
    }
}

/// Returns the format by which output of tasks is sent as messages with this tag in this group: one per line if `lines`, or in pieces. With
/// `births`, there is also a message for each task that is started.
fn manner(tag: i32, group: GroupId, lines: bool, births: bool) -> Result<OutputFormat> {
    if tag < 0 {
        return Err(Error::Tag(tag as i64));
    }
    let context = enter()?.context(group)?;
    Ok(OutputFormat {
        context,
        tag,
        lines,
        births,
    })
}

/// Returns the setting that output is sent to this task.
pub fn to_me(tag: i32, group: GroupId, lines: bool, births: bool) -> Result<Output> {
    manner(tag, group, lines, births).map(Output::Me)
}

/// Returns the setting that output is sent to another task, in which `group` must be the same group.
pub fn to_task(to: u32, tag: i32, group: GroupId, lines: bool, births: bool) -> Result<Output> {
    let manner = manner(tag, group, lines, births)?;
    Ok(Output::Task(Route { to, manner }))
}

/// Sends a signal to a task. With `end`, the task's death by the signal is intended and not a failure of the job.
pub fn signal(task: i32, signal: i32, end: bool) -> Result<()> {
    let task = u32::try_from(task).map_err(|_| Error::Task(task as i64))?;
    let answer = ask(|id| Ask::Signal {
        id,
        task,
        signal,
        end,
    })?;
    value(answer).map(|_| ())
}

/// Ends the job with all its tasks, including this one.
pub fn halt() -> Result<()> {
    value(ask(|id| Ask::Halt { id })?).map(|_| ())
}

/// Returns the number of a task's host.
pub fn host_of(task: i32) -> Result<u32> {
    let held = enter()?;
    let known = u32::try_from(task)
        .ok()
        .filter(|&task| task < held.job.tasks());
    let task = known.ok_or(Error::Task(task as i64))?;
    Ok(held.job.host_of(task))
}

/// Returns the tasks that exist.
pub fn tasks() -> Result<Vec<TaskInfo>> {
    match ask(|id| Ask::Tasks { id })? {
        Tell::Tasks { tasks, .. } => Ok(tasks),
        _ => Err(astray()),
    }
}

/// Returns the hosts of the job.
pub fn hosts() -> Result<Vec<HostInfo>> {
    match ask(|id| Ask::Hosts { id })? {
        Tell::Hosts { hosts, .. } => Ok(hosts),
        _ => Err(astray()),
    }
}

/// Requests that this task gets a message from itself, with this tag in this group, when an event happens. Returns the number of the watch.
pub fn watch(what: WatchKind, subject: u32, tag: i32, group: GroupId) -> Result<u32> {
    let stays = matches!(what, WatchKind::HostAdded | WatchKind::Tasks);
    let watch = to_be_told(tag, group, stays)?;
    ask_to_watch(|id| Ask::Watch { id, what, subject }, watch)
}

/// Returns a watch whose events are messages with this tag in this group, sent once or, if `stays`, each time.
pub(crate) fn to_be_told(tag: i32, group: GroupId, stays: bool) -> Result<Watch> {
    if tag < 0 {
        return Err(Error::Tag(tag as i64));
    }
    let context = enter()?.context(group)?;
    Ok(Watch {
        context,
        tag,
        stays,
    })
}

/// Makes this task start the tasks of its host from now on. For each of them, it gets a message from itself with this tag in this group. Returns the
/// number of the watch.
pub fn start_others(tag: i32, group: GroupId) -> Result<u32> {
    ask_to_watch(|id| Ask::Starter { id }, to_be_told(tag, group, true)?)
}

/// Reports that a task that this one had to start could not be started or has ended, with this wait status.
pub fn has_ended(task: i32, status: i32) -> Result<()> {
    let task = u32::try_from(task).map_err(|_| Error::Task(task as i64))?;
    value(ask(|id| Ask::Ended { id, task, status })?).map(|_| ())
}

/// Ends a watch. Returns false if its event has happened already.
pub fn unwatch(watch: u32) -> Result<bool> {
    let answer = ask(|id| Ask::Unwatch { id, watch })?;
    let forgotten = value(answer)? == 1;
    if let Some(control) = &mut enter()?.control {
        control.watches.remove(&watch);
    }
    Ok(forgotten)
}

/// Stores an entry under a name. Returns its index.
pub fn put(name: String, index: Option<u32>, flags: u32, bytes: Vec<u8>) -> Result<u32> {
    let answer = ask(|id| Ask::Put {
        id,
        name,
        index,
        flags,
        value: bytes,
    })?;
    value(answer).map(|index| index as u32)
}

/// Returns the index and value of an entry under a name. Blocks if the flags say so.
pub fn get(name: String, index: u32, flags: u32) -> Result<(u32, Vec<u8>)> {
    match ask(|id| Ask::Get {
        id,
        name,
        index,
        flags,
    })? {
        Tell::Entry { index, value, .. } => Ok((index, value)),
        _ => Err(astray()),
    }
}

/// Atomically adds to the number that an entry contains. Returns the previous number.
pub fn add(name: String, index: u32, amount: i64) -> Result<i64> {
    let amount = amount as u64;
    let answer = ask(|id| Ask::Add {
        id,
        name,
        index,
        amount,
    })?;
    value(answer).map(|before| before as i64)
}

/// Deletes an entry.
pub fn delete(name: String, index: u32) -> Result<()> {
    value(ask(|id| Ask::Delete { id, name, index })?).map(|_| ())
}

/// Returns the entries whose names match a pattern, in which `*` stands for any text.
pub fn names(pattern: String) -> Result<Vec<NameInfo>> {
    match ask(|id| Ask::Names { id, pattern })? {
        Tell::Names { names, .. } => Ok(names),
        _ => Err(astray()),
    }
}

/// Joins a named group. Returns this task's number in it.
pub fn join_named(group: String) -> Result<u32> {
    let answer = ask(|id| Ask::Join { id, group })?;
    value(answer).map(|number| number as u32)
}

/// Returns the named groups, by name.
pub fn named_groups() -> Result<Vec<GroupInfo>> {
    match ask(|id| Ask::Groups { id })? {
        Tell::Groups { groups, .. } => Ok(groups),
        _ => Err(astray()),
    }
}
