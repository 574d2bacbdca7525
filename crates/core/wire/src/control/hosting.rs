//! Hosts whose agents are started by a task instead of the launcher.

use super::RequestError;
use crate::fields;

/// A host to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStart {
    /// The number that the host will have.
    pub host: u32,
    /// The value of `so=` in its host-file line: how it is to be started; empty for the usual way.
    pub manner: String,
    /// The host, with `login@` in front if the login is not the user's own.
    pub login: String,
    /// The command for the shell there. It prints one line, which is the answer, and goes on in the background.
    pub command: String,
}
fields!(HostStart {
    host,
    manner,
    login,
    command
});

/// The result of starting one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStarted {
    /// Its number.
    pub host: u32,
    /// Reason why it was not started; `None` if it was.
    pub refused: Option<RequestError>,
    /// The command's output, if it was started.
    pub line: String,
}
fields!(HostStarted {
    host,
    refused,
    line
});
