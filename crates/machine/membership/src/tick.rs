//! The periodic work of each host.

use std::collections::BTreeMap;

use foca::State;
use rand::RngExt;
use regatta_wire::fields::Short;

use crate::datagram::Body;
use crate::event::{Event, Standing};
use crate::host::HostId;
use crate::membership::{MAX_SINGLE_DEATHS, Membership};
use crate::roll::Change;

/// Number of reminders that all hosts together send to a suspect in a period.
const REMINDERS_PER_PERIOD: f64 = 8.0;

impl Membership {
    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        if self.leaving.is_some() {
            self.look_whether_departed();
            return;
        }
        if self.ended {
            return;
        }
        self.detector.wake(self.now);
        self.look_for_suspects();
        self.remind_suspects();
        self.compare_suspects();
        self.judge_standing();
        self.call_for_votes();
        self.ask_for_missing_pages();
        self.ask_for_facts();
        self.look_for_company();
        self.look_for_the_parted();
        self.begin_anew();
        self.detector.size_for(self.roll.len());
        let (now, patience) = (self.now, self.settings.silence * 2);
        self.view
            .leaving
            .retain(|_, since| now.saturating_sub(*since) < patience);
    }

    /// Reads the suspicions from foca's list, as foca does not report them.
    fn look_for_suspects(&mut self) {
        let suspected = self
            .detector
            .active()
            .filter(|member| member.state() == State::Suspect);
        let suspects: BTreeMap<HostId, u16> = suspected
            .map(|member| (*member.id(), member.incarnation()))
            .collect();
        let before = std::mem::replace(&mut self.view.suspects, suspects);
        let risen: Vec<HostId> = self
            .view
            .suspects
            .keys()
            .filter(|host| !before.contains_key(host))
            .copied()
            .collect();
        for host in risen {
            self.notify(Event::Suspected(host));
            self.notify(Event::Examine(host));
        }
        self.examine_again();
        for host in before.into_keys() {
            if !self.view.suspects.contains_key(&host) && self.view.is_active(&self.roll, &host) {
                self.notify(Event::Cleared(host));
            }
        }
    }

    /// Examines one of the suspects again. A host without a majority suspects others for a long time, and their daemons
    /// may end meanwhile.
    fn examine_again(&mut self) {
        let count = self.view.suspects.len();
        if count > 0 && self.standing != Standing::Majority && self.ticks.is_multiple_of(4) {
            let which = self.rng.random_range(0..count);
            let suspect = self.view.suspects.keys().nth(which).copied();
            suspect
                .map(Event::Examine)
                .into_iter()
                .for_each(|event| self.notify(event));
        }
    }

    /// Notifies suspects that they are suspected, so that one lost datagram does not kill a host. Hosts that will pass
    /// the verdict always do; of the other hosts only a few, so that a suspect among ten thousand hosts is not flooded.
    fn remind_suspects(&mut self) {
        let share = (REMINDERS_PER_PERIOD / self.roll.len().max(1) as f64).min(1.0);
        let suspects: Vec<(HostId, u16)> = self
            .view
            .suspects
            .iter()
            .map(|(host, at)| (*host, *at))
            .collect();
        for (host, incarnation) in suspects {
            if self.rng.random_bool(share) || self.detector.accuses(&host) {
                self.send(
                    host,
                    &Body::Accused {
                        by: self.own(),
                        host,
                        incarnation,
                    },
                );
            }
        }
    }

    /// Sends the suspects of this host to others if there are many. In a split of a large machine there are so many
    /// updates at once, and so many of them are sent to the other side, that some are lost for good.
    fn compare_suspects(&mut self) {
        let count = self.view.suspects.len();
        if count <= MAX_SINGLE_DEATHS {
            return;
        }
        let skip = self.rng.random_range(0..count);
        let some = self
            .view
            .suspects
            .iter()
            .cycle()
            .skip(skip)
            .take(count.min(Change::MAX_HOSTS));
        let some = Short(some.map(|(host, at)| (*host, *at)).collect());
        let answering: Vec<HostId> = self
            .hosts()
            .filter(|(_, suspected)| !suspected)
            .map(|(host, _)| host)
            .collect();
        for _ in 0..3.min(answering.len()) {
            let to = answering[self.rng.random_range(0..answering.len())];
            self.send(to, &Body::Suspects(some.clone()));
        }
    }

    /// Determines the standing of this host, and reports changes. One missed answer of one host may leave a machine of
    /// two without a majority, so a lack of it has to last as long as a suspicion before it counts.
    pub(crate) fn judge_standing(&mut self) {
        if self.was_ended() {
            if !std::mem::replace(&mut self.ended, true) {
                self.notify(Event::Ended);
            }
            return;
        }
        let (seen, known) = (self.view.count(&self.roll).0, self.roll.len());
        let standing = if self.leaving.is_some() || !self.roll.contains(&self.own()) {
            Standing::Outside
        } else if self.is_in_majority() {
            self.short_since = None;
            Standing::Majority
        } else {
            let since = *self.short_since.get_or_insert(self.now);
            let lasting = self.now.saturating_sub(since) >= self.settings.suspicion();
            if lasting {
                Standing::Minority
            } else {
                self.standing
            }
        };
        if standing != self.standing {
            match standing {
                Standing::Majority => self.notify(Event::Majority { seen, known }),
                Standing::Minority => self.notify(Event::Minority { seen, known }),
                Standing::Outside => {}
            }
            self.standing = standing;
        }
        self.judge_life();
    }

    /// Returns whether all hosts from which this host was cut off are gone, as their hosts confirm. To hosts that were
    /// in contact all the time that is a crash, and they go on. A host without a majority has missed the last decision
    /// of the others, which was most likely to end the machine; and as it had no work, nothing is lost if it was not.
    fn was_ended(&self) -> bool {
        let gone = self.view.certain.len();
        self.ended
            || (self.standing == Standing::Minority
                && gone > 0
                && !self.view.is_quorum(&self.roll)
                && self.view.is_majority(&self.roll)
                && self.detector.without_daemon(&self.roll) == gone)
    }

    /// Sends a goodbye to the leader and to a few others, who spread it.
    pub(crate) fn send_goodbye(&mut self) {
        let own = self.own();
        let leader = self
            .roll
            .eldest(|host| *host != own && self.view.answers(&self.roll, host));
        let others: Vec<HostId> = self.detector.active().map(|member| *member.id()).collect();
        let mut to: Vec<HostId> = leader.into_iter().collect();
        for _ in 0..3.min(others.len()) {
            to.push(others[self.rng.random_range(0..others.len())]);
        }
        for host in to {
            self.send(host, &Body::Bye(own));
        }
    }

    fn look_whether_departed(&mut self) {
        let since = self.leaving.unwrap_or(self.now);
        let alone = self.view.count(&self.roll).0 <= 1;
        if self.departed {
            return;
        }
        if alone
            || !self.roll.contains(&self.own())
            || self.now.saturating_sub(since) >= self.settings.silence
        {
            self.departed = true;
            self.notify(Event::Departed);
        } else {
            self.send_goodbye();
        }
    }

    /// Calls known hosts, and the addresses to join, if this host sees no others or belongs to no machine.
    fn look_for_company(&mut self) {
        let outside = self.roll.epoch() == 0;
        if !(self.detector.is_alone() || outside) || !self.ticks.is_multiple_of(4) {
            return;
        }
        if !self.contacts.is_empty() {
            let which = self.rng.random_range(0..self.contacts.len());
            self.call(self.contacts[which]);
        }
        let own = self.own();
        let known: Vec<HostId> = self
            .roll
            .hosts()
            .filter(|host| !host.same_place(&own))
            .copied()
            .collect();
        for _ in 0..3.min(known.len()) {
            let host = known[self.rng.random_range(0..known.len())];
            self.detector.announce(self.now, host);
        }
    }

    /// Asks a host for its facts if they have not been received: updates may miss a host.
    fn ask_for_facts(&mut self) {
        while let Some((host, due)) = self.undescribed.front().copied()
            && due <= self.now
        {
            self.undescribed.pop_front();
            let known = self.book.lock().get(&host).is_some();
            if !known && self.view.is_active(&self.roll, &host) {
                self.undescribed
                    .push_back((host, self.now + self.settings.silence));
                self.send(host, &Body::Ask(self.own()));
                break;
            }
        }
    }
}
