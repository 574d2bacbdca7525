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
//! With `so=pw` it is ssh that asks, by a program of ours that has the terminal for as long as that takes; here it is only seen to that
//! nobody asks any more when whoever wanted the host has gone.

use std::fs::File;
use std::io::IsTerminal;
use std::time::Duration;

use regatta_wire::control::Why;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::arriving::{Arriving, Step};
use super::{Growing, Supervisor};
use crate::agent_call::Calling;
use crate::called_agent;
use crate::contact_line::ContactLine;
use crate::gather::Program;

/// So often it is looked whether a terminal is free.
pub(super) const AGAIN: Duration = Duration::from_millis(200);
/// No line of an agent is longer.
const LONGEST: usize = 1024;

/// A person who is asked for a host, and the terminal.
#[derive(Clone, Debug)]
pub(super) struct Hand {
    /// The task that wants the host.
    pub(super) by: u32,
    /// Its terminal.
    pub(super) terminal: String,
}

/// A person who is being asked.
#[derive(Debug)]
pub(super) struct Person {
    /// For this host.
    host: u32,
    terminal: File,
    typed: Vec<u8>,
}

impl Person {
    /// Asks for a host; none: somebody else asks something there.
    fn ask(hand: &Hand, arriving: &Arriving) -> Result<Option<Person>, String> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = hand.terminal.as_str();
        let terminal = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
        let terminal = terminal.map_err(|errno| format!("{path} cannot be opened: {errno}"))?;
        if !terminal.is_terminal() {
            return Err(format!("{path} is no terminal"));
        }
        if rustix::fs::flock(&terminal, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let own = Program::own().map_err(|refusal| refusal.sentence)?;
        let daemon = arriving.wish.as_ref();
        let daemon = daemon.and_then(|wish| wish.options.daemon.as_deref());
        let person = Person {
            host: arriving.number.unwrap_or(u32::MAX),
            terminal,
            typed: Vec::new(),
        };
        person.print(&format!(
            "*** Manual startup ***\nLogin to \"{}\" and type:\n{}\nType response: ",
            arriving.host.name,
            called_agent::command(&own.path, daemon)
        ));
        Ok(Some(person))
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
            if self.typed.contains(&b'\n') || self.typed.len() > LONGEST {
                break;
            }
        }
        let end = self.typed.iter().position(|&byte| byte == b'\n');
        let end = end.or((self.typed.len() > LONGEST).then_some(LONGEST));
        Ok(end.map(|end| String::from_utf8_lossy(&self.typed[..end]).into_owned()))
    }

    /// The descriptors to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.terminal, PollFlags::IN)
    }
}

impl Supervisor<'_> {
    /// Hears what persons have typed, and asks the next one.
    pub(in crate::supervise) fn handle_persons(&mut self) {
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        self.forget_who_has_gone(&mut growing);
        while let Some((at, heard)) = growing.read_answer() {
            let mut arriving = growing.arriving.remove(at);
            match heard {
                Ok(contact_line) => {
                    let named = arriving.wish.iter().flat_map(|wish| wish.addresses());
                    arriving.step = Step::Calling(Calling::begin(&contact_line, named));
                    growing.arriving.push(arriving);
                }
                Err(why) => {
                    let name = &arriving.host.name;
                    let sentence = format!("the host {name} was not started by hand: {why}");
                    self.output.report(&sentence);
                    let refused = Err((Why::System, sentence));
                    self.fulfil(&mut growing, arriving.wish, refused);
                }
            }
        }
        self.growing = Some(growing);
    }

    /// For whom nobody waits any more, nobody is asked.
    fn forget_who_has_gone(&mut self, growing: &mut Growing) {
        let registry = &self.registry;
        let gone = |arriving: &Arriving| match &arriving.step {
            Step::ByHand(hand) => !registry.is_alive(hand.by),
            Step::Greeting(..) => {
                let typing = arriving.wish.as_ref().and_then(|wish| wish.person.as_ref());
                typing.is_some_and(|hand| !registry.is_alive(hand.by))
            }
            _ => false,
        };
        let all = std::mem::take(&mut growing.arriving);
        let (gone, left) = all.into_iter().partition(gone);
        growing.arriving = left;
        let gone: Vec<Arriving> = gone;
        for arriving in gone {
            growing.part(arriving.step);
            arriving.wish.map(|wish| growing.wishes.withdraw(&wish));
        }
    }
}

impl Growing<'_> {
    /// Where the next host is whose person has answered, or cannot be asked, and what that comes to.
    fn read_answer(&mut self) -> Option<(usize, Result<ContactLine, String>)> {
        loop {
            let asked = self.person.as_ref().map(|person| person.host);
            let mut all = self.arriving.iter().enumerate();
            let (at, arriving, hand) = all
                .find_map(|(at, arriving)| match &arriving.step {
                    Step::ByHand(hand) if asked.is_none() || asked == arriving.number => {
                        Some((at, arriving, hand))
                    }
                    _ => None,
                })
                .or_else(|| {
                    // The host is no longer wanted for which somebody was asked.
                    self.person = None;
                    None
                })?;
            let Some(person) = &mut self.person else {
                match Person::ask(hand, arriving) {
                    Ok(None) => return None,
                    Ok(person) => self.person = person,
                    Err(why) => return Some((at, Err(why))),
                }
                continue;
            };
            let line = match person.read_line() {
                Ok(None) => return None,
                Ok(Some(line)) => line,
                Err(why) => {
                    self.person = None;
                    return Some((at, Err(why)));
                }
            };
            let contact_line =
                ContactLine::read(&line).ok_or("the response is not the line of an agent");
            let words = if contact_line.is_ok() {
                "Thanks\n"
            } else {
                "That is not what the command prints\n"
            };
            person.print(words);
            self.person = None;
            return Some((at, contact_line.map_err(str::to_owned)));
        }
    }
}
