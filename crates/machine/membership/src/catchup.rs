//! Catching up: a host that is behind asks the host that let it notice.
//!
//! If it is a little behind, it gets the changes; if it is far behind or new, the whole roll, page by page, with the
//! facts of every host.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use regatta_wire::fields::Short;

use crate::datagram::{Body, HEAD, Head, Page};
use crate::host::{Facts, HostId};
use crate::lineage::Lineage;
use crate::membership::Membership;
use crate::roll::{Change, Roll};

/// Number of pages sent for one request.
const PAGES_PER_QUESTION: usize = 8;

/// Number of unanswered requests after which another host is asked.
const MAX_UNANSWERED_QUESTIONS: u32 = 8;

/// Size of the header, the kind, and the fixed words of a page, in bytes.
const PAGE_HEAD: usize = HEAD + 1 + 17;

/// A roll that is being received.
pub(crate) struct Loading {
    from: SocketAddr,
    lineage: Lineage,
    epoch: u32,
    next: u32,
    total: u32,
    /// Whether this host adopts the roll in any case, or only if the roll contains it.
    joins: bool,
    /// Whether the roll's lineage is live.
    live: bool,
    hosts: Vec<(HostId, u32)>,
    /// Pages that were received before an earlier one.
    ahead: BTreeMap<u32, Vec<(HostId, u32)>>,
    since_asked: usize,
    /// Number of consecutive requests without an answer.
    in_vain: u32,
}

impl Membership {
    /// Asks a host that is ahead of this one for what is new, at most once per period.
    pub(crate) fn ask_what_is_new(&mut self, from: SocketAddr) {
        let recently = self
            .asked
            .is_some_and(|at| self.now.saturating_sub(at) < self.settings.period());
        if !recently && self.loading.is_none() {
            self.asked = Some(self.now);
            self.ask(from, 0);
        }
    }

    fn ask(&mut self, from: SocketAddr, page: u32) {
        let (by, epoch) = (self.own(), self.roll.epoch());
        self.send_to(from, &Body::Behind { by, epoch, page });
    }

    pub(crate) fn send_what_is_new(&mut self, by: HostId, epoch: u32, page: u32) {
        let missing = self.roll.epoch().saturating_sub(epoch) as usize;
        if page == 0 && (1..=self.history.len()).contains(&missing) {
            self.send_changes(by, epoch, missing);
        } else if missing > 0 {
            self.send_pages(by, page);
        }
    }

    pub(crate) fn send_pages(&mut self, by: HostId, page: u32) {
        let mut first = page as usize;
        for _ in 0..PAGES_PER_QUESTION {
            if first < self.roll.len() {
                first += self.send_page(by, first);
            }
        }
    }

    fn send_changes(&mut self, by: HostId, epoch: u32, missing: usize) {
        let mut room = self.settings.datagram - HEAD - 6;
        let size =
            |change: &Change| 3 + HostId::BYTES * (change.removed.len() + change.added.len());
        let fits = |change: &&Change| {
            let left = room.checked_sub(size(change));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let changes = self
            .history
            .iter()
            .skip(self.history.len() - missing)
            .take_while(fits)
            .cloned()
            .collect();
        let changes = Short(changes);
        self.send(by, &Body::Changes { epoch, changes });
    }

    /// Sends the page that begins with host `first`. Returns how many hosts it contains.
    fn send_page(&mut self, by: HostId, first: usize) -> usize {
        let mut room = self.settings.datagram - PAGE_HEAD;
        let mut hosts = Vec::new();
        for (host, at) in &self.roll.entries()[first..] {
            let facts = if *host == self.own() {
                Some(self.facts.clone())
            } else {
                self.book.lock().get(host).cloned()
            };
            let size = HostId::BYTES
                + 5
                + facts
                    .as_ref()
                    .map_or(0, |facts| 4 + facts.name.len() + facts.architecture.len());
            let Some(left) = room.checked_sub(size).filter(|_| hosts.len() < 255) else {
                break;
            };
            room = left;
            hosts.push((*host, *at, facts));
        }
        let (count, total) = (hosts.len(), self.roll.len() as u32);
        let page = Page {
            epoch: self.roll.epoch(),
            next: self.roll.arrivals(),
            total,
            first: first as u32,
            hosts: Short(hosts),
        };
        self.send(by, &Body::Page(page));
        count.max(1)
    }

    pub(crate) fn take_changes(&mut self, epoch: u32, changes: &[Change]) {
        for (at, change) in (epoch..).zip(changes) {
            if at == self.roll.epoch() && at > 0 {
                self.advance(change);
            }
        }
    }

    /// Starts to load the roll of a page if that roll is newer than the current one and the one being loaded.
    fn load_if_newer(&mut self, from: SocketAddr, lineage: Lineage, page: &Page, joins: bool) {
        let own = (self.roll.lineage() == lineage).then(|| self.roll.epoch());
        let current = match &self.loading {
            Some(loading) if loading.lineage == lineage => Some(loading.epoch),
            _ => own,
        };
        if current.is_none_or(|current| page.epoch > current) {
            let (epoch, next, total) = (page.epoch, page.next, page.total);
            let (hosts, ahead) = (Vec::new(), BTreeMap::new());
            self.loading = Some(Loading {
                from,
                lineage,
                epoch,
                next,
                total,
                joins,
                live: false,
                hosts,
                ahead,
                since_asked: 0,
                in_vain: 0,
            });
        }
    }

    pub(crate) fn take_page(&mut self, from: SocketAddr, head: &Head, page: Page, joins: bool) {
        let lineage = head.lineage;
        self.load_if_newer(from, lineage, &page, joins);
        let Some(loading) = self
            .loading
            .as_mut()
            .filter(|loading| loading.lineage == lineage && loading.epoch == page.epoch)
        else {
            return;
        };
        loading.joins = joins;
        loading.live |= head.live;
        loading.since_asked += 1;
        let described: Vec<(HostId, Facts)> = page
            .hosts
            .0
            .iter()
            .filter_map(|(host, _, facts)| Some((*host, facts.clone()?)))
            .collect();
        loading.ahead.insert(
            page.first,
            page.hosts
                .0
                .into_iter()
                .map(|(host, at, _)| (host, at))
                .collect(),
        );
        while let Some(hosts) = loading
            .ahead
            .remove(&(loading.hosts.len() as u32))
            .filter(|hosts| !hosts.is_empty())
        {
            loading.hosts.extend(hosts);
            loading.in_vain = 0;
        }
        let (complete, ask) = (
            loading.hosts.len() as u32 >= loading.total,
            loading.since_asked >= PAGES_PER_QUESTION,
        );
        for (host, facts) in described {
            self.book.lock().put(host, facts);
        }
        if complete {
            self.finish_loading();
        } else if ask {
            self.ask_for_missing_pages();
        }
    }

    fn finish_loading(&mut self) {
        if let Some(loading) = self.loading.take()
            && !self.is_outdated(&loading)
        {
            let (lineage, epoch, next) = (loading.lineage, loading.epoch, loading.next);
            let roll = Roll::adopted(lineage, epoch, next, loading.hosts);
            if lineage == self.roll.lineage() {
                self.adopt(roll);
            } else if loading.joins || roll.contains(&self.own()) {
                self.change_lineage(roll, loading.live);
            } else {
                self.read_in_vain = Some((lineage, epoch));
            }
        }
    }

    fn is_outdated(&self, loading: &Loading) -> bool {
        loading.lineage == self.roll.lineage() && loading.epoch <= self.roll.epoch()
    }

    /// Requests missing pages, also once per period, in case pages were lost. If the sender has died or has another
    /// roll by now, the load is abandoned, and the next datagram of any host leads to a new request.
    pub(crate) fn ask_for_missing_pages(&mut self) {
        if self.loading.as_ref().is_some_and(|loading| {
            self.is_outdated(loading) || loading.in_vain >= MAX_UNANSWERED_QUESTIONS
        }) {
            self.loading = None;
        }
        if let Some(loading) = &mut self.loading {
            loading.since_asked = 0;
            loading.in_vain += 1;
            let (from, page) = (loading.from, loading.hosts.len() as u32);
            self.ask(from, page);
        }
    }
}
