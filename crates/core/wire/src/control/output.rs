//! Destination of the standard output and standard error of started tasks.

use crate::{choices, fields};

/// Destination of a task's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The destination of the asker's own output: the task that receives it, or the job's output.
    AsMine,
    /// With the job's output.
    Job,
    /// To the asker, as messages.
    Me(OutputFormat),
    /// To another task, as messages. That task does not have to ask for it.
    Task(Route),
}

choices!(Output {
    0 AsMine,
    1 Job,
    2 Me(manner),
    3 Task(route)
});

/// Format of the output messages, in terms of the receiving task (its context and tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputFormat {
    /// Context of the messages.
    pub context: u32,
    /// Tag of the messages.
    pub tag: i32,
    /// Whether to send one message per line instead of one per chunk read from the pipe.
    pub lines: bool,
    /// Whether to send one more message for each started task, before any of its output.
    pub births: bool,
}
fields!(OutputFormat {
    context,
    tag,
    lines,
    births
});

/// The task that receives the output, and the format of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The receiving task.
    pub to: u32,
    /// The format of the messages.
    pub manner: OutputFormat,
}
fields!(Route { to, manner });

/// State of the stream after a chunk of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// There may be more.
    More,
    /// The task has ended. Later output can come only from child processes that still hold its pipe.
    Ended,
    /// The stream is closed.
    Closed,
}

choices!(StreamState {
    0 More,
    1 Ended,
    2 Closed
});
