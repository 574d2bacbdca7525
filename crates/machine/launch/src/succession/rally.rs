//! The channels on which a new launcher claims the agents of a job, announces that it leads, and receives their states.
//! [`Claims`] decides.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use regatta_job::Registry;
use regatta_job::failover::{
    Absence, Candidate, ClaimEffect, ClaimInput, Claims, FailoverPlan, MembershipView, Obstacle,
    dead_hosts,
};
use regatta_program::{Refusal, STATUS_REFUSED};
use regatta_wire::Malformed;
use rustix::time::Timespec;

use super::claim::{self, Claim};
use crate::channel::Link;
use crate::channel::end::ChannelEnd;
use crate::channel::membership_feed::{self, MembershipFeed};
use crate::channel::messages::{AgentState, Order, Report};
use crate::channel::remote::Remote;
use crate::streams::output::Output;
use crate::supervise::owner::{self, Owner};
use crate::system::signals::Signals;
use crate::system::time_asleep::Wakes;

/// Why a host that could not claim enough agents leaves the job to other hosts.
const FOLLOW_ANOTHER: &str =
    "most hosts of the job do not accept this host as leader, and may follow another one";
/// Time limit for delivering the messages of a host that gives up.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum sleep between two checks of the channels.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// An agent that has handed over its state.
pub(crate) struct Found {
    pub remote: Remote,
    pub answer: Answer,
}

/// The state from an agent, possibly incomplete.
#[derive(Default)]
pub(crate) struct Answer {
    /// The state, and the number of requests that follow it.
    state: Option<(AgentState, u32)>,
    /// A copy of the registry that is later than ours. Empty if the agent has none.
    pub copy: Vec<u8>,
}

impl Answer {
    /// Returns the state once it is complete.
    fn whole(&self) -> Option<&AgentState> {
        let (state, requests) = self.state.as_ref()?;
        (state.handover.requests.len() == *requests as usize).then_some(state)
    }

    pub(crate) fn into_state(self) -> Option<AgentState> {
        self.state.map(|(state, _)| state)
    }

    /// Adds a report. Returns false if it is not expected here.
    fn take(&mut self, report: Report) -> bool {
        match (report, &mut self.state) {
            (Report::Beat {}, _) => {}
            (Report::Copy { bytes }, None) => self.copy.extend_from_slice(&bytes),
            (Report::State { state, asked }, at @ None) => *at = Some((state, asked)),
            (Report::Asked { task, bytes }, Some((state, _))) => {
                state.handover.requests.push((task, bytes));
            }
            _ => return false,
        }
        true
    }
}

/// The agents found on all hosts.
pub(crate) struct Rally {
    pub found: Vec<Found>,
    /// The hosts that are lost as well, and why.
    pub lost: BTreeMap<u32, Absence>,
}

/// A channel, and what is expected on it next.
struct Channel {
    remote: Remote,
    next: Next,
}

enum Next {
    /// The daemon's grant of the channel, with the hosts that the agent names.
    OwnerLost,
    /// Nothing.
    Nothing,
    /// Nothing: the announcement has just been made, which is the next event.
    Ready,
    Answer(Answer),
    /// Nothing for the claims: the state is complete, and reports are for the job that begins.
    Job(Answer),
}

/// The search for the agents.
pub(crate) struct Seeker<'a> {
    pub plan: &'a FailoverPlan,
    pub signals: &'a Signals,
    pub owner: &'a mut Owner,
    /// The feed of the machine's hosts, and its last report.
    pub news: &'a mut MembershipFeed,
    pub told: &'a mut membership_feed::Report,
    /// The channel of this host's agent. It ends with this host's daemon.
    pub tether: &'a mut Link,
    /// The number of tasks that this launcher knows of, and its replica.
    pub tasks: u32,
    pub registry: &'a Registry,
    pub output: &'a mut Output,
    pub channels: Channels,
}

/// Channels to the agents.
#[derive(Default)]
pub(crate) struct Channels {
    open: BTreeMap<u32, Channel>,
    /// Channels that have been given up, whose commands have not ended.
    parted: Vec<Remote>,
}

impl Seeker<'_> {
    /// Claims the agents on these hosts, until all have answered or are lost.
    pub(crate) fn rally(mut self, candidates: &[Candidate]) -> Result<Rally, Refusal> {
        let (mut began, mut wakes) = (Instant::now(), Wakes::new());
        let (view, causes) = membership(self.told);
        let mut claims = Claims::new(Duration::ZERO, candidates, view, causes, self.registry);
        loop {
            // Time in which this process did not run does not count against any host.
            began += wakes.away();
            for input in self.listen().into_iter().chain([ClaimInput::Timer]) {
                claims.handle(began.elapsed(), input);
            }
            while let Some(effect) = claims.poll() {
                let done = match effect {
                    ClaimEffect::Begin => return Ok(self.found(claims.lost())),
                    ClaimEffect::Leave(why) => return Err(self.leave(why, candidates)),
                    effect => self.carry_out(effect, candidates),
                };
                done.into_iter()
                    .for_each(|input| claims.handle(began.elapsed(), input));
            }
            self.wait()?;
        }
    }

    /// Returns the events since the last call.
    fn listen(&mut self) -> Vec<ClaimInput> {
        self.channels
            .parted
            .retain_mut(|remote| !remote.has_ended());
        let mut inputs = Vec::new();
        if daemon_has_ended(self.tether) {
            inputs.push(ClaimInput::DaemonEnded);
        }
        if let Some(report) = self.news.next() {
            *self.told = report;
            let (view, causes) = membership(self.told);
            inputs.push(ClaimInput::Membership(view, causes));
        }
        let hosts: Vec<u32> = self.channels.open.keys().copied().collect();
        inputs.extend(hosts.into_iter().filter_map(|host| self.hear(host)));
        inputs
    }

    /// Returns the next event on the channel of a host, if there is one.
    fn hear(&mut self, host: u32) -> Option<ClaimInput> {
        let channel = self.channels.open.get_mut(&host)?;
        let input = match channel.hear(host) {
            Ok(Some(input)) => input,
            Ok(None) if channel.is_in_vain() => {
                self.part(host);
                ClaimInput::Closed(host)
            }
            Ok(None) => return None,
            Err(Malformed) => ClaimInput::Nonsense(host),
        };
        match input {
            ClaimInput::OwnerLost(..) => self.report_step(host, "waits for"),
            ClaimInput::HandedOver(..) => self.report_step(host, "follows"),
            _ => {}
        }
        Some(input)
    }

    /// Carries out an effect. May return an event at once.
    fn carry_out(&mut self, effect: ClaimEffect, candidates: &[Candidate]) -> Option<ClaimInput> {
        match effect {
            ClaimEffect::Open(host) => {
                let mut candidates = candidates.iter();
                let candidate = candidates.find(|candidate| candidate.number == host)?;
                let remote = claim::open(self.plan, candidate);
                let next = Next::OwnerLost;
                self.channels.open.insert(host, Channel { remote, next });
            }
            ClaimEffect::Lead(host) => {
                let own = self.own_run().to_owned();
                if let Some(channel) = self.channels.open.get_mut(&host) {
                    claim::lead(&mut channel.remote, &own);
                    channel.next = Next::Ready;
                }
            }
            ClaimEffect::AskState(host) => {
                let (tasks, changes) = (self.tasks, self.registry.changes());
                if let Some(channel) = self.channels.open.get_mut(&host) {
                    let _ = channel.remote.send(&Order::Lead { tasks, changes });
                }
            }
            ClaimEffect::Close(host) => self.part(host),
            ClaimEffect::GiveUp(host) => {
                if let Some(Channel { mut remote, .. }) = self.channels.open.remove(&host) {
                    claim::give_up(&mut remote, self.own_run());
                    self.channels.parted.push(remote);
                }
            }
            ClaimEffect::Begin | ClaimEffect::Leave(_) => {}
        }
        None
    }

    /// Leaves the job to other hosts. Agents that wait for this host are told so first, as far as its daemon is running
    /// and reaches them.
    fn leave(mut self, why: Obstacle, candidates: &[Candidate]) -> Refusal {
        if let Obstacle::GivenUp(_) | Obstacle::TooFew = why {
            let until = Instant::now() + WITHDRAWAL_TIMEOUT;
            let parted = self.channels.parted.iter_mut();
            parted.for_each(|remote| remote.await_end(until));
        }
        let why = match why {
            Obstacle::DaemonEnded => ChannelEnd::OwnDaemon.cause(),
            Obstacle::CutOff(why) => why,
            Obstacle::TooFew => FOLLOW_ANOTHER.to_owned(),
            Obstacle::GivenUp(host) => {
                let name = name_of(host, candidates);
                format!("the host {name} reports that the launcher had given this host up")
            }
        };
        let sentence = format!("{why}. The job ends on this host, because it may continue there");
        Refusal::new(STATUS_REFUSED, sentence)
    }

    fn found(self, lost: BTreeMap<u32, Absence>) -> Rally {
        let found = |channel: Channel| match channel.next {
            Next::Job(answer) => Some(Found {
                remote: channel.remote,
                answer,
            }),
            _ => None,
        };
        Rally {
            found: self.channels.open.into_values().filter_map(found).collect(),
            lost,
        }
    }

    fn report_step(&mut self, host: u32, does: &str) {
        let channel = self.channels.open.get(&host);
        if let Some(channel) = channel.filter(|_| self.plan.verbose) {
            let name = &channel.remote.name;
            let sentence = format!("the agent on the host {name} {does} this launcher");
            self.output.report(&sentence);
            self.output.flush();
        }
    }

    fn own_run(&self) -> &str {
        self.told.view.own.as_deref().unwrap_or_default()
    }

    fn part(&mut self, host: u32) {
        if let Some(mut channel) = self.channels.open.remove(&host) {
            channel.remote.lose();
            self.channels.parted.push(channel.remote);
        }
    }

    fn wait(&mut self) -> Result<(), Refusal> {
        let mut fds: Vec<_> = self.owner.polls(self.signals).collect();
        fds.extend(self.news.polls());
        fds.extend(self.tether.polls());
        let channels = self.channels.open.values();
        fds.extend(channels.flat_map(|channel| channel.remote.polls()));
        let timeout = Timespec::try_from(MAX_SLEEP).ok();
        let _ = regatta_connection::ready::poll(&mut fds, timeout.as_ref());
        drop(fds);
        let (arrived, lives) = self.owner.wishes(self.signals);
        match !lives || arrived.iter().any(|arrived| owner::is_end(arrived.signal)) {
            true => Err(Refusal::new(
                STATUS_REFUSED,
                "ended while another launcher took over the job",
            )),
            false => Ok(()),
        }
    }
}

impl Channel {
    /// Reads what has arrived. Returns the next event in it, if there is one.
    fn hear(&mut self, host: u32) -> Result<Option<ClaimInput>, Malformed> {
        let remote = &mut self.remote;
        match &mut self.next {
            Next::OwnerLost => match claim::read(remote) {
                Claim::Granted(successors) => {
                    self.next = Next::Nothing;
                    Ok(Some(ClaimInput::OwnerLost(host, successors)))
                }
                Claim::Open | Claim::Ended => Ok(None),
            },
            Next::Nothing => {
                claim::keep(remote);
                Ok(None)
            }
            Next::Ready => {
                self.next = Next::Answer(Answer::default());
                Ok(Some(ClaimInput::Ready(host)))
            }
            Next::Answer(_) => self.hear_answer(host),
            Next::Job(_) => {
                remote.keep_up();
                Ok(None)
            }
        }
    }

    fn hear_answer(&mut self, host: u32) -> Result<Option<ClaimInput>, Malformed> {
        let (remote, Next::Answer(answer)) = (&mut self.remote, &mut self.next) else {
            return Ok(None);
        };
        remote.link.flush();
        while remote.read() {}
        if remote.link.is_ended() {
            return Ok(None);
        }
        remote.beat();
        while answer.whole().is_none() {
            match remote.link.next()? {
                None => return Ok(None),
                Some(report) => answer.take(report).then_some(()).ok_or(Malformed)?,
            }
        }
        let answer = std::mem::take(answer);
        let hello = answer.whole().map(|state| state.hello.clone());
        hello.into_iter().for_each(|hello| remote.greeted(hello));
        let copy = Registry::from_snapshot(&answer.copy);
        let dead = copy.iter().flat_map(dead_hosts).collect();
        self.next = Next::Job(answer);
        Ok(Some(ClaimInput::HandedOver(host, dead)))
    }

    /// Returns whether the channel has ended, and its claim with it. The end of a channel with a complete state is
    /// handled by the job that begins.
    fn is_in_vain(&self) -> bool {
        self.remote.link.is_ended() && !matches!(self.next, Next::Job(_))
    }
}

fn name_of(host: u32, candidates: &[Candidate]) -> &str {
    let mut candidates = candidates.iter();
    let found = candidates.find(|candidate| candidate.number == host);
    found.map_or("", |candidate| &candidate.name)
}

/// Converts a report for the claims.
fn membership(report: &membership_feed::Report) -> (MembershipView, BTreeMap<String, String>) {
    let causes = report.causes.clone().into_iter();
    (report.view.clone(), causes.collect())
}

/// Returns whether this host's daemon, which holds the other end of the channel, has ended. Input on the channel is
/// discarded, because it is for an agent.
pub(crate) fn daemon_has_ended(tether: &mut Link) -> bool {
    while tether.read() > 0 {
        tether.forget();
    }
    tether.is_ended()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use rustix::pipe::PipeFlags;

    use regatta_job::failover::{Handover, HostState};

    use super::*;
    use crate::hosts::gather;
    use crate::plan::Form;
    use crate::sys;

    /// Longer than an agent may be silent.
    const SILENCE_LIMIT: Duration = Duration::from_secs(15);

    /// A host that takes a job over from h0, and is to find the agent of the host beta, to which there is no channel.
    struct Bench {
        plan: FailoverPlan,
        signals: Signals,
        owner: Owner,
        news: MembershipFeed,
        told: membership_feed::Report,
        tether: Link,
        /// The daemon's end of the tether.
        daemon: Option<OwnedFd>,
        output: Output,
        registry: Registry,
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
                registry: Registry::new(Vec::new(), &[], b"program"),
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
                registry: &self.registry,
                output: &mut self.output,
                channels: Channels::default(),
            }
        }
    }

    /// Returns a channel without input, and its other end.
    fn channel() -> (Link, OwnedFd) {
        let nobody = File::options().write(true).open("/dev/null");
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let link = Link::new(ours, nobody.expect("/dev/null").into());
        (link.expect("a channel"), theirs)
    }

    /// Returns the answer of an agent without state.
    fn answer() -> Answer {
        let state = AgentState {
            hello: gather::hello_again(),
            starts: 0,
            handover: Handover::default(),
        };
        Answer {
            state: Some((state, 0)),
            copy: Vec::new(),
        }
    }

    #[test]
    fn a_host_whose_daemon_ends_while_it_takes_a_job_over_leaves_that_to_others_at_once() {
        let mut bench = Bench::new();
        bench.daemon = None;
        let began = Instant::now();
        let beta = bench.beta.clone();
        let refused = bench.seeker().rally(&[beta]).err();
        assert!(began.elapsed() < SILENCE_LIMIT / 3, "{:?}", began.elapsed());
        let why = refused.expect("a reason").sentence;
        assert!(why.starts_with(&ChannelEnd::OwnDaemon.cause()), "{why}");
    }

    /// Writes more than fits into the channel, to a launcher that still looks for other agents.
    #[test]
    fn an_agent_that_has_come_is_heard_while_others_are_looked_for() {
        let mut bench = Bench::new();
        let (link, theirs) = channel();
        let mut remote = Remote::without_command("beta", 1, link);
        let long_ago = Instant::now().checked_sub(SILENCE_LIMIT);
        remote.heard = long_ago.expect("a clock that runs");
        let agent = std::thread::spawn(move || File::from(theirs).write_all(&[0; 1 << 20]));
        let until = Instant::now() + SILENCE_LIMIT;
        let mut seeker = bench.seeker();
        let next = Next::Job(answer());
        seeker.channels.open.insert(1, Channel { remote, next });
        while !agent.is_finished() {
            assert!(Instant::now() < until, "nobody reads what it says");
            assert_eq!(seeker.listen(), []);
            seeker.wait().expect("no signal");
        }
        agent.join().expect("a thread").expect("a reader");
        let found = &mut seeker.found(BTreeMap::new()).found[0];
        assert!(!found.remote.is_silent(SILENCE_LIMIT));
    }
}
