//! Where goes what started tasks write to their standard output and error.

use crate::{choices, fields};

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Where goes what the asker writes: to who has started that, or with the job's output.
    AsMine,
    /// With the job's output.
    Job,
    /// To the asker, as messages.
    Me(Manner),
    /// To another task, which need not know of it, in the same way.
    Task(Route),
}

choices!(Output {
    0 AsMine,
    1 Job,
    2 Me(manner),
    3 Task(route)
});

/// The form of the messages, in the words of the task that receives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Their context.
    pub context: u32,
    /// Their tag.
    pub tag: i32,
    /// One for each line, rather than for each piece as it comes.
    pub lines: bool,
    /// One for each task that is started, too, before all others.
    pub births: bool,
}
fields!(Manner {
    context,
    tag,
    lines,
    births
});

/// To which task it goes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The task.
    pub to: u32,
    /// The form in which it goes there.
    pub manner: Manner,
}
fields!(Route { to, manner });

/// The event after a piece of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// More, perhaps.
    More,
    /// The task has ended; more comes only from what it has left behind.
    Ended,
    /// Nothing: the stream is closed.
    Closed,
}

choices!(Then {
    0 More,
    1 Ended,
    2 Closed
});
