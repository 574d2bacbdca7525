//! `regatta profile`: `regatta run` whose tasks record what they do.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use regatta_launch::{Form, Refusal};
use regatta_profile::{Options, Session, Shown};

use crate::run;

/// Run a program like `regatta run`, and show where its time goes: calls, messages, functions, and a timeline
#[derive(Args)]
#[group(skip)]
#[command(after_help = "\
Accepts the options of `regatta run`; the exit status is that of the job. Programs of all interfaces in C and Fortran can be profiled (the
own one, PVM, NX, Express, CrOS III, Cubix) when they are linked with the shared libraries.

Examples:
  regatta profile -n 4 ./solver                     (tables here, pictures in regatta-profile.html)
  regatta profile -n 4 --rate 0 ./solver            (without samples of the processor)
  regatta profile --host alpha,beta ./solver        (records of other hosts are fetched with the command that reaches them)")]
pub struct Arguments {
    /// The file for the HTML page
    #[arg(
        long,
        value_name = "FILE",
        default_value = "regatta-profile.html",
        help_heading = "Profile"
    )]
    report: PathBuf,

    /// Keep the records of the tasks in this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Profile")]
    records: Option<PathBuf>,

    /// Number of the newest events of each task that are kept for the timeline, up to 4194304 (40 bytes each)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 22), default_value = "32768", help_heading = "Profile")]
    events: u32,

    /// Samples per second of processor time, for the times of functions; 0 for none
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(0..=1000), default_value = "100", help_heading = "Profile")]
    rate: u32,

    #[command(flatten)]
    run: run::Arguments,
}

/// Runs the job and shows its profile. The exit code is the job's.
pub fn run(arguments: &Arguments) -> ExitCode {
    let form = run::form(&arguments.run);
    let status = profiled(arguments, form).unwrap_or_else(|refusal| {
        regatta_launch::report_refusal(form, &refusal);
        refusal.status
    });
    ExitCode::from(status)
}

fn profiled(arguments: &Arguments, form: Form) -> Result<u8, Refusal> {
    let mut plan = run::plan(&arguments.run, form)?;
    let options = Options {
        report: arguments.report.clone(),
        records: arguments.records.clone(),
        events: arguments.events,
        rate: arguments.rate,
    };
    let session = Session::begin(options, plan.across.is_some()).map_err(Refusal::of_regatta)?;
    plan.environment.push(session.variable());
    regatta_launch::run_then(&plan, |status| {
        let shown = session.finish(plan.across.as_ref(), plan.tasks, status);
        show(form, &shown);
    })
}

/// Writes the tables to standard error, since standard output is the program's.
fn show(form: Form, shown: &Shown) {
    use std::io::Write;
    // Write errors are ignored. The status is the job's in any case.
    let _ = match form {
        Form::Json => writeln!(std::io::stdout(), "{}", shown.json),
        _ if shown.text.is_empty() => Ok(()),
        _ => write!(std::io::stderr(), "\n{}", shown.text),
    };
}
