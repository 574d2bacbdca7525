//! Hosts that join the job while it runs.
//!
//! This host's daemon reports hosts ([`MembershipFeed`]). A channel to a new host is opened like those to the first
//! hosts. The host takes the same steps (the greeting of its agent, a table of its own), while the loop goes on. When
//! its agent is ready, it is sent at once everything that the others have been told since the start: which tasks were
//! added, and which are gone. From then on it gets the same orders as the others, so nothing has to wait for an
//! arriving host.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use regatta_job::HostRecord;
use regatta_job::hosts::{Admission, Effect, Question};
use regatta_job::registry::DEFAULT_SPEED;
use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use regatta_wire::control::RequestError;
use regatta_wire::session::UnreachablePair;

use super::Supervisor;
use crate::channel::end::ChannelEnd;
use crate::channel::membership_feed::{Listed, MembershipFeed};
use crate::channel::messages::Order;
use crate::channel::remote::Remote;
use crate::hosts::arrivals::Channels;
use crate::hosts::fleet::Ground;
use crate::hosts::host_starter::Reached;
use crate::plan::Across;
use crate::succession::failover_plan;
use arriving::{ArrivalStep, Arriving};
use wishes::{Wish, Wishes};

mod arriving;
mod wishes;

/// The state of a job that can add hosts.
pub(super) struct Growing<'p> {
    across: &'p Across,
    /// Whether new hosts of the machine are added. Otherwise its list only serves tasks that request hosts.
    takes_in: bool,
    ground: Ground,
    /// The machine's reports, or `None` if only tasks request hosts.
    news: Option<MembershipFeed>,
    wishes: Wishes,
    listed: Vec<Listed>,
    /// Whether some of the first hosts have not arrived.
    gathering: bool,
    /// Whether the machine has reported its hosts.
    told: bool,
    /// The runs of hosts that are or were in the job, or could not join it.
    known: HashSet<String>,
    arriving: Vec<Arriving>,
    channels: Channels,
}

impl<'p> Growing<'p> {
    /// Starts listening for hosts, if the job can add hosts.
    pub(super) fn begin(
        across: Option<&'p Across>,
        ground: Option<Ground>,
        vacant: bool,
    ) -> Option<Self> {
        let (across, ground) = (across?, ground?);
        let growth = across.growth.as_ref()?;
        let news = growth.machine.as_deref().map(MembershipFeed::open);
        let reached = Reached {
            in_machine: growth.machine.is_some(),
            by_ssh: across.rsh.is_none(),
        };
        Some(Self {
            across,
            gathering: vacant && news.is_some(),
            // A job that may have no more tasks does not need more hosts.
            takes_in: ground.template.most as usize > ground.addresses.len(),
            ground,
            news,
            wishes: Wishes::new((growth.starter)(reached)),
            listed: Vec::new(),
            told: false,
            known: growth.known.iter().cloned().collect(),
            arriving: Vec::new(),
            channels: Channels::new(across, across.hosts.len() as u32, true),
        })
    }

    /// Returns whether the job begins with all hosts of its machine and does not have all of them yet.
    pub(super) fn is_gathering(&self) -> bool {
        self.gathering
    }

    /// Returns whether the machine has not reported its hosts yet. A task's request for one of them waits until then.
    fn is_unlisted(&self) -> bool {
        self.news.is_some() && !self.told
    }

    /// Stops waiting for the first hosts.
    pub(super) fn stop_gathering(&mut self) {
        self.gathering = false;
    }

    /// Tells the daemon which tasks cannot reach each other. Returns false if that is not possible now.
    pub(super) fn send_unreachable(&mut self, pairs: Vec<UnreachablePair>) -> bool {
        let job = self.across.growth.as_ref().map_or("", |growth| &growth.job);
        let news = self.news.as_mut();
        news.is_none_or(|news| news.send_unreachable(job, pairs))
    }

    /// Returns whether this host's daemon has ended, given that it closed a channel without a reason `ago`. `None` if
    /// that is not known yet.
    pub(super) fn has_daemon_ended(&self, ago: Duration) -> Option<bool> {
        let news = self.news.as_ref();
        news.map_or(Some(true), |news| news.has_daemon_ended(ago))
    }

    /// Returns the processes that carry channels. They get no signals of the job.
    pub(super) fn helpers(&self) -> impl Iterator<Item = Pid> {
        self.channels.commands()
    }

    pub(super) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        self.channels.reaped(pid, status);
    }

    pub(super) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let news = self.news.iter().flat_map(MembershipFeed::polls);
        let channels = self.channels.polls();
        news.chain(channels).chain(self.wishes.starter.polls())
    }

    /// Returns the time until something must be done for an arriving host.
    pub(super) fn until_step(&self) -> Option<Duration> {
        let renewal = self.news.as_ref().and_then(MembershipFeed::until_renewal);
        let others = self.wishes.starter.until();
        let channels = self.channels.until_step();
        channels.into_iter().chain(renewal).chain(others).min()
    }

    /// Returns the number of channels to the hosts of the job and to arriving ones.
    fn channel_count(&self) -> u32 {
        (self.channels.arrivals.members.len() + self.arriving.len()) as u32
    }

    /// Stops adding hosts.
    pub(super) fn stop_admitting(&mut self) {
        self.news.iter_mut().for_each(MembershipFeed::close);
        self.wishes.starter.abandon();
        for arriving in std::mem::take(&mut self.arriving) {
            self.dismiss(arriving.step);
        }
        // The remaining effects are for hosts that are not wanted any more.
        while self.channels.poll().is_some() {}
    }

    /// Stops adding hosts and closes all channels, at the end of the job.
    pub(super) fn close(&mut self) {
        self.stop_admitting();
        self.channels.part();
    }

    fn dismiss(&mut self, step: ArrivalStep) {
        if let ArrivalStep::Coming(id) = step {
            self.channels.arrivals.dismiss(|of| of == id);
        }
    }

    /// Handles the input of all arriving hosts. Returns lines from the standard error of their commands.
    fn hear(&mut self) -> Vec<String> {
        let arriving = &self.arriving;
        let named = |id: u32| {
            let wish = arriving::coming(arriving, id).and_then(|it| it.wish.as_ref());
            wish.into_iter().flat_map(Wish::addresses).collect()
        };
        self.channels.hear(self.across, named)
    }

    /// Starts the arrival of hosts that are new. `members` are the names of the living hosts of the job.
    fn note_new_hosts(&mut self, members: &[&str]) {
        let listed = self.listed.iter().filter(|_| self.takes_in);
        // While a host of the same name still counts as alive, the new one waits.
        let is_new = |host: &&Listed| {
            !self.known.contains(&host.run) && !members.contains(&host.name.as_str())
        };
        for host in listed.filter(is_new).cloned().collect::<Vec<_>>() {
            self.known.insert(host.run.clone());
            let admission = Admission::told(self.across.connect, host.address.ip());
            let step = ArrivalStep::Coming(self.begin_way(&host.name, admission, None));
            self.arriving.push(Arriving {
                host,
                step,
                number: None,
                wish: None,
            });
        }
    }
}

impl Supervisor<'_> {
    /// Adds hosts that the machine has and the job does not. `away` is the time for which the loop did not run.
    pub(super) fn grow(&mut self, away: Duration) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        let mut told = growing.news.as_ref().is_none_or(MembershipFeed::is_over);
        let report = growing.news.as_mut().and_then(MembershipFeed::next);
        // This may end the job, which needs `growing` in its field.
        if let Some(report) = &report {
            told = true;
            self.handle_standing(report);
        }
        let news = self.growing.as_ref().and_then(|it| it.news.as_ref());
        if news.is_some_and(MembershipFeed::is_over) {
            // After the job has been left to others, which may go on with it.
            if !self.lifecycle.is_over() && self.peers.others().iter().any(Remote::is_severed) {
                self.handle_own_daemon(&ChannelEnd::OwnDaemon.cause());
            }
            self.end_with_machine();
        }
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        if let Some(report) = report.filter(|report| report.view.hindrance.is_none()) {
            growing.listed = report.hosts;
        }
        if let Some(news) = &mut growing.news {
            let remark = news.take_remark();
            remark.iter().for_each(|remark| self.streams.report(remark));
            if news.take_renewed() {
                self.resend_reaches();
            }
        }
        if self.lifecycle.is_over() || self.lifecycle.is_ending() {
            growing.stop_admitting();
        } else {
            let living = self.peers.living().map(|remote| remote.name.as_str());
            let members = living.chain(self.peers.here());
            growing.note_new_hosts(&members.collect::<Vec<_>>());
            self.advance_arrivals(&mut growing, away);
        }
        growing.told |= told;
        growing.gathering &= !growing.told || !growing.arriving.is_empty();
        self.growing = Some(growing);
        self.change_hosts_now_listed();
    }

    /// Ends a resident job with the machine that it has its hosts from.
    fn end_with_machine(&mut self) {
        if self.plan.stays && !self.lifecycle.is_over() && !self.lifecycle.is_ending() {
            let sentence = "the virtual machine has ended on this host, which ends the job";
            self.streams.report(sentence);
            let mut actions = Vec::new();
            self.lifecycle.halt(self.started.elapsed(), &mut actions);
            self.perform(actions);
        }
    }

    /// Advances all arriving hosts as far as possible now.
    fn advance_arrivals(&mut self, growing: &mut Growing, away: Duration) {
        let living = self.peers.living();
        let identity =
            |remote: &Remote| Some((remote.hello.as_ref()?.host.clone(), remote.name.clone()));
        growing.channels.arrivals.members = living.filter_map(identity).collect();
        growing.channels.arrivals.slept(away);
        let said = growing.hear();
        said.iter().for_each(|line| self.streams.report(line));
        while let Some(effect) = growing.channels.poll() {
            match effect {
                Effect::Open(id) => {
                    let opened = growing.open(id, &self.signals);
                    growing.channels.opened(id, opened);
                }
                Effect::Ask(
                    id,
                    Question::Prepare {
                        number, address, ..
                    },
                ) => {
                    let likeliest = growing.ground.template.address;
                    growing.prepare(id, number, address.unwrap_or(likeliest));
                }
                Effect::Note(note) => self.streams.report(&note),
                Effect::Joined(id, number) => self.joined(growing, id, number),
                Effect::Lost(id, why) => {
                    if let Some(arriving) = growing.take_coming(id) {
                        let sentence = why.sentence(&arriving.host.name);
                        self.give_up(growing, arriving, sentence);
                    }
                }
                _ => {}
            }
        }
    }

    fn joined(&mut self, growing: &mut Growing, id: u32, number: u32) {
        let arrived = growing.take_coming(id).zip(growing.channels.take_one(id));
        if let Some((arriving, mut remote)) = arrived {
            remote.number = number;
            let wish = arriving.wish.as_ref();
            let settings = wish.map(|wish| wish.host.settings.clone());
            remote.settings = settings.unwrap_or_default();
            self.admit(growing, remote, &arriving.host.run);
            self.fulfil(growing, arriving.wish, Ok(number));
        }
    }

    /// Gives up an arriving host, for the reason in this sentence.
    fn give_up(&mut self, growing: &mut Growing, arriving: Arriving, sentence: String) {
        let Some(wish) = &arriving.wish else {
            // The next launcher must not try again either.
            self.registry.add_known_run(&arriving.host.run);
            let sentence = format!("{sentence}; the job continues without that host");
            return self.streams.report(&sentence);
        };
        self.streams.report(&sentence);
        // If a task starts hosts instead of the launcher, it may know names that do not resolve here.
        let unknown = arriving.number.is_none() && !wish.is_known();
        let why = if unknown {
            RequestError::Host
        } else {
            RequestError::System
        };
        self.fulfil(growing, arriving.wish, Err((why, sentence)));
    }

    /// Makes a host join the job.
    fn admit(&mut self, growing: &Growing, mut remote: Remote, run: &str) {
        let Some(hello) = remote.hello.clone() else {
            return;
        };
        let addresses: Vec<SocketAddr> = growing.ground.addresses.clone();
        // Orders while a job runs fit into every frame.
        if let Some(mut plan) = failover_plan(self.plan, growing.across) {
            let passed = self.started.elapsed().as_millis() as u64;
            plan.timeout = plan.timeout.map(|limit| limit.saturating_sub(passed));
            let _ = remote.send(&Order::Failover { plan });
        }
        let _ = remote.send(&Order::Start { addresses });
        if growing.across.verbose {
            let sentence = format!("the host {} has joined the job", remote.name);
            self.streams.report(&sentence);
        }
        self.lifecycle.add_host(remote.number, &remote.name);
        self.registry.add_known_run(run);
        self.registry.host_added(HostRecord {
            number: remote.number,
            name: remote.name.clone(),
            architecture: hello.architecture,
            cores: hello.cores,
            speed: remote.settings.speed.unwrap_or(DEFAULT_SPEED),
            alive: true,
        });
        remote.heard = Instant::now();
        let number = remote.number;
        self.peers.add(remote);
        self.failover.add(number, run);
        self.hosts_changed();
    }
}
