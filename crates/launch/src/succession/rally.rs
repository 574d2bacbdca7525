//! Bringing the agents of a job together again, under another launcher.
//!
//! Each is asked for until it comes, its host is lost, or the time is over: it hears of the loss when its own daemon does.

use std::time::{Duration, Instant};

use rustix::time::Timespec;

use super::{Heir, LEAD, OWN, Will};
use crate::channel::messages::{Order, Report, State};
use crate::news::{self, News};
use crate::owner::{self, Owner};
use crate::plan::Across;
use crate::refusal::{Refusal, STATUS_REFUSED};
use crate::remote::Remote;
use crate::rsh;
use crate::signals::Signals;

/// An agent that has not come for so long never will.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often one is asked for.
const AGAIN: Duration = Duration::from_millis(100);

/// An agent that has come.
pub(crate) struct Found {
    pub remote: Remote,
    pub state: State,
    /// What its tasks have asked and nobody has answered.
    pub asked: Vec<(u32, Vec<u8>)>,
}

/// What became of looking for the agents of all hosts.
pub(crate) struct Rally {
    pub found: Vec<Found>,
    /// The hosts that are lost too, and why.
    pub lost: Vec<(Heir, String)>,
}

enum Step {
    Waiting(Instant),
    /// The word is said; whether the agent has taken note, and what it has said then.
    Calling(Remote, bool, Option<(State, u32)>, Vec<(u32, Vec<u8>)>),
    Done(Result<Found, String>),
}

/// What is needed to look for agents.
pub(crate) struct Seeker<'a> {
    pub across: &'a Across,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// Who is there.
    pub news: &'a mut News,
    pub told: &'a mut news::Report,
    /// How many tasks this launcher knows of.
    pub tasks: u32,
}

/// How the shell on a host is taken over in which an agent waits.
pub(crate) fn across(usual: &Across, will: &Will) -> Across {
    let word = |word: &String| match word.as_str() {
        "--lasting" => "--inherit".to_owned(),
        _ => word.clone(),
    };
    let own = std::iter::once(OWN.to_owned());
    Across {
        rsh: Some(own.chain(will.reach.iter().map(word)).collect()),
        ..usual.clone()
    }
}

impl Seeker<'_> {
    /// Looks for the agents on these hosts, to the end.
    pub(crate) fn rally(mut self, heirs: &[Heir]) -> Result<Rally, Refusal> {
        let until = Instant::now() + PATIENCE;
        let mut steps: Vec<Step> = heirs
            .iter()
            .map(|_| Step::Waiting(Instant::now()))
            .collect();
        loop {
            if let Some(report) = self.news.next() {
                *self.told = report;
            }
            for (heir, step) in heirs.iter().zip(&mut steps) {
                self.advance(heir, step, until);
            }
            if steps.iter().all(|step| matches!(step, Step::Done(_))) {
                break;
            }
            self.wait(&steps)?;
        }
        let mut rally = Rally {
            found: Vec::new(),
            lost: Vec::new(),
        };
        for (heir, step) in heirs.iter().zip(steps) {
            match step {
                Step::Done(Ok(found)) => rally.found.push(found),
                Step::Done(Err(why)) => rally.lost.push((heir.clone(), why)),
                _ => {}
            }
        }
        Ok(rally)
    }

    fn advance(&self, heir: &Heir, step: &mut Step, until: Instant) {
        if matches!(step, Step::Done(_)) {
            return;
        }
        let why = match self.told.living.contains_key(&heir.run) {
            false => self.told.causes.get(&heir.run).cloned(),
            true => (Instant::now() >= until)
                .then(|| "its part of the job has not been heard of any more".to_owned()),
        };
        if let Some(why) = why {
            let before = std::mem::replace(step, Step::Done(Err(why)));
            if let Step::Calling(mut remote, ..) = before {
                remote.lose();
            }
            return;
        }
        *step = match std::mem::replace(step, Step::Waiting(until)) {
            Step::Waiting(at) if at > Instant::now() => Step::Waiting(at),
            Step::Waiting(_) => match self.call(heir) {
                Ok(remote) => Step::Calling(remote, false, None, Vec::new()),
                Err(_) => Step::Waiting(Instant::now() + AGAIN),
            },
            Step::Calling(remote, ready, said, asked) => self.hear(remote, ready, said, asked),
            done => done,
        };
    }

    fn call(&self, heir: &Heir) -> Result<Remote, Refusal> {
        let mut remote = Remote::open(self.across, heir.number, &heir.name, self.signals)?;
        let word = format!("\n{LEAD} {}\n", rsh::identity());
        remote.link.send_raw(word.as_bytes());
        Ok(remote)
    }

    fn hear(
        &self,
        mut remote: Remote,
        mut ready: bool,
        mut said: Option<(State, u32)>,
        mut asked: Vec<(u32, Vec<u8>)>,
    ) -> Step {
        remote.link.flush();
        while remote.read() {}
        if remote.link.is_ended() {
            // Not an orphan yet, perhaps.
            remote.lose();
            return Step::Waiting(Instant::now() + AGAIN);
        }
        if !ready {
            let word = format!("{} {}", rsh::READY, rsh::identity());
            match remote.link.line(&word) {
                Ok(Some(_)) => {
                    ready = true;
                    let tasks = self.tasks;
                    let _ = remote.send(&Order::Lead { tasks });
                }
                Ok(None) => return Step::Calling(remote, ready, said, asked),
                Err(_) => return nonsense(remote),
            }
        }
        remote.beat();
        loop {
            if let Some((state, _)) = said.take_if(|(_, count)| asked.len() == *count as usize) {
                remote.greeted(state.hello.clone());
                return Step::Done(Ok(Found {
                    remote,
                    state,
                    asked,
                }));
            }
            match remote.link.next() {
                Ok(None) => return Step::Calling(remote, ready, said, asked),
                Ok(Some(Report::Beat {})) => {}
                Ok(Some(Report::State {
                    state,
                    asked: count,
                })) if said.is_none() => {
                    said = Some((state, count));
                }
                Ok(Some(Report::Asked { task, bytes })) if said.is_some() => {
                    asked.push((task, bytes));
                }
                _ => return nonsense(remote),
            }
        }
    }

    fn wait(&mut self, steps: &[Step]) -> Result<(), Refusal> {
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.news.polls());
        for step in steps {
            if let Step::Calling(remote, ..) = step {
                fds.extend(remote.polls());
            }
        }
        let timeout = Timespec::try_from(AGAIN).ok();
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
        drop(fds);
        let (arrived, lives) = self.owner.wishes(self.signals);
        match !lives || arrived.iter().any(|arrived| owner::is_end(arrived.signal)) {
            true => Err(Refusal::new(
                STATUS_REFUSED,
                "ended while another launcher took the job over",
            )),
            false => Ok(()),
        }
    }
}

fn nonsense(mut remote: Remote) -> Step {
    remote.lose();
    Step::Done(Err("its agent says what cannot be understood".to_owned()))
}
