//! Hosts that a task adds to the job or removes from it, through the launcher.

use std::io::IsTerminal;

use regatta_engine::{Error, GroupId, Result};
use regatta_wire::control::{Ask, HostStarted, RequestError, Tell};

use crate::launcher::{ask, ask_to_watch};
use crate::tasks::{to_be_told, value};

/// The result of adding or removing hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// The number of each host, or the reason of its failure.
    pub hosts: Vec<std::result::Result<u32, RequestError>>,
    /// The reason of the first failure, as a sentence.
    pub sentence: String,
}

fn hosted(answer: Tell, count: Option<usize>) -> Result<Hosted> {
    match answer {
        Tell::Hosted {
            hosts, sentence, ..
        } if count.is_none_or(|count| count == hosts.len()) => Ok(Hosted { hosts, sentence }),
        _ => Err(Error::Launcher(
            "the launcher's answer does not match the request".into(),
        )),
    }
}

/// Returns the path of this task's terminal, if it has one: the launcher may ask the user there, while this task waits for the answer and does not
/// read.
fn terminal() -> Option<String> {
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    let path = path.into_os_string().into_string().ok()?;
    std::io::stdin().is_terminal().then_some(path)
}

/// Adds hosts to the job, each given as a line of a host file. Blocks until the result for each is known.
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

/// Removes hosts from the job. Their tasks are ended.
pub fn remove_hosts(names: Vec<String>) -> Result<Hosted> {
    let count = names.len();
    let answer = ask(|id| Ask::RemoveHosts { id, hosts: names })?;
    hosted(answer, Some(count))
}

/// Adds the hosts of a host file to the job. The file's other lines apply to hosts that are added later.
pub fn add_host_file(text: String) -> Result<Hosted> {
    let terminal = terminal();
    hosted(ask(|id| Ask::HostFile { id, text, terminal })?, None)
}

/// Makes this task start the agents of new hosts from now on: it gets messages from itself, with this tag in this group, that describe how. With
/// `None`, it does so no longer.
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

/// Returns the time on a host, in microseconds since 1970, at a moment between call and return.
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
