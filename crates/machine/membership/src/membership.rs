//! [`Membership`]: its state, and the effect of each input.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::ballot::{Acceptor, Proposal};
use crate::catchup::Loading;
use crate::datagram::{self, Body, Head};
use crate::detector::{Detector, GONE, LEFT, Verdicts};
use crate::event::{Event, Input, Output, Standing};
use crate::host::{Facts, HostId};
use crate::host_facts::Book;
use crate::lineage::Lineage;
use crate::roll::{Change, Roll};
use crate::settings::Settings;
use crate::view::View;

/// Maximum number of suspects that count as single deaths; with more, the network may have split.
pub(crate) const MAX_SINGLE_DEATHS: usize = 8;

/// One host's part in keeping a machine together. The crate's documentation describes its use.
pub struct Membership {
    pub(crate) settings: Settings,
    pub(crate) facts: Facts,
    pub(crate) now: Duration,
    pub(crate) rng: SmallRng,
    pub(crate) detector: Detector,
    pub(crate) book: Book,
    pub(crate) view: View,
    pub(crate) roll: Arc<Roll>,
    /// The last changes; the newest one led to the current roll.
    pub(crate) history: VecDeque<Change>,
    pub(crate) loading: Option<Loading>,
    pub(crate) asked: Option<Duration>,
    /// The last roll of another lineage that was read and does not contain this host.
    pub(crate) read_in_vain: Option<(Lineage, u32)>,
    pub(crate) acceptor: Acceptor,
    pub(crate) voting: Voting,
    pub(crate) standing: Standing,
    /// Whether this host speaks for a quorum of its roll.
    pub(crate) live: bool,
    /// When it last did, or last received a datagram of a host of its lineage that does.
    pub(crate) live_at: Option<Duration>,
    /// Addresses of hosts that are out of contact: they may be alive, and have another roll.
    pub(crate) parted: VecDeque<SocketAddr>,
    /// Whether the deadlock has been reported.
    pub(crate) told_of_deadlock: bool,
    /// Since when too few hosts answer.
    pub(crate) short_since: Option<Duration>,
    pub(crate) contacts: Vec<SocketAddr>,
    pub(crate) leaving: Option<Duration>,
    pub(crate) departed: bool,
    /// Whether the machine was ended without this host.
    pub(crate) ended: bool,
    /// The identity under which this host has voted so far.
    pub(crate) voted_as: HostId,
    /// Hosts whose facts are unknown, and when to ask for them.
    pub(crate) undescribed: VecDeque<(HostId, Duration)>,
    pub(crate) ticks: u64,
    output: VecDeque<Output>,
}

/// This host's part in the current vote.
#[derive(Default)]
pub(crate) struct Voting {
    pub proposal: Option<Proposal>,
    pub begun: Duration,
    pub not_before: Duration,
    /// The next round that this host may use; round 0 belongs to the oldest host, once.
    pub round: u32,
    /// Whether a host does not know the result of a vote.
    pub unclear: bool,
    pub doubt_since: Option<Duration>,
}

impl Membership {
    /// Creates a host that belongs to no machine yet. `seed` determines its random choices; different hosts should have
    /// different seeds.
    pub fn new(
        own: HostId,
        facts: Facts,
        settings: Settings,
        seed: u64,
        now: Duration,
    ) -> Membership {
        let (book, settings) = (Book::default(), settings.sane());
        Membership {
            detector: Detector::new(own, &settings, seed, now, book.clone()),
            rng: SmallRng::seed_from_u64(!seed),
            settings,
            facts,
            now,
            book,
            view: View::default(),
            roll: Arc::default(),
            history: VecDeque::new(),
            loading: None,
            asked: None,
            read_in_vain: None,
            acceptor: Acceptor::default(),
            voting: Voting::default(),
            standing: Standing::Outside,
            live: false,
            live_at: None,
            parted: VecDeque::new(),
            told_of_deadlock: false,
            short_since: None,
            contacts: Vec::new(),
            leaving: None,
            departed: false,
            ended: false,
            voted_as: own,
            undescribed: VecDeque::new(),
            ticks: 0,
            output: VecDeque::new(),
        }
    }

    /// Creates one of several hosts that all begin with the same roll, so that none has to join.
    pub fn assembled(
        own: HostId,
        facts: Facts,
        settings: Settings,
        seed: u64,
        now: Duration,
        roll: Arc<Roll>,
    ) -> Membership {
        let mut membership = Membership::new(own, facts, settings, seed, now);
        membership.roll = roll.clone();
        let others = roll.hosts().filter(|host| **host != own).copied();
        membership.detector.introduce(now, others, false);
        membership.detector.size_for(roll.len());
        membership.detector.sink.notes.clear();
        membership.standing = Standing::Majority;
        membership
    }

    /// Handles an input. `now` counts from a start chosen by the caller and never goes back.
    pub fn handle(&mut self, now: Duration, input: Input<'_>) {
        self.now = now;
        self.detector.notice_stop(now);
        match input {
            Input::Datagram { from, bytes } => self.take_datagram(from, bytes),
            Input::Timer => {
                let verdicts = self.verdicts();
                if self.detector.fire(now, verdicts) {
                    self.tick();
                }
            }
            Input::CreateMachine => self.create_machine(),
            Input::Join { address } => {
                if self.contacts.is_empty() {
                    self.describe_itself();
                }
                self.contacts.push(address);
                self.remember_place(address);
                self.call(address);
            }
            Input::Leave => self.leave(),
            Input::DaemonGone { host } if host != self.own() => {
                self.detector.condemn(now, host, GONE)
            }
            Input::DaemonGone { .. } => {}
            Input::Vouch => self.vouch(),
        }
        self.settle();
    }

    /// Returns the next output, or `None` if there is none.
    pub fn poll(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// Returns when to pass [`Input::Timer`] next.
    pub fn deadline(&self) -> Duration {
        self.detector.deadline()
    }

    /// Returns the current identity of this host.
    pub fn own(&self) -> HostId {
        self.detector.own()
    }

    /// Returns whether it may accept work.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns the hosts that were agreed on last.
    pub fn roll(&self) -> &Roll {
        &self.roll
    }

    /// Returns all hosts that are not dead, except this one, and whether each is suspected.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, bool)> {
        self.detector
            .active()
            .map(|member| (*member.id(), member.state() == foca::State::Suspect))
    }

    /// Returns the facts about a host, if known.
    pub fn facts(&self, host: &HostId) -> Option<Facts> {
        if *host == self.own() {
            Some(self.facts.clone())
        } else {
            self.book.lock().get(host).cloned()
        }
    }

    /// Returns whether this host is on the roll and sees enough of the others. If not, it declares no host dead and
    /// calls for no votes.
    pub(crate) fn is_in_majority(&self) -> bool {
        self.roll.contains(&self.own())
            && self.view.is_majority(&self.roll)
            && !self.detector.is_cut_off()
    }

    fn verdicts(&self) -> Verdicts {
        if !self.is_in_majority() {
            Verdicts::Hold
        } else if self.view.suspects.len() > MAX_SINGLE_DEATHS.max(self.roll.len() / 8) {
            Verdicts::PutOff
        } else {
            Verdicts::Pass
        }
    }

    fn take_datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        let Ok((head, body)) = datagram::decode(bytes) else {
            return;
        };
        if head.machine != self.settings.machine {
            return;
        }
        if !self.is_kin(&head) {
            self.meet(from, &head, body);
            return;
        }
        if head.epoch > self.roll.epoch() {
            self.ask_what_is_new(from);
        }
        match body {
            Body::Swim(bytes) => self.detector.datagram(self.now, &bytes.0),
            Body::Bye(host) => self.take_goodbye(host),
            Body::Accused {
                by,
                host,
                incarnation,
            } => self.object(by, host, incarnation),
            Body::Suspects(suspects) => self.take_suspects(suspects.0),
            Body::Taken(host) if host.succeeds(&self.own()) => {
                let own = self.own().next(&host);
                self.rename(own);
            }
            Body::Taken(_) => {}
            Body::Behind { by, epoch, page } => self.send_what_is_new(by, epoch, page),
            Body::Changes { epoch, changes } => self.take_changes(epoch, &changes.0),
            Body::Page(page) => self.take_page(from, &head, page, true),
            // The caller is behind.
            Body::Hail(_) if head.epoch < self.roll.epoch() => self.hail(from),
            Body::Hail(_) => {}
            Body::Ask(by) => self.send(by, &Body::Facts(self.own(), self.facts.clone())),
            Body::Facts(host, facts) => _ = self.book.lock().put(host, facts),
            Body::Vote { by, epoch, vote } => self.take_vote(by, epoch, vote),
        }
    }

    /// Objects to a suspicion of this host. Two hosts that know each other only by old identities would never be in
    /// contact again: foca drops what is addressed to an old identity, except for an announcement. So a host that is
    /// suspected under an old identity announces itself under the new one.
    fn object(&mut self, by: HostId, host: HostId, incarnation: u16) {
        if self.leaving.is_some() {
            return;
        }
        if host == self.own() {
            self.detector.object(self.now, incarnation);
        }
        if host.same_place(&self.own()) {
            self.detector.announce(self.now, by);
        }
    }

    fn take_suspects(&mut self, mut suspects: Vec<(HostId, u16)>) {
        suspects.retain(|(host, _)| self.view.is_active(&self.roll, host));
        self.detector.suspect(self.now, suspects);
    }

    fn create_machine(&mut self) {
        if self.roll.epoch() == 0 {
            let lineage = Lineage::founded(&mut self.rng);
            self.roll = Arc::new(Roll::begun(lineage, self.own()));
            self.describe_itself();
            self.judge_standing();
        }
    }

    pub(crate) fn describe_itself(&mut self) {
        let (own, facts) = (self.own(), self.facts.clone());
        self.detector.send_facts(&own, &facts);
    }

    fn leave(&mut self) {
        if self.leaving.is_none() {
            self.leaving = Some(self.now);
            self.standing = Standing::Outside;
            self.live = false;
            self.detector.leaving = true;
            self.voting.proposal = None;
            self.send_goodbye();
        }
    }

    fn take_goodbye(&mut self, host: HostId) {
        if host != self.own() {
            if self.roll.contains(&host) {
                self.view.leaving.entry(host).or_insert(self.now);
            }
            self.detector.condemn(self.now, host, LEFT);
        }
    }

    /// Goes on under another identity, because the current one is used up.
    fn rename(&mut self, own: HostId) {
        self.detector.rename(self.now, own);
    }

    /// Calls an address without knowing which host is there.
    pub(crate) fn call(&mut self, address: SocketAddr) {
        self.detector.announce(self.now, HostId::new(address, 0, 0));
    }

    pub(crate) fn send(&mut self, to: HostId, body: &Body) {
        self.send_to(to.address(), body);
    }

    pub(crate) fn send_to(&mut self, to: SocketAddr, body: &Body) {
        let head = Head {
            machine: self.settings.machine,
            lineage: self.roll.lineage(),
            epoch: self.roll.epoch(),
            is_on_roll: self.live || self.roll.contains(&self.own()),
            live: self.live,
        };
        self.output.push_back(Output::Send {
            to,
            bytes: datagram::encode(head, body),
        });
    }

    pub(crate) fn notify(&mut self, event: Event) {
        self.output.push_back(Output::Event(event));
    }
}
