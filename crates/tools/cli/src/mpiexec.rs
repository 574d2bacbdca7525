//! `mpiexec` and `mpirun`: the standard's launcher of programs of MPI, as `regatta run` with the options that are usual there.
//!
//! A command line is one or more *sections* with `:` between them: so many processes of a program each, all of one world.
//! One section is started as `regatta run` starts its program. Several are started as a shell that becomes the program of its
//! section: the number of a process stands in its join token.

mod parse;
mod sections;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use regatta_launch::{Form, Plan, Refusal};

use crate::{Cli, Command, run, say};
use parse::Request;

/// If the command was called by the name of MPI's launcher, does what that does.
pub fn under_another_name() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    match Path::new(&called).file_name().and_then(OsStr::to_str)? {
        "mpiexec" | "mpirun" | "mpiexec.hydra" => Some(launch(words.collect())),
        _ => None,
    }
}

/// The variable by which scripts limit the time of all jobs that they start.
const TIMEOUT_VARIABLE: &str = "MPIEXEC_TIMEOUT";

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
            start(&request, form)
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
        Ok(_) => return Err(Refusal::usage("that is no program to run")),
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

/// The tasks run in this directory, here and on other hosts.
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
