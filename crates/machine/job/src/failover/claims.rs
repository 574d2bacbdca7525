//! Claims of a host that takes a job over. It claims the channel of every other host of the job, and then tells all
//! their agents that it leads, or none of them.
//!
//! ```text
//!           Open            OwnerLost           Lead             Ready, AskState      HandedOver
//!  Closed ────────▶ Opening ────────▶ Claimed ────────▶ Called ────────▶ Asked ────────▶ Found
//!    ▲                 │                 │                │                │
//!    └─────────────────┴── Closed, claimed again a moment later ───────────┘          (Lost, from any)
//! ```
//!
//! A daemon hands out a channel once its agent knows that its owner is lost. That happens later on some hosts than on
//! others, so a claim that fails is repeated. A claim is *open* until its host is claimed or lost. While another claim
//! is open, claimed channels are only held, so that this host can still leave the job to another one if some agent does
//! not name it among the hosts that may lead.
//!
//! Majority: this host announces that it leads only if more than half of the hosts that are left, including itself,
//! have consented.
//!
//! | answer | counts as |
//! |---|---|
//! | the agent waits for this host ([`ClaimInput::OwnerLost`]) | consent: no other host can have its channel while this claim lasts |
//! | the membership reports that the host is gone, or a replica that it is dead | absence: the host is not left |
//! | none in time, or only claims that fail ([`ClaimInput::Closed`]) | neither: the host is left and has not consented |
//!
//! A daemon refuses a claim if no agent of the job waits there. That does not count as absence. The daemon gives the
//! same answer for an agent that does not know yet that its owner is lost, follows another launcher, leads itself, or
//! has ended (it was killed, or the job is over). Otherwise each of two remaining hosts could take the other one for
//! absent. A host that was given up while it lived, and has an old order, would then lead beside the other host, or
//! lead a job that already has its result. The price: if one of two remaining hosts is alive, and its agent ends after
//! the launcher is lost, the job ends as well. An agent that ends before that does no harm: the launcher gives its host
//! up, and the next order does not name it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{Absence, Candidate, MembershipView};
use crate::Registry;

/// Time after which an open claim or an outstanding answer of an agent is given up.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a host that may not lead continues its open claims, so that it can withdraw from those agents as
/// well: they may wait for it.
const WITHDRAWAL_TIME: Duration = Duration::from_secs(3);
/// Time from the end of a channel to the next claim for it.
const CLAIM_INTERVAL: Duration = Duration::from_millis(100);

/// An event. Hosts are identified by their numbers in the job. The claiming host is never among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimInput {
    /// Time has passed. Due at [`Claims::deadline`], harmless at any other time.
    Timer,
    /// A report of the membership, with the causes for which runs of hosts are gone.
    Membership(MembershipView, BTreeMap<String, String>),
    /// The daemon of this host has ended, and all channels with it.
    DaemonEnded,
    /// The channel to this host has ended, or could not be opened.
    Closed(u32),
    /// The agent of this host has reported that its owner is lost, and which runs of hosts may take it over: its
    /// channel is claimed.
    OwnerLost(u32, Vec<String>),
    /// The announcement to the agent of this host has been made.
    Ready(u32),
    /// The agent of this host has handed over its state. According to its replica, if it has one, the listed hosts are
    /// dead.
    HandedOver(u32, Vec<u32>),
    /// The agent of this host has sent something malformed or unexpected.
    Nonsense(u32),
}

/// A step that the process of this host carries out, in the order of the effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimEffect {
    /// Open a channel to claim the agent at its other end.
    Open(u32),
    /// Announce to the agent that this host leads.
    Lead(u32),
    /// Request the agent's state.
    AskState(u32),
    /// Close the channel.
    Close(u32),
    /// Tell the agent that this host does not lead after all, and close the channel.
    GiveUp(u32),
    /// Begin to lead: every host has handed over its state or is lost. This is the last effect.
    Begin,
    /// Leave the job to other hosts. All channels end with this process. This is the last effect.
    Leave(Obstacle),
}

/// The reason why a host does not take a job over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The host's daemon has ended.
    DaemonEnded,
    /// The host sees no majority, for this reason, and other hosts of the job are silent.
    CutOff(String),
    /// The previous launcher had given the host up, as this other host (by number) reports.
    GivenUp(u32),
    /// At most half of the hosts of the job that are left would follow.
    TooFew,
}

/// The state of the claim of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// No channel. The next claim is due at this time.
    Closed(Duration),
    Opening,
    /// The channel is claimed: the host's agent waits for an announcement.
    Claimed,
    Called,
    Asked,
    Found,
    Lost(Absence),
}

#[derive(Debug)]
struct Host {
    candidate: Candidate,
    step: Step,
}

impl Host {
    fn has_channel(&self) -> bool {
        !matches!(self.step, Step::Closed(_) | Step::Lost(_))
    }

    /// Returns whether the host is neither claimed nor lost. While any claim is open, no agent gets an announcement.
    fn is_open(&self) -> bool {
        matches!(self.step, Step::Closed(_) | Step::Opening)
    }

    fn is_done(&self) -> bool {
        matches!(self.step, Step::Found | Step::Lost(_))
    }
}

/// The claims of one host.
#[derive(Debug)]
pub struct Claims {
    /// The run of this host.
    own: String,
    hosts: Vec<Host>,
    view: MembershipView,
    causes: BTreeMap<String, String>,
    /// The hosts that are dead according to some replica: other hosts have been notified of it.
    dead: BTreeSet<u32>,
    /// The start of the wait for agents: the first claims, or the announcement.
    began: Duration,
    /// Whether the announcement has been made.
    has_announced: bool,
    /// The first agent that did not name this host as a successor, and when it reported that.
    unnamed: Option<(u32, Duration)>,
    is_over: bool,
    effects: VecDeque<ClaimEffect>,
}

impl Claims {
    /// Begins to claim `others`. `view` and `causes` are the membership's report on this host, and `registry` is this
    /// host's replica.
    pub fn new(
        now: Duration,
        others: &[Candidate],
        view: MembershipView,
        causes: BTreeMap<String, String>,
        registry: &Registry,
    ) -> Self {
        let host = |candidate: &Candidate| Host {
            candidate: candidate.clone(),
            step: Step::Closed(now),
        };
        let mut claims = Self {
            own: view.own.clone().unwrap_or_default(),
            hosts: others.iter().map(host).collect(),
            view,
            causes,
            dead: dead_hosts(registry).collect(),
            began: now,
            has_announced: false,
            unnamed: None,
            is_over: false,
            effects: VecDeque::new(),
        };
        claims.decide(now);
        claims
    }

    /// Handles an event. An event that is repeated, late, or from a host whose channel was closed, has no effect.
    pub fn handle(&mut self, now: Duration, input: ClaimInput) {
        if self.is_over {
            return;
        }
        match input {
            ClaimInput::Timer => {}
            ClaimInput::Membership(view, causes) => (self.view, self.causes) = (view, causes),
            ClaimInput::DaemonEnded => return self.leave(Obstacle::DaemonEnded),
            ClaimInput::Closed(host) => {
                if let Some(host) = self.find(host).filter(|host| !host.is_done()) {
                    host.step = Step::Closed(now + CLAIM_INTERVAL);
                }
            }
            ClaimInput::OwnerLost(host, successors) => self.owner_lost(now, host, &successors),
            ClaimInput::Ready(host) => {
                if self.advance(host, &Step::Called, Step::Asked) {
                    self.effects.push_back(ClaimEffect::AskState(host));
                }
            }
            ClaimInput::HandedOver(host, dead) => {
                if self.advance(host, &Step::Asked, Step::Found) {
                    self.dead.extend(dead);
                }
            }
            ClaimInput::Nonsense(host) => {
                if self.find(host).is_some_and(|host| !host.is_done()) {
                    self.lose(host, Absence::Nonsense);
                }
            }
        }
        self.decide(now);
    }

    /// Returns the next effect.
    pub fn poll(&mut self) -> Option<ClaimEffect> {
        self.effects.pop_front()
    }

    /// Returns the time at which [`ClaimInput::Timer`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        if self.is_over {
            return None;
        }
        let claims = self.hosts.iter().filter_map(|host| match host.step {
            Step::Closed(at) => Some(at),
            _ => None,
        });
        let withdrawal = self.unnamed.map(|(_, since)| since + WITHDRAWAL_TIME);
        let late = self.began + CLAIM_TIMEOUT;
        claims.chain(withdrawal).chain([late]).min()
    }

    /// Returns the hosts that are lost, and why.
    pub fn lost(&self) -> BTreeMap<u32, Absence> {
        let lost = self.hosts.iter().filter_map(|host| match &host.step {
            Step::Lost(why) => Some((host.candidate.number, why.clone())),
            _ => None,
        });
        lost.collect()
    }

    fn find(&mut self, number: u32) -> Option<&mut Host> {
        let mut hosts = self.hosts.iter_mut();
        hosts.find(|host| host.candidate.number == number)
    }

    /// Moves the claim of a host from step `from` to step `to`. Returns false if it is not at `from`.
    fn advance(&mut self, host: u32, from: &Step, to: Step) -> bool {
        let found = self.find(host).filter(|host| host.step == *from);
        found.map(|host| host.step = to).is_some()
    }

    fn owner_lost(&mut self, now: Duration, host: u32, successors: &[String]) {
        if !self.advance(host, &Step::Opening, Step::Claimed) || successors.contains(&self.own) {
            return;
        }
        match self.has_announced {
            // The other agents already follow this host.
            true => self.lose(host, Absence::NotHeard),
            false => {
                self.unnamed.get_or_insert((host, now));
            }
        }
    }

    fn lose(&mut self, number: u32, why: Absence) {
        let Some(host) = self.find(number) else {
            return;
        };
        let had_channel = host.has_channel();
        host.step = Step::Lost(why);
        if had_channel {
            self.effects.push_back(ClaimEffect::Close(number));
        }
    }

    /// Decides everything that follows from the present state.
    fn decide(&mut self, now: Duration) {
        if let Some(why) = self.cut_off() {
            return self.leave(Obstacle::CutOff(why));
        }
        self.lose_hosts(now);
        let is_open = self.hosts.iter().any(Host::is_open);
        if let Some((host, since)) = self.unnamed
            && (!is_open || now >= since + WITHDRAWAL_TIME)
        {
            self.give_up_claimed();
            return self.leave(Obstacle::GivenUp(host));
        }
        if !self.has_announced && !is_open {
            if self.has_too_few() {
                self.give_up_claimed();
                return self.leave(Obstacle::TooFew);
            }
            (self.has_announced, self.began) = (true, now);
        }
        self.take_steps(now);
        if self.hosts.iter().all(Host::is_done) {
            self.is_over = true;
            self.effects.push_back(ClaimEffect::Begin);
        }
    }

    /// Returns why other hosts may go on with the job without this one: it sees no majority, and some host of the job
    /// is suspected. Returns `None` otherwise.
    fn cut_off(&self) -> Option<String> {
        let why = self.view.hindrance.as_ref()?;
        let mut hosts = self.hosts.iter();
        let is_silent = hosts.any(|host| self.view.is_suspected(&host.candidate.run));
        is_silent.then(|| why.clone())
    }

    /// Returns whether at most half of the hosts that are left, including this one, would follow. Then the other hosts
    /// may follow another host that claimed them before or already leads. This happens to a host that the previous
    /// launcher had given up, because only that host has its order.
    fn has_too_few(&self) -> bool {
        let is_claimed = |host: &&Host| host.step == Step::Claimed;
        let is_left = |host: &&Host| {
            let candidate = &host.candidate;
            self.view.is_left(&candidate.run) && !self.dead.contains(&candidate.number)
        };
        let claimed = self.hosts.iter().filter(is_claimed).count();
        let left = self.hosts.iter().filter(is_left).count();
        left > claimed && 2 * (1 + claimed) <= 1 + left
    }

    fn lose_hosts(&mut self, now: Duration) {
        let is_late = now >= self.began + CLAIM_TIMEOUT;
        let loss = |host: &Host| {
            let run = &host.candidate.run;
            match &host.step {
                Step::Lost(_) => None,
                // Other hosts have been notified of its loss.
                _ if self.dead.contains(&host.candidate.number) => Some(Absence::GivenUpBefore),
                // If it is lost, the end of its channel reports that in the job that begins.
                Step::Found => None,
                // This run of the host does not come back, whether or not the cause is still known.
                _ if !self.view.is_left(run) => Some(match self.causes.get(run) {
                    Some(cause) => Absence::Gone(cause.clone()),
                    None => Absence::UnknownRun,
                }),
                // It waits for the announcement and sends nothing.
                Step::Claimed => None,
                _ => is_late.then_some(Absence::NotHeard),
            }
        };
        let numbered = |host: &Host| Some((host.candidate.number, loss(host)?));
        let lost: Vec<_> = self.hosts.iter().filter_map(numbered).collect();
        lost.into_iter()
            .for_each(|(host, why)| self.lose(host, why));
    }

    fn take_steps(&mut self, now: Duration) {
        for host in &mut self.hosts {
            let number = host.candidate.number;
            let (step, effect) = match host.step {
                Step::Closed(at) if now >= at => (Step::Opening, ClaimEffect::Open(number)),
                Step::Claimed if self.has_announced => (Step::Called, ClaimEffect::Lead(number)),
                _ => continue,
            };
            host.step = step;
            self.effects.push_back(effect);
        }
    }

    /// Gives up the claims of agents that have not received the announcement. They no longer wait for this host.
    fn give_up_claimed(&mut self) {
        for host in self.hosts.iter_mut() {
            if host.step == Step::Claimed {
                let number = host.candidate.number;
                self.effects.push_back(ClaimEffect::GiveUp(number));
                host.step = Step::Closed(Duration::MAX);
            }
        }
    }

    fn leave(&mut self, why: Obstacle) {
        self.is_over = true;
        self.effects.push_back(ClaimEffect::Leave(why));
    }
}

/// Returns the hosts that are dead according to a registry.
pub fn dead_hosts(registry: &Registry) -> impl Iterator<Item = u32> {
    let dead = registry.hosts().iter().filter(|host| !host.alive);
    dead.map(|host| host.number)
}

#[cfg(test)]
mod tests;
