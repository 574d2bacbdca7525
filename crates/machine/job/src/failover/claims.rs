//! Claims of a host that takes a job over: it claims the channel of every other host of the job, and says the word that it leads to all
//! their agents together, or to none.
//!
//! ```text
//!           Open            OwnerLost           Lead             Ready, AskState      HandedOver
//!  Closed ────────▶ Opening ────────▶ Claimed ────────▶ Called ────────▶ Asked ────────▶ Found
//!    ▲                 │                 │                │                │
//!    └─────────────────┴── Closed, claimed again a moment later ───────────┘          (Lost, from any)
//! ```
//!
//! A daemon gives a channel away when its agent knows that its owner is lost, which is later on some hosts than on others: so a claim that
//! fails is made again. A claim is *open* until its host is claimed or lost. A channel that has been claimed is held while another claim is open, so
//! that this host can still leave the job to another one if some agent does not name it among the hosts that may lead.
//!
//! Majority: this host says the word only if more than half of the hosts that are left, itself among them, have consented.
//!
//! | answer | counts as |
//! |---|---|
//! | the agent waits for this host ([`ClaimInput::OwnerLost`]) | consent: nobody else has its channel as long as this claim lasts |
//! | the membership says that the host is gone, or a replica that it is dead | absence: the host is not left |
//! | none in time, or only claims that fail ([`ClaimInput::Closed`]) | neither: the host is left and has not consented |
//!
//! A claim that a daemon refuses because nothing of the job waits there is no absence. It says the same of an agent that does not know yet
//! that its owner is lost, of one that follows another launcher, of one that leads, and of one that has ended, be it killed or because the
//! job is over. Of two hosts that are left, each would otherwise take the other one for absent: one that was given up while it lived, and has
//! an order from before, would lead beside the other one, or a job that has its result already. The price: if one of two hosts that are left
//! is alive, and its agent ends after the launcher is lost, the job ends as well. An agent that ends before that costs nothing: the launcher
//! gives its host up, and the next order does not name it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{Absence, Candidate, MembershipView};
use crate::Registry;

/// Time after which an open claim of an agent, or an answer that has not come, is given up.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a host that may not lead goes on with its open claims, to say so to those agents, too: they may wait for it.
const WITHDRAWAL_TIME: Duration = Duration::from_secs(3);
/// Time from the end of a channel to the next claim for it.
const CLAIM_INTERVAL: Duration = Duration::from_millis(100);

/// An event. Hosts are given by their numbers in the job, and are others than the one that claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimInput {
    /// Time has passed: due at [`Claims::deadline`], and harmless at any other time.
    Timer,
    /// The membership reports, with the causes why runs of hosts are gone.
    Membership(MembershipView, BTreeMap<String, String>),
    /// The daemon of this host has ended, and with it all channels.
    DaemonEnded,
    /// A channel has ended, or could not be opened.
    Closed(u32),
    /// An agent has said that its owner is lost, and which runs of hosts may take it over: its channel is claimed.
    OwnerLost(u32, Vec<String>),
    /// An agent has taken note of the word.
    Ready(u32),
    /// An agent has handed over all that it knows. By its replica, if it has one, these hosts are dead.
    HandedOver(u32, Vec<u32>),
    /// An agent says what cannot be understood.
    Nonsense(u32),
}

/// A step that the process of this host carries out. Effects are carried out in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimEffect {
    /// Open a channel, to claim the agent at its other end.
    Open(u32),
    /// Say the word that this host leads.
    Lead(u32),
    /// Ask the agent for all that it knows.
    AskState(u32),
    /// Close the channel.
    Close(u32),
    /// Say that this host does not lead after all, and close the channel.
    GiveUp(u32),
    /// Every host has handed over what it knows, or is lost: the last effect.
    Begin,
    /// This host leaves the job to others, and all channels end with its process: the last effect.
    Leave(Obstacle),
}

/// Why a host does not take a job over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Its daemon has ended.
    DaemonEnded,
    /// It sees no majority, for this reason, and others of the job are silent.
    CutOff(String),
    /// The launcher before it had given it up, as this host has heard.
    GivenUp(u32),
    /// No more than half of the hosts of the job that are left would follow.
    TooFew,
}

/// How far the claim of a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// It is claimed at this time.
    Closed(Duration),
    Opening,
    /// Its agent waits for a word.
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

    /// Neither claimed nor lost, and so no word is said to others.
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
    /// The hosts that some replica says are dead: others have been told so.
    dead: BTreeSet<u32>,
    /// Since when agents are waited for: the first claims, or the word.
    began: Duration,
    /// The word is said.
    calls: bool,
    /// The first agent that does not name this host, and when it said so.
    unnamed: Option<(u32, Duration)>,
    is_over: bool,
    effects: VecDeque<ClaimEffect>,
}

impl Claims {
    /// Begins to claim these hosts, from a host on which the membership has reported so. The registry is its own replica.
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
            calls: false,
            unnamed: None,
            is_over: false,
            effects: VecDeque::new(),
        };
        claims.decide(now);
        claims
    }

    /// Takes note of an event. One that comes twice, late, or from a host whose channel was closed, changes nothing.
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

    /// The next effect.
    pub fn poll(&mut self) -> Option<ClaimEffect> {
        self.effects.pop_front()
    }

    /// When [`ClaimInput::Timer`] is due.
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

    /// The hosts that are lost, and why.
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

    /// Takes the claim of a host from one step to another, if it is there.
    fn advance(&mut self, host: u32, from: &Step, to: Step) -> bool {
        let found = self.find(host).filter(|host| host.step == *from);
        found.map(|host| host.step = to).is_some()
    }

    fn owner_lost(&mut self, now: Duration, host: u32, successors: &[String]) {
        if !self.advance(host, &Step::Opening, Step::Claimed) || successors.contains(&self.own) {
            return;
        }
        match self.calls {
            // The others follow already.
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

    /// Decides all that follows from what is known now.
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
        if !self.calls && !is_open {
            if self.has_too_few() {
                self.give_up_claimed();
                return self.leave(Obstacle::TooFew);
            }
            (self.calls, self.began) = (true, now);
        }
        self.take_steps(now);
        if self.hosts.iter().all(Host::is_done) {
            self.is_over = true;
            self.effects.push_back(ClaimEffect::Begin);
        }
    }

    /// Why others may go on with the job without this host: it sees no majority, and is silent to some of them or they to it.
    fn cut_off(&self) -> Option<String> {
        let why = self.view.hindrance.as_ref()?;
        let mut hosts = self.hosts.iter();
        let is_silent = hosts.any(|host| self.view.is_suspected(&host.candidate.run));
        is_silent.then(|| why.clone())
    }

    /// Whether no more than half of the hosts that are left would follow, this one included: then the others may follow another one, that has
    /// claimed them before or leads already. It is alone with its order if the launcher before had given it up.
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
                // Others have been told so.
                _ if self.dead.contains(&host.candidate.number) => Some(Absence::GivenUpBefore),
                // The end of its channel says that it is lost, in the job that begins.
                Step::Found => None,
                // As it was, it does not come back, whether or not it is still known why.
                _ if !self.view.is_left(run) => Some(match self.causes.get(run) {
                    Some(cause) => Absence::Gone(cause.clone()),
                    None => Absence::UnknownRun,
                }),
                // It waits for the word, and has nothing to say.
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
                Step::Claimed if self.calls => (Step::Called, ClaimEffect::Lead(number)),
                _ => continue,
            };
            host.step = step;
            self.effects.push_back(effect);
        }
    }

    /// Gives the claims back to agents that have heard no word: they wait for this host no longer.
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

/// The hosts that are dead by a registry.
pub fn dead_hosts(registry: &Registry) -> impl Iterator<Item = u32> {
    let dead = registry.hosts().iter().filter(|host| !host.alive);
    dead.map(|host| host.number)
}

#[cfg(test)]
mod tests;
