//! Contacts between hosts of different lineages: which lineage goes on, and what the other hosts do.
//!
//! The guarantee: once all living hosts reach each other and none is stopped, all soon belong to one lineage that goes
//! on. Otherwise none goes on, every host that is on its roll has reported so ([`Event::Minority`], and
//! [`Event::Deadlock`] if lineages have met), and one vouch on any host makes all go on.
//!
//! How they meet:
//!
//! - A host remembers the last 64 of these addresses: those that it was told to join, those of hosts with which it has
//!   lost contact, unless they have left, and those of hosts of other lineages. It hails one of them every fourth
//!   period, until a host of its own lineage is there. So two lineages meet if only one host of one knows an address of
//!   the other.
//! - A hail carries the sender's identity. Whatever the sender's lineage, earlier runs of its daemon never vote again,
//!   which may be all that the hailed host has been waiting for.
//!
//! How one yields:
//!
//! - A lineage is *live* as seen from a host while the host sees a quorum of the roll, or has received a datagram,
//!   within the time of a suspicion, of a host of its lineage that does.
//! - A host gives way to a live lineage if its own is not live, or comes after it in the order of precedence
//!   ([`crate::lineage`]). So a majority never gives way to hosts for which an operator has wrongly vouched, nor to
//!   hosts that have wrongly concluded that the majority is dead.
//! - A host that gives way takes a new identity and forgets which hosts it considered dead, since its updates would
//!   kill living hosts. It keeps its identity only if it goes to a later lineage that has it on its roll, and whose
//!   hosts it did not consider dead: then it has never voted in that lineage, and the hosts that have begun the lineage
//!   expect it to go on.
//! - Among lineages that are not live, a host goes to one whose beginning it has accepted, since the old one cannot
//!   decide without it. A host that is on no roll goes to the later one, as does a host that is on the roll there. If
//!   all hosts on the roll of its lineage are certain never to vote again, a host that is on no roll goes to any host
//!   that is on the roll of another. No other host gives way: a majority of either may still come together.

use std::net::SocketAddr;

use rand::RngExt;

use crate::datagram::{Body, Head};
use crate::detector::Detector;
use crate::event::{Cause, Event, Renewal, Standing};
use crate::host::HostId;
use crate::lineage::Lineage;
use crate::membership::Membership;
use crate::roll::Roll;
use crate::view::View;

/// Maximum number of addresses kept of hosts that are out of contact.
const MAX_PARTED_HOSTS: usize = 64;

impl Membership {
    /// Returns whether a datagram is from the same lineage. A new host joins the first lineage of which it receives a
    /// datagram.
    pub(crate) fn is_kin(&mut self, head: &Head) -> bool {
        let own = self.roll.lineage();
        if head.lineage.is_none() {
            return true;
        }
        if own.is_none() {
            self.roll = Roll::awaited(head.lineage).into();
        } else if head.lineage != own {
            return false;
        }
        if head.live {
            self.live_at = Some(self.now);
        }
        true
    }

    /// Handles a datagram of another lineage, of which only the sender's identity is believed.
    pub(crate) fn meet(&mut self, from: SocketAddr, head: &Head, body: Body) {
        if self.leaving.is_some() {
            return;
        }
        let gives_way = self.gives_way(head);
        if let Body::Hail(host) = body {
            self.take_hail(&host);
        }
        match body {
            Body::Page(page) if gives_way => self.take_page(from, head, page, true),
            _ if gives_way => self.ask_what_is_new(from),
            Body::Page(page) if self.is_curious(head) => self.take_page(from, head, page, false),
            Body::Behind { by, page, .. } => self.send_pages(by, page),
            // Let the other host notice that this lineage goes on.
            _ if self.live => self.hail(from),
            _ if !head.live && !self.is_lineage_live() => {
                self.meet_deadlocked(from, head, matches!(body, Body::Hail(_)));
            }
            _ => {}
        }
    }

    /// Handles a contact of two lineages neither of which goes on. The two hosts exchange their identities, since an
    /// earlier run of either daemon may be what the other is waiting for.
    fn meet_deadlocked(&mut self, from: SocketAddr, head: &Head, was_hailed: bool) {
        if self.is_curious(head) {
            self.ask_what_is_new(from);
        }
        if !was_hailed && self.ticks.is_multiple_of(4) {
            self.hail(from);
        }
        if !std::mem::replace(&mut self.told_of_deadlock, true) {
            self.notify(Event::Deadlock(from));
        }
    }

    /// Handles the identity of a host of another lineage. Earlier runs of its daemon act in no lineage.
    fn take_hail(&mut self, host: &HostId) {
        self.outlive(host);
        self.part_from(&[*host]);
    }

    pub(crate) fn hail(&mut self, to: SocketAddr) {
        let own = self.own();
        self.send_to(to, &Body::Hail(own));
    }

    /// Returns whether to read the roll of a later lineage: it may contain this host, and have no quorum without it.
    fn is_curious(&self, head: &Head) -> bool {
        let was_read = self.read_in_vain == Some((head.lineage, head.epoch));
        !self.is_lineage_live() && head.lineage > self.roll.lineage() && !was_read
    }

    fn gives_way(&self, head: &Head) -> bool {
        let (own, is_live) = (self.roll.lineage(), self.is_lineage_live());
        let free = !is_live && !self.roll.contains(&self.own());
        let follows = self.acceptor.accepted_fork() == Some(head.lineage)
            || (free && head.lineage > own)
            || (free && head.is_on_roll && self.view.is_extinct(&self.roll));
        follows || (head.live && (!is_live || head.lineage < own))
    }

    /// Determines whether this host speaks for a quorum of its roll. A host that has accepted the beginning of a new
    /// lineage no longer speaks for the old one.
    pub(crate) fn judge_life(&mut self) {
        self.live = self.standing == Standing::Majority
            && self.acceptor.accepted_fork().is_none()
            && self.view.is_quorum(&self.roll);
        if self.live {
            self.live_at = Some(self.now);
            self.told_of_deadlock = false;
        }
    }

    fn is_lineage_live(&self) -> bool {
        self.live_at
            .is_some_and(|at| self.now.saturating_sub(at) < self.settings.suspicion())
    }

    /// Changes to a roll of another lineage.
    pub(crate) fn change_lineage(&mut self, roll: Roll, is_live: bool) {
        let own = self.own();
        let known = self.hosts().map(|(host, _)| host);
        let mut lost: Vec<HostId> = self.roll.hosts().copied().chain(known).collect();
        lost.retain(|host| !host.same_place(&own) && !roll.contains(host));
        let rises = roll.lineage() > self.roll.lineage();
        let counts = roll.contains(&own) || !self.roll.contains(&own);
        // So that it does not go back before it has received a datagram from a live host.
        self.live_at = is_live.then_some(self.now);
        if rises && counts && !self.detector.has_buried(&roll) {
            self.adopt(roll);
        } else {
            self.give_way(roll);
        }
        self.part_from(&lost);
    }

    /// Starts again in another lineage, under a new identity.
    fn give_way(&mut self, roll: Roll) {
        let why = renewal(self.roll.lineage(), roll.lineage());
        let own = self.own();
        let known: Vec<HostId> = self.hosts().map(|(host, _)| host).collect();
        for host in known {
            if !roll.contains(&host) {
                self.book.lock().forget(&host);
            }
            self.notify(Event::Dead(host, Cause::GaveWay));
        }
        let (seed, book) = (self.rng.random(), self.book.clone());
        let own = own.next(&own);
        self.detector = Detector::new(own, &self.settings, seed, self.now, book);
        self.view = View::default();
        self.roll = roll.clone().into();
        self.renewed(own, why);
        self.adopt(roll);
    }

    /// Remembers the addresses of hosts that are no longer on the roll.
    pub(crate) fn part_from(&mut self, hosts: &[HostId]) {
        for host in hosts {
            let mut there = self.detector.active();
            let is_there = there.any(|member| member.id().same_place(host));
            drop(there);
            if !is_there {
                self.remember_place(host.address());
            }
        }
    }

    /// Remembers the address of a host that is out of contact.
    pub(crate) fn remember_place(&mut self, place: SocketAddr) {
        if !self.parted.contains(&place) {
            self.parted.push_back(place);
        }
        if self.parted.len() > MAX_PARTED_HOSTS {
            self.parted.pop_front();
        }
    }

    /// Hails one of the hosts that are out of contact, so that the end of a split is noticed, however long it has
    /// lasted.
    pub(crate) fn look_for_the_parted(&mut self) {
        if self.ticks.is_multiple_of(4) && !self.parted.is_empty() {
            let which = self.rng.random_range(0..self.parted.len());
            self.hail(self.parted[which]);
        }
    }

    /// Carries out the operator's assertion that all hosts which do not answer are dead.
    pub(crate) fn vouch(&mut self) {
        let silent: Vec<HostId> = self
            .hosts()
            .filter(|(_, suspected)| *suspected)
            .map(|(host, _)| host)
            .collect();
        for host in silent {
            self.detector.condemn(self.now, host, 0);
        }
        let eldest = self.eldest_here();
        let lineage = self.roll.lineage().vouched(eldest, &mut self.rng);
        self.begin(lineage);
    }

    /// Begins a new lineage if no host is left that could vote: every host of the roll has lost its identity, but their
    /// daemons, or later ones at the same addresses, run. As many of them as would be a quorum begin the lineage, so
    /// two sides of a split cannot both do so.
    pub(crate) fn begin_anew(&mut self) {
        let own = self.own();
        if !self.view.is_extinct(&self.roll) || self.is_lineage_live() || self.loading.is_some() {
            return;
        }
        let mut here: Vec<HostId> = self.answering();
        here.push(own);
        here.sort_unstable();
        let on_roll = |host: &HostId| self.roll.at_place_of(host).next();
        let places: Vec<HostId> = here.iter().filter_map(on_roll).collect();
        let oldest = self
            .roll
            .oldest()
            .is_some_and(|oldest| places.iter().any(|host| host.same_place(oldest)));
        if self.roll.is_quorum(places.len(), oldest) && here.first() == Some(&own) {
            let eldest = self.eldest_here();
            let lineage = self.roll.lineage().concluded(eldest, &mut self.rng);
            self.begin(lineage);
        }
    }

    fn answering(&self) -> Vec<HostId> {
        self.hosts()
            .filter(|(_, suspected)| !suspected)
            .map(|(host, _)| host)
            .collect()
    }

    /// Returns the place in the order of arrival of the eldest host that answers.
    fn eldest_here(&self) -> u32 {
        let own = self.own();
        self.roll
            .first_arrival(|host| *host == own || self.view.answers(&self.roll, host))
    }

    /// Begins a lineage with the hosts that answer. Hosts of the roll keep their order, the others follow.
    fn begin(&mut self, lineage: Lineage) {
        let own = self.own();
        let mut here = self.answering();
        here.push(own);
        here.sort_unstable();
        let mut entries: Vec<(HostId, u32)> = self.roll.entries().to_vec();
        entries.retain(|(host, _)| here.binary_search(host).is_ok());
        let mut next = self.roll.arrivals();
        for host in here.into_iter().filter(|host| !self.roll.contains(host)) {
            entries.push((host, next));
            next += 1;
        }
        let epoch = self.roll.epoch() + 1;
        let lost: Vec<HostId> = self
            .roll
            .hosts()
            .filter(|host| entries.iter().all(|(one, _)| one != *host))
            .copied()
            .collect();
        self.adopt(Roll::adopted(lineage, epoch, next, entries));
        self.part_from(&lost);
    }
}

/// Returns why a host of lineage `ours` gives way to `theirs`.
fn renewal(ours: Lineage, theirs: Lineage) -> Renewal {
    match (ours.vouches(), theirs.vouches()) {
        (ours, theirs) if ours > theirs => Renewal::WronglyVouched,
        (ours, theirs) if ours == theirs && ours > 0 => Renewal::BothVouched,
        _ => Renewal::GaveWay,
    }
}
