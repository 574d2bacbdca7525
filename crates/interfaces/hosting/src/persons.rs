//! Hosts for which a person has to do something: whoever asks for them sits at a terminal.
//!
//! With `so=ms` in a host's line the person starts it:
//!
//! ```text
//! *** Manual startup ***
//! Login to "beta" and type:
//! COMMAND
//! Type response:               the contact line that the command has printed there (`contact_line.rs`)
//! Thanks                       and the agent is called (`called_agent.rs`)
//! ```
//!
//! The person does what a task that starts hosts would do (`hosters.rs`), by the words that PVM uses. One is asked for one host at a
//! time, and takes the time that it takes: nothing else waits for it. The launcher has no terminal of its own, so it uses that of the
//! process which has asked for the host, and which waits for the answer and so does not read there. When that process has gone, or
//! the terminal has, the host is not started; the same for a line that is no agent's.
//!
//! With `so=pw` it is ssh that asks, by a program of ours that has the terminal for as long as that takes.

use std::fs::File;
use std::io::IsTerminal;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::contact_line::ContactLine;

/// Interval at which it is checked whether a terminal is free.
pub(crate) const TERMINAL_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of an agent's line, in bytes.
const MAX_LINE_BYTES: usize = 1024;

/// The contact line that a person has typed, or why there is none.
pub(crate) type Answer = Result<ContactLine, String>;

/// A person who is being asked.
#[derive(Debug)]
pub(crate) struct Person {
    /// For the host of this number.
    host: u32,
    terminal: File,
    typed: Vec<u8>,
}

impl Person {
    /// Asks at a terminal for a host, which the command starts there; none: somebody else asks something there.
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
            return Err(format!("{path} is no terminal"));
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

    /// The number of the host that is asked for.
    pub(crate) fn host(&self) -> u32 {
        self.host
    }

    /// The answer, when the person has typed it or cannot any more.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let line = match self.read_line() {
            Ok(line) => ContactLine::read(&line?),
            Err(why) => return Some(Err(why)),
        };
        let words = match line {
            Some(_) => "Thanks\n",
            None => "That is not what the command prints\n",
        };
        self.print(words);
        Some(line.ok_or_else(|| "the response is not the line of an agent".to_owned()))
    }

    /// Says something, as much of it as the terminal takes now.
    fn print(&self, words: &str) {
        let _ = rustix::io::write(&self.terminal, words.as_bytes());
    }

    /// The line that was typed, if there is one; an error if there will be none.
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

    /// The descriptors to wait for.
    pub(crate) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.terminal, PollFlags::IN)
    }
}
