//! The user's choices about the end of a job.

use std::time::Duration;

/// What happens to the other tasks when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The other tasks have a grace period to react, and are then ended.
    #[default]
    Stop,
    /// The other tasks go on without a limit.
    Continue,
}

/// When and how a job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What happens to the other tasks when one fails.
    pub on_failure: OnFailure,
    /// Time that the other tasks have after a failure, with [`OnFailure::Stop`].
    pub grace: Duration,
    /// Time after which the job is ended, or `None` for no limit.
    pub timeout: Option<Duration>,
    /// Whether the job begins without tasks and ends only on request.
    pub resident: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            on_failure: OnFailure::default(),
            grace: Duration::from_secs(10),
            timeout: None,
            resident: false,
        }
    }
}
