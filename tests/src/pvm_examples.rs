//! PVM's own examples: built as its makefiles build them, started as its Readme says, on Regatta and on PVM itself.

mod build;
mod running;
mod side;
mod words;

pub use build::{DEBIAN, Maker, build, debian_programs, sources};
pub use side::compare;

/// A program of the examples.
pub struct Program {
    /// Its name where it is installed, and where others spawn it.
    pub name: &'static str,
    /// The files it is made of, in the archives of sources.
    pub sources: &'static [&'static str],
    /// Debian's name of it in `/usr/bin`, if it is there.
    pub debian: Option<&'static str>,
    /// A target of PVM's makefile; else it is compiled from its one file.
    pub in_makefile: bool,
}

/// Something that is done with programs of the examples.
pub struct Scenario {
    /// Its subject.
    pub name: &'static str,
    /// Its steps, one after the other.
    pub steps: &'static [Step],
    /// How lines begin in which all figures are times and rates but those after a word like `size:`.
    pub times: &'static [&'static str],
    /// Parts of lines that do not count: they come as often as it happens, or tell of what is in one library alone.
    pub left_out: &'static [&'static str],
    /// The output depends on which of several tasks is the first.
    pub any_order: bool,
}

/// Nothing but a name and steps.
pub const PLAIN: Scenario = Scenario {
    name: "",
    steps: &[],
    times: &[],
    left_out: &[],
    any_order: false,
};

/// One thing that somebody at a terminal does. A command is a program's name and its arguments.
pub enum Step {
    /// Start it, type this, and wait for its end.
    Run(&'static str, &'static str),
    /// Start all of these at once, and wait for their ends.
    Together(&'static [&'static str]),
    /// Start it and let it run.
    Start(&'static str),
    /// Wait for the end of what this command has started.
    Ended(&'static str),
    /// To what this command has started type this, and wait until what that one has started says something with this part.
    Type(&'static str, &'static str, &'static str, &'static str),
    /// Ask again and again until the answer has this part.
    Until(&'static str, &'static str),
    /// Give PVM's console this line, and wait for the end of the job that it starts.
    Console(&'static str),
}

impl Step {
    /// The programs that are started in it by hand or in the console.
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
