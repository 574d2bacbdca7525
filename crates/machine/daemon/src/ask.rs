//! Messages between daemons, commands and starters: one line of JSON each. Those of processes of jobs are in
//! `regatta_wire::session`.
//!
//! The caller begins with an [`Opening`]; the other end answers with a [`Reply`], or with several to a request to
//! watch. Only the user's own commands and members of the machine get this far. The length of a line is limited, and a
//! line that cannot be parsed ends the conversation.

use std::net::{IpAddr, SocketAddr};

use regatta_launch::Refusal;
use regatta_membership::HostId;
use regatta_segment::place::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum size of a line, in bytes: room for a report of ten thousand hosts.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// The first message on a connection to a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// The identity of the sender's program.
    pub identity: String,
    /// The sender, if it is a daemon.
    #[serde(default)]
    pub from: Option<Name>,
    /// Address of the daemon that is meant, if the sender is a daemon. All daemons of a machine share a key, so a
    /// connection that was redirected to another of them would succeed.
    #[serde(default)]
    pub to: Option<SocketAddr>,
    pub ask: Ask,
}

/// A request to a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// From a command: report the machine. With `watch`, again at each change.
    Hosts { watch: bool },
    /// From a command: return what a new host must know.
    #[serde(rename = "invitation")]
    JoinConfig,
    /// From a command: change to this address. Only for a daemon that is alone.
    Move { address: IpAddr },
    /// From a command: make a host leave.
    Remove { host: String },
    /// From a command: end the machine.
    Down,
    /// From a command: list the tasks of all hosts.
    Tasks,
    /// From a command: send a signal to a task or a job.
    Kill { target: String, signal: i32 },
    /// From a command: consider the hosts that do not answer dead.
    Vouch,
    /// From a daemon: connect to this address, at which the sender listens.
    Reach { at: SocketAddr },
    /// From a daemon: start a shell for a job of the sender's host. `detachable`: whether the shell is kept for another
    /// launcher if that host is lost.
    ShellHere { job: String, detachable: bool },
    /// From a daemon: hand over the shell of this job that waits for another launcher.
    ClaimHere { job: String },
    /// From a daemon or a command: leave the machine.
    Leave,
    /// From a daemon: end, as all daemons do.
    End,
    /// From a daemon: list the tasks of your host.
    TasksHere,
    /// From a daemon: send a signal to a task of your host or, without a rank, to a job's launcher there.
    KillHere {
        job: String,
        rank: Option<u32>,
        signal: i32,
    },
    /// From a daemon: the current reports of the launchers of its host. Replaces earlier ones.
    UnreachedThere { said: Vec<Unreached> },
}

impl Ask {
    /// Returns whether the user's own commands (`commands`) or else daemons may make this request. Both may ask a
    /// single daemon to leave.
    pub(crate) fn is_asked_by(&self, commands: bool) -> bool {
        *self == Ask::Leave || self.is_of_commands() == commands
    }

    fn is_of_commands(&self) -> bool {
        !matches!(
            self,
            Ask::Reach { .. }
                | Ask::ShellHere { .. }
                | Ask::ClaimHere { .. }
                | Ask::End
                | Ask::TasksHere
                | Ask::KillHere { .. }
                | Ask::UnreachedThere { .. }
        )
    }

    /// Returns whether programs of other versions may make this request: ending must always be possible.
    pub(crate) fn is_of_any_version(&self) -> bool {
        matches!(self, Ask::Down | Ask::End)
    }
}

/// A daemon's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The request has been carried out, or the bytes that follow are not lines any more.
    Done,
    /// The shell belongs to the caller now; its agent may be taken over by the hosts of these runs. The bytes that
    /// follow are not lines any more.
    Claimed {
        successors: Vec<String>,
    },
    /// The request has been carried out; the text is of interest to the user.
    Note(String),
    Refused(String),
    Hosts(Report),
    #[serde(rename = "invitation")]
    JoinConfig(Box<JoinConfig>),
    /// Tasks, the leaders of jobs whose launchers' hosts are lost, and the hosts that did not answer.
    Tasks {
        tasks: Vec<Task>,
        leaders: Vec<Leader>,
        silent: Vec<String>,
    },
}

/// One run of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name {
    address: SocketAddr,
    session: u32,
    nonce: u16,
}

impl From<HostId> for Name {
    fn from(host: HostId) -> Name {
        Name {
            address: host.address(),
            session: host.session(),
            nonce: host.nonce(),
        }
    }
}

impl From<Name> for HostId {
    fn from(name: Name) -> HostId {
        HostId::new(name.address, name.session, name.nonce)
    }
}

/// Serializes a key as its bytes.
mod key_bytes {
    use regatta_segment::place::Key;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
        (**key).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        <[u8; 32]>::deserialize(from).map(|mut bytes| Key::taken(&mut bytes))
    }
}

/// What a host needs to know to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinConfig {
    #[serde(with = "key_bytes")]
    pub key: Key,
    pub silence_ms: u64,
    /// The host that was asked: its name, its address, and whether it is the only one.
    pub name: String,
    pub address: SocketAddr,
    pub alone: bool,
    /// All hosts, beginning with that one.
    pub hosts: Vec<(String, SocketAddr)>,
    /// Reason why no host can be added now, if there is one.
    pub hindrance: Option<String>,
}

/// The settings that a daemon is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub machine: String,
    #[serde(with = "key_bytes")]
    pub key: Key,
    pub silence_ms: u64,
    /// The name of its host, and the number of tasks that it accepts at once; `None` for one per core.
    pub name: String,
    pub cores: Option<u32>,
    /// Address at which it listens.
    pub address: IpAddr,
    /// The hosts that it joins; empty to create a machine.
    pub contacts: Vec<(String, SocketAddr)>,
    /// Whether the daemon leaves when its starter ends.
    pub tied: bool,
}

/// The messages between a daemon and its starter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Birth {
    Begin(Charge),
    /// Stay when the starter ends, unless you are tied to it.
    Keep,
}

/// The machine, as one of its hosts sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the machine.
    pub machine: String,
    /// The host that reports.
    pub here: String,
    /// `majority`, `minority`, or `outside`.
    pub standing: String,
    /// Whether the reporting daemon is ending.
    pub ending: bool,
    /// Reason why it accepts no work, if there is one.
    pub reason: Option<String>,
    /// Number of hosts that answer, including this one.
    pub seen: usize,
    /// Number of hosts that were agreed on last.
    pub known: usize,
    /// Time after which a silent host counts as dead, in milliseconds.
    pub host_timeout_ms: u64,
    /// The hosts, this one first; then those that are gone, the most recent first.
    pub hosts: Vec<Host>,
    /// Tasks that cannot reach each other although their launcher reaches both.
    pub unreached: Vec<Unreached>,
    /// The events, oldest first.
    pub events: Vec<Happening>,
}

/// A host of a [`Report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Address of its daemon.
    pub address: SocketAddr,
    /// The run of its daemon: a new one after the host was gone.
    pub run: String,
    /// Number of tasks that can run at once, if known.
    pub cores: Option<u16>,
    /// Its architecture, if known.
    pub architecture: Option<String>,
    /// `here`, `up`, `suspected`, `dead` or `left`.
    pub state: String,
    /// The cause, if the host is gone or suspected.
    pub cause: Option<String>,
    /// Milliseconds since it changed to this state.
    pub since_ms: u64,
}

/// Two tasks on two hosts that cannot reach each other, as the first of them reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreached {
    /// The job: the host and the process id of its launcher.
    pub job: String,
    /// The host of the task that gets no answer.
    pub host: String,
    /// The host of the other task.
    pub peer: String,
    /// The task that gets no answer.
    pub task: u32,
    /// The other task.
    pub peer_task: u32,
    /// Duration of the silence, in milliseconds.
    pub since_ms: u64,
    /// Whether each counts as dead for the other (`--unreachable`).
    pub given_up: bool,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// Number of the event, counted from the start of the reporting daemon.
    pub number: u64,
    /// Milliseconds since the event.
    pub ago_ms: u64,
    /// The event, as a sentence.
    pub what: String,
}

/// A task of a job that runs in the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The job: the host and the process id of its launcher.
    pub job: String,
    /// The task's rank in the job.
    pub rank: u32,
    /// The host on which it runs.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// The name of that process.
    pub program: String,
}

/// A host that leads a job instead of the launcher's host, which is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The job.
    pub job: String,
    /// The host.
    pub host: String,
    /// The file on that host to which the job's output is written from then on.
    pub output: Option<String>,
}

/// Encodes a message as a line.
pub(crate) fn encode<T: Serialize>(said: &T) -> Vec<u8> {
    // Only a map with keys that are not strings could fail; no message has one.
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Decodes a line, with or without its newline.
pub(crate) fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(line).map_err(|_| {
        Refusal::of_regatta(
            "the message of the other end is not valid; it may be another version of Regatta",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_said_is_understood() {
        let opening = Opening {
            identity: "0.1".to_owned(),
            from: Some(HostId::new("[fd00::1]:9".parse().unwrap(), 7, 8).into()),
            to: Some("10.0.0.1:7".parse().unwrap()),
            ask: Ask::KillHere {
                job: "alpha:1".to_owned(),
                rank: Some(3),
                signal: 15,
            },
        };
        assert_eq!(decode::<Opening>(&encode(&opening)), Ok(opening));
        let charge = Birth::Begin(Charge {
            machine: "default".to_owned(),
            key: Key::taken(&mut [9; 32]),
            silence_ms: 2000,
            name: "alpha".to_owned(),
            cores: Some(4),
            address: "10.0.0.1".parse().unwrap(),
            contacts: vec![("beta".to_owned(), "10.0.0.2:9".parse().unwrap())],
            tied: true,
        });
        assert_eq!(decode::<Birth>(&encode(&charge)), Ok(charge));
    }

    proptest! {
        #[test]
        fn nothing_that_is_said_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in ".{0,200}") {
            let _ = decode::<Opening>(&bytes);
            let _ = decode::<Reply>(text.as_bytes());
            let _ = decode::<Birth>(format!("{{\"begin\":{text}}}").as_bytes());
        }
    }
}
