//! Bringing the agents of a job together again, under another launcher.
//!
//! Each is asked for until it comes, its host is lost, or the time is over: it hears of the loss when its own daemon does.

use std::time::{Duration, Instant};

use rustix::time::Timespec;

use super::{Heir, LEAD, NO_MORE, OWN, Will};
use crate::channel::messages::{Order, Report, State};
use crate::news::{self, News};
use crate::output::Output;
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
    pub output: &'a mut Output,
    /// Channels that have been given up, until their commands have ended.
    pub parted: Vec<Remote>,
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
        let began = Instant::now();
        let mut steps: Vec<Step> = heirs.iter().map(|_| Step::Waiting(began)).collect();
        loop {
            if let Some(report) = self.news.next() {
                *self.told = report;
            }
            self.parted.retain_mut(|remote| !remote.has_ended());
            if let Some(why) = why_cut_off(self.told, heirs) {
                return Err(Refusal::new(STATUS_REFUSED, why));
            }
            let late = began.elapsed() >= PATIENCE;
            for (heir, step) in heirs.iter().zip(&mut steps) {
                self.advance(heir, step, late);
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

    fn advance(&mut self, heir: &Heir, step: &mut Step, late: bool) {
        if let Step::Done(found) = step {
            // One that has come must not take us for lost while others are looked for.
            found.iter_mut().for_each(|found| found.remote.beat());
            return;
        }
        if let Some(why) = why_given_up(self.told, heir, late) {
            let before = std::mem::replace(step, Step::Done(Err(why)));
            if let Step::Calling(calling) = before {
                self.part(calling.remote);
            }
            return;
        }
        *step = match std::mem::replace(step, Step::Waiting(Instant::now())) {
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
        let run = self.told.own.as_deref().unwrap_or_default();
        let word = format!("\n{LEAD} {} {run}\n", rsh::identity());
        remote.link.send_raw(word.as_bytes());
        Ok(remote)
    }

    fn part(&mut self, mut remote: Remote) {
        remote.lose();
        self.parted.push(remote);
    }

    fn nonsense(&mut self, calling: Box<Calling>) -> Step {
        self.part(calling.remote);
        Step::Done(Err("its agent says what cannot be understood".to_owned()))
    }

    fn hear(&mut self, mut calling: Box<Calling>) -> Step {
        let remote = &mut calling.remote;
        remote.link.flush();
        while remote.read() {}
        if remote.link.is_ended() {
            // Not an orphan yet, perhaps.
            self.part(calling.remote);
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
                Err(_) => return self.nonsense(calling),
            }
        }
        calling.remote.beat();
        loop {
            let all = calling.asked.len();
            if let Some((state, _)) = calling.said.take_if(|(_, count)| all == *count as usize) {
                calling.remote.greeted(state.hello.clone());
                if self.across.verbose {
                    let name = &calling.remote.name;
                    self.output.say(&format!(
                        "the agent on the host {name} follows this launcher"
                    ));
                    self.output.flush();
                }
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
                _ => return self.nonsense(calling),
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

/// Why the agent on a host is given up, if it is. A host that is none of the machine's does not come back: as it was, it is
/// lost, whether or not it is still known why.
fn why_given_up(told: &news::Report, heir: &Heir, late: bool) -> Option<String> {
    match told.living.contains_key(&heir.run) {
        true => late.then(|| "its part of the job has not been heard of any more".to_owned()),
        false => {
            let known = told.causes.get(&heir.run).cloned();
            Some(known.unwrap_or_else(|| NO_MORE.to_owned()))
        }
    }
}

/// Why the job cannot be taken over here, if this host is cut off from others of the job by now, which may go on without it.
fn why_cut_off(told: &news::Report, heirs: &[Heir]) -> Option<String> {
    let silent = |heir: &Heir| {
        let state = told.living.get(&heir.run);
        state.is_some_and(|state| state == "suspected")
    };
    let why = told.hindrance.as_ref()?;
    let cut_off = heirs.iter().any(silent);
    cut_off.then(|| format!("{why}. The job ends here, since it may go on there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_not_taken_over_by_a_host_that_is_cut_off_from_its_others() {
        let told = |state: &str, hindrance: Option<&str>| news::Report {
            hosts: Vec::new(),
            hindrance: hindrance.map(str::to_owned),
            ending: false,
            living: [("beta".to_owned(), state.to_owned())].into(),
            own: None,
            causes: Default::default(),
        };
        let heirs = ["alpha", "beta"].map(|run| Heir {
            number: 1,
            name: run.to_owned(),
            run: run.to_owned(),
        });
        assert_eq!(why_cut_off(&told("suspected", None), &heirs), None);
        assert_eq!(why_cut_off(&told("up", Some("alone")), &heirs), None);
        let why = why_cut_off(&told("suspected", Some("alone")), &heirs);
        assert!(why.is_some_and(|why| why.starts_with("alone.")));
    }

    #[test]
    fn an_agent_is_given_up_when_its_host_is_gone_or_has_come_back_as_another_or_time_is_over() {
        let heir = |run: &str| Heir {
            number: 1,
            name: "beta".to_owned(),
            run: run.to_owned(),
        };
        let pair = |run: &str, word: &str| (run.to_owned(), word.to_owned());
        let told = news::Report {
            hosts: Vec::new(),
            hindrance: None,
            ending: false,
            living: [pair("second", "up"), pair("here", "here")].into(),
            own: Some("here".to_owned()),
            causes: [pair("other", "it has been silent")].into(),
        };
        let why = |run: &str, late| why_given_up(&told, &heir(run), late);
        assert_eq!(why("second", false), None);
        assert!(why("second", true).is_some());
        assert_eq!(why("other", false).as_deref(), Some("it has been silent"));
        // Of the first run of beta the daemons say nothing since the second one is there.
        assert_eq!(why("first", false).as_deref(), Some(NO_MORE));
    }
}
