//! The console of a virtual machine with PVM's commands, options and output, implemented on PVM's library.
//!
//! A [`console::Console`] takes lines and prints lines. It uses a [`machine::Machine`], which outside of tests is PVM's
//! library, loaded at run time. So the console is a task of the machine, and can do what any program can.

#![deny(unsafe_code)]

pub mod aliases;
pub mod arguments;
mod commands;
pub mod console;
pub mod events;
pub mod help;
mod input;
pub mod jobs;
#[allow(unsafe_code)]
mod library;
pub mod machine;
pub mod options;
pub mod report;
mod sddf;
mod session;
pub mod spawning;
pub mod traces;
mod tracing;
pub mod verbs;
pub mod words;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

/// Runs `pvm [-nNAME] [-dMASK] [HOSTFILE]`: a console. Starts the machine if it does not run.
pub fn pvm(words: &[String]) -> ExitCode {
    match checked(words) {
        Ok(words) => session::run(&words),
        Err(sentence) => refuse("pvm", &sentence),
    }
}

/// Runs `pvmd3 [-nNAME] [-dMASK] [HOSTFILE]`: starts the machine with the hosts of a file.
pub fn pvmd(words: &[String]) -> ExitCode {
    let started = checked(words).and_then(|words| library::Library::start(&words));
    match started {
        Ok((_, library::Found::Started)) => ExitCode::SUCCESS,
        Ok((_, library::Found::Running)) => {
            refuse("pvmd3", "the virtual machine is already running")
        }
        Err(sentence) => refuse("pvmd3", &sentence),
    }
}

/// Returns the arguments in the form that the library takes. The library reports faults of the host file, which do not
/// prevent the start.
fn checked(words: &[String]) -> Result<Vec<String>, String> {
    arguments::read(words).map(|arguments| arguments.words())
}

fn refuse(name: &str, sentence: &str) -> ExitCode {
    for line in sentence.lines() {
        let _ = writeln!(std::io::stderr(), "{name}: {line}");
    }
    ExitCode::FAILURE
}
