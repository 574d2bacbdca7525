//! A host of a job that another host leads: decides whether the leader's host is lost, and whether this host leads
//! next.

use std::time::Duration;

use super::{FailoverPlan, LocalRecord, MembershipView, Replica, SuccessionOrder};

/// Time for which a host whose leader is lost waits for the candidate whose turn it is. That candidate's daemon may
/// also have to wait for a verdict.
const CANDIDATE_TIMEOUT: Duration = Duration::from_secs(30);
/// Silence allowed to a launcher whose host is alive, as a multiple of the usual limit.
const SILENCE_FACTOR_WHILE_ALIVE: u32 = 3;
/// Maximum number of candidates that a host names as its possible successors. Only the first few hold replicas
/// ([`Replication::count`]).
///
/// [`Replication::count`]: super::Replication::count
const SUCCESSORS: usize = 32;

/// The leader's host is lost, and no other leader has taken over this host.
#[derive(Debug)]
struct OwnerLost {
    /// The run of the lost host. If the next leader's host is lost too, the owner is lost again.
    of: String,
    /// The run of the candidate whose turn it is, and since when.
    turn: Option<String>,
    since: Duration,
}

/// A host that follows. All times are durations since one fixed moment, as everywhere in this crate.
#[derive(Debug)]
pub struct Follower {
    /// The settings from the launcher's command line, with which this host would lead.
    pub plan: FailoverPlan,
    /// This host's copy of the registry, if it has one.
    pub replica: Replica,
    /// Facts that no other host knows.
    pub local: LocalRecord,
    order: Option<SuccessionOrder>,
    view: Option<MembershipView>,
    owner_lost: Option<OwnerLost>,
    /// The time at which the job is to be ended.
    end: Option<Duration>,
}

impl Follower {
    /// Returns the state of a host that has just received the plan.
    pub fn new(plan: FailoverPlan, now: Duration) -> Self {
        let limit = plan.timeout.map(Duration::from_millis);
        Self {
            end: limit.and_then(|limit| now.checked_add(limit)),
            plan,
            replica: Replica::default(),
            local: LocalRecord::default(),
            order: None,
            view: None,
            owner_lost: None,
        }
    }

    /// Sets the succession order that the launcher has sent.
    pub fn set_order(&mut self, order: SuccessionOrder) {
        self.order = Some(order);
        self.replica.order_arrived();
    }

    /// Returns the runs of the hosts that may take over this one, in order. A host that the leader has given up is not
    /// among them. It may still have an earlier order in which it is the first.
    pub fn successors(&self) -> impl Iterator<Item = &str> {
        let candidates = self.order.iter().flat_map(|order| &order.candidates);
        let runs = candidates.map(|candidate| candidate.run.as_str());
        runs.take(SUCCESSORS)
    }

    /// Takes the succession order, to lead with it.
    pub fn take_order(&mut self) -> Option<SuccessionOrder> {
        self.order.take()
    }

    /// Returns whether reports of the membership are needed: the leader is lost, or has been silent for longer than its
    /// interval.
    pub fn wants_membership(&self, is_silent: bool) -> bool {
        self.order.is_some() && (is_silent || self.owner_lost.is_some())
    }

    /// Handles a report of the membership.
    pub fn handle_membership(&mut self, now: Duration, view: MembershipView) {
        self.view = Some(view);
        self.renew_turn(now);
    }

    fn renew_turn(&mut self, now: Duration) {
        let turn = self.turn().map(str::to_owned);
        if let Some(lost) = self.owner_lost.as_mut().filter(|lost| lost.turn != turn) {
            (lost.turn, lost.since) = (turn, now);
        }
    }

    /// Removes the candidate on the host of this run. It will not lead: the leader had given it up, as other hosts
    /// know.
    pub fn pass_over(&mut self, now: Duration, run: &str) {
        if let Some(order) = &mut self.order {
            order.candidates.retain(|candidate| candidate.run != run);
        }
        self.renew_turn(now);
    }

    /// Discards the last report of the membership, because reports have stopped and it is out of date.
    pub fn forget_membership(&mut self) {
        self.view = None;
    }

    /// Returns the run of the candidate whose turn it is if the leader's host is lost.
    fn turn(&self) -> Option<&str> {
        let (view, order) = self.verdicts()?;
        order.next(view).map(|candidate| candidate.run.as_str())
    }

    /// Returns the last report and the order, or `None` if this host may not use the verdicts in it.
    fn verdicts(&self) -> Option<(&MembershipView, &SuccessionOrder)> {
        let view = self.view.as_ref()?;
        let order = self.order.as_ref()?;
        view.hindrance.is_none().then_some((view, order))
    }

    /// Returns whether the leader's host was lost since the last call. From then on the owner of this host is lost.
    /// Returns true again when the host that announced itself as the next leader is lost, too.
    pub fn has_lost_owner(&mut self, now: Duration) -> bool {
        let lost = |(view, order): (&MembershipView, &SuccessionOrder)| {
            (!view.is_left(&order.launcher)).then(|| order.launcher.clone())
        };
        let Some(of) = self.verdicts().and_then(lost) else {
            return false;
        };
        let newly = self.owner_lost.as_ref().is_none_or(|lost| lost.of != of);
        if newly {
            self.owner_lost = Some(OwnerLost {
                of,
                turn: self.turn().map(str::to_owned),
                since: now,
            });
        }
        newly
    }

    /// Returns whether the owner is lost and no other leader has requested this host's state.
    pub fn is_without_owner(&self) -> bool {
        self.owner_lost.is_some()
    }

    /// Records that a host of this run leads now. Until its own succession order arrives, the old one is used without
    /// that host.
    pub fn follow(&mut self, run: &str) {
        self.order.iter_mut().for_each(|order| order.follow(run));
    }

    /// Makes the new leader the owner: it has requested this host's state.
    pub fn adopt(&mut self) {
        self.owner_lost = None;
        self.replica.leader_changed();
    }

    /// Returns whether this host leads from now on: it is its turn, it has a current replica, and no other leader is
    /// known here.
    pub fn leads(&self) -> bool {
        let (Some((view, order)), Some(lost)) = (self.verdicts(), &self.owner_lost) else {
            return false;
        };
        let turn = self.turn();
        let is_ours = turn.is_some() && turn == view.own.as_deref();
        is_ours && self.replica.is_current() && lost.of == order.launcher
    }

    /// Returns whether a leader that has been silent for `silent` is no reason yet to end the job; `limit` is the usual
    /// limit. A leader on a host that is alive may be stopped or get no processor, and its tasks do not need it
    /// meanwhile. But the channel may also be cut between these two hosts alone, so the time is limited.
    pub fn is_patient(&self, now: Duration, silent: Duration, limit: Duration) -> bool {
        let Some((view, order)) = self.verdicts() else {
            return false;
        };
        match &self.owner_lost {
            Some(lost) => now.saturating_sub(lost.since) < CANDIDATE_TIMEOUT,
            None if view.is_suspected(&order.launcher) => true,
            None => view.is_left(&order.launcher) && silent < SILENCE_FACTOR_WHILE_ALIVE * limit,
        }
    }

    /// Returns how long the job may still run.
    pub fn remaining(&self, now: Duration) -> Option<Duration> {
        self.end.map(|end| end.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::failover::{Candidate, HostState};

    const NOW: Duration = Duration::from_secs(1000);
    const LIMIT: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(500);

    fn candidate(number: u32) -> Candidate {
        Candidate {
            number,
            name: format!("h{number}"),
            run: format!("r{number}"),
        }
    }

    /// Returns host 2 of the hosts 0 to 3, led from host 0, with a replica.
    fn follower() -> Follower {
        let mut follower = Follower::new(FailoverPlan::default(), NOW);
        follower.set_order(SuccessionOrder {
            launcher: "r0".to_owned(),
            name: "h0".to_owned(),
            candidates: (1..4).map(candidate).collect(),
        });
        let snapshot = Registry::new(Vec::new(), &[], b"program").snapshot();
        let replica = &mut follower.replica;
        replica
            .take_piece(false, &snapshot, true)
            .expect("a replica");
        follower
    }

    /// Returns the view of host 2's daemon in which these hosts are left.
    fn view(left: &[u32]) -> MembershipView {
        let left = left.iter();
        MembershipView {
            own: Some("r2".to_owned()),
            left: left
                .map(|number| (candidate(*number).run, HostState::Alive))
                .collect(),
            hindrance: None,
        }
    }

    #[test]
    fn the_first_that_is_left_leads_and_nobody_while_another_one_does() {
        let mut host = follower();
        host.handle_membership(NOW, view(&[0, 1, 2, 3]));
        assert!(!host.has_lost_owner(NOW) && !host.leads());
        host.handle_membership(NOW, view(&[1, 2, 3]));
        assert!(host.has_lost_owner(NOW) && !host.has_lost_owner(NOW));
        assert!(!host.leads(), "it is the turn of host 1");
        host.follow("r1");
        assert!(host.is_without_owner() && !host.has_lost_owner(NOW));
        assert!(!host.leads(), "host 1 has called");
    }

    #[test]
    fn the_host_of_the_next_leader_is_lost_before_it_has_said_who_comes_after_it() {
        for asked in [false, true] {
            let mut host = follower();
            host.handle_membership(NOW, view(&[1, 2, 3]));
            assert!(host.has_lost_owner(NOW));
            host.follow("r1");
            if asked {
                host.adopt();
            }
            host.handle_membership(NOW, view(&[2, 3]));
            assert!(host.has_lost_owner(NOW), "once more");
            assert!(host.leads() && host.is_patient(NOW, LONG, LIMIT));
        }
    }

    #[test]
    fn no_host_leads_without_a_replica_or_without_a_majority() {
        let mut host = follower();
        host.handle_membership(NOW, view(&[2, 3]));
        assert!(host.has_lost_owner(NOW) && host.leads());
        let hindrance = Some("it sees no majority".to_owned());
        let alone = view(&[2, 3]);
        host.handle_membership(NOW, MembershipView { hindrance, ..alone });
        assert!(!host.leads() && !host.is_patient(NOW, LONG, LIMIT));
        host.handle_membership(NOW, view(&[2, 3]));
        host.replica.take();
        assert!(!host.leads());
    }

    #[test]
    fn a_silent_leader_has_longer_on_a_host_that_is_alive() {
        let mut host = follower();
        let (twice, thrice) = (2 * LIMIT, SILENCE_FACTOR_WHILE_ALIVE * LIMIT);
        assert!(!host.is_patient(NOW, twice, LIMIT), "nobody has reported");
        host.handle_membership(NOW, view(&[0, 1, 2, 3]));
        assert!(host.is_patient(NOW, twice, LIMIT) && !host.is_patient(NOW, thrice, LIMIT));
        let mut suspected = view(&[0, 1, 2, 3]);
        suspected.left.insert("r0".to_owned(), HostState::Suspected);
        host.handle_membership(NOW, suspected);
        assert!(
            host.is_patient(NOW, thrice, LIMIT),
            "the verdict is to come"
        );
    }

    #[test]
    fn a_host_that_was_given_up_is_no_successor_for_the_others() {
        let mut host = follower();
        assert_eq!(host.successors().collect::<Vec<_>>(), ["r1", "r2", "r3"]);
        let mut order = host.order.clone().expect("an order");
        order.candidates.remove(0);
        host.set_order(order);
        assert_eq!(host.successors().collect::<Vec<_>>(), ["r2", "r3"]);
    }

    /// Host 1 is alive and knows that it was given up. This host does not know that.
    #[test]
    fn nobody_waits_for_a_candidate_that_has_given_up() {
        let mut host = follower();
        host.handle_membership(NOW, view(&[1, 2, 3]));
        assert!(host.has_lost_owner(NOW) && !host.leads());
        host.pass_over(NOW, "r1");
        assert!(host.leads());
        assert_eq!(host.successors().collect::<Vec<_>>(), ["r2", "r3"]);
    }

    /// The present leader may have acted on changes that the replica from an earlier one lacks.
    #[test]
    fn no_host_leads_with_the_replica_of_an_earlier_leader() {
        for is_renewed in [false, true] {
            let mut host = follower();
            let snapshot = Registry::new(Vec::new(), &[], b"program").snapshot();
            host.handle_membership(NOW, view(&[1, 2, 3]));
            assert!(host.has_lost_owner(NOW));
            host.follow("r1");
            host.adopt();
            if is_renewed {
                let taken = host.replica.take_piece(false, &snapshot, true);
                taken.expect("a snapshot");
            }
            host.set_order(SuccessionOrder {
                launcher: "r1".to_owned(),
                name: "h1".to_owned(),
                candidates: (2..4).map(candidate).collect(),
            });
            host.handle_membership(NOW, view(&[2, 3]));
            assert!(host.has_lost_owner(NOW));
            assert_eq!(host.leads(), is_renewed);
        }
    }

    #[test]
    fn the_time_for_a_candidate_begins_when_it_is_its_turn() {
        let mut host = follower();
        host.handle_membership(NOW, view(&[1, 3]));
        assert!(host.has_lost_owner(NOW) && host.is_patient(NOW, LONG, LIMIT));
        let later = NOW + CANDIDATE_TIMEOUT;
        host.handle_membership(later, view(&[1, 3]));
        assert!(!host.is_patient(later, LONG, LIMIT));
        host.handle_membership(later, view(&[3]));
        assert!(host.is_patient(later, LONG, LIMIT));
    }

    #[test]
    fn the_time_of_the_job_goes_on() {
        let mut plan = FailoverPlan::default();
        assert_eq!(Follower::new(plan.clone(), NOW).remaining(NOW), None);
        plan.timeout = Some(5000);
        let host = Follower::new(plan, NOW);
        let remaining = [1, 9].map(|passed| host.remaining(NOW + Duration::from_secs(passed)));
        assert_eq!(
            remaining,
            [4, 0].map(|left| Some(Duration::from_secs(left)))
        );
    }
}
