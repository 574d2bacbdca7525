//! Messages of hosts that arrive, and the inputs and effects that carry them.

use std::net::{IpAddr, SocketAddr};

use regatta_wire::fields;

use super::addresses::{Interface, Sight, Target, Token};
use super::departure::Departure;

/// The beginning of the lines in which a host's shell answers; all other text is the noise of shells that start.
pub const MARK: &str = "regatta-";
/// The agent is there, and messages follow: its identity.
pub const READY: &str = "regatta-agent";
/// The host asks for the program: its system and architecture follow.
pub const SEND: &str = "regatta-send";
/// It cannot be done: why follows.
pub const TROUBLE: &str = "regatta-trouble";

/// An agent's report about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// How many tasks can run at once.
    pub cores: u32,
    /// Which cores they may use.
    pub allowed: Vec<u32>,
    /// The architecture of its processors.
    pub architecture: String,
    /// Equal for two agents exactly if they are on one host.
    pub host: String,
    /// Where it may be reached, the likeliest first.
    pub candidates: Vec<Interface>,
    /// From where the launcher came to it, as far as it can tell.
    pub launcher: Option<IpAddr>,
    /// The port of its beacon, and what the beacon says.
    pub port: u16,
    /// The word of the beacon.
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

/// An order to a host that has an agent. Each is answered once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Which of these hosts do you reach?
    Probe(Vec<Target>),
    /// Make everything ready for the job.
    Prepare {
        /// The number of the host.
        number: u32,
        /// Where its tasks are to listen; none: the caller knows.
        address: Option<IpAddr>,
        /// Its tasks from the first.
        ranks: Vec<u32>,
    },
    /// Something in the words of a caller.
    Words(Vec<u8>),
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It reaches these.
    Probed(Vec<Sight>),
    /// Everything is ready, and its tasks listen there.
    Prepared(Vec<(u32, SocketAddr)>),
    /// Something in the words of a caller.
    Words(Vec<u8>),
}

impl Question {
    /// Whether this answers it. A host that is prepared says of each of its tasks where it listens, and of no others.
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

/// Something that has happened to a host that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A channel to it stands.
    Opened,
    /// The effect that was to be carried out could not be, as this sentence says.
    Failed(String),
    /// Bytes have come, or were taken.
    Heard,
    /// Its shell has said a line.
    Line(String),
    /// The program was sent to it: so many bytes.
    ProgramSent(u64),
    /// Its agent says what it is. Its name leads to these addresses.
    Greeting(Box<Hello>, Vec<IpAddr>),
    /// Its agent has answered.
    Answer(Answer),
    /// Its agent cannot do what it was asked: the status to exit with, and why.
    Refused(u8, String),
    /// Bytes have come that are no message, or one that has no place here.
    Nonsense,
    /// The channel has ended, as this sentence says.
    Closed(String),
}

/// One thing to do about a host that arrives, by the number that [`super::Arrivals::expect`] has given it. Effects are carried out in the order in which they
/// come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Open a channel to it. Answered by [`Input::Opened`] or [`Input::Failed`].
    Open(u32),
    /// Send it this program. Answered by [`Input::ProgramSent`] or [`Input::Failed`].
    SendProgram(u32),
    /// Send its agent a question. Answered by [`Input::Answer`], [`Input::Refused`] or [`Input::Failed`].
    Ask(u32, Question),
    /// Close the channel. Nothing is sent after this.
    Close(u32),
    /// Tell the user.
    Note(String),
    /// It is one of the job's from now on, under this number.
    Joined(u32, u32),
    /// It does not become one.
    Lost(u32, Departure),
}
