//! Answers of a race on standard output, and asides on standard error.
//!
//! A reader may go away (`| head`): an answer that cannot be written is an error of the command like others, and an aside that
//! nobody reads is none. Restoring the default of SIGPIPE instead would end a race in its middle, with its launchers under way.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// A line of an answer.
pub fn line(what: impl Display) -> Result<()> {
    text(format_args!("{what}\n"))
}

/// An answer that has its lines already.
pub fn text(what: impl Display) -> Result<()> {
    let mut output = io::stdout().lock();
    let written = write!(output, "{what}").and_then(|()| output.flush());
    written.context("the answer cannot be written to standard output")
}

/// A line beside the answer.
pub fn aside(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Whether an error is that the reader of the answer has gone, which the user knows.
pub fn is_unread(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
