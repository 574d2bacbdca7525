//! `regatta run`: the command line of a job.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use regatta_launch::{Bind, Form, MAX_TASKS, OnFailure, Plan, Refusal, cores};

use crate::hosts;

/// Run a program as N tasks of one job, on this host or on several, and end everything that it started.
#[derive(Args)]
#[command(after_help = "\
The exit status is that of the first task that failed (128 + the signal when it was killed), 0 when none did,
2 for an invalid option, 124 after --timeout, 125 when Regatta itself failed, 126 when PROGRAM
cannot be executed, 127 when it does not exist. Task 0 reads standard input; the others read from /dev/null.

Examples:
  regatta run -n 4 ./hello
  regatta run -n 4 --label ./solver --tolerance 1e-6     (what follows PROGRAM belongs to it; -np is the same as -n)
  regatta run -n 2 --bind 0,2 --timeout 60 ./ping
  regatta run --host alpha,beta:4 ./solver               (alpha's cores, and four tasks on beta; by ssh)
  regatta up alpha beta && regatta run ./solver          (on all hosts of the virtual machine; see `regatta up`)")]
pub struct Arguments {
    /// Number of tasks [default: one per usable core, or per slot of the hosts, or as requested from Slurm]
    #[arg(short = 'n', long = "tasks", value_name = "N", value_parser = tasks)]
    tasks: Option<u32>,

    /// Cores of the tasks: `none`, `core` (task i on the i-th core), or a list like 0,2-5 [default: one core each if enough cores are free of other jobs, otherwise none]
    #[arg(long, value_name = "WHERE", value_parser = bind)]
    bind: Option<Bind>,

    #[command(flatten)]
    hosts: hosts::Hosts,

    /// Run on the hosts of this virtual machine [default: `default`, if it is up and no hosts are named]
    #[arg(
        long = "vm",
        value_name = "NAME",
        env = "REGATTA_VM",
        help_heading = "Several hosts"
    )]
    machine: Option<String>,

    /// Put `[rank] ` before each line of output; lines of different tasks are never mixed
    #[arg(short, long, conflicts_with = "json")]
    label: bool,

    /// End the job after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    timeout: Option<Duration>,

    /// What happens to the other tasks when one fails
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop")]
    on_failure: Others,

    /// Seconds that tasks may continue after a signal to end, or with --on-failure=stop after a failure
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    grace: Duration,

    /// Maximum number of tasks that the job may have in total, including tasks that tasks start [default: 65536]
    #[arg(long, value_name = "N", value_parser = most_tasks)]
    most_tasks: Option<u32>,

    /// Write one JSON object per line for each start, output line and end of a task, and for the end of the job
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_names = ["PROGRAM", "ARGS"], value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Others {
    /// End them after the grace
    Stop,
    /// Let them go on
    Continue,
}

/// Runs the job. The exit code is the job's.
pub fn run(arguments: &Arguments) -> ExitCode {
    let form = form(arguments);
    let status = plan(arguments, form)
        .and_then(|plan| regatta_launch::run(&plan))
        .unwrap_or_else(|refusal| {
            regatta_launch::report_refusal(form, &refusal);
            refusal.status
        });
    ExitCode::from(status)
}

/// Returns the form in which the output of the tasks is shown.
pub fn form(arguments: &Arguments) -> Form {
    match (arguments.json, arguments.label) {
        (true, _) => Form::Json,
        (false, true) => Form::Labelled,
        (false, false) => Form::Inherit,
    }
}

/// Returns the job that the options describe.
pub fn plan(arguments: &Arguments, form: Form) -> Result<Plan, Refusal> {
    let mut command = arguments.command.iter().cloned();
    let (across, tasks) = arguments
        .hosts
        .of_job(arguments.tasks, arguments.machine.as_deref())?;
    Ok(Plan {
        arguments: command.clone().skip(1).collect(),
        bind: arguments.bind.clone().unwrap_or_default(),
        form,
        tasks,
        across,
        timeout: arguments.timeout,
        on_failure: match arguments.on_failure {
            Others::Stop => OnFailure::Stop,
            Others::Continue => OnFailure::Continue,
        },
        grace: arguments.grace,
        most_tasks: arguments.most_tasks.unwrap_or(MAX_TASKS),
        ..Plan::new(command.next().unwrap_or_default(), 1)
    })
}

/// Parses a number of tasks.
pub fn tasks(text: &str) -> Result<u32, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("a job needs at least one task".to_owned()),
        Ok(number) => {
            u32::try_from(number).map_err(|_| "no host can run that many tasks".to_owned())
        }
        Err(_) => Err("the number of tasks must be a whole number, like -n 4".to_owned()),
    }
}

/// Maximum time that can be given, in seconds, so that clocks do not overflow.
const MAX_SECONDS: f64 = 1e9;

/// Parses a time in seconds, which may be zero.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.ok_or_else(|| "give a number of seconds, like 30 or 0.5".to_owned())?;
    match time.as_secs_f64() > MAX_SECONDS {
        false => Ok(time),
        true => Err("that is more than thirty years: give a number of seconds, like 30".to_owned()),
    }
}

/// Parses a time in seconds above zero.
pub fn some_seconds(text: &str) -> Result<Duration, String> {
    let time = seconds(text)?;
    match time.is_zero() {
        false => Ok(time),
        true => Err("the time must be above 0: give a number of seconds, like 30".to_owned()),
    }
}

/// Parses how long a host may be silent: not less than healthy hosts sometimes are.
pub fn silence(text: &str) -> Result<Duration, String> {
    let time = some_seconds(text)?;
    match time < MIN_SILENCE {
        false => Ok(time),
        true => Err(
            "this is too short, because healthy hosts are silent that long at times: give 0.1 or more".to_owned(),
        ),
    }
}

/// Minimum silence after which a host may be considered lost.
const MIN_SILENCE: Duration = Duration::from_millis(100);

fn most_tasks(text: &str) -> Result<u32, String> {
    match tasks(text)? {
        number @ 0..=MAX_TASKS => Ok(number),
        _ => Err(format!("no job can have more than {MAX_TASKS} tasks")),
    }
}

fn bind(text: &str) -> Result<Bind, String> {
    match text {
        "none" => Ok(Bind::Free),
        "core" => Ok(Bind::Core),
        list => cores::parse_list(list)
            .map(Bind::List)
            .map_err(|error| format!("{error} (or `none`, or `core`)")),
    }
}
