//! Decisions on the next roll: which host calls for votes, when, and what follows from the result.

use std::sync::Arc;

use rand::RngExt;
use regatta_wire::fields::Short;

use crate::ballot::{Acceptor, Ballot, Proposal, Vote};
use crate::datagram::Body;
use crate::host::HostId;
use crate::lineage::Lineage;
use crate::membership::{Membership, Voting};
use crate::roll::Change;

/// Maximum number of changes kept for hosts that are a little behind.
const MAX_HISTORY: usize = 64;

/// Number of periods after which an undecided vote is called again with a higher ballot.
const VOTE_TIMEOUT_PERIODS: u32 = 12;

/// Whether the hosts that can vote are enough to decide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voters {
    TooFew,
    /// A quorum of the roll.
    Quorum,
    /// No quorum, but all hosts whose death is not certain.
    Rest,
}

impl Membership {
    /// Begins a vote, or asks the hosts again that have not answered; called once per period.
    pub(crate) fn call_for_votes(&mut self) {
        let own = self.own();
        if !self.roll.contains(&own) {
            return;
        }
        let leader = self.view.leader(&self.roll);
        self.resolve_doubt(leader);
        if self.voting.proposal.is_some() {
            if self.now.saturating_sub(self.voting.begun)
                > self.settings.period() * VOTE_TIMEOUT_PERIODS
            {
                self.give_up(None);
            } else if self.ticks.is_multiple_of(2) {
                self.ask_voters();
            }
        } else if self.now >= self.voting.not_before
            && !self.detector.is_cut_off()
            && self.may_call(leader == Some(own))
        {
            let change = self.wanted();
            if !change.is_empty() || self.voting.unclear || self.acceptor.in_doubt() {
                self.propose(change);
            }
        }
    }

    /// Returns whether this host may call for votes. With a quorum, only the leader does. Without one, the death of all
    /// other hosts has to be certain, and the leader may not know that it is. So any host that knows calls, after a
    /// random time, so that two rarely do at the same time.
    fn may_call(&mut self, leads: bool) -> bool {
        match self.voters() {
            Voters::TooFew => false,
            Voters::Quorum => leads,
            Voters::Rest => leads || self.rng.random_bool(0.1),
        }
    }

    /// Asks the leader, if this host has accepted a change and has received no result: the change may have been
    /// decided.
    fn resolve_doubt(&mut self, leader: Option<HostId>) {
        if !self.acceptor.in_doubt() {
            self.voting.doubt_since = None;
            return;
        }
        let since = *self.voting.doubt_since.get_or_insert(self.now);
        if self.now.saturating_sub(since) > self.settings.silence / 2
            && let Some(leader) = leader.filter(|leader| *leader != self.own())
        {
            self.voting.doubt_since = Some(self.now);
            self.send_vote(leader, Vote::Doubt);
        }
    }

    /// Returns whether the hosts that can vote, which are those that answer or are leaving, are enough to decide.
    fn voters(&self) -> Voters {
        let (count, oldest) = self.view.count(&self.roll);
        let leaving = self
            .view
            .leaving
            .keys()
            .filter(|host| self.view.away.contains(host))
            .count();
        let oldest_leaves = self
            .roll
            .oldest()
            .is_some_and(|host| self.view.leaving.contains_key(host));
        let votes = |host: &HostId| {
            self.view.answers(&self.roll, host) || self.view.leaving.contains_key(host)
        };
        if self
            .roll
            .is_quorum(count + leaving, oldest || oldest_leaves)
        {
            Voters::Quorum
        } else if self.view.is_rest(&self.roll, votes) {
            Voters::Rest
        } else {
            Voters::TooFew
        }
    }

    /// Returns the change that removes dead hosts and adds new ones.
    fn wanted(&self) -> Change {
        let removed: Vec<HostId> = self
            .view
            .away
            .iter()
            .take(Change::MAX_HOSTS)
            .copied()
            .collect();
        let room = Change::MAX_HOSTS - removed.len();
        let answering = self
            .view
            .fresh
            .iter()
            .filter(|host| !self.view.suspects.contains_key(host));
        Change {
            removed,
            added: answering.take(room).copied().collect(),
            fork: None,
        }
    }

    /// Returns the lineage for a change that relies on certainty about the dead.
    fn conclusion(&mut self) -> Lineage {
        let dead = &self.view.certain;
        let eldest = self.roll.first_arrival(|host| !dead.contains(host));
        self.roll.lineage().concluded(eldest, &mut self.rng)
    }

    fn propose(&mut self, mut change: Change) {
        let own = self.own();
        if self.voting.round == 0 && self.roll.oldest() != Some(&own) {
            self.voting.round = 1;
        }
        let ballot = Ballot {
            round: self.voting.round,
            by: own,
        };
        if ballot.round == 0 && self.voters() != Voters::Quorum {
            change.fork = Some(self.conclusion());
        }
        self.voting.round += 1;
        self.voting.unclear = false;
        self.voting.begun = self.now;
        self.voting.proposal = Some(Proposal::new(ballot, change));
        self.ask_voters();
        self.advance_vote();
    }

    fn ask_voters(&mut self) {
        let Some(proposal) = &self.voting.proposal else {
            return;
        };
        let (own, question) = (self.own(), proposal.question());
        let votes =
            |host: &HostId| !self.view.away.contains(host) || self.view.leaving.contains_key(host);
        let to: Vec<HostId> = self
            .roll
            .hosts()
            .filter(|host| **host != own && votes(host) && !proposal.has_voted(host))
            .copied()
            .collect();
        for host in to {
            self.send_vote(host, question.clone());
        }
        if let Some(answer) = self.acceptor.answer(&question) {
            self.judge_life();
            self.take_answer(own, answer);
        }
    }

    pub(crate) fn take_vote(&mut self, by: HostId, epoch: u32, vote: Vote) {
        if epoch != self.roll.epoch() + 1
            || !self.roll.contains(&self.own())
            || !self.roll.contains(&by)
        {
            return;
        }
        match vote {
            Vote::Prepare(_) | Vote::Accept(..) => {
                if let Some(answer) = self.acceptor.answer(&vote) {
                    self.judge_life();
                    self.send_vote(by, answer);
                }
            }
            Vote::Doubt => self.voting.unclear = true,
            answer => {
                self.take_answer(by, answer);
                self.advance_vote();
            }
        }
    }

    fn take_answer(&mut self, by: HostId, answer: Vote) {
        match answer {
            Vote::Refused(higher) => self.give_up(Some(higher)),
            answer => self
                .voting
                .proposal
                .iter_mut()
                .for_each(|proposal| proposal.count(by, answer.clone())),
        }
    }

    /// Abandons the proposal, for a higher ballot if there is one, and tries again after a random time.
    fn give_up(&mut self, higher: Option<Ballot>) {
        if self.voting.proposal.take().is_some() {
            let round = higher.map_or(0, |higher| higher.round + 1);
            self.voting.round = self.voting.round.max(round);
            self.voting.unclear = true;
            self.voting.not_before =
                self.now + self.settings.period() * self.rng.random_range(1..=4);
        }
    }

    /// Continues from promises to acceptance to decision, as far as the votes allow.
    fn advance_vote(&mut self) {
        loop {
            let Some(mut proposal) = self.voting.proposal.take() else {
                return;
            };
            let asked = proposal.question();
            let decides = self.has_votes(&mut proposal);
            let decided = decides && proposal.is_decided(|_| true);
            let proposal = self.voting.proposal.insert(proposal);
            if decided {
                let change = proposal.change().clone();
                self.decided(&change);
                return;
            }
            if proposal.question() == asked {
                return;
            }
            self.ask_voters();
        }
    }

    /// Returns whether the votes allow the next step: those of a quorum of the roll do, and those of all hosts whose
    /// death is not certain do. The latter cannot continue the lineage, so a change that continues it is decided by a
    /// quorum only.
    fn has_votes(&mut self, proposal: &mut Proposal) -> bool {
        let votes = proposal.votes();
        let oldest = self.roll.oldest().is_some_and(|host| votes.contains(host));
        if self.roll.is_quorum(votes.len(), oldest) {
            return true;
        }
        if !self.view.is_rest(&self.roll, |host| votes.contains(host)) {
            return false;
        }
        if proposal.is_preparing() && proposal.change().fork.is_none() {
            let fork = self.conclusion();
            proposal.fork(fork);
        }
        proposal.change().fork.is_some()
    }

    fn decided(&mut self, change: &Change) {
        let leavers: Vec<HostId> = change
            .removed
            .iter()
            .filter(|host| self.view.leaving.contains_key(host))
            .copied()
            .collect();
        let epoch = self.roll.epoch();
        self.advance(change);
        for host in leavers {
            self.send(
                host,
                &Body::Changes {
                    epoch,
                    changes: Short(vec![change.clone()]),
                },
            );
        }
    }

    /// Applies a decided change to the roll.
    pub(crate) fn advance(&mut self, change: &Change) {
        let own = self.own();
        Arc::make_mut(&mut self.roll).advance(change);
        if change.fork.is_some() {
            self.history.clear();
        } else {
            self.history.push_back(change.clone());
        }
        let gone = change.removed.iter();
        let lost: Vec<HostId> = gone
            .filter(|host| **host != own && !self.view.leaving.contains_key(host))
            .copied()
            .collect();
        self.part_from(&lost);
        if self.history.len() > MAX_HISTORY {
            self.history.pop_front();
        }
        self.view.follow(change, &own);
        let outlived = self.detector.outlived(&self.roll);
        self.view.certain.extend(outlived);
        self.acceptor = Acceptor::default();
        let not_before = self.now + self.settings.pace(self.roll.len());
        self.voting = Voting {
            not_before,
            ..Voting::default()
        };
        self.detector.introduce(
            self.now,
            change.added.iter().filter(|host| **host != own).copied(),
            true,
        );
        if self.leaving.is_some() {
            return;
        }
        for host in &change.removed {
            if *host == own || self.view.is_active(&self.roll, host) {
                self.detector.condemn(self.now, *host, 0);
            }
        }
        self.settle();
        self.judge_standing();
    }

    fn send_vote(&mut self, to: HostId, vote: Vote) {
        let (by, epoch) = (self.own(), self.roll.epoch() + 1);
        self.send(to, &Body::Vote { by, epoch, vote });
    }

    /// Adopts a whole roll that was decided without this host.
    pub(crate) fn adopt(&mut self, roll: crate::roll::Roll) {
        let own = self.own();
        self.roll = Arc::new(roll);
        self.history.clear();
        self.acceptor = Acceptor::default();
        self.voting = Voting::default();
        let active: Vec<HostId> = self.detector.active().map(|member| *member.id()).collect();
        self.view.compare(&self.roll, active.iter(), &own);
        let outlived = self.detector.outlived(&self.roll);
        self.view.certain.extend(outlived);
        let unknown: Vec<HostId> = self
            .view
            .away
            .iter()
            .filter(|host| !host.same_place(&own))
            .copied()
            .collect();
        self.detector.introduce(self.now, unknown, false);
        self.settle();
        self.judge_standing();
    }
}
