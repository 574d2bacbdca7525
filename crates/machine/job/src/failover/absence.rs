//! Why a host no longer takes part in a job that is being taken over.

use std::fmt;

/// The reason, worded to follow "the host is lost: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// The host is gone, for this cause reported by the membership.
    Gone(String),
    /// The membership no longer knows this run of the host.
    UnknownRun,
    /// The host's agent could not be claimed in time, or did not answer.
    NotHeard,
    /// The host's agent violated the protocol.
    Nonsense,
    /// The previous launcher had given the host up, and some hosts were notified of that.
    GivenUpBefore,
}

impl fmt::Display for Absence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Absence::Gone(cause) => cause,
            Absence::UnknownRun => "it is no longer in the machine",
            Absence::NotHeard => "its agent did not answer in time",
            Absence::Nonsense => "its agent violated the protocol",
            Absence::GivenUpBefore => "the previous launcher had given it up",
        })
    }
}
