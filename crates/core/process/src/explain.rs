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
        "{why}. Both tasks are alive, but each treats the other as dead; operations that need both cannot complete"
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
            "this task (task {}) has been declared dead on the host of task {peer}{host}, because this host was silent for too long (--host-timeout): it was cut off from the network, or stopped. The job continues without this task; end it, and add its host again",
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
            "{} exited with status {status} without leaving; this operation cannot complete without it",
            name(peer)
        ),
        Some(Cause::Signalled(signal)) => format!(
            "{} was killed by signal {signal}; this operation cannot complete without it",
            name(peer)
        ),
        Some(Cause::Lost) => format!(
            "{} was on a host that was lost; this operation cannot complete without it",
            name(peer)
        ),
        None if is_here(peer) => format!(
            "{} is treated as dead by another member of the group; operations that need both cannot complete",
            name(peer)
        ),
        None => format!(
            "{} has died; this operation cannot complete without it",
            name(peer)
        ),
    }
}

/// Returns a sentence with the event, its meaning, and the remedy.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::Argument(what) => what.clone(),
        Error::Task(rank) => format!("there is no task with rank or id {rank} in this group"),
        Error::Tag(tag) => format!("tag {tag} is not valid: tags are 0 to 2147483647"),
        Error::Handle(what) => format!(
            "the {what} handle is not valid: it was completed or freed, or belongs to another task"
        ),
        Error::Truncated { length, capacity } => format!(
            "a message of {length} bytes was received into a buffer of {capacity} bytes; only its first {capacity} bytes were kept. Probe for the length first, or use a larger buffer"
        ),
        Error::Dead(peer) => death(*peer),
        Error::Left(peer) => format!(
            "{} has left (finalize); this operation cannot complete without it",
            name(*peer)
        ),
        Error::Memory(what) => what.clone(),
        Error::Cycle(members) => {
            let names: Vec<String> = members.iter().map(|&peer| name(peer)).collect();
            format!(
                "blocked senders wait for each other in a cycle: {} -> {}; all their buffers are full and none of them receives. Receive before sending, or raise REGATTA_BUFFER",
                names.join(" -> "),
                names.first().map_or("", String::as_str)
            )
        }
        Error::Revoked => {
            "a member has revoked the group (rg_group_revoke): only rg_group_shrink and rg_agree still work in it"
                .into()
        }
        Error::Cancelled => "the operation was cancelled, the sender withdrew the message, or the program ended the wait (rg_on_wait)"
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
        "{} cannot complete a collective of this group, because {}; neither this collective nor a later one of the group can complete. The error of that task's own call has the details: fix its cause, and continue in another group",
        name(peer),
        clause(reason)
    )
}

/// Returns a clause for the class of another member's error.
fn clause(reason: Reason) -> &'static str {
    match reason {
        Reason::Left => "a task that it waited for has left",
        Reason::Memory => "it ran out of memory",
        Reason::Dead => "a task that it waited for has died",
        Reason::Argument => "an argument of its call is not valid",
        Reason::Task => "its call named a task that does not exist",
        Reason::Tag => "its call had an invalid tag",
        Reason::Handle => "its call had an invalid handle",
        Reason::Truncated => {
            "a message did not fit into its buffer (do all members pass the same lengths?)"
        }
        Reason::Cycle => "it was part of a cycle of blocked senders",
        Reason::Cancelled => "its call was cancelled",
        Reason::Corrupt => "memory that it shares with another task is damaged",
        Reason::State => "it made the call where Regatta cannot be called",
        Reason::Launcher | Reason::Refused(_) => "its launcher refused a request",
        Reason::Version => "its launcher and its library have incompatible versions",
        Reason::System => "a system call failed in it",
    }
}

/// Returns the path of messages to a member, and the reason for it.
pub fn path(group: GroupId, rank: i32) -> Result<String> {
    let mut held = enter()?;
    let peer = held.peer(group, rank)?;
    Ok(held.engine.transport_mut().path(peer))
}
