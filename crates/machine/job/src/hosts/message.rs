//! Messages of arriving hosts, and the inputs and effects that carry them.

use std::net::{IpAddr, SocketAddr};

use regatta_wire::fields;

use super::addresses::{Interface, Sight, Target, Token};
use super::departure::Departure;

/// Prefix of the lines that the host's shell answers with. All other text is output of shell startup files.
pub const MARK: &str = "regatta-";
/// First word of the line after which the agent's messages follow. The agent's identity comes next in the line.
pub const READY: &str = "regatta-agent";
/// First word of the line that requests the program. The host's system and architecture follow.
pub const SEND: &str = "regatta-send";
/// First word of the line that reports a failure. The reason follows.
pub const TROUBLE: &str = "regatta-trouble";

/// An agent's report about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Number of tasks that can run at once.
    pub cores: u32,
    /// The cores that the tasks may use.
    pub allowed: Vec<u32>,
    /// The architecture of the host's processors.
    pub architecture: String,
    /// The host's identity: equal for two agents if and only if they are on the same host.
    pub host: String,
    /// Addresses at which the host may be reached, the likeliest first.
    pub candidates: Vec<Interface>,
    /// The address from which the launcher reached the host, if known.
    pub launcher: Option<IpAddr>,
    /// The port of the host's beacon.
    pub port: u16,
    /// The token that the host's beacon sends.
    pub token: Token,
}
fields!(Hello {
    cores,
    allowed,
    architecture,
    host,
    candidates,
    launcher,
    port,
    token
});

/// A question or order to a host that has an agent. Each is answered once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Try to reach these hosts.
    Probe(Vec<Target>),
    /// Prepare for the job.
    Prepare {
        /// The number of the host in the job.
        number: u32,
        /// The address at which its tasks listen, or `None` if the caller's own code determines it.
        address: Option<IpAddr>,
        /// The ranks of its tasks, ascending.
        ranks: Vec<u32>,
    },
    /// A question in a format of the caller's.
    Words(Vec<u8>),
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The beacons that the host has reached.
    Probed(Vec<Sight>),
    /// The host is prepared. Its tasks, by rank, listen at these addresses.
    Prepared(Vec<(u32, SocketAddr)>),
    /// An answer in a format of the caller's.
    Words(Vec<u8>),
}

impl Question {
    /// Returns whether `answer` answers this question. The answer to `Prepare` must have an address for each of the
    /// host's tasks and for no other task.
    pub(super) fn is_answered_by(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Self::Prepare { ranks, .. }, Answer::Prepared(addresses)) => {
                let mut told: Vec<u32> = addresses.iter().map(|(rank, _)| *rank).collect();
                told.sort_unstable();
                told == *ranks
            }
            (Self::Probe(_), Answer::Probed(_)) | (Self::Words(_), Answer::Words(_)) => true,
            _ => false,
        }
    }
}

/// An event of an arriving host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A channel to the host is open.
    Opened,
    /// The last effect for the host could not be carried out, as this sentence says.
    Failed(String),
    /// Bytes were received or sent.
    Heard,
    /// The host's shell has written this line.
    Line(String),
    /// The program was sent to the host: the number of bytes.
    ProgramSent(u64),
    /// The agent's greeting, and the addresses that the host's name resolves to.
    Greeting(Box<Hello>, Vec<IpAddr>),
    /// The agent has answered.
    Answer(Answer),
    /// The agent cannot do what it was asked: the status to exit with, and the reason.
    Refused(u8, String),
    /// Bytes were received that are no message, or a message that is not allowed in this state.
    Nonsense,
    /// The channel has ended, as this sentence says.
    Closed(String),
}

/// A step for an arriving host, which is identified by the id from [`super::Arrivals::expect`]. Effects are carried out
/// in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Open a channel to the host. Answered by [`Input::Opened`] or [`Input::Failed`].
    Open(u32),
    /// Send the host the program. Answered by [`Input::ProgramSent`] or [`Input::Failed`].
    SendProgram(u32),
    /// Send the host's agent a question. Answered by [`Input::Answer`], [`Input::Refused`] or [`Input::Failed`].
    Ask(u32, Question),
    /// Close the channel to the host. Nothing is sent to it afterwards.
    Close(u32),
    /// Print a note for the user.
    Note(String),
    /// The host (by id) has joined the job, under this number.
    Joined(u32, u32),
    /// The host does not join.
    Lost(u32, Departure),
}
