//! Hosts that become hosts of the job while it runs.
//!
//! The daemon of this host tells of hosts ([`MembershipFeed`]). To one that is new a channel is opened as to those that were there from the first;
//! it goes through the same steps (an agent that says what it is, a table of its own), but while the loop goes on. When its
//! agent is ready it is told at once all that the others have heard since the start: which tasks were added, and which are
//! no more. From then on it gets the events as they do, so nothing has to wait for a host that arrives.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_job::HostRecord;
use regatta_job::registry::DEFAULT_SPEED;
use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use regatta_wire::control::Why;
use regatta_wire::session::UnreachablePair;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::fleet::Ground;
use crate::membership_feed::{Listed, MembershipFeed};
use crate::plan::Across;
use crate::remote::{self, Remote};
use crate::succession::failover_plan;
use arriving::{Arriving, Step};
use hosters::Hosters;
use persons::Person;
use wishes::Wishes;

mod arriving;
mod hosters;
mod persons;
mod wishes;

/// The state of a job that can take in hosts.
pub(super) struct Growing<'p> {
    across: &'p Across,
    /// Hosts are taken in; otherwise the news are only for whom they may come from.
    takes_in: bool,
    ground: Ground,
    /// None: nobody tells, but tasks may ask for hosts.
    news: Option<MembershipFeed>,
    wishes: Wishes,
    hosters: Hosters,
    person: Option<Person>,
    listed: Vec<Listed>,
    /// The hosts that there are from the first have not all arrived.
    gathering: bool,
    /// It is known which these are.
    told: bool,
    /// The runs of hosts that are of the job, were, or could not be.
    known: HashSet<String>,
    arriving: Vec<Arriving>,
    /// Channels that have been given up, until their commands have ended.
    parted: Vec<Remote>,
    /// The number of the next host.
    next: u32,
}

impl<'p> Growing<'p> {
    /// Begins to listen, if the job is one that can take in hosts.
    pub(super) fn begin(
        across: Option<&'p Across>,
        ground: Option<Ground>,
        vacant: bool,
    ) -> Option<Self> {
        let (across, ground) = (across?, ground?);
        let growth = across.growth.as_ref()?;
        let news = growth.machine.as_deref().map(MembershipFeed::open);
        Some(Self {
            across,
            gathering: vacant && news.is_some(),
            // A job that may have no more tasks has no use for more hosts.
            takes_in: ground.template.most as usize > ground.addresses.len(),
            ground,
            news,
            wishes: Wishes::default(),
            hosters: Hosters::default(),
            person: None,
            listed: Vec::new(),
            told: false,
            known: growth.known.iter().cloned().collect(),
            arriving: Vec::new(),
            parted: Vec::new(),
            next: across.hosts.len() as u32,
        })
    }

    /// Is the job one that begins with whatever hosts its machine has, and has not all of them yet?
    pub(super) fn is_gathering(&self) -> bool {
        self.gathering
    }

    /// The machine has not yet said which hosts it has. A request of a task for one of them has to wait until then.
    fn is_unlisted(&self) -> bool {
        self.news.is_some() && !self.told
    }

    /// Nobody waits for more hosts.
    pub(super) fn is_gathered(&mut self) {
        self.gathering = false;
    }

    /// Tells the daemon which tasks cannot reach each other. False: not now.
    pub(super) fn send_unreachable(&mut self, pairs: Vec<UnreachablePair>) -> bool {
        let job = self.across.growth.as_ref().map_or("", |growth| &growth.job);
        let news = self.news.as_mut();
        news.is_none_or(|news| news.send_unreachable(job, pairs))
    }

    /// The processes that carry channels: no signal of the job is theirs.
    pub(super) fn helpers(&self) -> impl Iterator<Item = Pid> {
        self.remotes().filter_map(Remote::command)
    }

    fn remotes(&self) -> impl Iterator<Item = &Remote> {
        let arriving = self.arriving.iter().filter_map(Arriving::remote);
        arriving.chain(&self.parted)
    }

    pub(super) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        let arriving = self.arriving.iter_mut().filter_map(Arriving::remote_mut);
        arriving
            .chain(&mut self.parted)
            .for_each(|remote| remote.reaped(pid, status));
    }

    pub(super) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let arriving = self.arriving.iter().filter_map(Arriving::remote);
        let news = self.news.iter().flat_map(MembershipFeed::polls);
        let calling = self.arriving.iter().filter_map(Arriving::poll);
        let person = self.person.iter().map(Person::poll);
        news.chain(arriving.flat_map(Remote::polls))
            .chain(calling)
            .chain(person)
    }

    /// Until something has to be done for a host that arrives.
    pub(super) fn until_step(&self) -> Option<Duration> {
        let left = |arriving: &Arriving, remote: &Remote| {
            let limit = arriving.patient(self.across).connect;
            limit.saturating_sub(remote.heard.elapsed())
        };
        let until = |arriving: &Arriving| match &arriving.step {
            Step::Waiting(at) => Some(at.saturating_duration_since(Instant::now())),
            Step::Asked(_) => None,
            // Somebody else asks at the terminal.
            Step::ByHand(_) => self.person.is_none().then_some(persons::AGAIN),
            Step::Calling(calling) => {
                Some(calling.until().saturating_duration_since(Instant::now()))
            }
            Step::Greeting(remote, _) => Some(left(arriving, remote)),
            Step::Preparing(remote) => Some(remote.until_beat().min(left(arriving, remote))),
        };
        let until = |arriving: &Arriving| {
            let concluded = arriving.remote().and_then(Remote::until_concluded);
            until(arriving).into_iter().chain(concluded).min()
        };
        let renewal = self.news.as_ref().and_then(MembershipFeed::until_renewal);
        self.arriving.iter().filter_map(until).chain(renewal).min()
    }

    /// Nobody is taken in any more.
    pub(super) fn end(&mut self) {
        self.news.iter_mut().for_each(MembershipFeed::close);
        for arriving in std::mem::take(&mut self.arriving) {
            self.part(arriving.step);
        }
    }

    /// At the end of the job: what was begun is ended.
    pub(super) fn close(&mut self) {
        self.end();
        remote::part(&mut self.parted);
    }

    fn part(&mut self, step: Step) {
        if let Step::Greeting(mut remote, _) | Step::Preparing(mut remote) = step {
            remote.lose();
            self.parted.push(remote);
        }
    }

    /// Takes note of hosts that nobody knew. `members` are the names of those that live.
    fn look(&mut self, members: &[&str]) {
        for host in self.listed.iter().filter(|_| self.takes_in) {
            // While one of that name is still taken for alive the new one waits.
            if self.known.contains(&host.run) || members.contains(&host.name.as_str()) {
                continue;
            }
            self.known.insert(host.run.clone());
            let now = Instant::now();
            self.arriving.push(Arriving {
                host: host.clone(),
                since: now,
                step: Step::Waiting(now),
                number: None,
                wish: None,
            });
        }
    }
}

impl Supervisor<'_> {
    /// Takes in hosts that the machine has, and the job has not. For so long the loop did not run.
    pub(super) fn grow(&mut self, away: Duration) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        let mut told = growing.news.as_ref().is_none_or(MembershipFeed::is_over);
        let report = growing.news.as_mut().and_then(MembershipFeed::next);
        // The end of the job needs all of it in its place.
        if let Some(report) = &report {
            told = true;
            self.handle_standing(report);
        }
        let news = self.growing.as_ref().and_then(|it| it.news.as_ref());
        if news.is_some_and(MembershipFeed::is_over) {
            self.end_with_machine();
        }
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        growing.parted.retain(|remote| remote.command().is_some());
        if let Some(report) = report.filter(|report| report.view.hindrance.is_none()) {
            growing.listed = report.hosts;
        }
        if let Some(news) = &mut growing.news {
            let remark = news.take_remark();
            remark.iter().for_each(|remark| self.output.report(remark));
            if news.take_renewed() {
                self.resend_reaches();
            }
        }
        if self.lifecycle.is_over() || self.lifecycle.is_ending() {
            growing.end();
        } else {
            let living = self.remotes.iter().filter(|remote| !remote.lost);
            let here = self.here.iter().map(String::as_str);
            let members = living.map(|remote| remote.name.as_str()).chain(here);
            growing.look(&members.collect::<Vec<_>>());
            for arriving in std::mem::take(&mut growing.arriving) {
                self.take_along(&mut growing, arriving, away);
            }
        }
        growing.told |= told;
        growing.gathering &= !growing.told || !growing.arriving.is_empty();
        self.growing = Some(growing);
        self.change_hosts_now_listed();
    }

    /// A job that stays does so as long as the machine that it has its hosts from.
    fn end_with_machine(&mut self) {
        if self.plan.stays && !self.lifecycle.is_over() && !self.lifecycle.is_ending() {
            let sentence = "the virtual machine has ended on this host, and the job with it";
            self.output.report(sentence);
            let mut actions = Vec::new();
            self.lifecycle.halt(self.started.elapsed(), &mut actions);
            self.perform(actions);
        }
    }

    fn take_along(&mut self, growing: &mut Growing, mut arriving: Arriving, away: Duration) {
        if let Some(remote) = arriving.remote_mut() {
            remote.heard += away;
        }
        let living = self.remotes.iter().filter(|remote| !remote.lost);
        let identity =
            |remote: &Remote| Some((remote.hello.as_ref()?.host.clone(), remote.name.clone()));
        let others: Vec<_> = living.filter_map(identity).collect();
        let mut notes = Vec::new();
        let arrived = growing.advance(&mut arriving, &self.signals, &others, &mut notes);
        notes.iter().for_each(|note| self.output.report(note));
        match (arrived, arriving.step) {
            (Ok(true), Step::Preparing(mut remote)) => {
                let number = remote.number;
                let options = arriving.wish.as_ref().map(|wish| wish.options.clone());
                remote.options = options.unwrap_or_default();
                self.admit(growing, remote, &arriving.host.run);
                self.fulfil(growing, arriving.wish, Ok(number));
            }
            (Ok(_), step) => growing.arriving.push(Arriving { step, ..arriving }),
            (Err(refusal), step) if arriving.wish.is_some() => {
                growing.part(step);
                self.output.report(&refusal.sentence);
                // A task that starts hosts in our place may know names that nobody else does.
                let ours = arriving.number.is_none();
                let wish = arriving.wish.as_ref();
                let unknown = ours && wish.is_some_and(|wish| !wish.is_known());
                let why = if unknown { Why::Host } else { Why::System };
                self.fulfil(growing, arriving.wish, Err((why, refusal.sentence)));
            }
            (Err(refusal), step) => {
                // A launcher that comes after this one does not try again, either.
                self.registry.add_known_run(&arriving.host.run);
                growing.part(step);
                let sentence = format!("{}; the job goes on without that host", refusal.sentence);
                self.output.report(&sentence);
            }
        }
    }

    /// Makes a host one of the job's.
    fn admit(&mut self, growing: &Growing, mut remote: Remote, run: &str) {
        let Some(hello) = remote.hello.clone() else {
            return;
        };
        let addresses: Vec<SocketAddr> = growing.ground.addresses.clone();
        // Orders while a job runs fit every frame.
        if let Some(mut plan) = failover_plan(self.plan, growing.across) {
            let passed = self.started.elapsed().as_millis() as u64;
            plan.timeout = plan.timeout.map(|limit| limit.saturating_sub(passed));
            let _ = remote.send(&Order::Failover { plan });
        }
        let _ = remote.send(&Order::Start { addresses });
        for order in self.history.orders() {
            let _ = remote.send(&order);
        }
        if growing.across.verbose {
            let sentence = format!("the host {} is a host of the job from now on", remote.name);
            self.output.report(&sentence);
        }
        self.lifecycle.add_host(remote.number, &remote.name);
        self.registry.add_known_run(run);
        self.registry.host_added(HostRecord {
            number: remote.number,
            name: remote.name.clone(),
            architecture: hello.architecture,
            cores: hello.cores,
            speed: remote.options.speed.unwrap_or(DEFAULT_SPEED),
            alive: true,
        });
        remote.heard = Instant::now();
        let number = remote.number;
        self.remotes.push(remote);
        if let Some(leadership) = &mut self.leadership {
            leadership.add(number, run);
        }
        self.hosts_changed();
    }
}
