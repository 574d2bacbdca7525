//! `mpiexec` and `mpirun`: the standard launcher of MPI programs, implemented as `regatta run` with the usual options
//! of these launchers.
//!
//! A command line is one or more *sections*, separated by `:`, each with a number of processes of a program. All are in
//! one world. A single section is started like a program of `regatta run`. Several are started as a shell script that
//! executes the program of the process's section. The number of a process is in its join token.

mod others;
mod parse;
mod placement;
mod sections;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser};
use regatta_launch::{Form, Plan, Refusal};

use crate::{Cli, Command, run, say};
use parse::{Request, Shows};

/// Run MPI programs with the options of `mpiexec`; `regatta mpiexec --help` lists them
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options and programs, as `mpiexec` takes them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORDS"
    )]
    words: Vec<OsString>,
}

/// Does what `mpiexec` does with these arguments.
pub fn run(arguments: Arguments) -> ExitCode {
    launch(arguments.words)
}

/// If the command was called by the name of an MPI launcher, does what that launcher does.
pub fn under_another_name() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    match Path::new(&called).file_name().and_then(OsStr::to_str)? {
        "mpiexec" | "mpirun" | "mpiexec.hydra" => Some(launch(words.collect())),
        _ => None,
    }
}

/// The variable with which scripts limit the time of all jobs that they start.
const TIMEOUT_VARIABLE: &str = "MPIEXEC_TIMEOUT";

/// The help text.
const HELP: &str = "\
mpiexec of Regatta: runs MPI programs

Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS] ...]

Options begin with one hyphen or two, and those with a value take it as the next word or after `=`.

Options of a section (up to the next colon):
  -n, -np N               Number of processes [one section: as `regatta run`; several: 1]
  -soft LIST              Acceptable numbers of processes; the largest is used
  -wdir DIR               The directory of the processes
  -path DIRS              Directories in which the program is searched
  -env NAME VALUE         Sets an environment variable

Options of the job:
  -host, -hosts, -H LIST  Hosts, each optionally with `:` and its number of processes
  -f, -hostfile FILE      File of hosts, one per line, optionally with `:N` or `slots=N`
  -ppn, -npernode, -N N   Number of processes on each host
  -map-by HOW             slot: neighbours share a host; node: hosts in turn; ppr:N:node: N on each host
  -bind-to WHERE          none, core, or user:LIST, such as user:0,2-5 [default: one core each if there are enough]
  -report-bindings        Each process prints its host and cores to standard error
  -oversubscribe          Allow more processes than the Slurm job has room for
  -cpu-set LIST           As -bind-to user:LIST
  -launcher-exec COMMAND  Command that reaches hosts in place of ssh
  -iface NAME             The network between the hosts: an interface, or a range of addresses
  -genv NAME VALUE        Sets an environment variable
  -x NAME[=VALUE]         Sets an environment variable [default: its value here]
  -l, -prepend-rank       Put the rank before each line of output
  -outfile-pattern FILE   Write standard output to files: %r is the rank, %h the host; files of other hosts' processes are written on those hosts
  -errfile-pattern FILE   The same for standard error
  -output-filename DIR    Write both below DIR, as DIR/1/rank.N/stdout and stderr
  -merge-stderr-to-stdout  Standard error goes where standard output goes
  -output WORDS           A list of tag, merge and dir=DIR, like the options above
  -stdin 0|none           Process that reads standard input [0]
  -timeout SECONDS        End the job after this time; also set by the variable MPIEXEC_TIMEOUT
  -disable-auto-cleanup   Let the other processes continue when one fails
  -usize N                The value of MPI_UNIVERSE_SIZE
  -configfile FILE        Read sections from a file, one per line
  -h, --help              Print this
  -V, --version           Print the version

Ignored, because they have no effect here: -arch, -initial-errhandler, -launcher, -rmk, -mca and similar, -tune, -prefix, -genvall, -envall,
-genvlist, -envlist (all variables are passed on anyway), -nooversubscribe, -allow-run-as-root, -use-hwthread-cpus, -quiet, -verbose.
Not supported; a warning is printed: -timestamp-output, -xterm, -rankmap, -get-stack-traces, -report-state-on-timeout.
";

/// Prints help or version of mpiexec.
fn show(what: Shows) -> Result<u8, Refusal> {
    match what {
        Shows::Help => say::text(HELP)?,
        Shows::Version => say::line(concat!(
            "mpiexec (Regatta) ",
            env!("CARGO_PKG_VERSION"),
            ", MPI 5.0"
        ))?,
    }
    Ok(0)
}

fn launch(words: Vec<OsString>) -> ExitCode {
    let mut form = Form::Inherit;
    let status = parse::request(words)
        .map_err(Refusal::usage)
        .and_then(|mut request| {
            if request.label {
                form = Form::Labelled;
            }
            let limit = std::env::var(TIMEOUT_VARIABLE).ok();
            request.timeout = request.timeout.or(limit);
            for warning in &request.warnings {
                regatta_launch::warn(&format!("mpiexec: {warning}"));
            }
            match request.shows {
                Some(what) => show(what),
                None => start(&request, form),
            }
        })
        .unwrap_or_else(|refusal| {
            regatta_launch::report_refusal(form, &refusal);
            refusal.status
        });
    ExitCode::from(status)
}

fn start(request: &Request, form: Form) -> Result<u8, Refusal> {
    let words = sections::run_words(request)?;
    let arguments = match Cli::try_parse_from(words) {
        Ok(Cli {
            command: Command::Run(arguments),
        }) => arguments,
        Ok(_) => return Err(Refusal::usage("this is not a program to run")),
        Err(error) => {
            say::usage(&error);
            return Ok(2);
        }
    };
    let mut plan: Plan = run::plan(&arguments, form)?;
    if let [section] = &request.sections[..]
        && let Some(directory) = &section.directory
    {
        enter(directory, &mut plan)?;
    }
    plan.environment.extend(sections::environment(request));
    regatta_launch::run(&plan)
}

/// Makes the tasks run in this directory, on this host and others.
fn enter(directory: &OsStr, plan: &mut Plan) -> Result<(), Refusal> {
    let there = std::env::set_current_dir(directory).and_then(|()| std::env::current_dir());
    let there = there.map_err(|error| {
        let directory = Path::new(directory).display();
        Refusal::usage(format!(
            "the directory {directory} cannot be entered: {error}"
        ))
    })?;
    if let Some(across) = &mut plan.across {
        across.directory = Some(there);
    }
    Ok(())
}
