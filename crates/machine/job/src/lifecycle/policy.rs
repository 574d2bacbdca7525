//! The user's choices about the end of a job.

use std::time::Duration;

/// The fate of the other tasks when one has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// They have a grace period to react, and are then ended.
    #[default]
    Stop,
    /// They go on for as long as they like.
    Continue,
}

/// When and how a job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The fate of the others when a task has failed.
    pub on_failure: OnFailure,
    /// How long the others may go on after a failure, with [`OnFailure::Stop`].
    pub grace: Duration,
    /// After how long the job is ended; None: never.
    pub timeout: Option<Duration>,
    /// The job begins without a task and ends only on request.
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
