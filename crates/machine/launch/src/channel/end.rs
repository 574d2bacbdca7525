//! The reasons for the end of a channel.

use regatta_program::Refusal;

use crate::hosts::rsh;
use crate::plan::Across;

/// Cause of the loss of a host if only its channel ended as though the daemon of this host had ended.
pub(crate) const SEVERED: &str = "the daemon of this host closed the channel to it without a cause";

/// The reason for the end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChannelEnd {
    /// The command that carried it has ended: its status, if known, and its standard error.
    Command { status: Option<i32>, said: String },
    /// The agent that the launcher had connected to has closed the connection.
    HungUp,
    /// The host at its other end is lost according to the daemons, for this cause.
    HostLost(String),
    /// The daemons that carried it have ended it, for this reason.
    Daemons(String),
    /// The daemon of this host has closed it without a reason: it has ended, and all channels with it, or only this
    /// channel is lost.
    OwnDaemon,
    /// This host was declared dead, for this reason, and continues with a new identity.
    Renewed(String),
}

impl ChannelEnd {
    /// Returns the cause, worded for the end of a sentence.
    pub(crate) fn cause(&self) -> String {
        match self {
            ChannelEnd::Command { status, said } => {
                let status =
                    status.map_or(String::new(), |status| format!(" with status {status}"));
                let said = match said.trim() {
                    "" => String::new(),
                    said => format!(" ({said})"),
                };
                format!("its channel ended{status}{said}")
            }
            ChannelEnd::HungUp => "its channel ended".to_owned(),
            ChannelEnd::HostLost(why) | ChannelEnd::Daemons(why) => why.clone(),
            ChannelEnd::OwnDaemon => {
                "the daemon of this host has ended, which closed the channels to all other hosts"
                    .to_owned()
            }
            ChannelEnd::Renewed(why) => format!("{why}; this host rejoins as a new host"),
        }
    }

    /// Returns whether this host is lost to the others, so that one of them may take over the job.
    pub(crate) fn is_of_this_host(&self) -> bool {
        matches!(self, ChannelEnd::OwnDaemon | ChannelEnd::Renewed(_))
    }

    /// Returns the refusal that there is no agent on a host to which the channel was to lead.
    pub(crate) fn refusal(&self, across: &Across, host: &str) -> Refusal {
        Refusal::of_regatta(match self {
            ChannelEnd::Command { status, said } => rsh::explain(across, host, *status, said),
            ChannelEnd::HungUp => {
                format!(
                    "the agent on the host {host} closed its connection before it joined the job, so no task was started there; it may have been killed, or the host may be short of memory. Try again"
                )
            }
            ChannelEnd::HostLost(cause) => {
                format!("the host {host} is lost: {cause}. {}", unstarted(host))
            }
            ChannelEnd::Daemons(why) => format!("{why}. {}", unstarted(host)),
            ChannelEnd::OwnDaemon => format!(
                "the daemon of this host has ended, which closed the channel to the host {host}; no task was started there. `regatta up` starts the machine again"
            ),
            end => end.cause(),
        })
    }
}

/// Returns the consequence for the job of the loss of a host before it joined, and the remedy.
fn unstarted(host: &str) -> String {
    format!(
        "No task was started there; `regatta hosts` shows the remaining hosts, and `regatta add {host}` adds a lost host again"
    )
}
