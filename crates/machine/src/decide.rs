//! Deciding on the next roll: who calls for votes, when, and what becomes of it.

use std::collections::HashSet;
use std::sync::Arc;

use rand::RngExt;

use crate::ballot::{Acceptor, Ballot, Proposal, Vote};
use crate::datagram::Body;
use crate::host::HostId;
use crate::membership::{Membership, Voting};
use crate::roll::Change;

/// Changes kept for those who are a little behind.
const HISTORY: usize = 64;

/// A vote that takes longer than so many periods is called again under a higher ballot.
const PATIENCE: u32 = 12;

impl Membership {
    /// Once a period: begins a vote, or asks again those who have not answered.
    pub(crate) fn call_for_votes(&mut self) {
        let own = self.own();
        if !self.roll.contains(&own) {
            return;
        }
        let leader = self.view.leader(&self.roll);
        self.resolve_doubt(leader);
        if self.voting.proposal.is_some() {
            if self.now.saturating_sub(self.voting.begun) > self.settings.period() * PATIENCE {
                self.give_up(None);
            } else if self.ticks.is_multiple_of(2) {
                self.ask_voters();
            }
        } else if leader == Some(own)
            && self.now >= self.voting.not_before
            && !self.detector.is_cut_off()
            && self.has_voters()
        {
            let change = self.wanted();
            if !change.is_empty() || self.voting.unclear || self.acceptor.in_doubt() {
                self.propose(change);
            }
        }
    }

    /// Who has accepted a change and hears no more of it asks the leader to find out; it may have been decided.
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

    /// Those that answer and those that are leaving can vote.
    fn has_voters(&self) -> bool {
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
        self.view
            .is_enough(&self.roll, count + leaving, oldest || oldest_leaves)
    }

    /// The dead out, the new in.
    fn wanted(&self) -> Change {
        let removed: Vec<HostId> = self.view.away.iter().take(Change::MOST).copied().collect();
        let room = Change::MOST - removed.len();
        let answering = self
            .view
            .fresh
            .iter()
            .filter(|host| !self.view.suspects.contains_key(host));
        Change {
            removed,
            added: answering.take(room).copied().collect(),
        }
    }

    fn propose(&mut self, change: Change) {
        let own = self.own();
        if self.voting.round == 0 && self.roll.oldest() != Some(&own) {
            self.voting.round = 1;
        }
        let ballot = Ballot {
            round: self.voting.round,
            by: own,
        };
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

    /// Leaves the floor to a higher ballot, and tries again a random while later.
    fn give_up(&mut self, higher: Option<Ballot>) {
        if self.voting.proposal.take().is_some() {
            let round = higher.map_or(0, |higher| higher.round + 1);
            self.voting.round = self.voting.round.max(round);
            self.voting.unclear = true;
            self.voting.not_before =
                self.now + self.settings.period() * self.rng.random_range(1..=4);
        }
    }

    /// Goes from promises to acceptance to decision, as far as the votes carry.
    fn advance_vote(&mut self) {
        loop {
            let (roll, view) = (&self.roll, &self.view);
            let is_quorum = |votes: &HashSet<HostId>| {
                let oldest = roll.oldest().is_some_and(|host| votes.contains(host));
                view.is_enough(roll, votes.len(), oldest)
            };
            let Some(proposal) = &mut self.voting.proposal else {
                return;
            };
            let asked = proposal.question();
            if proposal.is_decided(is_quorum) {
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
                    changes: vec![change.clone()],
                },
            );
        }
    }

    /// The roll goes on by a change that was decided.
    pub(crate) fn advance(&mut self, change: &Change) {
        let own = self.own();
        Arc::make_mut(&mut self.roll).advance(change);
        self.history.push_back(change.clone());
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        self.view.follow(change, &own);
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

    /// Takes over a whole roll that was decided without us.
    pub(crate) fn adopt(&mut self, roll: crate::roll::Roll) {
        let own = self.own();
        self.roll = Arc::new(roll);
        self.history.clear();
        self.acceptor = Acceptor::default();
        self.voting = Voting::default();
        let active: Vec<HostId> = self.detector.active().map(|member| *member.id()).collect();
        self.view.compare(&self.roll, active.iter(), &own);
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
