//! Why a host no longer takes part in a job that is being taken over.

use std::fmt;

/// The reason, as a sentence has it behind "the host is lost: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// The membership has said why it is gone.
    Gone(String),
    /// The membership does not know this run of it any more.
    UnknownRun,
    /// Its agent could not be claimed in time, or has not answered.
    NotHeard,
    /// Its agent does not keep to the protocol.
    Nonsense,
    /// The launcher before had given it up, and some hosts have heard so.
    GivenUpBefore,
}

impl fmt::Display for Absence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Absence::Gone(cause) => cause,
            Absence::UnknownRun => "it is not one of the machine any more",
            Absence::NotHeard => "its agent did not answer in time",
            Absence::Nonsense => "its agent does not keep to the protocol",
            Absence::GivenUpBefore => "the launcher before this one had given it up",
        })
    }
}
