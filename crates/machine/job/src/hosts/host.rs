//! The state machine of one arriving host.

use std::net::IpAddr;
use std::time::Duration;

use super::admission::{Admission, RETRY_INTERVAL};
use super::departure::Departure;
use super::message::{Answer, Hello, Input, Question, READY, SEND, TROUBLE};

/// The program that the hosts must run as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The text that must be equal for the launcher and its agents.
    pub identity: String,
    /// The system and architecture that it runs on, as `uname -s -m` prints them.
    pub machine: String,
}

/// A host that is to arrive.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The host's name.
    pub name: String,
    /// The command that leads to the host's shell, as the user would type it.
    pub command: String,
    /// The host's number in the job, if it has one before it arrives.
    pub number: Option<u32>,
    /// Whether the user has started its agent and a channel to it already exists. Otherwise a channel is opened.
    pub is_called: bool,
    /// The host's way into the job.
    pub admission: Admission,
}

/// The state of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostState {
    /// A channel is to be opened at this time.
    Wanted(Duration),
    /// A channel is being opened.
    Opening,
    /// The host has a shell that is to become an agent.
    Shell,
    /// The agent runs and has not sent its greeting.
    Agent,
    /// The agent has sent its greeting, and no question is open.
    Idle,
    /// The agent has been asked this question.
    Asked(Question),
    /// The host does not arrive, for this cause.
    Lost(Departure),
}

/// An arriving host.
#[derive(Debug)]
pub(super) struct Host {
    /// Whether this process runs on the host, so that it needs no channel.
    pub(super) is_own: bool,
    pub(super) expected: Expected,
    /// The channel is opened again if it ends before this time.
    retries_until: Duration,
    /// The time at which something was last received from the host.
    heard: Duration,
    pub(super) state: HostState,
    pub(super) hello: Option<Hello>,
    /// The answer to the last question.
    pub(super) answer: Option<Answer>,
}

/// What an input requires beyond the change of the host's state.
pub(super) enum Next {
    Nothing,
    /// Send the program to the host.
    SendProgram,
    Note(String),
    /// Close the channel, which will be opened again.
    Again,
    /// Handle the greeting. The host's name resolves to these addresses.
    Greeted(Vec<IpAddr>),
    Answered,
}

impl Host {
    pub(super) fn new(expected: Expected, now: Duration) -> Self {
        Self {
            is_own: false,
            retries_until: now + expected.admission.retries,
            heard: now,
            state: match expected.is_called {
                true => HostState::Opening,
                false => HostState::Wanted(now),
            },
            hello: None,
            answer: None,
            expected,
        }
    }

    /// Returns whether the host has not finished the present step.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.state, HostState::Idle | HostState::Lost(_))
    }

    /// Returns whether its agent, or the shell that is to become one, has a channel.
    pub(super) fn has_channel(&self) -> bool {
        let is_open = matches!(
            self.state,
            HostState::Shell | HostState::Agent | HostState::Idle | HostState::Asked(_)
        );
        is_open && !self.is_own
    }

    /// Returns whether the host does not arrive.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, HostState::Lost(_))
    }

    /// Returns the host's name and why it does not arrive, or `None` if it still may.
    pub(super) fn why_lost(&self) -> Option<(&str, &Departure)> {
        match &self.state {
            HostState::Lost(why) => Some((&self.expected.name, why)),
            _ => None,
        }
    }

    /// Handles an event.
    pub(super) fn handle(
        &mut self,
        now: Duration,
        input: Input,
        own: &Program,
    ) -> Result<Next, Departure> {
        if !matches!(input, Input::Failed(_) | Input::Closed(_)) {
            self.heard = now;
        }
        match (input, &self.state) {
            // The second pattern ignores the rest of a closed channel.
            (Input::Heard, _) | (_, HostState::Wanted(_)) => {}
            (Input::Failed(sentence), _) => return Err(Departure::Failed(sentence)),
            (Input::Opened, HostState::Opening) => self.state = HostState::Shell,
            (Input::Line(line), HostState::Shell) => return self.read_line(&line, own),
            (Input::ProgramSent(bytes), HostState::Shell) => {
                return Ok(Next::Note(format!(
                    "the host {} has no regatta {}; this program ({:.1} MB) was sent there for the job",
                    self.expected.name,
                    env!("CARGO_PKG_VERSION"),
                    bytes as f64 / 1e6
                )));
            }
            (Input::Greeting(hello, named), HostState::Agent) => {
                self.hello = Some(*hello);
                self.state = HostState::Idle;
                return Ok(Next::Greeted(named));
            }
            (Input::Answer(answer), HostState::Asked(question))
                if question.is_answered_by(&answer) =>
            {
                self.answer = Some(answer);
                self.state = HostState::Idle;
                return Ok(Next::Answered);
            }
            (Input::Refused(status, sentence), HostState::Idle | HostState::Asked(_)) => {
                return Err(Departure::Refused(status, sentence));
            }
            (Input::Closed(_), HostState::Shell | HostState::Agent) if now < self.retries_until => {
                self.state = HostState::Wanted(now + RETRY_INTERVAL);
                return Ok(Next::Again);
            }
            (Input::Closed(_), _) if self.expected.is_called => return Err(Departure::HungUp),
            (Input::Closed(why), _) => return Err(Departure::Ended(why)),
            _ => return Err(Departure::Nonsense),
        }
        Ok(Next::Nothing)
    }

    /// Handles a line of the host's shell.
    fn read_line(&mut self, line: &str, own: &Program) -> Result<Next, Departure> {
        let Program { identity, machine } = own;
        let unfit = |why: String| Err(Departure::Unfit(why));
        match line.split_once(' ') {
            Some((READY, theirs)) if theirs == identity => self.state = HostState::Agent,
            Some((READY, theirs)) => {
                return unfit(format!(
                    "runs regatta {theirs}, but this host runs regatta {identity}: install the same release on both"
                ));
            }
            Some((TROUBLE, why)) => {
                return unfit(format!(
                    "has no regatta {identity}, and this program could not be sent there: {why}"
                ));
            }
            Some((SEND, theirs)) if theirs == machine => return Ok(Next::SendProgram),
            Some((SEND, theirs)) => {
                return unfit(format!(
                    "is a {theirs}, has no regatta {identity}, and this program is for {machine}: install Regatta there"
                ));
            }
            _ => {}
        }
        Ok(Next::Nothing)
    }

    /// Records that the host is asked a question now.
    pub(super) fn ask(&mut self, now: Duration, question: Question) {
        (self.heard, self.answer) = (now, None);
        self.state = HostState::Asked(question);
    }

    /// Extends the timeout by `away`, because this process did not run for that time and received nothing.
    pub(super) fn slept(&mut self, away: Duration) {
        self.heard += away;
    }

    /// Returns the time at which to open a channel, or to give the host up.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.state {
            HostState::Wanted(at) => Some(at),
            HostState::Shell | HostState::Agent | HostState::Asked(_) => {
                self.heard.checked_add(self.expected.admission.patience)
            }
            _ => None,
        }
    }

    /// Returns the cause to give the host up if it has been silent for too long.
    pub(super) fn silence(&self, now: Duration) -> Option<Departure> {
        let is_open = !matches!(self.state, HostState::Wanted(_));
        let is_late = is_open && self.deadline().is_some_and(|deadline| deadline <= now);
        is_late.then(|| {
            let command = (!self.expected.is_called).then(|| self.expected.command.clone());
            Departure::Silent(self.expected.admission.patience, command)
        })
    }
}
