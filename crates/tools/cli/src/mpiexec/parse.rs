//! The command line of `mpiexec`.
//!
//! The options are those of the MPI standard, and the most used ones of MPICH's and Open MPI's launchers. An option for
//! something that Regatta does anyway is ignored. One for a placement that Regatta does not have causes a warning. An
//! unknown option is an error.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{others, placement};

/// A parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The programs, in the order of ranks.
    pub sections: Vec<Section>,
    /// Variables for all processes.
    pub environment: Vec<(OsString, OsString)>,
    /// Hosts, each optionally with `:` and its number of processes.
    pub hosts: Vec<String>,
    /// Maximum number of processes on each host without a number of its own.
    pub per_host: Option<u32>,
    /// Whether each line of output begins with the rank.
    pub label: bool,
    /// The number of seconds after which the job ends.
    pub timeout: Option<String>,
    /// Whether the other processes go on after a failure.
    pub goes_on: bool,
    /// The cores of the processes, as in `regatta run --bind`.
    pub bind: Option<String>,
    /// Whether ranks are distributed to the hosts in turn.
    pub is_dealt_in_turn: bool,
    /// Whether there may be more processes than the Slurm job has room for.
    pub oversubscribes: bool,
    /// The command that reaches hosts, as in `regatta run --rsh`.
    pub rsh: Option<String>,
    /// The network between the hosts.
    pub interface: Option<String>,
    /// The destination of the output.
    pub output: Output,
    /// Whether no process gets the standard input.
    pub has_no_input: bool,
    /// Whether each process reports its host and cores when it starts.
    pub reports_bindings: bool,
    /// Warnings about options that were not followed.
    pub warnings: Vec<String>,
    /// The text to print instead of running a job.
    pub shows: Option<Shows>,
}

/// The destination of the processes' output, if it is not that of mpiexec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// A file name pattern for the standard output: `%r` is the rank, `%h` the host, `%g` the group of processes.
    pub file: Option<String>,
    /// A file name pattern for the standard error.
    pub errors: Option<String>,
    /// A folder for both: `FOLDER/1/rank.N/stdout` and `stderr`.
    pub folder: Option<String>,
    /// Whether the standard error goes to the same place as the standard output.
    pub is_merged: bool,
}

/// Text about mpiexec itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    Help,
    Version,
}

/// A program and its number of processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Number of processes, or `None` for the default of `regatta run`.
    pub processes: Option<u32>,
    /// Variables for these processes.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory in which they run.
    pub directory: Option<OsString>,
    /// Directories in which the program is searched.
    pub path: Option<OsString>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

type Words = std::collections::VecDeque<OsString>;
type Result<T> = std::result::Result<T, String>;

/// Parses a command line without its first word.
pub fn request(words: Vec<OsString>) -> Result<Request> {
    let mut request = Request::default();
    for part in words.split(|word| word == ":") {
        let mut words: Words = part.iter().cloned().collect();
        let mut section = Section::default();
        while let Some(word) = words.pop_front() {
            let text = word.to_string_lossy().into_owned();
            if !text.starts_with('-') || text == "-" {
                section.command.push(word);
                section.command.extend(words.drain(..));
            } else {
                option(&text, &mut words, &mut request, &mut section)?;
            }
        }
        // A request for text takes precedence over everything else. A file of sections replaces sections in the command
        // line.
        if request.shows.is_some() {
            return Ok(request);
        } else if !section.command.is_empty() {
            request.sections.push(section);
        } else if request.sections.is_empty() || section != Section::default() {
            return Err(
                "mpiexec: a program is missing: mpiexec [-n N] PROGRAM [ARGUMENTS] [: ...]"
                    .to_owned(),
            );
        }
    }
    Ok(request)
}

fn option(
    text: &str,
    words: &mut Words,
    request: &mut Request,
    section: &mut Section,
) -> Result<()> {
    let name = text.trim_start_matches('-');
    let (name, mut inline) = match name.split_once('=') {
        Some((name, value)) => (name, Some(OsString::from(value))),
        None => (name, None),
    };
    let mut value = || {
        let found = inline.take().or_else(|| words.pop_front());
        found.ok_or_else(|| format!("mpiexec: -{name} needs a value"))
    };
    match name {
        "n" | "np" | "c" => section.processes = Some(number(name, &value()?)?),
        // Triplets of acceptable numbers of processes: use the largest.
        "soft" => section.processes = Some(largest(&value()?)?),
        "host" | "hosts" | "H" => hosts(&value()?, request),
        "f" | "hostfile" | "machinefile" | "machine" => host_file(&value()?, request)?,
        "ppn" | "perhost" | "N" => request.per_host = Some(number(name, &value()?)?),
        "wdir" | "wd" => section.directory = Some(value()?),
        "path" => section.path = Some(value()?),
        "configfile" | "file" => config_file(&value()?, request)?,
        "genv" => request.environment.push((value()?, value()?)),
        "env" => section.environment.push((value()?, value()?)),
        "x" => request.environment.extend(exported(&value()?)),
        "l" | "prepend-rank" | "tag-output" => request.label = true,
        "disable-auto-cleanup" => request.goes_on = true,
        "usize" => universe(&value()?, request)?,
        "timeout" => request.timeout = Some(text_of(&value()?)),
        "outfile-pattern" => request.output.file = Some(text_of(&value()?)),
        "errfile-pattern" => request.output.errors = Some(text_of(&value()?)),
        "output-filename" => request.output.folder = Some(text_of(&value()?)),
        "stdin" | "s" => request.has_no_input = input(&text_of(&value()?))?,
        "bind-to" | "binding" | "map-by" | "rank-by" => {
            placement::option(name, &text_of(&value()?), request)?;
        }
        "bind-to-none" | "bind-to-core" => placement::option("bind-to", &name[8..], request)?,
        "report-bindings" | "display-map" | "print-rank-map" => request.reports_bindings = true,
        "oversubscribe" => request.oversubscribes = true,
        "iface" => request.interface = Some(text_of(&value()?)),
        "h" | "help" => request.shows = Some(Shows::Help),
        "V" | "version" => request.shows = Some(Shows::Version),
        // The initial error handler, of which only the default exists, and the kind of machine.
        "initial-errhandler" | "arch" => drop(value()?),
        _ if others::option(name, &mut value, request)? => {}
        _ => {
            return Err(format!(
                "mpiexec: unknown option {text}; mpiexec --help lists all options"
            ));
        }
    }
    Ok(())
}

/// Returns a word as text.
pub fn text_of(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

/// Returns whether no process gets the standard input.
fn input(of: &str) -> Result<bool> {
    match of {
        "0" => Ok(false),
        "none" => Ok(true),
        _ => Err(format!(
            "mpiexec: -stdin {of} is not supported: standard input goes to process 0, or with -stdin none to no process; let process 0 forward it"
        )),
    }
}

/// Passes on the maximum number of processes to the library in a variable. SYSTEM and INFINITE are its default.
fn universe(value: &OsStr, request: &mut Request) -> Result<()> {
    if value != "SYSTEM" && value != "INFINITE" {
        let number = number("usize", value)?.to_string();
        let variable = "MPIEXEC_UNIVERSE_SIZE";
        request.environment.push((variable.into(), number.into()));
    }
    Ok(())
}

/// Parses the number for an option.
pub fn number(name: &str, value: &OsStr) -> Result<u32> {
    let text = value.to_string_lossy();
    let number = text.parse::<u32>().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("mpiexec: -{name} needs a number above 0, not {text}"))
}

fn largest(value: &OsStr) -> Result<u32> {
    let text = value.to_string_lossy();
    let triplets = text.split(',').map(|triplet| {
        let mut parts = triplet
            .split(':')
            .map(|part| part.trim().parse::<u32>().ok());
        let first = parts.next().flatten()?;
        Some(parts.next().map_or(Some(first), |last| last)?.max(first))
    });
    let all: Option<Vec<u32>> = triplets.collect();
    let most = all.and_then(|all| all.into_iter().max());
    most.filter(|&most| most > 0)
        .ok_or_else(|| format!("mpiexec: -soft needs numbers, or FIRST:LAST:STEP, not {text}"))
}

fn hosts(value: &OsStr, request: &mut Request) {
    let text = value.to_string_lossy();
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    request.hosts.extend(names.map(str::to_owned));
}

/// Reads a file with one host per line: `name`, `name:processes` or `name slots=processes`.
fn host_file(file: &OsStr, request: &mut Request) -> Result<()> {
    for line in read(file)?.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let slots = words.find_map(|word| word.strip_prefix("slots="));
        request.hosts.push(match slots {
            Some(slots) if !name.contains(':') => format!("{name}:{slots}"),
            _ => name.to_owned(),
        });
    }
    Ok(())
}

/// Reads a file with one section per line, as on the command line.
fn config_file(file: &OsStr, request: &mut Request) -> Result<()> {
    for line in read(file)?.lines() {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        if words.is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let other = self::request(words)?;
        request.sections.extend(other.sections);
        request.environment.extend(other.environment);
        request.hosts.extend(other.hosts);
    }
    Ok(())
}

fn read(file: &OsStr) -> Result<String> {
    let path = Path::new(file);
    std::fs::read_to_string(path)
        .map_err(|error| format!("mpiexec: {} cannot be read: {error}", path.display()))
}

/// Parses `NAME=value`, or a name whose value is taken from this process's environment.
fn exported(value: &OsStr) -> Option<(OsString, OsString)> {
    let text = value.to_string_lossy();
    match text.split_once('=') {
        Some((name, value)) => Some((name.into(), value.into())),
        None => Some((value.to_owned(), std::env::var_os(value)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request> {
        request(text.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn a_program_and_its_arguments_follow_the_options() {
        let request = read("-np 4 -genv A b ./solver -n 7").expect("a request");
        assert_eq!(request.environment, [("A".into(), "b".into())]);
        let [section] = &request.sections[..] else {
            panic!("{request:?}")
        };
        assert_eq!(section.processes, Some(4));
        assert_eq!(section.command, ["./solver", "-n", "7"]);
    }

    #[test]
    fn the_size_of_the_universe_is_a_variable() {
        let request = read("-n 1 -usize 12 p").expect("a request");
        let said = [("MPIEXEC_UNIVERSE_SIZE".into(), "12".into())];
        assert_eq!(request.environment, said);
        let request = read("-n 1 -usize SYSTEM p").expect("a request");
        assert_eq!(request.environment, []);
        read("-n 1 -usize many p").expect_err("a number");
    }

    #[test]
    fn sections_are_separated_by_colons() {
        let request = read("-n 2 a x : -n 3 -wdir /tmp b").expect("a request");
        assert_eq!(request.sections.len(), 2);
        assert_eq!(request.sections[1].processes, Some(3));
        assert_eq!(request.sections[1].directory, Some("/tmp".into()));
        assert_eq!(request.sections[0].command, ["a", "x"]);
    }

    #[test]
    fn hosts_and_soft_numbers() {
        let request = read("-host a,b:2 -soft 1:7:2,4 p").expect("a request");
        assert_eq!(request.hosts, ["a", "b:2"]);
        assert_eq!(request.sections[0].processes, Some(7));
    }

    #[test]
    fn placements_that_regatta_has_are_followed_and_others_are_told_of() {
        for (text, bind, in_turn, per_host) in [
            ("-bind-to none p", Some("none"), false, None),
            (
                "--bind-to core:overload-allowed p",
                Some("core"),
                false,
                None,
            ),
            ("-bind-to user:0,3-5 p", Some("0,3-5"), false, None),
            ("-map-by node -bind-to rr p", Some("core"), true, None),
            ("--map-by ppr:2:node:oversubscribe p", None, false, Some(2)),
            ("--map-by slot:PE=1 --rank-by slot p", None, false, None),
        ] {
            let request = read(text).expect(text);
            let found = (
                request.bind.as_deref(),
                request.is_dealt_in_turn,
                request.per_host,
            );
            assert_eq!(found, (bind, in_turn, per_host), "{text}");
            assert!(request.warnings.is_empty(), "{text}: {request:?}");
        }
        for text in [
            "-bind-to socket p",
            "-bind-to core:2 p",
            "-map-by numa p",
            "-map-by slot:PE=4 p",
            "-map-by ppr:1:socket p",
            "-rank-by span p",
        ] {
            let request = read(text).expect(text);
            assert_eq!(request.warnings.len(), 1, "{text}");
            assert_eq!(request.bind, None, "{text}");
        }
    }

    #[test]
    fn text_about_mpiexec_needs_no_program() {
        for (text, shows) in [
            ("--help", Shows::Help),
            ("-h", Shows::Help),
            ("-n 2 --version", Shows::Version),
            ("-V", Shows::Version),
        ] {
            assert_eq!(read(text).expect(text).shows, Some(shows));
        }
        assert_eq!(read("p --help").expect("a request").shows, None);
    }

    #[test]
    fn nonsense_is_an_error_with_a_sentence() {
        for (text, part) in [
            ("-n 0 p", "above 0"),
            ("-n", "needs a value"),
            ("-colour red p", "unknown option -colour"),
            ("-n 2", "a program is missing"),
            ("a : -n 2", "a program is missing"),
            ("-configfile /does/not/exist", "cannot be read"),
            ("-stdin 3 p", "goes to process 0"),
            ("-map-by ppr:x:node p", "number above 0"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
