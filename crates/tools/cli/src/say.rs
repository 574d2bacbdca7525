//! Answers of commands on standard output.
//!
//! Failing to write an answer is an error of the command. If the reader has gone (`| head`), the command exits without
//! a message with the status of a broken pipe, like other tools.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use regatta_launch::Refusal;
use regatta_launch::words::printable;

/// The status that a shell reports for a command ended by SIGPIPE.
pub const BROKEN_PIPE: u8 = 141;

/// Prints a line.
pub fn line(what: impl Display) -> Result<(), Refusal> {
    text(format_args!("{what}\n"))
}

/// Prints text that has its newlines already.
pub fn text(what: impl Display) -> Result<(), Refusal> {
    styled(&printable(&what.to_string()))
}

/// Prints text with our own colours, in which text from other sources is printable already.
pub fn styled(what: &str) -> Result<(), Refusal> {
    let mut output = std::io::stdout().lock();
    let written = write!(output, "{what}").and_then(|()| output.flush());
    written.map_err(|error| unwritten(&error))
}

fn unwritten(error: &std::io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::BrokenPipe => Refusal {
            sentence: String::new(),
            status: BROKEN_PIPE,
        },
        _ => Refusal::of_regatta(format!(
            "the answer cannot be written to standard output ({error}) and is lost, but the command has been carried out. Free space at its destination, or redirect it"
        )),
    }
}

/// Prints help, version, or a usage error, and returns the exit code.
pub fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(lost) if !error.use_stderr() => crate::machine::finish(Err(unwritten(&lost))),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}
