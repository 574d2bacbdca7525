//! One host that arrives, state by state.

use std::net::IpAddr;
use std::time::Duration;

use super::admission::{Admission, RETRY_INTERVAL};
use super::departure::Departure;
use super::message::{Answer, Hello, Input, Question, READY, SEND, TROUBLE};

/// The program that hosts must run, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The text that launcher and agents must have in common.
    pub identity: String,
    /// The system and the machine that it runs on, as `uname -s -m` prints them.
    pub machine: String,
}

/// A host that is to arrive.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// The command that leads to its shell, as the user would type it.
    pub command: String,
    /// The number that it was given before it came.
    pub number: Option<u32>,
    /// Others have started its agent, which has been called: its channel stands. Otherwise one is opened.
    pub is_called: bool,
    /// Its way into the job.
    pub admission: Admission,
}

/// The state of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostState {
    /// A channel is to be opened then.
    Wanted(Duration),
    /// A channel is being opened.
    Opening,
    /// A shell is to become an agent.
    Shell,
    /// The agent is there, and has not said what it is.
    Agent,
    /// The agent has said what it is, and nothing is asked.
    Idle,
    /// The agent has been asked this.
    Asked(Question),
    /// It does not arrive.
    Lost(Departure),
}

/// A host on its way.
#[derive(Debug)]
pub(super) struct Host {
    /// This process is on it: it needs no channel.
    pub(super) is_own: bool,
    pub(super) expected: Expected,
    /// Until then it is opened again when its channel ends.
    retries_until: Duration,
    /// When it was last heard.
    heard: Duration,
    pub(super) state: HostState,
    pub(super) hello: Option<Hello>,
    /// The answer to the last question.
    pub(super) answer: Option<Answer>,
}

/// The consequence of an input, beyond the state of the host.
pub(super) enum Next {
    Nothing,
    /// It asks for this program.
    SendProgram,
    Note(String),
    /// It has closed its channel, and is opened again.
    Again,
    /// It has said what it is, and its name leads there.
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

    /// Whether something is still to come of it.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.state, HostState::Idle | HostState::Lost(_))
    }

    /// Whether its agent, or the shell that is to become one, has a channel.
    pub(super) fn has_channel(&self) -> bool {
        let is_open = matches!(
            self.state,
            HostState::Shell | HostState::Agent | HostState::Idle | HostState::Asked(_)
        );
        is_open && !self.is_own
    }

    /// Whether it does not arrive.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, HostState::Lost(_))
    }

    /// Why it does not arrive, with its name.
    pub(super) fn why_lost(&self) -> Option<(&str, &Departure)> {
        match &self.state {
            HostState::Lost(why) => Some((&self.expected.name, why)),
            _ => None,
        }
    }

    /// Handles what has happened.
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
            // Also what comes of a channel that was closed.
            (Input::Heard, _) | (_, HostState::Wanted(_)) => {}
            (Input::Failed(sentence), _) => return Err(Departure::Failed(sentence)),
            (Input::Opened, HostState::Opening) => self.state = HostState::Shell,
            (Input::Line(line), HostState::Shell) => return self.read_line(&line, own),
            (Input::ProgramSent(bytes), HostState::Shell) => {
                return Ok(Next::Note(format!(
                    "the host {} has no regatta {}: this one ({:.1} MB) was sent there for the job",
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

    /// Handles a line of its shell.
    fn read_line(&mut self, line: &str, own: &Program) -> Result<Next, Departure> {
        let Program { identity, machine } = own;
        let unfit = |why: String| Err(Departure::Unfit(why));
        match line.split_once(' ') {
            Some((READY, theirs)) if theirs == identity => self.state = HostState::Agent,
            Some((READY, theirs)) => {
                return unfit(format!(
                    "runs regatta {theirs}, and this is regatta {identity}: install the same release on both"
                ));
            }
            Some((TROUBLE, why)) => {
                return unfit(format!(
                    "has no regatta {identity}, and this one could not be sent there: {why}"
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

    /// It is asked something.
    pub(super) fn ask(&mut self, now: Duration, question: Question) {
        (self.heard, self.answer) = (now, None);
        self.state = HostState::Asked(question);
    }

    /// This process did not run for so long: nobody could be heard.
    pub(super) fn slept(&mut self, away: Duration) {
        self.heard += away;
    }

    /// When something is due: to open a channel, or to give it up.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.state {
            HostState::Wanted(at) => Some(at),
            HostState::Shell | HostState::Agent | HostState::Asked(_) => {
                self.heard.checked_add(self.expected.admission.patience)
            }
            _ => None,
        }
    }

    /// Why it is given up now, if it has been silent for too long.
    pub(super) fn silence(&self, now: Duration) -> Option<Departure> {
        let is_open = !matches!(self.state, HostState::Wanted(_));
        let is_late = is_open && self.deadline().is_some_and(|deadline| deadline <= now);
        is_late.then(|| {
            let command = (!self.expected.is_called).then(|| self.expected.command.clone());
            Departure::Silent(self.expected.admission.patience, command)
        })
    }
}
