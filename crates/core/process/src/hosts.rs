//! Hosts that a task asks for, and gives back. The launcher has them join the job, or leave it.

use std::io::IsTerminal;

use regatta_engine::{Error, GroupId, Result};
use regatta_wire::control::{Ask, HostStarted, RequestError, Tell};

use crate::launcher::{ask, ask_to_watch};
use crate::tasks::{to_be_told, value};

/// The result for hosts that were asked for or given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// The number of each, or why it was not done.
    pub hosts: Vec<std::result::Result<u32, RequestError>>,
    /// Why the first of those was not.
    pub sentence: String,
}

fn hosted(answer: Tell, count: Option<usize>) -> Result<Hosted> {
    match answer {
        Tell::Hosted {
            hosts, sentence, ..
        } if count.is_none_or(|count| count == hosts.len()) => Ok(Hosted { hosts, sentence }),
        _ => Err(Error::Launcher(
            "the launcher answers something that was not asked".into(),
        )),
    }
}

/// The terminal at which somebody sits who can be asked, while we wait for the answer and do not read there.
fn terminal() -> Option<String> {
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    let path = path.into_os_string().into_string().ok()?;
    std::io::stdin().is_terminal().then_some(path)
}

/// Have hosts join the job, each a line of a host file. Blocks until it is known what has become of each.
pub fn add_hosts(lines: Vec<String>) -> Result<Hosted> {
    let count = lines.len();
    let terminal = terminal();
    let answer = ask(|id| Ask::AddHosts {
        id,
        hosts: lines,
        terminal,
    })?;
    hosted(answer, Some(count))
}

/// Have hosts leave the job; what runs there is ended.
pub fn remove_hosts(names: Vec<String>) -> Result<Hosted> {
    let count = names.len();
    let answer = ask(|id| Ask::RemoveHosts { id, hosts: names })?;
    hosted(answer, Some(count))
}

/// Have the hosts of a host file join the job. The file's other lines count for hosts that are added later.
pub fn add_host_file(text: String) -> Result<Hosted> {
    let terminal = terminal();
    hosted(ask(|id| Ask::HostFile { id, text, terminal })?, None)
}

/// From now on this task starts the agents of hosts that are to come: it is sent messages, by itself, with this tag in
/// this group, which tell it how. Without a place for them: no more.
pub fn start_hosts(place: Option<(i32, GroupId)>) -> Result<()> {
    let Some((tag, group)) = place else {
        return value(ask(|id| Ask::Hoster { id, on: false })?).map(|_| ());
    };
    let watch = to_be_told(tag, group, true)?;
    ask_to_watch(|id| Ask::Hoster { id, on: true }, watch).map(|_| ())
}

/// Reports the result for the hosts that this task was to start.
pub fn hosts_started(request: u32, hosts: Vec<HostStarted>) -> Result<()> {
    value(ask(|id| Ask::HostsStarted { id, request, hosts })?).map(|_| ())
}

/// The time on a host, in microseconds since 1970, at a moment between call and return.
pub fn clock_of(host: i32) -> Result<u64> {
    let unknown = || {
        Error::Refused(
            RequestError::Host,
            format!("{host} is not the number of a host"),
        )
    };
    let host = u32::try_from(host).map_err(|_| unknown())?;
    value(ask(|id| Ask::Clock { id, host })?)
}
