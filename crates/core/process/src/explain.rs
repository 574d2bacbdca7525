//! Errors as sentences, and the path between two tasks.

use regatta_engine::{Error, GroupId, Presence, Reason, Result, Upkeep};
use regatta_segment::job::Cause;

use crate::state::{PROCESS, enter};

/// Returns the name of a task for the user, such as "task 3 (pid 4711)".
fn name(peer: u32) -> String {
    let guard = PROCESS.lock().ok();
    let process = guard.as_ref().and_then(|guard| guard.as_ref());
    match process.map(|process| process.job.pid(peer)) {
        Some(pid) if pid != 0 => format!("task {peer} (pid {pid})"),
        _ => format!("task {peer}"),
    }
}

fn cause(peer: u32) -> Option<Cause> {
    PROCESS.lock().ok()?.as_ref()?.job.cause(peer)
}

/// Returns why this task considers a living task dead: it was unreachable for too long.
fn given_up(peer: u32) -> Option<String> {
    let guard = PROCESS.lock().ok()?;
    let why = guard.as_ref()?.given_up.get(&peer)?;
    Some(format!(
        "{why}. Both live, and each counts as dead for the other; what depends on both cannot be done"
    ))
}

/// Returns whether this task considers the other one alive.
fn is_here(peer: u32) -> bool {
    let guard = PROCESS.lock().ok();
    let process = guard.as_ref().and_then(|guard| guard.as_ref());
    process.is_some_and(|process| process.engine.presence(peer) == Presence::Here)
}

/// Returns why this task considers a living task dead: that task's host has given this one up.
fn disowned(peer: u32) -> Option<String> {
    let guard = PROCESS.lock().ok()?;
    let process = guard.as_ref()?;
    process.engine.transport().is_disowned_by(peer).then(|| {
        let host = process.job.address(peer).map(|address| address.ip());
        let host = host.map_or(String::new(), |ip| format!(" at {ip}"));
        format!(
            "this task (task {}) has been declared dead on the host of task {peer}{host}, which had not heard from this host for too long (--host-timeout): it was cut off, or stopped. The job goes on without this task; end it, and add its host again",
            process.engine.me()
        )
    })
}

/// Returns the sentence about a task that is considered dead.
fn death(peer: u32) -> String {
    match cause(peer) {
        _ if let Some(why) = given_up(peer) => why,
        _ if let Some(why) = disowned(peer) => why,
        Some(Cause::Exited(status)) => format!(
            "{} exited with status {status} without leaving; what depends on it cannot be done",
            name(peer)
        ),
        Some(Cause::Signalled(signal)) => format!(
            "{} was killed by signal {signal}; what depends on it cannot be done",
            name(peer)
        ),
        Some(Cause::Lost) => format!(
            "{} was on a host that was lost; what depends on it cannot be done",
            name(peer)
        ),
        None if is_here(peer) => format!(
            "{} counts as dead for another member of the group; what depends on both cannot be done",
            name(peer)
        ),
        None => format!("{} has died; what depends on it cannot be done", name(peer)),
    }
}

/// Returns a sentence with the event, its meaning, and the remedy.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::Argument(what) => what.clone(),
        Error::Task(rank) => format!("there is no task with rank or id {rank} in this group"),
        Error::Tag(tag) => format!("tag {tag} is not a tag: tags are 0 to 2147483647"),
        Error::Handle(what) => format!(
            "the {what} handle is stale or was never one: it has been completed, freed, or belongs to another task"
        ),
        Error::Truncated { length, capacity } => format!(
            "a message of {length} bytes met a buffer of {capacity}; the front was kept and the rest is gone. Probe for the length first, or give a larger buffer"
        ),
        Error::Dead(peer) => death(*peer),
        Error::Left(peer) => format!(
            "{} has left (finalize); what depends on it cannot be done",
            name(*peer)
        ),
        Error::Memory(what) => what.clone(),
        Error::Cycle(members) => {
            let names: Vec<String> = members.iter().map(|&peer| name(peer)).collect();
            format!(
                "blocked senders wait for each other in a circle: {} -> {}; the buffers of all of them are full and nobody receives. Receive before sending, or raise REGATTA_BUFFER",
                names.join(" -> "),
                names.first().map_or("", String::as_str)
            )
        }
        Error::Revoked => {
            "a member has revoked the group (rg_group_revoke): nothing can be done in it but rg_group_shrink and rg_agree"
                .into()
        }
        Error::Cancelled => "the operation was cancelled, the sender took the message back, or the program has ended the wait (rg_on_wait)"
                .into(),
        Error::Corrupt { peer, what } => format!(
            "the memory shared with {} is damaged: {what}. It is treated as dead",
            name(*peer)
        ),
        Error::State(what) => what.to_string_lossy().into_owned(),
        Error::Launcher(what)
        | Error::Version(what)
        | Error::System(what)
        | Error::Refused(_, what) => what.clone(),
        Error::Member { peer, reason } => member_sentence(*peer, *reason),
    }
}

/// Returns the sentence about a member that cannot complete a collective.
fn member_sentence(peer: u32, reason: Reason) -> String {
    format!(
        "{} goes no further in a collective of this group, since {}: neither this one nor a later one of the group can be complete. The error of its own call says more; mend what that names, and go on in another group",
        name(peer),
        clause(reason)
    )
}

/// Returns a clause for the class of another member's error.
fn clause(reason: Reason) -> &'static str {
    match reason {
        Reason::Left => "one that it waited for has left",
        Reason::Memory => "it had no memory for its part",
        Reason::Dead => "one that it waited for has died",
        Reason::Argument => "an argument of its call makes no sense",
        Reason::Task => "its call named a task that there is not",
        Reason::Tag => "its call had a tag that is none",
        Reason::Handle => "its call had a handle that is stale",
        Reason::Truncated => {
            "a message did not fit into its buffer (do all give the same lengths?)"
        }
        Reason::Cycle => "it waited for itself in a circle of blocked senders",
        Reason::Cancelled => "its part was cancelled",
        Reason::Corrupt => "memory that it shares with another task is damaged",
        Reason::State => "it made the call where none can be made",
        Reason::Launcher | Reason::Refused(_) => "its launcher does not do what it was asked for",
        Reason::Version => "its launcher and its library are of different versions",
        Reason::System => "the operating system refused it something",
    }
}

/// Returns the path of messages to a member, and the reason for it.
pub fn path(group: GroupId, rank: i32) -> Result<String> {
    let mut held = enter()?;
    let peer = held.peer(group, rank)?;
    Ok(held.engine.transport_mut().path(peer))
}
