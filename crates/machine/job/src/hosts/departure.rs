//! Why a host does not become one of the job's: one cause for each, and its sentence.

use std::net::IpAddr;
use std::time::Duration;

use super::addresses::Choice;

/// Why a host that was to arrive does not. The first cause counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// This side could not do its part, as this sentence says.
    Failed(String),
    /// The channel has ended, as this sentence says: its words are those of the command that carried it.
    Ended(String),
    /// The channel of an agent that others had started has ended.
    HungUp,
    /// Nothing has come for so long from the shell that this command leads to.
    Silent(Duration, String),
    /// Nothing has come for so long from an agent that others had started.
    SilentAgent(Duration),
    /// It runs another program than this one.
    OtherProgram {
        /// Theirs.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// It has no program, and this one is for other machines.
    OtherMachine {
        /// Theirs.
        theirs: String,
        /// Ours.
        ours: String,
        /// Our program.
        program: String,
    },
    /// It has no program, and ours cannot be put there.
    NoProgram {
        /// Our program.
        program: String,
        /// The reason.
        why: String,
    },
    /// It says something else than an agent does.
    Nonsense,
    /// Its agent cannot do what it was asked.
    Refused {
        /// The status that a command exits with because of it.
        status: u8,
        /// The reason.
        sentence: String,
    },
    /// It is a host of the job that has this name.
    Member(String),
    /// It begins under this name, too.
    TwoNames(String),
    /// It has no address, or none that this choice allows.
    NoAddress(Option<Choice>),
    /// It has no address at all that tasks could be reached at.
    NoUsefulAddress,
    /// It has no such address, at which the membership reaches it.
    Translated(IpAddr),
    /// Others do not reach it.
    Unreached {
        /// The names of those that reach it at none of its addresses; empty: no address is one for all.
        by: Vec<String>,
        /// Its addresses that were tried.
        addresses: Vec<IpAddr>,
        /// The choice that limited these.
        choice: Option<Choice>,
    },
    /// Another host that was to begin with it has failed.
    Abandoned,
    /// The user has ended it, with this status.
    Interrupted(u8),
}

impl Departure {
    /// The status that a command exits with because of it, if it is not the usual one of commands that could not do their work.
    pub fn status(&self) -> Option<u8> {
        match self {
            Self::Refused { status, .. } | Self::Interrupted(status) => Some(*status),
            _ => None,
        }
    }

    /// What has happened to a host of this name, and what to do next.
    pub fn sentence(&self, host: &str) -> String {
        match self {
            Self::Failed(sentence) | Self::Ended(sentence) => sentence.clone(),
            Self::HungUp => {
                format!("the agent on the host {host} has hung up before it was one of the job's")
            }
            Self::Silent(after, command) => format!(
                "the host {host} has not answered within {} s: is it up, and does a firewall let it through? Try `{command}` by hand, or give it longer with --connect-timeout",
                after.as_secs_f32()
            ),
            Self::SilentAgent(after) => format!(
                "the agent on the host {host} was called and has said nothing for {} s",
                after.as_secs_f32()
            ),
            Self::OtherProgram { theirs, ours } => format!(
                "the host {host} runs regatta {theirs}, and this is regatta {ours}: install the same release on both"
            ),
            Self::OtherMachine {
                theirs,
                ours,
                program,
            } => format!(
                "the host {host} is a {theirs}, has no regatta {program}, and this program is for {ours}: install Regatta there"
            ),
            Self::NoProgram { program, why } => format!(
                "the host {host} has no regatta {program}, and this one could not be sent there: {why}"
            ),
            Self::Nonsense => format!(
                "what comes from the host {host} is not what an agent says: does something there write to the standard output of every login?"
            ),
            Self::Refused { sentence, .. } => format!("on the host {host}: {sentence}"),
            Self::Member(other) => format!("the host {host} is {other} under another name"),
            Self::TwoNames(other) => format!(
                "{other} and {host} are two names for one host: name it once, as in --host {other}:4 for four tasks"
            ),
            Self::NoAddress(choice) => format!("the host {host} has no address{}", limit(choice)),
            Self::NoUsefulAddress => {
                format!("the host {host} has no address that tasks could be reached at")
            }
            Self::Translated(address) => format!(
                "the host {host} has no address {address}, at which the virtual machine reaches it: does something between them translate addresses?"
            ),
            Self::Unreached {
                by,
                addresses,
                choice,
            } => unreached(host, by, addresses, choice),
            Self::Abandoned => format!("the host {host} was not heard"),
            Self::Interrupted(_) => {
                "interrupted while the hosts were brought together; nothing was started".to_owned()
            }
        }
    }
}

fn limit(choice: &Option<Choice>) -> String {
    match choice {
        Some(choice) => format!(" that --interface {choice} allows"),
        None => String::new(),
    }
}

fn unreached(host: &str, by: &[String], addresses: &[IpAddr], choice: &Option<Choice>) -> String {
    let by = match by.is_empty() {
        true => "all the others at one address".to_owned(),
        false => by.join(" and "),
    };
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let (addresses, limit) = (addresses.join(", "), limit(choice));
    format!(
        "the host {host} cannot be reached from {by}: no connection to a port at {addresses}{limit} came through. Does a firewall between them close the ports from 32768 to 60999, or must another network be chosen with --interface?"
    )
}
