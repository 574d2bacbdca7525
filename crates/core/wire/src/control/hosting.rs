//! Hosts whose agents a task starts in the launcher's place.

use super::Why;
use crate::fields;

/// A host that is to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStart {
    /// The number that it will have.
    pub host: u32,
    /// How its line in a host file wants it to be started (`so=`); empty: as usual.
    pub manner: String,
    /// Where: a host, with `login@` before it if that is not the user's own.
    pub login: String,
    /// For the shell there. It prints a line, which is the answer, and goes on by itself.
    pub command: String,
}
fields!(HostStart {
    host,
    manner,
    login,
    command
});

/// Its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStarted {
    /// Its number.
    pub host: u32,
    /// Why it was not started.
    pub refused: Option<Why>,
    /// The command's output, if it was started.
    pub line: String,
}
fields!(HostStarted {
    host,
    refused,
    line
});
