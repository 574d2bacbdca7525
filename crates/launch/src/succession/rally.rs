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
    /// A copy of the desk that is later than ours; empty: it has none.
    pub copy: Vec<u8>,
}

/// What became of looking for the agents of all hosts.
pub(crate) struct Rally {
    pub found: Vec<Found>,
    /// The hosts that are lost too, and why.
    pub lost: Vec<(Heir, String)>,
}

enum Step {
    Waiting(Instant),
    Calling(Box<Calling>),
    Done(Result<Box<Found>, String>),
}

/// An agent to which the word is said.
struct Calling {
    remote: Remote,
    /// It has taken note.
    ready: bool,
    /// Its report at that time.
    said: Option<(State, u32)>,
    asked: Vec<(u32, Vec<u8>)>,
    copy: Vec<u8>,
}

/// What is needed to look for agents.
pub(crate) struct Seeker<'a> {
    pub across: &'a Across,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// Who is there.
    pub news: &'a mut News,
    pub told: &'a mut news::Report,
    /// How many tasks this launcher knows of, and how many changes of the desk.
    pub tasks: u32,
    pub changes: u64,
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
                Step::Done(Ok(found)) => rally.found.push(*found),
                Step::Done(Err(why)) => rally.lost.push((heir.clone(), why)),
                _ => {}
            }
        }
        Ok(rally)
    }

    fn advance(&self, heir: &Heir, step: &mut Step, until: Instant) {
        if let Step::Done(found) = step {
            // One that has come must not take us for lost while others are looked for.
            found.iter_mut().for_each(|found| found.remote.beat());
            return;
        }
        let why = match self.told.living.contains_key(&heir.run) {
            false => self.told.causes.get(&heir.run).cloned(),
            true => (Instant::now() >= until)
                .then(|| "its part of the job has not been heard of any more".to_owned()),
        };
        if let Some(why) = why {
            let before = std::mem::replace(step, Step::Done(Err(why)));
            if let Step::Calling(mut calling) = before {
                calling.remote.lose();
            }
            return;
        }
        *step = match std::mem::replace(step, Step::Waiting(until)) {
            Step::Waiting(at) if at > Instant::now() => Step::Waiting(at),
            Step::Waiting(_) => match self.call(heir) {
                Ok(remote) => Step::Calling(Box::new(Calling {
                    remote,
                    ready: false,
                    said: None,
                    asked: Vec::new(),
                    copy: Vec::new(),
                })),
                Err(_) => Step::Waiting(Instant::now() + AGAIN),
            },
            Step::Calling(calling) => self.hear(calling),
            done => done,
        };
    }

    fn call(&self, heir: &Heir) -> Result<Remote, Refusal> {
        let mut remote = Remote::open(self.across, heir.number, &heir.name, self.signals)?;
        let word = format!("\n{LEAD} {}\n", rsh::identity());
        remote.link.send_raw(word.as_bytes());
        Ok(remote)
    }

    fn hear(&self, mut calling: Box<Calling>) -> Step {
        let remote = &mut calling.remote;
        remote.link.flush();
        while remote.read() {}
        if remote.link.is_ended() {
            // Not an orphan yet, perhaps.
            remote.lose();
            return Step::Waiting(Instant::now() + AGAIN);
        }
        if !calling.ready {
            let word = format!("{} {}", rsh::READY, rsh::identity());
            match remote.link.line(&word) {
                Ok(Some(_)) => {
                    calling.ready = true;
                    let (tasks, changes) = (self.tasks, self.changes);
                    let _ = remote.send(&Order::Lead { tasks, changes });
                }
                Ok(None) => return Step::Calling(calling),
                Err(_) => return nonsense(calling),
            }
        }
        calling.remote.beat();
        loop {
            let all = calling.asked.len();
            if let Some((state, _)) = calling.said.take_if(|(_, count)| all == *count as usize) {
                calling.remote.greeted(state.hello.clone());
                return Step::Done(Ok(Box::new(Found {
                    remote: calling.remote,
                    state,
                    asked: calling.asked,
                    copy: calling.copy,
                })));
            }
            match calling.remote.link.next() {
                Ok(None) => return Step::Calling(calling),
                Ok(Some(Report::Beat {})) => {}
                Ok(Some(Report::Copy { bytes })) if calling.said.is_none() => {
                    calling.copy.extend_from_slice(&bytes);
                }
                Ok(Some(Report::State {
                    state,
                    asked: count,
                })) if calling.said.is_none() => {
                    calling.said = Some((state, count));
                }
                Ok(Some(Report::Asked { task, bytes })) if calling.said.is_some() => {
                    calling.asked.push((task, bytes));
                }
                _ => return nonsense(calling),
            }
        }
    }

    fn wait(&mut self, steps: &[Step]) -> Result<(), Refusal> {
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.news.polls());
        for step in steps {
            if let Step::Calling(calling) = step {
                fds.extend(calling.remote.polls());
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

fn nonsense(mut calling: Box<Calling>) -> Step {
    calling.remote.lose();
    Step::Done(Err("its agent says what cannot be understood".to_owned()))
}
