//! Answers of commands on standard output.
//!
//! An answer that cannot be written is an error of the command, with a sentence. When its reader has gone (`| head`) the command ends
//! quietly with the status of a broken pipe, as other tools do.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use regatta_launch::Refusal;
use regatta_launch::words::printable;

/// A shell's status for a command that was ended by SIGPIPE.
pub const BROKEN_PIPE: u8 = 141;

/// A line of an answer.
pub fn line(what: impl Display) -> Result<(), Refusal> {
    text(format_args!("{what}\n"))
}

/// An answer that has its lines already.
pub fn text(what: impl Display) -> Result<(), Refusal> {
    styled(&printable(&what.to_string()))
}

/// An answer with colours of ours, whose foreign parts are printable already.
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
            "the answer cannot be written to standard output ({error}), so it is lost; what was asked for has been done. Make room there, or send it elsewhere"
        )),
    }
}

/// Prints text of a command about itself, or about a command line that makes no sense.
pub fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(lost) if !error.use_stderr() => crate::machine::finish(Err(unwritten(&lost))),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}
