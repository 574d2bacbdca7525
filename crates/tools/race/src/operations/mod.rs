//! The operations. This table has one entry for each, with all that the race knows of it.
//!
//! An entry names its program's text, its suites, the ability that an environment needs for it, its sizes, metric and
//! position in reports ([`Operation`]; the crate's README has the contract). Nothing else in the race names an
//! operation (except `loggp.rs`, which is computed from four of them): the plan, the programs' list, the settings, the
//! reports and the table that `regatta race operations` prints are derived from this table.

mod applications;
mod calls;
mod cliffs;
mod collectives;
mod copies;
mod hosted;
pub mod jobs;
mod messages;
mod mpi;
mod packed;
mod rooted;
mod streams;
mod typed;

use std::fmt;

pub use applications::{Application, Problem};

use crate::peers::interfaces::{EXPRESS, NX};
use crate::results::Metric;
use crate::suites::Suite;

/// All operations, in the order in which they are shown.
pub static ALL: &[&[&Operation]] = &[
    messages::ALL,
    calls::ALL,
    streams::ALL,
    collectives::ALL,
    copies::ALL,
    rooted::ALL,
    jobs::ALL,
    packed::ALL,
    typed::ALL,
    mpi::ALL,
    cliffs::ALL,
    hosted::ALL,
    applications::ALL,
];

/// Sizes of messages, bytes.
pub const SIZES: &[u64] = &[
    0,
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];
/// Maximum size of one task's blocks for all tasks together, in bytes.
const MAX_BUFFER_BYTES: u64 = 64 << 20;
/// What sizes count unless an entry names something else.
const BYTES: &str = "bytes";
/// An operation for which no environment has settings of its own. It is in no table.
pub static OF_NO_PATTERN: Operation = Operation::new("", Program::Primitive(""));
/// Number of messages in one window of `message-rate`, as in `programs/primitives/measure.h`.
const MESSAGES_PER_WINDOW: u64 = 64;
/// Minimum and maximum number of tasks of operations between tasks of one launch.
pub const TASKS_OF_A_LAUNCH: (u32, u32) = (2, 64);

/// An operation that the race measures.
pub struct Operation {
    /// Its name in results, on the command line and in the program.
    pub name: &'static str,
    /// Its heading in reports. If it is empty, the name is used.
    pub heading: &'static str,
    /// Description, a line of the table of operations. Empty for a variant that the line of another operation covers.
    pub about: &'static str,
    /// Its program.
    pub program: Program,
    /// The work of a launch.
    pub kind: Kind,
    /// The measured quantity.
    pub metric: Metric,
    /// Suites that it is raced in.
    pub suites: &'static [&'static Suite],
    /// Ability of environments that it needs.
    pub need: Need,
    /// The operation that papers have in its place. This operation is also raced at the papers' points of that one,
    /// and the papers' points are drawn behind both.
    pub beside: Option<&'static Operation>,
    /// Operations that this one expresses by others. By the guidelines none of them may take longer.
    pub expresses: &'static [&'static Operation],
    /// Pattern of its messages, which decides the settings of peers.
    pub pattern: Pattern,
    /// Whether it has launches of its own, because its program starts differently.
    pub alone: bool,
    /// Whether it is raced by default only by the environment that shows limits, and only on one host.
    pub of_the_limit: bool,
    /// Minimum and maximum number of tasks that can be asked for.
    pub tasks: (u32, u32),
    /// The number of tasks, if it is raced with one number only.
    pub exactly: Option<u32>,
    /// Whether it is a program that consists of a host and its nodes. Numbers of tasks count the nodes.
    pub host: bool,
    /// Sizes at which it is raced unless its suite has others, in bytes.
    pub bytes: &'static [u64],
    /// Numbers of tasks in suites that take their points from their entries.
    pub numbers: &'static [u32],
    /// Unit of sizes: they are multiples of this many bytes. 0 if the operation has no size.
    pub unit: u64,
    /// What its sizes count, for readers.
    pub quantity: &'static str,
    /// The smallest size in bytes.
    pub smallest: u64,
    /// The number of messages that a buffer holds.
    pub room: Room,
    /// Returns the minimum number of messages that cross between hosts in one run, by tasks and hosts. Each message has
    /// the operation's number of bytes.
    pub crossing: fn(u64, u64) -> u64,
    /// Its position on the report's page. Operations with 0 follow, by name.
    pub panel: u32,
    /// Its headlines, if readers ask for it first.
    pub headline: Option<Headline>,
    /// Whether it is drawn in the picture.
    pub picture: bool,
    /// Bounds on its cost for the interfaces over Regatta's own.
    pub bounds: &'static [Bound],
}

/// The program that carries out an operation.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// A file of `programs/primitives`.
    Primitive(&'static str),
    /// A whole application.
    Application(&'static Application),
}

/// The work of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Measures points, together with other operations.
    Points,
    /// All tasks join and leave. The launcher's time is measured.
    JoinLeave,
    /// One task starts the others.
    Spawn,
    /// One task starts the others, and is notified of their deaths.
    Notify,
    /// All tasks are idle. Memory is measured.
    IdleMemory,
    /// All tasks are blocked in a receive. Processor time is measured.
    IdleProcessor,
    /// Solves one problem of an application, and checks the answer.
    Application,
}

/// An ability of an environment beyond messages and collectives of a set of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing more than messages and collectives.
    Messages,
    /// A text of this application for the environment's interface.
    Application(&'static Application),
    /// Any message-passing library.
    Library,
    /// A program on a host that has nodes.
    Hosts,
    /// Sends of any length that do not wait for their receives.
    Buffering,
    /// A call that sends and receives.
    Sendrecv,
    /// As `Sendrecv`, with elements other than bytes.
    SendrecvTypes,
    /// Messages of elements other than bytes.
    Types,
    /// Packed messages of bytes.
    Packing,
    /// Packed messages of other elements.
    PackedTypes,
    /// Packed messages that every machine can read.
    PackedDefault,
    /// Transfers to and from the memory of other tasks.
    Windows,
    /// Derived datatypes.
    Blocks,
    /// Messages that several threads of a task send at once.
    Threads,
    /// Reductions, gathers and scatters between one task and all others, scans, and collectives that do not block.
    MoreCollectives,
    /// Calls that only MPI has.
    Mpi,
    /// Requests of collectives that may be freed before the collectives are complete.
    FreedCollectives,
    /// Tasks that start tasks.
    Spawning,
    /// Notifications of the ends of tasks.
    Deaths,
}

/// A pattern of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Between neighbours.
    Messages,
    /// All tasks wait for all others.
    Barrier,
    /// From one task to all.
    Broadcast,
    /// From each task to all, the same data for all.
    Concatenation,
    /// Of several threads of a task.
    Threads,
    /// Between a task and the tasks that it starts.
    Spawning,
    /// Broadcasts for which the tasks are the root in turn.
    BroadcastsInTurn,
    /// Anything else, for which no environment has settings of its own.
    Other,
}

/// The number of messages that a buffer holds, which bounds their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// This many messages.
    Blocks(u64),
    /// One message for each task.
    EachTask,
    /// This many windows of messages.
    Windows(u64),
}

/// The points of an operation that are headlines.
#[derive(Debug, Clone, Copy)]
pub struct Headline {
    /// Its position among the headlines of two tasks, or 0 if it has none there.
    pub place: u32,
    /// The sizes of its headlines of two tasks.
    pub bytes: &'static [u64],
    /// Its position among the headlines of the largest number of tasks raced, at the smallest size, or 0 if it has none
    /// there.
    pub crowd: u32,
}

/// A bound on the time of interfaces, as a multiple of the time of Regatta's own interface.
pub struct Bound {
    /// The operation of Regatta's own interface to compare with, or `None` for the same operation.
    pub against: Option<&'static Operation>,
    /// Names of the interfaces.
    pub environments: &'static [&'static str],
    /// Numbers of tasks.
    pub tasks: &'static [u32],
    /// Sizes.
    pub bytes: &'static [u64],
    /// The largest ratio at which the bound is kept.
    pub most: f64,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Operation) -> bool {
        self.name == other.name
    }
}

impl Eq for Operation {}

impl Operation {
    /// Returns an operation of any number of tasks, of messages of bytes, in no suite. Entries override its fields.
    const fn new(name: &'static str, program: Program) -> Operation {
        Operation {
            name,
            heading: "",
            about: "",
            program,
            kind: Kind::Points,
            metric: Metric::Time,
            suites: &[],
            need: Need::Messages,
            beside: None,
            expresses: &[],
            pattern: Pattern::Other,
            alone: false,
            of_the_limit: false,
            tasks: TASKS_OF_A_LAUNCH,
            exactly: None,
            host: false,
            bytes: SIZES,
            numbers: &[2],
            unit: 1,
            quantity: BYTES,
            smallest: 8,
            room: Room::Blocks(1),
            crossing: |_, _| 0,
            panel: 0,
            headline: None,
            picture: false,
            bounds: &[],
        }
    }

    /// Returns an operation as [`Operation::new`], between two tasks.
    const fn pair(name: &'static str, program: Program) -> Operation {
        Operation {
            exactly: Some(2),
            ..Operation::new(name, program)
        }
    }

    /// Returns an echo test between two tasks. Its time is half of the round trip.
    const fn echo(name: &'static str, program: Program) -> Operation {
        Operation {
            metric: Metric::OneWay,
            crossing: |_, _| 2,
            ..Operation::pair(name, program)
        }
    }

    /// Returns an echo test of all tasks in pairs.
    const fn echo_of_pairs(name: &'static str, program: Program) -> Operation {
        Operation {
            metric: Metric::OneWay,
            ..Operation::new(name, program)
        }
    }

    /// Returns whether it is in this suite.
    pub fn is_in(&self, suite: &Suite) -> bool {
        self.suites.iter().any(|one| one.name == suite.name)
    }

    /// Returns the name of the operation that papers have in its place.
    pub fn in_papers(&self) -> &'static str {
        self.beside.map_or(self.name, |other| other.name)
    }

    /// Returns whether messages leave their hosts when this many tasks are split among this many hosts.
    pub fn crosses(&self, tasks: u32, hosts: u32) -> bool {
        (self.crossing)(tasks.into(), hosts.into()) > 0
    }

    /// Returns whether it is raced only when asked for.
    pub fn is_on_request(&self) -> bool {
        self.suites.iter().all(|suite| suite.on_request)
    }

    /// Returns those of `sizes`, rounded down to the unit, that fit with this many tasks if at most `largest` bytes may
    /// be in flight at once.
    pub fn fitting(&self, sizes: &[u64], tasks: u32, largest: u64) -> Vec<u64> {
        if self.unit == 0 {
            return vec![0];
        }
        let (blocks, in_flight) = match self.room {
            Room::Blocks(number) => (number, number),
            Room::EachTask => (tasks.into(), tasks.into()),
            Room::Windows(number) => (
                number * MESSAGES_PER_WINDOW * MESSAGES_PER_WINDOW,
                number * MESSAGES_PER_WINDOW,
            ),
        };
        let most = MAX_BUFFER_BYTES.min(largest.saturating_mul(blocks) / in_flight);
        let fitting = sizes
            .iter()
            .map(|bytes| bytes / self.unit * self.unit)
            .filter(|bytes| *bytes >= self.smallest && bytes.saturating_mul(blocks) <= most);
        distinct(fitting)
    }
}

const BOTH: &[&str] = &[NX.name, EXPRESS.name];
const OF_EXPRESS: &[&str] = &[EXPRESS.name];

impl Bound {
    /// Returns a bound on both interfaces of multicomputers.
    const fn alike(tasks: &'static [u32], bytes: &'static [u64], most: f64) -> Bound {
        Bound {
            against: None,
            environments: BOTH,
            tasks,
            bytes,
            most,
        }
    }

    /// Returns a bound on Express's vectors, against one message of the same number of bytes.
    const fn vectors(against: &'static Operation, bytes: &'static [u64]) -> Bound {
        Bound {
            against: Some(against),
            environments: OF_EXPRESS,
            tasks: &[2],
            bytes,
            most: 1.5,
        }
    }
}

/// Returns the elements without repetitions. A point that is raced twice in one launch would look like two points.
pub fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// Returns an iterator over all operations.
pub fn all() -> impl Iterator<Item = &'static Operation> + Clone {
    ALL.iter().flat_map(|part| part.iter().copied())
}

/// Returns the operations of a suite.
pub fn of(suite: &Suite) -> impl Iterator<Item = &'static Operation> + Clone {
    all().filter(move |operation| operation.is_in(suite))
}

/// Returns the operation of this name.
pub fn find(name: &str) -> Option<&'static Operation> {
    all().find(|operation| operation.name == name)
}

/// Returns the metric of an operation, or a time if this version of the race does not know the operation.
pub fn metric(name: &str) -> Metric {
    find(name).map_or(Metric::Time, |operation| operation.metric)
}

/// Returns whether this operation is a program of a host and its nodes. Its number of tasks does not count the host.
pub fn has_host(name: &str) -> bool {
    find(name).is_some_and(|operation| operation.host)
}

/// Returns what the sizes of an operation count, for readers.
pub fn quantity(name: &str) -> &'static str {
    let Some(operation) = find(name) else {
        return BYTES;
    };
    match operation.program {
        Program::Application(application) => application.quantity,
        Program::Primitive(_) => operation.quantity,
    }
}

/// Returns a size of an operation for readers, or `None` if it is a number of bytes.
pub fn size(name: &str, size: u64) -> Option<String> {
    let operation = find(name)?;
    let Program::Application(application) = operation.program else {
        return (operation.quantity != BYTES).then(|| size.to_string());
    };
    let label = application
        .problem(size)
        .map_or("", |problem| problem.label);
    Some(match label {
        "" => size.to_string(),
        label => label.to_owned(),
    })
}

/// Returns the size with its quantity: `512 unknowns`, `class W`.
pub fn described_size(name: &str, of: u64) -> Option<String> {
    let label = size(name, of)?;
    Some(match label == of.to_string() {
        true => format!("{label} {}", quantity(name)),
        false => label,
    })
}

/// Returns the files of `programs/primitives` that contain operations, each once.
pub fn programs() -> Vec<&'static str> {
    distinct(all().filter_map(|operation| match operation.program {
        Program::Primitive(file) => Some(file),
        Program::Application(_) => None,
    }))
}

/// Returns the names of all operations with these patterns for readers, without variants.
pub fn named(patterns: &[Pattern]) -> String {
    let those = all().filter(|one| patterns.contains(&one.pattern) && !one.about.is_empty());
    those.map(|one| one.name).collect::<Vec<_>>().join(", ")
}

/// Returns the table of operations in Markdown.
pub fn table() -> String {
    let row = |operation: &Operation| {
        let suites: Vec<&str> = operation.suites.iter().map(|suite| suite.name).collect();
        let (name, about) = (operation.name, operation.about);
        format!("| `{name}` | {} | {about} |\n", suites.join(", "))
    };
    let told = all().filter(|operation| !operation.about.is_empty());
    let rows: String = told.map(row).collect();
    format!("| operation | suites | is |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::suites;

    fn text(file: &str) -> &'static str {
        build::text(&format!("primitives/{file}")).expect("it is compiled in")
    }

    /// Returns the names of operations that the programs list.
    fn known_to_programs() -> Vec<&'static str> {
        let after = |text: &'static str, mark: &'static str| {
            let parts = text.split(mark).skip(1);
            parts.filter_map(|rest| rest.split('"').next())
        };
        let files = programs().into_iter().chain(["main.c"]);
        let texts = files.map(text);
        let each = texts.flat_map(|text| {
            after(text, ".name = \"")
                .chain(after(text, "PING_PONG_PACKED(\""))
                .chain(after(text, "!strcmp(argv[1], \""))
                .chain(after(text, "strcmp(argv[first], \""))
        });
        distinct(each.filter(|name| !name.starts_with("--")))
    }

    #[test]
    fn the_programs_know_every_operation_and_no_others() {
        let known = known_to_programs();
        let named = |operation: &&Operation| {
            !matches!(operation.kind, Kind::IdleProcessor | Kind::Application)
        };
        for operation in all().filter(named) {
            assert!(known.contains(&operation.name), "{operation:?}");
        }
        assert_eq!(known.len(), all().filter(named).count(), "{known:?}");
    }

    #[test]
    fn every_operation_has_one_name_and_a_suite_that_is_known() {
        let names = distinct(all().map(|operation| operation.name));
        assert_eq!(names.len(), all().count());
        for operation in all() {
            assert!(!operation.suites.is_empty(), "{operation:?}");
            for suite in operation.suites {
                assert!(suites::find(suite.name).is_some(), "{operation:?}");
            }
        }
    }

    #[test]
    fn a_line_of_the_table_tells_of_every_operation() {
        let untold = |operation: &&Operation| operation.about.is_empty();
        for variant in all().filter(untold) {
            let told = all().find(|one| {
                let ending = variant.name.strip_prefix(one.name);
                !one.about.is_empty() && ending.is_some_and(|text| text.starts_with('-'))
            });
            assert!(told.is_some(), "no line covers {variant:?}");
        }
    }

    #[test]
    fn what_the_programs_say_of_an_operation_is_what_the_table_says() {
        for operation in all().filter(|one| one.kind == Kind::Points) {
            let name = operation.name;
            assert_eq!(operation.host, name.starts_with("host-"), "{name}");
            let Program::Primitive(file) = operation.program else {
                panic!("{operation:?} measures no points");
            };
            let text = text(file);
            let mark = format!(".name = \"{name}\",");
            let Some((_, line)) = text.split_once(&mark) else {
                continue;
            };
            let line = line.split('\n').next().expect("there is always a first");
            let has = |word: &str| line.contains(word);
            let echo = has(".parts = 2,");
            assert_eq!(operation.metric == Metric::OneWay, echo, "{name}");
            assert_eq!(operation.unit == 0, !has(".unit = "), "{name}");
            let two = has(".pairs = 2") || has(".nodes = 1");
            assert!(!two || operation.exactly.is_some(), "{name}");
            let each = operation.room == Room::EachTask;
            assert_eq!(each, has(".all_to_all = 1"), "{name}");
        }
    }
}
