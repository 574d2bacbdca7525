//! Why a host does not join a job: one cause for each host, and its sentence for the user.

use std::time::Duration;

/// The cause for which an arriving host does not join. The first cause counts. Texts that are not whole sentences
/// follow "the host NAME".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// This side could not do its part, as this sentence says.
    Failed(String),
    /// The channel has ended. The sentence quotes the command that carried it.
    Ended(String),
    /// The channel to an agent that the user had started has ended.
    HungUp,
    /// Nothing was received for this long, from the shell that this command leads to, or from an agent that the user
    /// had started (`None`).
    Silent(Duration, Option<String>),
    /// The host does not have the right program, for this reason.
    Unfit(String),
    /// The host's messages are not those of an agent.
    Nonsense,
    /// The host's agent refused an order: the exit status of the command, and the reason.
    Refused(u8, String),
    /// The host is in the job already, under this name.
    Member(String),
    /// The host also begins under this name.
    TwoNames(String),
    /// The host has no address at which tasks could be reached.
    Unreached(String),
    /// Another host that began at the same time has failed.
    Abandoned,
    /// The user has ended the start, with this status.
    Interrupted(u8),
}

impl Departure {
    /// Returns the exit status of the command for this cause, or `None` for the usual status of a command that could
    /// not do its work.
    pub fn status(&self) -> Option<u8> {
        match self {
            Self::Refused(status, _) | Self::Interrupted(status) => Some(*status),
            _ => None,
        }
    }

    /// Returns the sentence about the host with this name: what has happened, and what to do next.
    pub fn sentence(&self, host: &str) -> String {
        match self {
            Self::Failed(sentence) | Self::Ended(sentence) => sentence.clone(),
            Self::HungUp => {
                format!(
                    "the agent on the host {host} closed its connection before it joined the job, so no task was started there; it may have been killed, or the host may be short of memory. Try again"
                )
            }
            Self::Silent(after, Some(command)) => format!(
                "the host {host} has not answered within {} s: it may be down, or behind a firewall. Try `{command}` by hand, or allow more time with --connect-timeout",
                after.as_secs_f32()
            ),
            Self::Silent(after, None) => format!(
                "the agent on the host {host} has not answered for {} s, so no task was started there; the host may be down, or its network may block the answer",
                after.as_secs_f32()
            ),
            Self::Unfit(why) | Self::Unreached(why) => format!("the host {host} {why}"),
            Self::Nonsense => format!(
                "the output from the host {host} is not that of an agent; a login script there may write to standard output"
            ),
            Self::Refused(_, why) => format!("on the host {host}: {why}"),
            Self::Member(other) => format!("the host {host} is {other} under another name"),
            Self::TwoNames(other) => format!(
                "{other} and {host} are two names for one host: name it once, as in --host {other}:4 for four tasks"
            ),
            Self::Abandoned => format!("the host {host} was not examined"),
            Self::Interrupted(_) => {
                "interrupted while connecting to the hosts; nothing was started".to_owned()
            }
        }
    }
}
