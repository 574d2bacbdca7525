//! How a host comes into a job: the differences, as data.
//!
//! | | begins with the job | machine begins or grows | joins, told by the membership | joins, requested by a task |
//! |---|---|---|---|---|
//! | waits for the others | yes | yes | no | no |
//! | one that fails | ends all | is reported when all have been heard | goes alone | goes alone |
//! | address | the others try | the others try | where the membership reaches it | where its name leads |
//! | opened again | never | never | for a while, as it may not know us yet | never |

use std::net::IpAddr;
use std::time::Duration;

use super::addresses::AddressRule;

/// Time for which a host that the membership has just taken in is asked again: it may not know this one yet, and then gives no shell.
const NEWCOMER_RETRY_TIME: Duration = Duration::from_secs(3);
/// Time between two such questions.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for a person who is asked for a password.
const PASSWORD_TIMEOUT: Duration = Duration::from_secs(300);

/// The way of a host into a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// It begins with others: each step is for all.
    pub together: bool,
    /// The others are heard to the end when one has failed.
    pub hears_all: bool,
    /// It may be silent for so long.
    pub patience: Duration,
    /// For so long from its beginning it is opened again when its channel ends before there is an agent.
    pub retries: Duration,
    /// How its address is found.
    pub address: AddressRule,
}

impl Admission {
    /// A host that a job begins with: the first that fails ends all, and nothing was started anywhere.
    pub fn begin(patience: Duration) -> Self {
        Self {
            together: true,
            hears_all: false,
            patience,
            retries: Duration::ZERO,
            address: AddressRule::Tried,
        }
    }

    /// A host of several of which it is to be said how each fares.
    pub fn survey(patience: Duration) -> Self {
        Self {
            hears_all: true,
            ..Self::begin(patience)
        }
    }

    /// A host that the membership has told of, which reaches it there.
    pub fn told(patience: Duration, address: IpAddr) -> Self {
        Self {
            together: false,
            retries: NEWCOMER_RETRY_TIME,
            address: AddressRule::Told(address),
            ..Self::begin(patience)
        }
    }

    /// A host that a task has requested, perhaps with a person who types a password.
    pub fn requested(patience: Duration, is_typed: bool) -> Self {
        Self {
            together: false,
            patience: if is_typed { PASSWORD_TIMEOUT } else { patience },
            address: AddressRule::Named,
            ..Self::begin(patience)
        }
    }
}
