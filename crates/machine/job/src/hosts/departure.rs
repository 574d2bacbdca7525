//! Why a host does not become one of the job's: one cause for each, and its sentence.

use std::time::Duration;

/// The cause for which a host that was to arrive does not. The first one counts. Texts that are no whole sentences follow "the host NAME".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// This side could not do its part: a sentence.
    Failed(String),
    /// The channel has ended: a sentence, by the words of the command that carried it.
    Ended(String),
    /// The channel of an agent that others had started has ended.
    HungUp,
    /// Nothing has come for so long, from the shell that this command leads to, or from an agent that others had started.
    Silent(Duration, Option<String>),
    /// It has not the program that it needs.
    Unfit(String),
    /// It says something else than an agent does.
    Nonsense,
    /// Its agent cannot do what it was asked: the status that a command exits with because of that, and the reason.
    Refused(u8, String),
    /// It is a host of the job, which has this name.
    Member(String),
    /// It begins under this name, too.
    TwoNames(String),
    /// It has no address that tasks could be reached at.
    Unreached(String),
    /// Another host that was to begin with it has failed.
    Abandoned,
    /// The user has ended it, with this status.
    Interrupted(u8),
}

impl Departure {
    /// The status that a command exits with because of it, if it is not the usual one of commands that could not do their work.
    pub fn status(&self) -> Option<u8> {
        match self {
            Self::Refused(status, _) | Self::Interrupted(status) => Some(*status),
            _ => None,
        }
    }

    /// The sentence about a host of this name: what has happened, and what to do next.
    pub fn sentence(&self, host: &str) -> String {
        match self {
            Self::Failed(sentence) | Self::Ended(sentence) => sentence.clone(),
            Self::HungUp => {
                format!(
                    "the agent on the host {host} has hung up before it was one of the job's, so no task has been started there: was it ended, or is memory short there? Start again what needs it"
                )
            }
            Self::Silent(after, Some(command)) => format!(
                "the host {host} has not answered within {} s: is it up, and does a firewall let it through? Try `{command}` by hand, or give it longer with --connect-timeout",
                after.as_secs_f32()
            ),
            Self::Silent(after, None) => format!(
                "the agent on the host {host} was called and has said nothing for {} s, so no task has been started there: is the host up, and does the network let it answer?",
                after.as_secs_f32()
            ),
            Self::Unfit(why) | Self::Unreached(why) => format!("the host {host} {why}"),
            Self::Nonsense => format!(
                "what comes from the host {host} is not what an agent says: does something there write to the standard output of every login?"
            ),
            Self::Refused(_, why) => format!("on the host {host}: {why}"),
            Self::Member(other) => format!("the host {host} is {other} under another name"),
            Self::TwoNames(other) => format!(
                "{other} and {host} are two names for one host: name it once, as in --host {other}:4 for four tasks"
            ),
            Self::Abandoned => format!("the host {host} was not heard"),
            Self::Interrupted(_) => {
                "interrupted while the hosts were brought together; nothing was started".to_owned()
            }
        }
    }
}
