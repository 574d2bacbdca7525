//! Starting, ending and watching tasks; names; named groups. The launcher does it; these calls ask it to.

use regatta_engine::{Error, GroupId, Result};
use regatta_wire::control::{
    Ask, GroupInfo, HostInfo, NameInfo, Output, OutputFormat, RequestError, Route, Spawn, TaskInfo,
    Tell, WatchKind,
};

use crate::launcher::{ask, ask_to_watch};
use crate::launcher_socket::Watch;
use crate::state::enter;

/// Tasks that were to be started: the number of each, or why it was not started; and the first reason as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// For each task.
    pub tasks: std::result::Result<Vec<u32>, Vec<std::result::Result<u32, RequestError>>>,
    /// Why the first that was not started was not.
    pub sentence: String,
}

/// The launcher answers a question with something that is no answer to it.
pub(crate) fn astray() -> Error {
    Error::Launcher("the launcher answers something that was not asked".into())
}

pub(crate) fn value(answer: Tell) -> Result<u64> {
    match answer {
        Tell::Done { value, .. } => Ok(value),
        _ => Err(astray()),
    }
}

/// Start tasks. Blocks until they have been started; they may not have joined yet.
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

/// That what tasks write comes as messages with this tag in this group: one for each line, or pieces. With `births` there
/// is one for each task that is started, too.
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

/// It comes to this task.
pub fn to_me(tag: i32, group: GroupId, lines: bool, births: bool) -> Result<Output> {
    manner(tag, group, lines, births).map(Output::Me)
}

/// It comes to another task, to which the group must be the same.
pub fn to_task(to: u32, tag: i32, group: GroupId, lines: bool, births: bool) -> Result<Output> {
    let manner = manner(tag, group, lines, births)?;
    Ok(Output::Task(Route { to, manner }))
}

/// Send a signal to a task. With `end` its death by it is wanted, and no failure of the job.
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

/// End the job: all its tasks, this one too.
pub fn halt() -> Result<()> {
    value(ask(|id| Ask::Halt { id })?).map(|_| ())
}

/// The number of a task's host.
pub fn host_of(task: i32) -> Result<u32> {
    let held = enter()?;
    let known = u32::try_from(task)
        .ok()
        .filter(|&task| task < held.job.tasks());
    let task = known.ok_or(Error::Task(task as i64))?;
    Ok(held.job.host_of(task))
}

/// The tasks that are there.
pub fn tasks() -> Result<Vec<TaskInfo>> {
    match ask(|id| Ask::Tasks { id })? {
        Tell::Tasks { tasks, .. } => Ok(tasks),
        _ => Err(astray()),
    }
}

/// The hosts of the job.
pub fn hosts() -> Result<Vec<HostInfo>> {
    match ask(|id| Ask::Hosts { id })? {
        Tell::Hosts { hosts, .. } => Ok(hosts),
        _ => Err(astray()),
    }
}

/// Have a message sent to this task, by itself, when something happens: with this tag in this group. The number of the
/// watch.
pub fn watch(what: WatchKind, subject: u32, tag: i32, group: GroupId) -> Result<u32> {
    let stays = matches!(what, WatchKind::HostAdded | WatchKind::Tasks);
    let watch = to_be_told(tag, group, stays)?;
    ask_to_watch(|id| Ask::Watch { id, what, subject }, watch)
}

/// That something is told by messages with this tag in this group, once or as often as it happens.
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

/// From now on this task starts the tasks of its host: of each it is sent a message, by itself, with this tag in this
/// group.
pub fn start_others(tag: i32, group: GroupId) -> Result<u32> {
    ask_to_watch(|id| Ask::Starter { id }, to_be_told(tag, group, true)?)
}

/// A task that this one was to start could not be started, or has ended, with this status of `wait`.
pub fn has_ended(task: i32, status: i32) -> Result<()> {
    let task = u32::try_from(task).map_err(|_| Error::Task(task as i64))?;
    value(ask(|id| Ask::Ended { id, task, status })?).map(|_| ())
}

/// Forget a watch. False: what it was for has happened.
pub fn unwatch(watch: u32) -> Result<bool> {
    let answer = ask(|id| Ask::Unwatch { id, watch })?;
    let forgotten = value(answer)? == 1;
    if let Some(control) = &mut enter()?.control {
        control.watches.remove(&watch);
    }
    Ok(forgotten)
}

/// Put an entry under a name; its index.
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

/// An entry under a name: its index and value. Blocks if the flags say so.
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

/// Add to the number that an entry is, in one step; the number before.
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

/// Delete an entry.
pub fn delete(name: String, index: u32) -> Result<()> {
    value(ask(|id| Ask::Delete { id, name, index })?).map(|_| ())
}

/// The entries whose names match a pattern, in which `*` stands for any text.
pub fn names(pattern: String) -> Result<Vec<NameInfo>> {
    match ask(|id| Ask::Names { id, pattern })? {
        Tell::Names { names, .. } => Ok(names),
        _ => Err(astray()),
    }
}

/// Become a member of a named group; the number in it.
pub fn join_named(group: String) -> Result<u32> {
    let answer = ask(|id| Ask::Join { id, group })?;
    value(answer).map(|number| number as u32)
}

/// The named groups, by name.
pub fn named_groups() -> Result<Vec<GroupInfo>> {
    match ask(|id| Ask::Groups { id })? {
        Tell::Groups { groups, .. } => Ok(groups),
        _ => Err(astray()),
    }
}
