//! The options of `spawn`.

use crate::machine::Order;

const TASK_HOST: i32 = 1;
const TASK_ARCH: i32 = 2;
const TASK_DEBUG: i32 = 4;
/// The flag with which the console is not the parent of the tasks that it starts: they find no parent.
const NO_SPAWN_PARENT: i32 = 64;

/// The destination of a job's output or trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// The console.
    Console,
    /// A file that does not exist yet.
    New(String),
    /// The end of a file.
    Append(String),
}

/// A parsed `spawn` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawning {
    /// The tasks. Their job is not set yet.
    pub order: Order,
    /// The destination of their output, if it is wanted.
    pub output: Option<Sink>,
    /// The destination of their trace, if it is wanted.
    pub trace: Option<Sink>,
}

/// There is no program among the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoProgram;

/// Parses the words after `spawn`. `is_arch` returns whether a word is the architecture of some host.
pub fn read(words: &[String], is_arch: impl Fn(&str) -> bool) -> Result<Spawning, NoProgram> {
    let mut spawning = Spawning {
        order: Order {
            program: Vec::new(),
            count: 1,
            flags: NO_SPAWN_PARENT,
            place: String::new(),
            job: None,
            traced: false,
        },
        output: None,
        trace: None,
    };
    let first = words
        .iter()
        .position(|word| !word.starts_with('-'))
        .ok_or(NoProgram)?;
    for word in &words[..first] {
        spawning.take(&word[1..], &is_arch);
    }
    spawning.order.program = words[first..].to_vec();
    Ok(spawning)
}

impl Spawning {
    fn take(&mut self, option: &str, is_arch: impl Fn(&str) -> bool) {
        if let Some(file) = option.strip_prefix(">>") {
            self.output = Some(sink(file, Sink::Append));
        } else if let Some(file) = option.strip_prefix('>') {
            self.output = Some(sink(file, Sink::New));
        } else if let Some(file) = option.strip_prefix('@') {
            self.trace = Some(sink(file, Sink::New));
        } else if option == "?" {
            self.order.flags |= TASK_DEBUG;
        } else if option.starts_with(|c: char| c.is_ascii_digit()) {
            self.order.count = leading_number(option);
        } else if let Some(host) = option.strip_prefix("-host=") {
            self.go_to(host, TASK_HOST);
        } else if option != "-" && !option.is_empty() {
            let place = option.split(':').next().unwrap_or_default();
            match place {
                "" => self.go_to(option, 0),
                _ if is_arch(place) => self.go_to(option, TASK_ARCH),
                _ => self.go_to(option, TASK_HOST),
            }
        }
    }

    /// Sets the place. A directory alone is a place, too: any host, but in that directory.
    fn go_to(&mut self, place: &str, kind: i32) {
        self.order.flags = self.order.flags & !(TASK_HOST | TASK_ARCH) | kind;
        self.order.place = place.to_owned();
    }
}

fn sink(file: &str, named: impl Fn(String) -> Sink) -> Sink {
    if file.is_empty() {
        Sink::Console
    } else {
        named(file.to_owned())
    }
}

/// Returns the number at the beginning of a word, or the largest number if it does not fit.
fn leading_number(word: &str) -> i32 {
    let end = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    word[..end].parse().unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(line: &str) -> Spawning {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        read(&words, |arch| arch == "LINUX64").unwrap()
    }

    #[test]
    fn options_come_before_the_program_and_arguments_after_it() {
        let Spawning {
            order,
            output,
            trace,
        } = spawn("-3 -> hello -x y");
        assert_eq!(order.program, ["hello", "-x", "y"]);
        assert_eq!((order.count, order.flags), (3, NO_SPAWN_PARENT));
        assert_eq!((output, trace), (Some(Sink::Console), None));
    }

    #[test]
    fn tasks_go_where_they_are_told() {
        let place = |line: &str| {
            let order = spawn(line).order;
            (order.flags & !NO_SPAWN_PARENT, order.place)
        };
        assert_eq!(place("hello"), (0, String::new()));
        assert_eq!(place("-alpha hello"), (TASK_HOST, "alpha".into()));
        assert_eq!(place("-alpha:/tmp hello"), (TASK_HOST, "alpha:/tmp".into()));
        assert_eq!(place("-LINUX64 hello"), (TASK_ARCH, "LINUX64".into()));
        assert_eq!(
            place("-LINUX64:/tmp hello"),
            (TASK_ARCH, "LINUX64:/tmp".into())
        );
        assert_eq!(place("-:/tmp hello"), (0, ":/tmp".into()));
        assert_eq!(
            place("--host=10.0.0.1:/tmp hello"),
            (TASK_HOST, "10.0.0.1:/tmp".into())
        );
        assert_eq!(
            place("-alpha -LINUX64 hello"),
            (TASK_ARCH, "LINUX64".into())
        );
    }

    #[test]
    fn output_and_trace_go_to_the_console_or_to_files() {
        assert_eq!(
            spawn("->out.txt hello").output,
            Some(Sink::New("out.txt".into()))
        );
        assert_eq!(
            spawn("->>out.txt hello").output,
            Some(Sink::Append("out.txt".into()))
        );
        assert_eq!(spawn("->> hello").output, Some(Sink::Console));
        let traced = spawn("-@t.trace hello");
        assert_eq!(traced.trace, Some(Sink::New("t.trace".into())));
        assert_eq!(traced.order.flags, NO_SPAWN_PARENT);
    }

    #[test]
    fn a_debugger_and_counts() {
        assert_eq!(spawn("-? hello").order.flags, NO_SPAWN_PARENT | TASK_DEBUG);
        assert_eq!(spawn("-3x hello").order.count, 3);
        assert_eq!(spawn("-1 -2 hello").order.count, 2);
        assert_eq!(spawn("-99999999999 hello").order.count, i32::MAX);
    }

    #[test]
    fn without_a_program_there_is_nothing_to_start() {
        assert_eq!(read(&["-2".into(), "->".into()], |_| false), Err(NoProgram));
    }
}
