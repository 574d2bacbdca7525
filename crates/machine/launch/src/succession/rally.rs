//! Bringing the agents of a job together again, under another launcher.
//!
//! The channel to each is claimed until that succeeds, its host is lost, or the time is over: its agent hears of the loss when its own
//! daemon does. When no claim is open any more, all agents hear the word at once. If one of them does not name this host among the hosts that
//! may lead, they all hear that it gives up, and their daemons take the claims back.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use regatta_job::Registry;
use regatta_job::failover::{Candidate, FailoverPlan};
use rustix::time::Timespec;

use super::NO_MORE;
use super::claim::{self, Claim};
use crate::channel::Link;
use crate::channel::end::ChannelEnd;
use crate::channel::messages::{Order, Report, State};
use crate::membership_feed::{self, MembershipFeed};
use crate::output::Output;
use crate::owner::{self, Owner};
use crate::refusal::{Refusal, STATUS_REFUSED};
use crate::remote::Remote;
use crate::signals::Signals;

/// An agent that has not come for so long never will.
const PATIENCE: Duration = Duration::from_secs(15);
/// A host that may not lead has so long to say so to those that wait for it.
const WITHDRAWAL: Duration = Duration::from_secs(3);
/// How often one is asked for.
const AGAIN: Duration = Duration::from_millis(100);

/// An agent that has come.
pub(crate) struct Found {
    pub remote: Remote,
    pub state: State,
    /// Requests of its tasks that nobody has answered.
    pub asked: Vec<(u32, Vec<u8>)>,
    /// A copy of the registry that is later than ours; empty: it has none.
    pub copy: Vec<u8>,
}

/// The result of looking for the agents of all hosts.
pub(crate) struct Rally {
    pub found: Vec<Found>,
    /// The hosts that are lost too, and why.
    pub lost: Vec<(Candidate, String)>,
}

enum Step {
    Waiting(Instant),
    /// The channel is asked for.
    Claiming(Box<Remote>),
    /// It is ours, and its agent may be taken over by this host.
    Claimed(Box<Remote>),
    Calling(Box<Calling>),
    Done(Result<Box<Found>, String>),
}

/// An agent to which the word is said.
struct Calling {
    remote: Remote,
    /// Its report at that time.
    said: Option<(State, u32)>,
    asked: Vec<(u32, Vec<u8>)>,
    copy: Vec<u8>,
}

/// Looks for agents.
pub(crate) struct Seeker<'a> {
    pub plan: &'a FailoverPlan,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// The hosts that are there.
    pub news: &'a mut MembershipFeed,
    pub told: &'a mut membership_feed::Report,
    /// The channel of this host's agent. Its end is that of the daemon here.
    pub tether: &'a mut Link,
    /// How many tasks this launcher knows of, and how many changes of the registry.
    pub tasks: u32,
    pub changes: u64,
    /// The hosts that the old launcher had given up, by the copies of the registry that have come so far: nobody looks for these.
    pub dead: HashSet<u32>,
    pub output: &'a mut Output,
    /// Channels that have been given up, until their commands have ended.
    pub parted: Vec<Remote>,
    /// Why this host may not lead, if some agent does not name it.
    pub refused: Option<(Instant, Refusal)>,
}

impl Seeker<'_> {
    /// Looks for the agents on these hosts, to the end.
    pub(crate) fn rally(mut self, candidates: &[Candidate]) -> Result<Rally, Refusal> {
        let mut began = Instant::now();
        let mut steps: Vec<Step> = candidates.iter().map(|_| Step::Waiting(began)).collect();
        let mut calls = false;
        loop {
            if let Some(report) = self.news.next() {
                *self.told = report;
            }
            self.parted.retain_mut(|remote| !remote.has_ended());
            let alone = daemon_has_ended(self.tether).then(|| ChannelEnd::OwnDaemon.cause());
            if let Some(why) = alone.or_else(|| why_cut_off(self.told, candidates)) {
                let why = format!("{why}. The job ends here, since it may go on there");
                return Err(Refusal::new(STATUS_REFUSED, why));
            }
            let late = began.elapsed() >= PATIENCE;
            for (candidate, step) in candidates.iter().zip(&mut steps) {
                self.advance(candidate, step, late);
            }
            for (candidate, step) in candidates.iter().zip(&mut steps) {
                self.pass_over(candidate, step);
            }
            if steps.iter().all(|step| matches!(step, Step::Done(_))) {
                break;
            }
            let claimed = |step: &Step| matches!(step, Step::Claimed(_) | Step::Done(_));
            if !calls && steps.iter().all(claimed) {
                (calls, began) = (true, Instant::now());
            }
            let is_due =
                |(since, _): &mut (Instant, Refusal)| calls || since.elapsed() >= WITHDRAWAL;
            if let Some((_, refusal)) = self.refused.take_if(is_due) {
                self.withdraw(steps);
                return Err(refusal);
            }
            if calls {
                steps = steps.into_iter().map(|step| self.call(step)).collect();
            }
            self.wait(&steps)?;
        }
        let mut rally = Rally {
            found: Vec::new(),
            lost: Vec::new(),
        };
        for (candidate, step) in candidates.iter().zip(steps) {
            match step {
                Step::Done(Ok(found)) => rally.found.push(*found),
                Step::Done(Err(why)) => rally.lost.push((candidate.clone(), why)),
                _ => {}
            }
        }
        Ok(rally)
    }

    /// Gives an agent up if its host is dead by a copy of the registry, also one that has come: others have been told so.
    fn pass_over(&mut self, candidate: &Candidate, step: &mut Step) {
        if !self.dead.contains(&candidate.number) || matches!(step, Step::Done(Err(_))) {
            return;
        }
        let why = "the launcher before this one had given it up".to_owned();
        match std::mem::replace(step, Step::Done(Err(why))) {
            Step::Claiming(remote) | Step::Claimed(remote) => self.part(*remote),
            Step::Calling(calling) => self.part(calling.remote),
            Step::Done(Ok(found)) => self.part(found.remote),
            Step::Waiting(_) | Step::Done(Err(_)) => {}
        }
    }

    /// Takes one host as far as it goes now.
    fn advance(&mut self, candidate: &Candidate, step: &mut Step, late: bool) {
        if let Step::Done(found) = step {
            found.iter_mut().for_each(|found| found.remote.keep_up());
            return;
        }
        if let Some(why) = why_given_up(self.told, candidate, late) {
            let before = std::mem::replace(step, Step::Done(Err(why)));
            match before {
                Step::Claiming(remote) | Step::Claimed(remote) => self.part(*remote),
                Step::Calling(calling) => self.part(calling.remote),
                Step::Waiting(_) | Step::Done(_) => {}
            }
            return;
        }
        *step = match std::mem::replace(step, Step::Waiting(Instant::now())) {
            Step::Waiting(at) if at > Instant::now() => Step::Waiting(at),
            Step::Waiting(_) => Step::Claiming(Box::new(claim::open(self.plan, candidate))),
            Step::Claiming(remote) => self.read_claim(remote),
            Step::Claimed(mut remote) => match claim::keep(&mut remote) {
                true => Step::Claimed(remote),
                false => self.claim_again(*remote),
            },
            Step::Calling(calling) => self.read_answer(calling),
            done => done,
        };
    }

    /// Claims a channel again that has ended: its agent does not know yet, perhaps, that its owner is lost.
    fn claim_again(&mut self, remote: Remote) -> Step {
        self.part(remote);
        Step::Waiting(Instant::now() + AGAIN)
    }

    /// Reads whether the channel of an agent is ours, and whether it may be.
    fn read_claim(&mut self, mut remote: Box<Remote>) -> Step {
        match claim::read(&mut remote) {
            Claim::Open => Step::Claiming(remote),
            Claim::Ended => self.claim_again(*remote),
            Claim::Granted(successors) => {
                self.report_step(&remote, "waits for");
                if successors.iter().all(|run| run != self.own_run()) {
                    let sentence = format!(
                        "the launcher had given this host up, as the host {} has heard. The job ends here, since it may go on there",
                        remote.name
                    );
                    let refusal = Refusal::new(STATUS_REFUSED, sentence);
                    self.refused.get_or_insert((Instant::now(), refusal));
                }
                Step::Claimed(remote)
            }
        }
    }

    /// Gives all claims back, and says that this host will not lead: others wait for it if they have an order in which it is.
    fn withdraw(&self, steps: Vec<Step>) {
        let claimed = steps.into_iter().filter_map(|step| match step {
            Step::Claimed(remote) => Some(*remote),
            _ => None,
        });
        let mut claimed: Vec<Remote> = claimed.collect();
        for remote in &mut claimed {
            claim::give_up(remote, self.own_run());
        }
        let until = Instant::now() + WITHDRAWAL;
        claimed
            .iter_mut()
            .for_each(|remote| remote.await_end(until));
    }

    fn report_step(&mut self, remote: &Remote, does: &str) {
        if self.plan.verbose {
            let name = &remote.name;
            let sentence = format!("the agent on the host {name} {does} this launcher");
            self.output.report(&sentence);
            self.output.flush();
        }
    }

    fn own_run(&self) -> &str {
        self.told.view.own.as_deref().unwrap_or_default()
    }

    /// Says the word to an agent whose channel is claimed.
    fn call(&self, step: Step) -> Step {
        let Step::Claimed(mut remote) = step else {
            return step;
        };
        claim::lead(&mut remote, self.own_run());
        let (tasks, changes) = (self.tasks, self.changes);
        let _ = remote.send(&Order::Lead { tasks, changes });
        Step::Calling(Box::new(Calling {
            remote: *remote,
            said: None,
            asked: Vec::new(),
            copy: Vec::new(),
        }))
    }

    fn part(&mut self, mut remote: Remote) {
        remote.lose();
        self.parted.push(remote);
    }

    fn nonsense(&mut self, remote: Remote) -> Step {
        self.part(remote);
        Step::Done(Err("its agent says what cannot be understood".to_owned()))
    }

    fn read_answer(&mut self, mut calling: Box<Calling>) -> Step {
        let remote = &mut calling.remote;
        remote.link.flush();
        while remote.read() {}
        if remote.link.is_ended() {
            return self.claim_again(calling.remote);
        }
        calling.remote.beat();
        loop {
            let all = calling.asked.len();
            if let Some((state, _)) = calling.said.take_if(|(_, count)| all == *count as usize) {
                calling.remote.greeted(state.hello.clone());
                self.report_step(&calling.remote, "follows");
                if let Ok(copy) = Registry::from_snapshot(&calling.copy) {
                    self.dead.extend(dead_hosts(&copy));
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
                _ => return self.nonsense(calling.remote),
            }
        }
    }

    fn wait(&mut self, steps: &[Step]) -> Result<(), Refusal> {
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.news.polls());
        fds.extend(self.tether.polls());
        for step in steps {
            match step {
                Step::Claiming(remote) | Step::Claimed(remote) => fds.extend(remote.polls()),
                Step::Calling(calling) => fds.extend(calling.remote.polls()),
                Step::Done(Ok(found)) => fds.extend(found.remote.polls()),
                _ => {}
            }
        }
        let timeout = Timespec::try_from(AGAIN).ok();
        let _ = regatta_transport::ready::poll(&mut fds, timeout.as_ref());
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

/// The hosts that are dead by the registry.
pub(crate) fn dead_hosts(registry: &Registry) -> impl Iterator<Item = u32> {
    let dead = registry.hosts().iter().filter(|host| !host.alive);
    dead.map(|host| host.number)
}

/// Whether the daemon of this host has ended, which holds the other end of this channel. Nothing that it says is of interest: it is
/// for an agent.
pub(crate) fn daemon_has_ended(tether: &mut Link) -> bool {
    while tether.read() > 0 {
        tether.forget();
    }
    tether.is_ended()
}

/// Why the agent on a host is given up, if it is. A host that is none of the machine's does not come back: as it was, it is
/// lost, whether or not it is still known why.
fn why_given_up(
    told: &membership_feed::Report,
    candidate: &Candidate,
    late: bool,
) -> Option<String> {
    match told.view.is_left(&candidate.run) {
        true => late.then(|| "its part of the job has not been heard of any more".to_owned()),
        false => {
            let known = told.causes.get(&candidate.run).cloned();
            Some(known.unwrap_or_else(|| NO_MORE.to_owned()))
        }
    }
}

/// Why the job cannot be taken over here, if this host is cut off from others of the job by now, which may go on without it.
fn why_cut_off(told: &membership_feed::Report, candidates: &[Candidate]) -> Option<String> {
    let why = told.view.hindrance.as_ref()?;
    let mut candidates = candidates.iter();
    let cut_off = candidates.any(|candidate| told.view.is_suspected(&candidate.run));
    cut_off.then(|| why.clone())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use rustix::pipe::PipeFlags;

    use regatta_job::failover::{HostState, MembershipView};

    use super::*;
    use crate::plan::Form;
    use crate::{gather, sys};

    /// A host that takes a job over from h0, and is to look for the agent of the host beta, to which nothing leads.
    struct Bench {
        plan: FailoverPlan,
        signals: Signals,
        owner: Owner,
        news: MembershipFeed,
        told: membership_feed::Report,
        tether: Link,
        /// The daemon's end of that.
        daemon: Option<OwnedFd>,
        output: Output,
        beta: Candidate,
    }

    impl Bench {
        fn new() -> Self {
            let signals = Signals::catch().expect("signals");
            let (tether, daemon) = channel();
            Self {
                plan: FailoverPlan::default(),
                owner: Owner {
                    leash: None,
                    group: sys::process_group(),
                },
                news: MembershipFeed::closed(),
                signals,
                told: membership_feed::Report {
                    hosts: Vec::new(),
                    ending: false,
                    view: MembershipView {
                        own: Some("own".to_owned()),
                        left: [("run".to_owned(), HostState::Alive)].into(),
                        hindrance: None,
                    },
                    causes: Default::default(),
                },
                tether,
                daemon: Some(daemon),
                output: Output::new(Form::Inherit).expect("an output"),
                beta: Candidate {
                    number: 1,
                    name: "beta".to_owned(),
                    run: "run".to_owned(),
                },
            }
        }

        fn seeker(&mut self) -> Seeker<'_> {
            Seeker {
                plan: &self.plan,
                signals: &self.signals,
                owner: &mut self.owner,
                news: &mut self.news,
                told: &mut self.told,
                tether: &mut self.tether,
                tasks: 2,
                changes: 0,
                dead: HashSet::new(),
                output: &mut self.output,
                parted: Vec::new(),
                refused: None,
            }
        }
    }

    /// A channel on which nothing is said, and its other end.
    fn channel() -> (Link, OwnedFd) {
        let nobody = File::options().write(true).open("/dev/null");
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let link = Link::new(ours, nobody.expect("/dev/null").into());
        (link.expect("a channel"), theirs)
    }

    /// An agent that has come, and knows nothing.
    fn found(remote: Remote) -> Box<Found> {
        let state = State {
            hello: gather::hello_again(),
            tasks: 2,
            worlds: Vec::new(),
            unstarted: Vec::new(),
            running: Vec::new(),
            ended: Vec::new(),
            heard: Vec::new(),
            starts: 0,
            gone: Vec::new(),
            open_streams: Vec::new(),
            silent: Vec::new(),
        };
        Box::new(Found {
            remote,
            state,
            asked: Vec::new(),
            copy: Vec::new(),
        })
    }

    #[test]
    fn a_host_whose_daemon_ends_while_it_takes_a_job_over_leaves_that_to_others_at_once() {
        let mut bench = Bench::new();
        bench.daemon = None;
        let began = Instant::now();
        let beta = bench.beta.clone();
        let refused = bench.seeker().rally(&[beta]).err();
        assert!(began.elapsed() < PATIENCE / 3, "{:?}", began.elapsed());
        let why = refused.expect("a reason").sentence;
        assert!(why.starts_with(&ChannelEnd::OwnDaemon.cause()), "{why}");
    }

    /// More than fits the channel is written for a launcher that still looks for others.
    #[test]
    fn an_agent_that_has_come_is_heard_while_others_are_looked_for() {
        let mut bench = Bench::new();
        let beta = bench.beta.clone();
        let (link, theirs) = channel();
        let mut remote = Remote::without_command("beta", 1, link);
        let long_ago = Instant::now().checked_sub(PATIENCE);
        remote.heard = long_ago.expect("a clock that runs");
        let mut steps = [Step::Done(Ok(found(remote)))];
        let agent = std::thread::spawn(move || File::from(theirs).write_all(&[0; 1 << 20]));
        let until = Instant::now() + PATIENCE;
        let mut seeker = bench.seeker();
        while !agent.is_finished() {
            assert!(Instant::now() < until, "nobody reads what it says");
            seeker.advance(&beta, &mut steps[0], false);
            seeker.wait(&steps).expect("no signal");
        }
        agent.join().expect("a thread").expect("a reader");
        let [Step::Done(Ok(found))] = &mut steps else {
            panic!("it was given up");
        };
        assert!(!found.remote.is_silent(PATIENCE));
    }

    #[test]
    fn nobody_waits_for_the_agent_of_a_host_that_was_given_up_before() {
        let mut bench = Bench::new();
        let candidates = [1, 2].map(|number| Candidate {
            number,
            ..bench.beta.clone()
        });
        let (link, _agent) = channel();
        let mut seeker = bench.seeker();
        seeker.dead.extend([1, 2]);
        let began = Instant::now();
        let rally = seeker.rally(&candidates).expect("a rally");
        assert!(began.elapsed() < PATIENCE / 3, "{:?}", began.elapsed());
        assert_eq!((rally.found.len(), rally.lost.len()), (0, 2));
        // One that has come is given up, too.
        let mut step = Step::Done(Ok(found(Remote::without_command("beta", 1, link))));
        let mut seeker = bench.seeker();
        seeker.dead.insert(1);
        seeker.pass_over(&candidates[0], &mut step);
        assert!(matches!(step, Step::Done(Err(_))) && seeker.parted[0].lost);
    }

    #[test]
    fn a_job_is_not_taken_over_by_a_host_that_is_cut_off_from_its_others() {
        let told = |state: HostState, hindrance: Option<&str>| membership_feed::Report {
            hosts: Vec::new(),
            ending: false,
            view: MembershipView {
                own: None,
                left: [("beta".to_owned(), state)].into(),
                hindrance: hindrance.map(str::to_owned),
            },
            causes: Default::default(),
        };
        let candidates = ["alpha", "beta"].map(|run| Candidate {
            number: 1,
            name: run.to_owned(),
            run: run.to_owned(),
        });
        assert_eq!(
            why_cut_off(&told(HostState::Suspected, None), &candidates),
            None
        );
        assert_eq!(
            why_cut_off(&told(HostState::Alive, Some("alone")), &candidates),
            None
        );
        let why = why_cut_off(&told(HostState::Suspected, Some("alone")), &candidates);
        assert_eq!(why.as_deref(), Some("alone"));
    }

    #[test]
    fn an_agent_is_given_up_when_its_host_is_gone_or_has_come_back_as_another_or_time_is_over() {
        let candidate = |run: &str| Candidate {
            number: 1,
            name: "beta".to_owned(),
            run: run.to_owned(),
        };
        let told = membership_feed::Report {
            hosts: Vec::new(),
            ending: false,
            view: MembershipView {
                own: Some("here".to_owned()),
                left: ["second", "here"]
                    .map(|run| (run.to_owned(), HostState::Alive))
                    .into(),
                hindrance: None,
            },
            causes: [("other".to_owned(), "it has been silent".to_owned())].into(),
        };
        let why = |run: &str, late| why_given_up(&told, &candidate(run), late);
        assert_eq!(why("second", false), None);
        assert!(why("second", true).is_some());
        assert_eq!(why("other", false).as_deref(), Some("it has been silent"));
        // Of the first run of beta the daemons say nothing since the second one is there.
        assert_eq!(why("first", false).as_deref(), Some(NO_MORE));
    }
}
