//! Tasks that cannot reach each other, with a clock of the test's own.

use super::*;
use crate::{End, HostRecord, Policy};

/// Hosts with the same number of tasks each: the first tasks on host 0, and so on.
struct World {
    registry: Registry,
    lifecycle: Lifecycle,
    reachability: Reachability,
    /// Hosts from which the launcher receives nothing.
    silent: Vec<u32>,
}

fn world(hosts: u32, tasks_each: u32, patience: Option<u64>) -> World {
    let record = |number| HostRecord {
        number,
        name: format!("h{number}"),
        architecture: "x86_64".to_owned(),
        cores: 1,
        speed: 1000,
        alive: true,
    };
    let host_of: Vec<u32> = (0..hosts * tasks_each).map(|n| n / tasks_each).collect();
    let names = (0..hosts).map(|number| format!("h{number}")).collect();
    World {
        registry: Registry::new((0..hosts).map(record).collect(), &host_of, b"program"),
        lifecycle: Lifecycle::new(Policy::default(), hosts * tasks_each).across(names, host_of),
        reachability: Reachability::new(patience.map(Duration::from_secs)),
        silent: Vec::new(),
    }
}

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl World {
    fn report(&mut self, seconds: f64, by: u32, task: u32, silent: Option<f64>) {
        let address = Some(([10, 0, 0, 9], 7).into());
        let silent = silent.map(at);
        self.reachability
            .report(at(seconds), &self.registry, (by, task), address, silent);
    }

    fn look(&mut self, seconds: f64) -> Vec<ReachabilityEffect> {
        let heard = |host: u32, _| !self.silent.contains(&host);
        self.reachability.look(at(seconds), &self.lifecycle, heard)
    }

    /// Returns the sentences for the user.
    fn said(&mut self, seconds: f64) -> Vec<String> {
        let effects = self.look(seconds).into_iter();
        let said = effects.filter_map(|effect| match effect {
            ReachabilityEffect::Report(sentence) => Some(sentence),
            _ => None,
        });
        said.collect()
    }

    fn changed(&mut self, seconds: f64) -> Option<Vec<UnreachablePair>> {
        self.reachability.take_changed(at(seconds))
    }
}

const CUT: &str = "task 1 on h1 cannot reach task 0 on h0 (10.0.0.9): no answer for 2.0 s; waiting (--unreachable=SECONDS gives up)";

#[test]
fn a_cut_is_named_once_for_all_tasks_of_two_hosts_and_so_is_its_end() {
    let mut world = world(2, 2, None);
    world.report(20.0, 2, 0, Some(1.5));
    world.report(20.1, 0, 2, Some(1.6));
    world.report(20.2, 3, 1, Some(1.5));
    let effects = world.look(20.5);
    let event = ReachabilityEffect::Event {
        event: ReachabilityEvent::Unreachable,
        by: 2,
        peer: 0,
        lasted: at(2.0),
    };
    assert_eq!(effects[0], event);
    let ReachabilityEffect::Report(sentence) = &effects[1] else {
        panic!("{effects:?}");
    };
    let cut = CUT.replace("task 1", "task 2");
    assert_eq!((sentence, effects.len()), (&cut, 2));
    assert!(world.look(21.0).is_empty());
    // Each of the two tasks that have reported it must report its end.
    world.report(22.0, 2, 0, None);
    world.report(22.0, 3, 1, None);
    assert!(world.look(22.0).is_empty());
    world.report(23.0, 0, 2, None);
    let healed = "task 0 on h0 and task 2 on h1 reach each other again, after 4.5 s";
    assert_eq!(world.said(23.0), [healed]);
}

#[test]
fn hosts_that_are_cut_off_again_are_not_named_at_once() {
    let mut world = world(2, 1, None);
    world.report(2.0, 1, 0, Some(2.0));
    assert_eq!(world.said(2.0), [CUT]);
    world.report(3.0, 1, 0, None);
    assert_eq!(world.said(3.0).len(), 1);
    world.report(5.0, 1, 0, Some(2.0));
    assert!(world.said(5.0).is_empty());
    assert_eq!(world.reachability.deadline(at(5.0)), Some(at(13.0)));
    assert!(world.said(12.9).is_empty());
    assert_eq!(world.said(13.0).len(), 1);
    assert_eq!(world.reachability.deadline(at(13.0)), None);
}

#[test]
fn of_many_pairs_of_hosts_the_first_are_named_and_the_others_counted() {
    let mut world = world(12, 1, None);
    for host in 1..12 {
        world.report(2.0, host, 0, Some(1.5));
    }
    assert_eq!(world.said(2.0).len(), MAX_NAMED_PAIRS);
    assert_eq!(world.reachability.deadline(at(2.0)), Some(at(3.0)));
    let counted = "3 more pairs of hosts have tasks that cannot reach each other (--json names one pair of tasks for each)";
    assert_eq!(world.said(3.0), [counted]);
    assert_eq!(world.changed(3.0).map(|pairs| pairs.len()), Some(11));
}

#[test]
fn nothing_is_decided_of_a_host_that_the_launcher_does_not_hear() {
    let mut world = world(2, 1, Some(5));
    world.silent.push(1);
    world.report(10.0, 1, 0, Some(9.0));
    assert!(world.look(10.0).is_empty());
    world.silent.clear();
    world.report(11.0, 1, 0, Some(10.0));
    // The sentence, its event, the sentence about giving up, its event, and a message to both tasks.
    assert_eq!(world.look(11.0).len(), 6);
}

#[test]
fn a_pair_is_given_up_by_both_once_and_only_when_it_was_just_reported() {
    let mut world = world(2, 1, Some(5));
    world.report(2.0, 1, 0, Some(2.0));
    let named = CUT.replace(
        "waiting (--unreachable=SECONDS gives up)",
        "giving up after 5 s (--unreachable)",
    );
    assert_eq!(world.said(2.0), [named]);
    // Its time is over, but the task may have been stopped since its report.
    assert!(world.look(6.0).is_empty());
    world.report(7.0, 1, 0, Some(7.0));
    let sentence =
        "task 1 on h1 cannot reach task 0 on h0 (10.0.0.9): no answer for 7.0 s (--unreachable)";
    let give_up = |to, task| ReachabilityEffect::GiveUp {
        to,
        task,
        sentence: sentence.to_owned(),
    };
    let effects = world.look(7.0);
    let report = ReachabilityEffect::Report(format!(
        "{sentence}; both continue, and each treats the other as dead"
    ));
    assert_eq!(effects[0], report);
    assert_eq!(effects[2..], [give_up(0, 1), give_up(1, 0)]);
    // The decision is final.
    world.report(8.0, 1, 0, Some(8.0));
    world.report(8.0, 1, 0, None);
    assert!(world.look(8.0).is_empty());
    let pair = UnreachablePair {
        task: 1,
        peer: 0,
        lasted: at(8.0),
        given_up: true,
    };
    assert_eq!(world.changed(8.0), Some(vec![pair]));
}

#[test]
fn a_task_that_has_ended_is_not_waited_for() {
    let mut world = world(2, 1, None);
    world.report(2.0, 1, 0, Some(2.0));
    assert_eq!(world.said(2.0), [CUT]);
    assert!(world.changed(2.0).is_some() && world.changed(2.0).is_none());
    world.registry.task_ended(0, End::Lost);
    world.reachability.task_ended(at(3.0), 0);
    assert!(world.said(3.0).is_empty());
    assert_eq!(world.changed(3.0), Some(Vec::new()));
    world.report(4.0, 1, 0, Some(4.0));
    assert!(world.look(4.0).is_empty() && !world.reachability.is_empty());
    // The hosts are forgotten when they could be named again.
    world.changed(14.0);
    assert!(world.reachability.is_empty());
}

#[test]
fn whoever_was_not_told_is_told_again() {
    let mut world = world(2, 1, None);
    world.report(2.0, 1, 0, Some(2.0));
    world.look(2.0);
    assert!(world.changed(2.0).is_some() && world.changed(2.0).is_none());
    world.reachability.tell_again();
    let told = world.changed(4.0).expect("a change");
    assert_eq!((told.len(), told[0].lasted), (1, at(4.0)));
}
