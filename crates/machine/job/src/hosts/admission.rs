//! The ways of hosts into a job: the differences, as data.
//!
//! | | begins with the job | machine begins or grows | joins, reported by the membership | joins, requested by a task |
//! |---|---|---|---|---|
//! | waits for the others | yes | yes | no | no |
//! | if it fails | all are ended | it is reported when all outcomes are known | only it is lost | only it is lost |
//! | address | the others try | the others try | the one at which the membership reaches it | the one its name resolves to |
//! | opened again | never | never | for a few seconds, as its daemon may not know ours yet | never |

use std::net::IpAddr;
use std::time::Duration;

use super::addresses::AddressRule;

/// Time during which a failed channel to a host that the membership has just added is opened again. The host's daemon may not know ours yet, and then
/// refuses a shell.
const NEWCOMER_RETRY_TIME: Duration = Duration::from_secs(3);
/// Time between two such attempts.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for a person to type a password.
const PASSWORD_TIMEOUT: Duration = Duration::from_secs(300);

/// The way of a host into a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// Whether it begins with other hosts, so that each step is taken by all.
    pub together: bool,
    /// Whether the outcomes of all hosts are wanted when one has failed.
    pub hears_all: bool,
    /// How long the host may be silent.
    pub patience: Duration,
    /// Time since the first attempt during which the host's channel is opened again if it ends before an agent answers.
    pub retries: Duration,
    /// How its address is determined.
    pub address: AddressRule,
}

impl Admission {
    /// Returns the admission of a host that a job begins with: the first one that fails ends all, and no task has been
    /// started anywhere.
    pub fn begin(patience: Duration) -> Self {
        Self {
            together: true,
            hears_all: false,
            patience,
            retries: Duration::ZERO,
            address: AddressRule::Tried,
        }
    }

    /// Returns the admission of a host that begins with others, if the outcome of each is wanted.
    pub fn survey(patience: Duration) -> Self {
        Self {
            hears_all: true,
            ..Self::begin(patience)
        }
    }

    /// Returns the admission of a host that the membership has reported, and reaches at `address`.
    pub fn told(patience: Duration, address: IpAddr) -> Self {
        Self {
            together: false,
            retries: NEWCOMER_RETRY_TIME,
            address: AddressRule::Told(address),
            ..Self::begin(patience)
        }
    }

    /// Returns the admission of a host that a task has requested. With `is_typed`, a person may have to type a
    /// password.
    pub fn requested(patience: Duration, is_typed: bool) -> Self {
        Self {
            together: false,
            patience: if is_typed { PASSWORD_TIMEOUT } else { patience },
            address: AddressRule::Named,
            ..Self::begin(patience)
        }
    }
}
