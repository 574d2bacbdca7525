//! The messages of daemons, commands and starters: one line of JSON each. Processes of jobs say theirs in `regatta_wire::session`.
//!
//! The caller begins with an [`Opening`]; the other end answers with a [`Reply`], or with several when it was asked to go on. Only
//! users' own commands and members of the machine get so far. Lines have a longest length, and a line
//! that is not understood ends the conversation.

use std::net::{IpAddr, SocketAddr};

use regatta_launch::Refusal;
use regatta_membership::HostId;
use regatta_segment::place::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum size of a line, in bytes: room for a report of ten thousand hosts.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// The first thing that is said on a connection to a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// The identity of this program.
    pub identity: String,
    /// Of a daemon: which one.
    #[serde(default)]
    pub from: Option<Name>,
    /// Address of the daemon that is meant, by another daemon. All of a machine have one key, so a connection that somebody on the way
    /// leads to another of them comes about.
    #[serde(default)]
    pub to: Option<SocketAddr>,
    pub ask: Ask,
}

/// A request to a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// By a command: who is there. With `watch` again at each change.
    Hosts { watch: bool },
    /// By a command: what a new host must know.
    #[serde(rename = "invitation")]
    JoinConfig,
    /// By a command: be at this address; only of a daemon that is alone.
    Move { address: IpAddr },
    /// By a command: let a host leave.
    Remove { host: String },
    /// By a command: end everything.
    Down,
    /// By a command: the tasks of all hosts.
    Tasks,
    /// By a command: send a signal to a task or a job.
    Kill { target: String, signal: i32 },
    /// By a command: the silent are dead.
    Vouch,
    /// By a daemon: connect to this address, where I listen.
    Reach { at: SocketAddr },
    /// By a daemon: a shell, for one of my jobs. Whether it waits for another launcher when my host is lost.
    ShellHere { job: String, detachable: bool },
    /// By a daemon: the shell of this job that waits for another launcher.
    ClaimHere { job: String },
    /// By a daemon or a command: leave.
    Leave,
    /// By a daemon: end, as all do.
    End,
    /// By a daemon: your tasks.
    TasksHere,
    /// By a daemon: send a signal to one of your tasks, or to a job's launcher.
    KillHere {
        job: String,
        rank: Option<u32>,
        signal: i32,
    },
    /// By a daemon: the launchers of its host say this, and nothing else.
    UnreachedThere { said: Vec<Unreached> },
}

impl Ask {
    /// Whether this may be asked by the user's own commands, or else by daemons. Both may have a single daemon leave.
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

    /// Whether programs of other versions may ask this: ending must always be possible.
    pub(crate) fn is_of_any_version(&self) -> bool {
        matches!(self, Ask::Down | Ask::End)
    }
}

/// A daemon's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// It is done, or what follows is not lines any more.
    Done,
    /// The shell is the caller's, whose agent may be taken over by the hosts of these runs. From then on there are no lines any more.
    Claimed {
        successors: Vec<String>,
    },
    /// It is done, and this is worth knowing.
    Note(String),
    Refused(String),
    Hosts(Report),
    #[serde(rename = "invitation")]
    JoinConfig(Box<JoinConfig>),
    /// Tasks, who leads jobs whose launchers' hosts are lost, and the hosts that did not say theirs.
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

/// A key as serde has its bytes.
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

/// The knowledge that a host needs to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinConfig {
    #[serde(with = "key_bytes")]
    pub key: Key,
    pub silence_ms: u64,
    /// The host that was asked: what it is called, where it is, and whether it is the only one.
    pub name: String,
    pub address: SocketAddr,
    pub alone: bool,
    /// All hosts, that one first.
    pub hosts: Vec<(String, SocketAddr)>,
    /// Why no host can be added now.
    pub hindrance: Option<String>,
}

/// The settings that a daemon is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub machine: String,
    #[serde(with = "key_bytes")]
    pub key: Key,
    pub silence_ms: u64,
    /// The name of its host, and the number of tasks it takes at once, if not one for each core.
    pub name: String,
    pub cores: Option<u32>,
    /// Where it is to listen.
    pub address: IpAddr,
    /// The hosts it joins; none: it begins a machine.
    pub contacts: Vec<(String, SocketAddr)>,
    /// It leaves when who has started it ends.
    pub tied: bool,
}

/// The messages between a daemon and its starter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Birth {
    Begin(Charge),
    /// Stay, whatever becomes of who started you, unless you are tied to that.
    Keep,
}

/// The machine, as one of its hosts sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the machine.
    pub machine: String,
    /// The host that says this.
    pub here: String,
    /// `majority`, `minority`, or `outside`.
    pub standing: String,
    /// The daemon that says this ends now.
    pub ending: bool,
    /// Why it takes on no work, if it takes on none.
    pub reason: Option<String>,
    /// Hosts that answer, this one included, and hosts agreed on last.
    pub seen: usize,
    /// See `seen`.
    pub known: usize,
    /// A host silent for so long is dead.
    pub host_timeout_ms: u64,
    /// The hosts, this one first; then those that are gone, the last one first.
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
    /// Where its daemon is.
    pub address: SocketAddr,
    /// Which run of a daemon it is: another one after the host has been gone.
    pub run: String,
    /// How many tasks can run at once, if known.
    pub cores: Option<u16>,
    /// Its architecture, if known.
    pub architecture: Option<String>,
    /// `here`, `up`, `suspected`, `dead` or `left`.
    pub state: String,
    /// Of a host that is gone: how.
    pub cause: Option<String>,
    /// Since when it is in this state.
    pub since_ms: u64,
}

/// Tasks of two hosts that cannot reach each other: the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreached {
    /// The job: the host and the process of its launcher.
    pub job: String,
    /// The host of the task that gets no answer.
    pub host: String,
    /// The other host.
    pub peer: String,
    /// The task that gets no answer.
    pub task: u32,
    /// The other task.
    pub peer_task: u32,
    /// Since when.
    pub since_ms: u64,
    /// Each counts as dead for the other (`--unreachable`).
    pub given_up: bool,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// Numbered from the start of the daemon that says this.
    pub number: u64,
    /// How long ago.
    pub ago_ms: u64,
    /// The event, as a sentence.
    pub what: String,
}

/// A task of a job that runs in the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The job: the host and the process of its launcher.
    pub job: String,
    /// The task's rank in it.
    pub rank: u32,
    /// Where it runs.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// The name of that process.
    pub program: String,
}

/// A host that goes on with a job in place of the launcher's, which is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The job.
    pub job: String,
    /// The host.
    pub host: String,
    /// The file there that has what the job writes from then on.
    pub output: Option<String>,
}

/// As a line.
pub(crate) fn encode<T: Serialize>(said: &T) -> Vec<u8> {
    // Nothing said has keys that are not strings, which is all that could fail.
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// From a line, with or without its end.
pub(crate) fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(line).map_err(|_| {
        Refusal::of_regatta(
            "what the other end says is not understood: is it another version of Regatta?",
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
