use super::ClaimEffect::{AskState, Begin, Close, GiveUp, Lead, Leave, Open};
use super::*;
use crate::failover::HostState;

const NOW: Duration = Duration::from_secs(100);

/// The claims of host 0, and the time.
struct Bench {
    claims: Claims,
    now: Duration,
}

fn candidate(number: u32) -> Candidate {
    Candidate {
        number,
        name: format!("h{number}"),
        run: format!("r{number}"),
    }
}

/// Returns a view in which these hosts and host 0 are left.
fn view(left: &[u32]) -> MembershipView {
    let left = left.iter().map(|number| candidate(*number).run);
    MembershipView {
        own: Some("r0".to_owned()),
        left: left.map(|run| (run, HostState::Alive)).collect(),
        hindrance: None,
    }
}

fn registry() -> Registry {
    Registry::new(Vec::new(), &[], b"program")
}

/// Returns the claims of these other hosts, all of which are left.
fn bench(others: &[u32]) -> Bench {
    let candidates: Vec<Candidate> = others.iter().map(|number| candidate(*number)).collect();
    let none = BTreeMap::new();
    Bench {
        claims: Claims::new(NOW, &candidates, view(others), none, &registry()),
        now: NOW,
    }
}

/// Returns the claims of `others`, of which the first `claimed` are claimed.
fn claimed(others: &[u32], claimed: usize) -> Bench {
    let mut bench = bench(others);
    bench.effects();
    others[..claimed].iter().for_each(|host| bench.names(*host));
    bench
}

impl Bench {
    fn effects(&mut self) -> Vec<ClaimEffect> {
        std::iter::from_fn(|| self.claims.poll()).collect()
    }

    fn hear(&mut self, input: ClaimInput) -> Vec<ClaimEffect> {
        self.claims.handle(self.now, input);
        self.effects()
    }

    fn after(&mut self, time: Duration) -> Vec<ClaimEffect> {
        self.now += time;
        self.hear(ClaimInput::Timer)
    }

    /// Lets an agent name this host and another one as its successors, which has no effect at once.
    fn names(&mut self, host: u32) {
        assert_eq!(self.owner_lost(host, &["r9", "r0"]), []);
    }

    fn owner_lost(&mut self, host: u32, successors: &[&str]) -> Vec<ClaimEffect> {
        let successors = successors.iter().map(|run| (*run).to_owned()).collect();
        self.hear(ClaimInput::OwnerLost(host, successors))
    }

    fn closed(&mut self, host: u32) -> Vec<ClaimEffect> {
        self.hear(ClaimInput::Closed(host))
    }

    fn membership(&mut self, view: MembershipView) -> Vec<ClaimEffect> {
        self.hear(ClaimInput::Membership(view, BTreeMap::new()))
    }

    fn hands_over(&mut self, host: u32, dead: &[u32]) -> Vec<ClaimEffect> {
        assert_eq!(self.hear(ClaimInput::Ready(host)), [AskState(host)]);
        let dead = dead.to_vec();
        self.hear(ClaimInput::HandedOver(host, dead))
    }

    fn lost(&self, host: u32) -> Option<Absence> {
        self.claims.lost().remove(&host)
    }
}

#[test]
fn all_agents_hear_the_word_together_when_no_claim_is_open() {
    let mut bench = bench(&[1, 2]);
    assert_eq!(bench.effects(), [Open(1), Open(2)]);
    bench.names(2);
    let word = bench.owner_lost(1, &["r0"]);
    assert_eq!(word, [Lead(1), Lead(2)]);
    assert_eq!(bench.hands_over(2, &[]), []);
    assert_eq!(bench.hands_over(1, &[]), [Begin]);
    assert!(bench.claims.lost().is_empty() && bench.claims.deadline().is_none());
}

#[test]
fn a_host_without_others_begins_at_once() {
    assert_eq!(bench(&[]).effects(), [Begin]);
}

#[test]
fn a_claim_that_fails_is_made_again_a_moment_later() {
    let mut bench = claimed(&[1], 0);
    assert_eq!(bench.closed(1), []);
    assert_eq!(bench.claims.deadline(), Some(NOW + CLAIM_INTERVAL));
    assert_eq!(bench.after(CLAIM_INTERVAL / 2), []);
    assert_eq!(bench.after(CLAIM_INTERVAL / 2), [Open(1)]);
}

#[test]
fn the_word_waits_for_a_claimed_channel_that_breaks() {
    let mut bench = claimed(&[1, 2], 1);
    assert_eq!(bench.closed(1), []);
    assert_eq!(bench.owner_lost(2, &["r0"]), []);
    assert_eq!(bench.after(CLAIM_INTERVAL), [Open(1)]);
    let word = bench.owner_lost(1, &["r0"]);
    assert_eq!(word, [Lead(1), Lead(2)]);
}

#[test]
fn an_agent_whose_channel_breaks_after_the_word_is_claimed_again_and_hears_it_again() {
    let mut bench = claimed(&[1, 2], 1);
    bench.owner_lost(2, &["r0"]);
    assert_eq!(bench.hands_over(2, &[]), []);
    bench.hear(ClaimInput::Ready(1));
    assert_eq!(bench.closed(1), []);
    assert_eq!(bench.after(CLAIM_INTERVAL), [Open(1)]);
    assert_eq!(bench.owner_lost(1, &["r0"]), [Lead(1)]);
    assert_eq!(bench.hands_over(1, &[]), [Begin]);
}

#[test]
fn a_host_that_some_agent_does_not_name_gives_all_claims_back() {
    let given_up = Leave(Obstacle::GivenUp(1));
    // At once, if no claim is open.
    let mut bench = claimed(&[1, 2], 0);
    assert_eq!(bench.owner_lost(1, &["r2"]), []);
    let effects = bench.owner_lost(2, &["r0"]);
    assert_eq!(effects, [GiveUp(1), GiveUp(2), given_up.clone()]);
    assert_eq!(bench.after(CLAIM_TIMEOUT), []);
    // After a while, to those that are claimed by then.
    let mut bench = claimed(&[1, 2, 3], 0);
    bench.owner_lost(1, &[]);
    assert_eq!(bench.after(WITHDRAWAL_TIME / 2), []);
    assert_eq!(bench.owner_lost(3, &["r2"]), []);
    assert_eq!(bench.claims.deadline(), Some(NOW + WITHDRAWAL_TIME));
    let effects = bench.after(WITHDRAWAL_TIME / 2);
    assert_eq!(effects, [GiveUp(1), GiveUp(3), given_up]);
}

#[test]
fn a_host_that_was_given_up_does_not_lead_although_the_one_that_says_so_is_lost() {
    let mut bench = claimed(&[1, 2], 0);
    bench.owner_lost(1, &[]);
    assert_eq!(bench.membership(view(&[2])), [Close(1)]);
    let effects = bench.owner_lost(2, &["r0"]);
    let given_up = Leave(Obstacle::GivenUp(1));
    assert_eq!(effects, [GiveUp(2), given_up]);
}

#[test]
fn nobody_leaves_the_job_to_others_after_the_word() {
    let mut bench = claimed(&[1, 2], 1);
    bench.owner_lost(2, &["r0"]);
    bench.closed(1);
    bench.after(CLAIM_INTERVAL);
    assert_eq!(bench.owner_lost(1, &["r2"]), [Close(1)]);
    assert_eq!(bench.hands_over(2, &[]), [Begin]);
    assert_eq!(bench.lost(1), Some(Absence::NotHeard));
}

#[test]
fn only_the_hosts_whose_claims_are_open_are_too_late() {
    let mut bench = claimed(&[1, 2, 3], 2);
    bench.closed(3);
    bench.after(CLAIM_INTERVAL);
    assert_eq!(bench.claims.deadline(), Some(NOW + CLAIM_TIMEOUT));
    let effects = bench.after(CLAIM_TIMEOUT - CLAIM_INTERVAL);
    assert_eq!(effects, [Close(3), Lead(1), Lead(2)]);
    assert_eq!(bench.hands_over(1, &[]), []);
    assert_eq!(bench.hands_over(2, &[]), [Begin]);
    assert_eq!(bench.lost(3), Some(Absence::NotHeard));
    assert_eq!((bench.lost(1), bench.lost(2)), (None, None));
}

/// Other hosts may follow another one, which has claimed them before.
#[test]
fn a_host_leads_only_with_more_than_half_of_those_that_are_left() {
    let mut bench = claimed(&[1, 2, 3, 4], 1);
    let closed = [2, 3, 4].map(Close);
    let effects = bench.after(CLAIM_TIMEOUT);
    assert_eq!(effects[..3], closed);
    assert_eq!(effects[3..], [GiveUp(1), Leave(Obstacle::TooFew)]);
    // Hosts that are lost do not count, according to the membership or a replica.
    let mut bench = claimed(&[1, 2, 3, 4], 1);
    assert_eq!(bench.membership(view(&[1, 2])), [Close(3), Close(4)]);
    assert_eq!(bench.after(CLAIM_TIMEOUT), [Close(2), Lead(1)]);
}

/// The other host may lead, or have ended with the job: a daemon gives the same answer for both.
#[test]
fn one_of_two_hosts_does_not_go_on_alone_while_the_other_one_is_alive_and_refuses_each_claim() {
    let mut bench = claimed(&[1], 0);
    let mut effects = Vec::new();
    while effects.is_empty() {
        assert_eq!(bench.closed(1), []);
        effects = bench.after(CLAIM_INTERVAL);
        if effects == [Open(1)] {
            effects.clear();
        }
    }
    assert_eq!(bench.now, NOW + CLAIM_TIMEOUT);
    assert_eq!(effects, [Leave(Obstacle::TooFew)]);
    // Nor is silence consent.
    let silent = claimed(&[1], 0).after(CLAIM_TIMEOUT);
    assert_eq!(silent, [Close(1), Leave(Obstacle::TooFew)]);
}

/// No host leads there.
#[test]
fn one_of_two_hosts_goes_on_alone_when_the_other_one_is_gone_or_not_in_the_order() {
    let mut bench = claimed(&[1], 0);
    assert_eq!(bench.closed(1), []);
    assert_eq!(bench.membership(view(&[])), [Begin]);
    let mut bench = claimed(&[1, 2], 1);
    assert_eq!(bench.membership(view(&[1])), [Close(2), Lead(1)]);
    // The launcher's order does not name a host whose agent has ended before.
    assert_eq!(self::bench(&[]).effects(), [Begin]);
}

#[test]
fn an_agent_has_time_to_answer_from_the_word_on() {
    let mut bench = claimed(&[1, 2], 1);
    bench.after(CLAIM_TIMEOUT / 2);
    bench.owner_lost(2, &["r0"]);
    assert_eq!(bench.after(CLAIM_TIMEOUT / 2), []);
    assert_eq!(bench.hands_over(1, &[]), []);
    assert_eq!(bench.after(CLAIM_TIMEOUT / 2), [Close(2), Begin]);
    assert_eq!(bench.lost(2), Some(Absence::NotHeard));
}

#[test]
fn an_answer_that_comes_twice_or_late_or_without_a_question_changes_nothing() {
    let mut bench = claimed(&[1, 2], 1);
    let (host, dead) = (1, vec![2]);
    let early = ClaimInput::HandedOver(host, dead);
    assert_eq!(bench.hear(ClaimInput::Ready(host)), []);
    assert_eq!(bench.hear(early.clone()), []);
    // The agent repeats that its owner is lost.
    assert_eq!(bench.owner_lost(1, &[]), []);
    let word = bench.owner_lost(2, &["r0"]);
    assert_eq!(word.len(), 2);
    assert_eq!(bench.hands_over(1, &[]), []);
    assert_eq!(bench.hear(ClaimInput::Ready(host)), []);
    assert_eq!(bench.hear(early), []);
    assert_eq!(bench.closed(1), []);
    bench.after(CLAIM_TIMEOUT);
    assert_eq!(bench.lost(1), None);
    // From a host that was given up meanwhile.
    let mut bench = claimed(&[1, 2], 1);
    assert_eq!(bench.membership(view(&[2])), [Close(1)]);
    assert_eq!(bench.owner_lost(1, &[]), []);
    assert_eq!(bench.closed(1), []);
    assert_eq!(bench.hear(ClaimInput::Nonsense(host)), []);
    assert_eq!(bench.after(CLAIM_INTERVAL), []);
    assert_eq!(bench.owner_lost(2, &["r0"]), [Lead(2)]);
    assert_eq!(bench.lost(1), Some(Absence::UnknownRun));
}

#[test]
fn a_host_is_lost_when_the_membership_does_not_know_this_run_of_it() {
    let mut bench = claimed(&[1, 2, 3], 3 - 1);
    bench.owner_lost(3, &["r0"]);
    assert_eq!(bench.hands_over(3, &[]), []);
    let causes = [("r1", "it has been silent"), ("r3", "its daemon has ended")];
    let causes = causes.map(|(run, why)| (run.to_owned(), why.to_owned()));
    // Host 2 has returned as another run.
    let report = ClaimInput::Membership(view(&[7]), causes.into());
    let effects = bench.hear(report);
    assert_eq!(effects, [Close(1), Close(2), Begin]);
    let silent = Absence::Gone("it has been silent".to_owned());
    assert_eq!(bench.lost(1), Some(silent));
    assert_eq!(bench.lost(2), Some(Absence::UnknownRun));
    // The end of its channel is handled by the job that begins.
    assert_eq!(bench.lost(3), None);
}

#[test]
fn nobody_waits_for_a_host_that_was_given_up_before_by_any_replica() {
    let mut registry = registry();
    for number in [1, 2, 3] {
        registry.host_added(crate::HostRecord {
            number,
            name: format!("h{number}"),
            architecture: "any".to_owned(),
            cores: 1,
            speed: crate::registry::DEFAULT_SPEED,
            alive: number != 1,
        });
    }
    let candidates = [1, 2, 3].map(candidate);
    let mut bench = Bench {
        claims: Claims::new(
            NOW,
            &candidates,
            view(&[1, 2, 3]),
            BTreeMap::new(),
            &registry,
        ),
        now: NOW,
    };
    assert_eq!(bench.effects(), [Open(2), Open(3)]);
    bench.names(2);
    bench.owner_lost(3, &["r0"]);
    assert_eq!(bench.hands_over(2, &[]), []);
    // According to the replica of host 3, which is later.
    assert_eq!(bench.hands_over(3, &[1, 2]), [Close(2), Begin]);
    let given_up = Some(Absence::GivenUpBefore);
    assert_eq!((bench.lost(1), bench.lost(2)), (given_up.clone(), given_up));
}

#[test]
fn an_agent_that_makes_no_sense_is_lost() {
    let mut bench = claimed(&[1, 2], 1);
    let nonsense = ClaimInput::Nonsense(2);
    assert_eq!(bench.hear(nonsense), [Close(2), Lead(1)]);
    assert_eq!(bench.lost(2), Some(Absence::Nonsense));
}

#[test]
fn a_host_that_is_cut_off_from_others_of_the_job_leaves_it_to_them() {
    let hindered = |hindrance: &str, state| {
        let mut view = view(&[1, 2]);
        view.left.insert("r2".to_owned(), state);
        view.hindrance = (!hindrance.is_empty()).then(|| hindrance.to_owned());
        view
    };
    let mut bench = claimed(&[1, 2], 1);
    let suspected = hindered("", HostState::Suspected);
    assert_eq!(bench.membership(suspected), []);
    // All others answer.
    assert_eq!(bench.membership(hindered("alone", HostState::Alive)), []);
    let cut_off = hindered("alone", HostState::Suspected);
    let leaves = Leave(Obstacle::CutOff("alone".to_owned()));
    assert_eq!(bench.membership(cut_off), [leaves]);
    assert_eq!(bench.after(CLAIM_TIMEOUT), []);
}

#[test]
fn a_host_whose_daemon_ends_leaves_the_job_to_others_at_once() {
    let mut bench = claimed(&[1, 2], 2 - 1);
    let leaves = Leave(Obstacle::DaemonEnded);
    assert_eq!(bench.hear(ClaimInput::DaemonEnded), [leaves]);
    assert_eq!(bench.owner_lost(2, &["r0"]), []);
}
