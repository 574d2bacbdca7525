//! Hosts for which a person has to do something, who sits at the terminal of the requesting process.
//!
//! With `so=ms` in a host's line the person starts the agent:
//!
//! ```text
//! *** Manual startup ***
//! Login to "beta" and type:
//! COMMAND
//! Type response:               the contact line that the command has printed there (`contact_line.rs`)
//! Thanks                       and the agent is called (`called_agent.rs`)
//! ```
//!
//! The person does what a hoster would do (`hosters.rs`), with the dialogue of PVM. Only one host is asked for at a
//! time. There is no time limit, and nothing else waits for the answer. The launcher has no terminal, so it uses that
//! of the process that has requested the host. That process waits for the result, and does not read from the terminal
//! meanwhile. If that process or its terminal is gone, or if the typed line is not an agent's, the host is not started.
//!
//! With `so=pw` ssh asks for the password, through a helper program of Regatta's that has the terminal meanwhile.

use std::fs::File;
use std::io::IsTerminal;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::contact_line::ContactLine;

/// Interval at which the launcher checks whether a terminal is free.
pub(crate) const TERMINAL_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of a contact line in bytes.
const MAX_LINE_BYTES: usize = 1024;

/// The contact line that a person has typed, or why there is none.
pub(crate) type Answer = Result<ContactLine, String>;

/// A dialogue with a person.
#[derive(Debug)]
pub(crate) struct Person {
    /// The number of the host that the person has to start.
    host: u32,
    terminal: File,
    typed: Vec<u8>,
}

impl Person {
    /// Asks a person at a terminal to run the command on a host. Returns `None` if another dialogue holds the terminal.
    pub(crate) fn ask(
        host: u32,
        name: &str,
        path: &str,
        command: &str,
    ) -> Result<Option<Person>, String> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
        let terminal = terminal.map_err(|errno| format!("{path} cannot be opened: {errno}"))?;
        if !terminal.is_terminal() {
            return Err(format!("{path} is not a terminal"));
        }
        if rustix::fs::flock(&terminal, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let person = Person {
            host,
            terminal,
            typed: Vec::new(),
        };
        person.print(&format!(
            "*** Manual startup ***\nLogin to \"{name}\" and type:\n{command}\nType response: "
        ));
        Ok(Some(person))
    }

    /// Returns the number of the host.
    pub(crate) fn host(&self) -> u32 {
        self.host
    }

    /// Returns the answer, or an error if there will be none. Returns `None` while the person has not answered.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let line = match self.read_line() {
            Ok(line) => ContactLine::read(&line?),
            Err(why) => return Some(Err(why)),
        };
        let words = match line {
            Some(_) => "Thanks\n",
            None => "This is not the line that the command prints\n",
        };
        self.print(words);
        Some(line.ok_or_else(|| "the response is not the line that the agent prints".to_owned()))
    }

    /// Prints as much of a text as the terminal takes without blocking.
    fn print(&self, words: &str) {
        let _ = rustix::io::write(&self.terminal, words.as_bytes());
    }

    /// Reads the line that was typed, if it is complete. Fails if there will be none.
    fn read_line(&mut self) -> Result<Option<String>, String> {
        let mut bytes = [0; 256];
        loop {
            match rustix::io::read(&self.terminal, &mut bytes) {
                Ok(0) => return Err("the input ended".to_owned()),
                Ok(count) => self.typed.extend_from_slice(&bytes[..count]),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(format!("the terminal cannot be read: {errno}")),
            }
            if self.typed.contains(&b'\n') || self.typed.len() > MAX_LINE_BYTES {
                break;
            }
        }
        let end = self.typed.iter().position(|&byte| byte == b'\n');
        let end = end.or((self.typed.len() > MAX_LINE_BYTES).then_some(MAX_LINE_BYTES));
        Ok(end.map(|end| String::from_utf8_lossy(&self.typed[..end]).into_owned()))
    }

    /// Returns the descriptor to poll for.
    pub(crate) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.terminal, PollFlags::IN)
    }
}
