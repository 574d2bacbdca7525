//! Output of a race: answers on standard output, and messages on standard error.
//!
//! The reader may close the pipe (`| head`). If an answer cannot be written, the command fails as for other errors.
//! Messages that cannot be written are ignored. Restoring the default action of SIGPIPE instead would end a race in its
//! middle while its launchers run.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Prints a line of an answer.
pub fn line(what: impl Display) -> Result<()> {
    text(format_args!("{what}\n"))
}

/// Prints an answer that contains its newlines.
pub fn text(what: impl Display) -> Result<()> {
    let mut output = io::stdout().lock();
    let written = write!(output, "{what}").and_then(|()| output.flush());
    written.context("the answer cannot be written to standard output")
}

/// Prints a line on standard error. Errors are ignored.
pub fn aside(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Returns whether an error is that the reader of the answer has closed the pipe, which the user knows.
pub fn is_unread(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
