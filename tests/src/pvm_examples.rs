//! PVM's own examples, built by their makefiles and started as their Readme says, on Regatta and on PVM itself.

mod build;
mod running;
mod side;
mod words;

pub use build::{DEBIAN, Maker, build, debian_programs, sources};
pub use side::compare;

/// One of the example programs.
pub struct Program {
    /// Name under which it is installed and spawned.
    pub name: &'static str,
    /// Its source files in the archives.
    pub sources: &'static [&'static str],
    /// Its name in `/usr/bin`, if Debian installs it.
    pub debian: Option<&'static str>,
    /// Whether PVM's makefile has a target for it. If not, it is compiled from its only source file.
    pub in_makefile: bool,
}

/// A sequence of steps with the example programs.
pub struct Scenario {
    /// Name of the scenario.
    pub name: &'static str,
    /// Steps, executed in this order.
    pub steps: &'static [Step],
    /// Prefixes of lines in which all numbers are times or rates, except those after a word such as `size:`.
    pub times: &'static [&'static str],
    /// Lines that contain one of these are ignored: their number varies, or only one of the libraries writes them.
    pub left_out: &'static [&'static str],
    /// Whether the output depends on which of several tasks is first.
    pub any_order: bool,
}

/// A scenario with only a name and steps, to be used as the base of others.
pub const PLAIN: Scenario = Scenario {
    name: "",
    steps: &[],
    times: &[],
    left_out: &[],
    any_order: false,
};

/// One action of a user at a terminal. A command is a program's name and its arguments.
pub enum Step {
    /// Starts the command, types this text, and waits for its end.
    Run(&'static str, &'static str),
    /// Starts all commands at once, and waits until all have ended.
    Together(&'static [&'static str]),
    /// Starts the command and lets it run.
    Start(&'static str),
    /// Waits for the end of what this command started.
    Ended(&'static str),
    /// Types the second text into what the first command started, then waits until what the third command started
    /// prints the fourth.
    Type(&'static str, &'static str, &'static str, &'static str),
    /// Repeats the command until its output contains this text.
    Until(&'static str, &'static str),
    /// Types this line into PVM's console, and waits for the end of the job that it starts.
    Console(&'static str),
}

impl Step {
    /// Returns the programs that are started by hand or by the console.
    pub fn programs(&self) -> Vec<&'static str> {
        let first = |line: &'static str| line.split(' ').next().unwrap_or(line);
        match self {
            Step::Run(line, _) | Step::Start(line) | Step::Until(line, _) => vec![first(line)],
            Step::Together(lines) => lines.iter().copied().map(first).collect(),
            Step::Console(line) => line.split(' ').next_back().into_iter().collect(),
            Step::Ended(_) | Step::Type(..) => Vec::new(),
        }
    }
}
