//! A host that takes the job over: the claims decide, and the daemons hand out channels.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::Registry;
use regatta_job::failover::{
    Absence, Candidate, ClaimEffect, ClaimInput, Claims, Handover, MembershipView, Obstacle,
    dead_hosts,
};

use super::hosts::Host;
use super::launcher::Launcher;
use super::{Down, Life, Owner, Sim, Up, What};

/// A launcher that claims the other hosts, and does not lead yet.
pub struct Rejoin {
    claims: Claims,
    candidates: Vec<Candidate>,
    /// The name of the previous launcher's host.
    pub before: String,
    pub own: Handover,
    /// The answers of the hosts that have handed over their state, with their replicas if these are later.
    pub answers: BTreeMap<u32, (Handover, Option<Vec<u8>>)>,
    /// The hosts with a channel that is open, or is being opened, as far as this host knows.
    open: BTreeSet<u32>,
    /// Hosts among these that have reported that their owner is lost.
    claimed: BTreeSet<u32>,
    /// The hosts whose channels have ended after their answers.
    pub ended: BTreeSet<u32>,
    /// Messages of this host and of those that have answered. They are handled when the launcher leads.
    pub unread: Vec<(u32, Up)>,
    /// The time at which something is due, if an event was scheduled for it.
    due: Option<Duration>,
    /// Whether any host has received the announcement.
    has_called: bool,
    /// Why it has left the job to others, if it has.
    pub left: Option<Obstacle>,
}

impl Rejoin {
    /// Records that a channel is closed. Returns whether it was open.
    fn close(&mut self, host: u32) -> bool {
        self.claimed.remove(&host);
        self.open.remove(&host)
    }

    /// Returns whether the membership does not know any of the claimed hosts any more.
    pub fn awaits_nobody(&self, view: &MembershipView) -> bool {
        let mut candidates = self.candidates.iter();
        !candidates.any(|one| view.is_left(&one.run))
    }
}

impl Sim {
    /// Makes a host lead: it claims all others.
    pub fn lead(&mut self, host: u32) {
        let (own, view) = (self.handover(host), self.view(host));
        let follower = self.hosts[host as usize].follower.as_mut();
        let follower = follower.expect("a follower");
        let successors = follower.successors().map(str::to_owned).collect();
        let order = follower.take_order().expect("an order");
        let registry = follower.replica.take().expect("a replica");
        let others = order.candidates.iter().cloned();
        let candidates: Vec<Candidate> = others.filter(|one| one.number != host).collect();
        let claims = Claims::new(self.now, &candidates, view, BTreeMap::new(), &registry);
        self.hosts[host as usize].follower = None;
        let runs: Vec<(u32, String)> = order
            .candidates
            .iter()
            .map(|one| (one.number, one.run.clone()))
            .collect();
        let launcher = self.launchers.len();
        self.launchers.push(Launcher {
            successors,
            rejoin: Some(Rejoin {
                claims,
                candidates,
                before: order.name,
                own,
                answers: BTreeMap::new(),
                open: BTreeSet::new(),
                claimed: BTreeSet::new(),
                ended: BTreeSet::new(),
                unread: Vec::new(),
                due: None,
                has_called: false,
                left: None,
            }),
            ..Launcher::new(host, self.machine_of(host), runs.into_iter(), registry)
        });
        self.carry_out_claims(launcher);
    }

    pub fn handle_claims(&mut self, launcher: usize, input: ClaimInput) {
        let leader = &mut self.launchers[launcher];
        let now = self.now.saturating_sub(leader.asleep);
        if let Some(rejoin) = &mut leader.rejoin {
            rejoin.claims.handle(now, input);
            self.carry_out_claims(launcher);
        }
    }

    pub fn claims_are_due(&mut self, launcher: usize) {
        if let Some(rejoin) = &mut self.launchers[launcher].rejoin {
            rejoin.due = None;
            self.handle_claims(launcher, ClaimInput::Timer);
        }
    }

    fn carry_out_claims(&mut self, launcher: usize) {
        loop {
            let leader = &mut self.launchers[launcher];
            let Some(rejoin) = leader.rejoin.as_mut() else {
                return;
            };
            let Some(effect) = rejoin.claims.poll() else {
                break;
            };
            self.carry_out_claim(launcher, effect);
        }
        let leader = &mut self.launchers[launcher];
        let Some(rejoin) = leader.rejoin.as_mut() else {
            return;
        };
        let deadline = rejoin.claims.deadline();
        let deadline = deadline.filter(|at| rejoin.due.is_none_or(|due| *at < due));
        if let Some(at) = deadline {
            rejoin.due = Some(at);
            let at = at + leader.asleep;
            self.at(at.max(self.now), What::Timer(launcher));
        }
    }

    fn carry_out_claim(&mut self, launcher: usize, effect: ClaimEffect) {
        let changes = self.launchers[launcher].registry.changes();
        match effect {
            ClaimEffect::Open(host) => {
                let rejoin = self.launchers[launcher].rejoin.iter_mut();
                let again = !rejoin.fold(true, |_, rejoin| rejoin.open.insert(host));
                self.note_wrong(again, || format!("the channel of host {host} is open"));
                let at = self.after(0, 20);
                self.at(at, What::Claim(launcher, host));
            }
            ClaimEffect::Lead(host) => {
                self.note_first_word(launcher);
                self.say(launcher, host, Down::Lead {});
            }
            ClaimEffect::AskState(host) => self.say(launcher, host, Down::AskState { changes }),
            ClaimEffect::Close(host) => {
                self.note_closed(launcher, host);
                self.drop_channel(launcher, host);
            }
            ClaimEffect::GiveUp(host) => {
                self.say(launcher, host, Down::GaveUp {});
                self.note_closed(launcher, host);
            }
            ClaimEffect::Begin => self.begin(launcher),
            ClaimEffect::Leave(why) => self.leave_job(launcher, why),
        }
    }

    fn leave_job(&mut self, launcher: usize, why: Obstacle) {
        let host = self.launchers[launcher].host;
        let is_up = self.life(host) == Life::Up;
        if is_up {
            match why {
                Obstacle::TooFew => self.note_enough(launcher),
                Obstacle::GivenUp(by) => self.note_not_given_up(host, by),
                Obstacle::DaemonEnded | Obstacle::CutOff(_) => {}
            }
            self.hosts[host as usize].given_up = true;
            self.stop(host);
        }
        // A host that is cut off explains nothing: the others must go on, whatever it sees.
        let left = if is_up { why } else { Obstacle::DaemonEnded };
        let rejoin = self.launchers[launcher].rejoin.iter_mut();
        rejoin.for_each(|rejoin| rejoin.left = Some(left.clone()));
    }

    /// Sends a message. Nothing may be sent on a closed channel.
    fn say(&mut self, launcher: usize, host: u32, message: Down) {
        let rejoin = self.launchers[launcher].rejoin.as_ref();
        let is_closed = rejoin.is_none_or(|rejoin| !rejoin.open.contains(&host));
        self.note_wrong(is_closed, || {
            format!("{message:?} for host {host}, whose channel is closed")
        });
        self.send_down(launcher, host, message);
    }

    fn note_closed(&mut self, launcher: usize, host: u32) {
        let rejoin = self.launchers[launcher].rejoin.iter_mut();
        let closed = rejoin.fold(false, |_, rejoin| rejoin.close(host));
        self.note_wrong(!closed, || {
            format!("the channel of host {host} is closed twice")
        });
    }

    /// Checks that the announcement is made to all hosts together: before the first one, every host that is not lost
    /// must be claimed.
    fn note_first_word(&mut self, launcher: usize) {
        let rejoin = self.launchers[launcher].rejoin.as_mut();
        let rejoin = rejoin.expect("it does not lead yet");
        if std::mem::replace(&mut rejoin.has_called, true) {
            return;
        }
        let lost = rejoin.claims.lost();
        let numbers = rejoin.candidates.iter().map(|one| one.number);
        let early =
            numbers.filter(|host| !lost.contains_key(host) && !rejoin.claimed.contains(host));
        let early: Vec<u32> = early.collect();
        self.note_wrong(!early.is_empty(), || {
            format!("the word is said before {early:?} are claimed")
        });
    }

    /// Checks the reason of a host that leaves the job because too few hosts would follow: of the hosts that it
    /// considers left, itself included, at most half must be this launcher's or wait for it. Agents that did not run
    /// may have been too late.
    fn note_enough(&mut self, launcher: usize) {
        let leader = &self.launchers[launcher];
        let (own, view) = (self.run_on(leader.host), self.view(leader.host));
        let dead: Vec<u32> = dead_hosts(&leader.registry).collect();
        let rejoin = leader.rejoin.as_ref().expect("it does not lead yet");
        let is_left = |one: &&Candidate| view.is_left(&one.run) && !dead.contains(&one.number);
        let left: Vec<u32> = rejoin
            .candidates
            .iter()
            .filter(is_left)
            .map(|one| one.number)
            .collect();
        let would_follow = |host: &&u32| {
            let at = &self.hosts[**host as usize];
            let is_free = [Owner::Nobody, Owner::Claimed(launcher)].contains(&at.owner);
            let names_it = self
                .waiting_for(**host)
                .is_some_and(|runs| runs.contains(&own));
            at.life == Life::Up && is_free && names_it && !at.is_late
        };
        let willing: Vec<u32> = left.iter().filter(would_follow).copied().collect();
        let is_enough = willing.len() == left.len() || 2 * (1 + willing.len()) > 1 + left.len();
        self.note_wrong(is_enough, || {
            format!("a host leaves the job that {willing:?} of {left:?} would follow")
        });
    }

    /// Checks the reason of a host that leaves the job because another one does not name it: some launcher must have
    /// given it up.
    fn note_not_given_up(&mut self, host: u32, by: u32) {
        let never = !self.hosts[host as usize].was_given_up;
        self.note_wrong(never, || {
            format!("host {host} leaves the job since host {by} does not name it, and nobody had given it up")
        });
    }

    /// Closes a launcher's channel. An agent that has received the announcement ends with it.
    pub fn drop_channel(&mut self, launcher: usize, host: u32) {
        self.close_channel(launcher, host);
        let own = &mut self.hosts[host as usize];
        if own.life != Life::Up {
            return;
        }
        match own.owner {
            Owner::Called(by) | Owner::Leader(by) if by == launcher => self.stop(host),
            Owner::Claimed(by) if by == launcher => self.give_up_unowned(host),
            _ => {}
        }
    }

    /// Asks the daemon of a host for its agent's channel.
    pub fn claim(&mut self, launcher: usize, host: u32) {
        let from = self.launchers[launcher].host;
        if self.life(from) != Life::Up {
            return;
        }
        let is_free = match self.hosts[host as usize].owner {
            Owner::Nobody => true,
            // Messages that it has sent before its end still arrive.
            Owner::Claimed(by) => {
                self.life(self.launchers[by].host) != Life::Up && self.is_quiet(by, host)
            }
            Owner::Called(_) | Owner::Leader(_) => false,
        };
        let is_there = is_free && self.life(host) == Life::Up;
        let Some(successors) = self.waiting_for(host).filter(|_| is_there) else {
            let at = self.after(0, 100);
            return self.at(at, What::Closed(launcher, host));
        };
        let owner = &mut self.hosts[host as usize].owner;
        let before = std::mem::replace(owner, Owner::Claimed(launcher));
        if let Some(before) = before.launcher() {
            self.close_channel(before, host);
        }
        self.open_channel(launcher, host);
        self.send_up(launcher, host, Up::OwnerLost { successors });
    }

    /// Returns the hosts that may take over a host whose owner is lost, even one that has begun to lead itself.
    fn waiting_for(&self, host: u32) -> Option<Vec<String>> {
        let own = &self.hosts[host as usize];
        let Some(follower) = &own.follower else {
            let at = self.launcher_on(host)?;
            let claims = self.launchers[at].rejoin.is_some();
            return claims.then(|| self.launchers[at].successors.clone());
        };
        let waits = own.claimable && follower.is_without_owner();
        waits.then(|| follower.successors().map(str::to_owned).collect())
    }

    /// Delivers a message of a host to a launcher that claims.
    pub fn hear_claimed(&mut self, launcher: usize, host: u32, message: Up) {
        let own = self.launchers[launcher].host;
        let Some(rejoin) = self.launchers[launcher].rejoin.as_mut() else {
            return;
        };
        let input = match message {
            Up::OwnerLost { successors } => {
                rejoin.claimed.insert(host);
                ClaimInput::OwnerLost(host, successors)
            }
            Up::Ready {} => ClaimInput::Ready(host),
            Up::Handover { handover, snapshot } => {
                let registry = snapshot.iter().map(|bytes| Registry::from_snapshot(bytes));
                let dead = registry
                    .flat_map(|one| dead_hosts(&one.expect("a snapshot")).collect::<Vec<_>>());
                let dead = dead.collect();
                rejoin.answers.insert(host, (handover, snapshot));
                ClaimInput::HandedOver(host, dead)
            }
            message => {
                if host == own || rejoin.answers.contains_key(&host) {
                    rejoin.unread.push((host, message));
                }
                return;
            }
        };
        self.handle_claims(launcher, input);
    }

    /// Lets a launcher notice that a channel has ended.
    pub fn channel_ended(&mut self, launcher: usize, host: u32) {
        let from = self.launchers[launcher].host;
        if self.life(from) == Life::Gone {
            return;
        }
        match &mut self.launchers[launcher].rejoin {
            Some(rejoin) if rejoin.answers.contains_key(&host) => {
                rejoin.ended.insert(host);
            }
            Some(rejoin) => {
                if rejoin.close(host) {
                    self.handle_claims(launcher, ClaimInput::Closed(host));
                }
            }
            None => self.give_up_host(launcher, host),
        }
    }

    /// Breaks a channel of a launcher that claims, chosen among those that exist.
    pub fn break_claim(&mut self, choice: usize) {
        let claims = |one: &Launcher| one.rejoin.is_some() && self.life(one.host) == Life::Up;
        let Some(launcher) = self.launchers.iter().rposition(claims) else {
            return;
        };
        let own = self.channels.keys().filter(|(by, _)| *by == launcher);
        let hosts: Vec<u32> = own.map(|(_, host)| *host).collect();
        let Some(&host) = hosts.get(choice % hosts.len().max(1)) else {
            return;
        };
        match self.hosts[host as usize].owner {
            Owner::Called(by) | Owner::Leader(by) if by == launcher => {
                if !self.can_lose(host) {
                    return;
                }
                self.give_up_unowned(host);
            }
            Owner::Claimed(by) if by == launcher => {
                self.hosts[host as usize].owner = Owner::Nobody;
            }
            _ => {}
        }
        self.close_channel(launcher, host);
        let at = self.after(0, 20);
        self.at(at, What::Closed(launcher, host));
    }

    /// Lets a launcher that claims and may not go on leave the job to others.
    pub fn leaves_claims(&mut self, launcher: usize) {
        let rejoin = self.launchers[launcher].rejoin.as_ref();
        let stays = rejoin.is_none_or(|rejoin| rejoin.left.is_none());
        let host = self.launchers[launcher].host;
        self.note_wrong(stays, || format!("host {host} goes on to claim"));
    }

    /// Checks that a host is lost to its new launcher for a reason: it is lost, its channel has broken, or it did not
    /// run.
    fn note_lost_for_nothing(&mut self, launcher: usize) {
        let rejoin = self.launchers[launcher].rejoin.as_ref();
        let lost = rejoin.map(|rejoin| rejoin.claims.lost());
        for (host, why) in lost.into_iter().flatten() {
            let own = &self.hosts[host as usize];
            let is_known = own.given_up || own.is_late || why == Absence::GivenUpBefore;
            let is_well = own.life == Life::Up && own.follower.is_some();
            self.note_wrong(is_well && !is_known, || {
                format!("host {host} is given up: {why}")
            });
        }
    }

    /// Begins to lead, when every host has answered or is lost.
    fn begin(&mut self, launcher: usize) {
        let host = self.launchers[launcher].host;
        if self.life(host) != Life::Up {
            // The host is cut off, and nothing that it sends arrives.
            let rejoin = self.launchers[launcher].rejoin.iter_mut();
            rejoin.for_each(|rejoin| rejoin.left = Some(Obstacle::DaemonEnded));
            return;
        }
        self.note_lost_for_nothing(launcher);
        // All hosts that are left had an order with this host, so none of them has been told that it was given up.
        self.hosts[host as usize].given_up = false;
        let owner = std::mem::replace(&mut self.hosts[host as usize].owner, Owner::Nobody);
        let before = owner.launcher();
        before
            .into_iter()
            .for_each(|by| self.close_channel(by, host));
        let rejoin = self.launchers[launcher].rejoin.take().expect("claims");
        let lost = rejoin.claims.lost();
        let is_found = |host: &u32| !lost.contains_key(host);
        let answers = rejoin
            .answers
            .into_iter()
            .filter(|(host, _)| is_found(host));
        let (handovers, snapshots): (Vec<_>, Vec<_>) = answers.map(|(_, answer)| answer).unzip();
        let handovers = [rejoin.own].into_iter().chain(handovers).collect();
        let before = rejoin.before;
        // Output of tasks that have ended here meanwhile was not received.
        self.hosts[host as usize].outputs.all_received();
        self.take_over(launcher, (handovers, snapshots), lost, &before);
        let dead = self.hosts[host as usize].dead.clone();
        let remotes = self.launchers[launcher].remotes.keys();
        let dead = remotes.filter(|host| dead.contains(&self.machine_of(**host)));
        let dead: Vec<u32> = dead.copied().collect();
        for other in dead.into_iter().chain(rejoin.ended) {
            self.give_up_host(launcher, other);
        }
        self.leave_unknown(launcher);
        self.acknowledged_survives(launcher);
        self.look(launcher);
        for (host, message) in rejoin.unread {
            self.take_up(launcher, host, message);
        }
        self.pump(host);
    }

    /// Ends hosts that had begun to join when the previous launcher was lost, and that this one does not know.
    fn leave_unknown(&mut self, launcher: usize) {
        let remotes = &self.launchers[launcher].remotes;
        let unknown = |(number, host): &(u32, &Host)| {
            let waits = host.life == Life::Up && host.has_begun && !host.given_up;
            let owner = host.owner.launcher().map(|by| self.launchers[by].host);
            let is_left = owner.is_some_and(|owner| self.life(owner) == Life::Up);
            waits && !is_left && host.follower.is_some() && !remotes.contains_key(number)
        };
        let unknown = (0..).zip(&self.hosts).filter(unknown);
        let unknown: Vec<u32> = unknown.map(|(number, _)| number).collect();
        unknown
            .into_iter()
            .for_each(|host| self.give_up_unowned(host));
    }
}
