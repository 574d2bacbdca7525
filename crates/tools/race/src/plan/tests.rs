//! Tests of the plan: what is raced, where, and how often.

use super::*;
use crate::discover::discover;
use crate::discover::tests::competitor;
use crate::eligible;
use std::path::Path;

fn wishes() -> Wishes {
    Wishes {
        suites: vec![],
        operations: vec![],
        tasks: vec![],
        bytes: vec![],
        effort: Effort::Quick,
        launches: None,
        budget: None,
    }
}

fn limit() -> Vec<Competitor> {
    let found = discover(Path::new("/nonexistent")).competitors;
    found.into_iter().filter(|c| c.name == "limit").collect()
}

#[test]
fn what_is_asked_for_twice_is_raced_once() {
    let wishes = Wishes {
        operations: vec!["global-sum".into(), "idle".into()],
        tasks: vec![2, 2],
        bytes: vec![8, 9, 8],
        ..wishes()
    };
    let groups = groups(&wishes, &limit(), Ground::local(2));
    let work: Vec<&Work> = groups.iter().map(|group| &group.work).collect();
    let sums = Work::Points(vec![("global-sum".to_owned(), vec![8])]);
    assert_eq!(work, [&sums, &Work::Own(Kind::IdleMemory)]);
}

#[test]
fn a_size_that_overflows_is_too_large() {
    let wishes = Wishes {
        operations: vec!["message-rate".into()],
        tasks: vec![2],
        bytes: vec![1 << 52, u64::MAX],
        ..wishes()
    };
    assert!(groups(&wishes, &limit(), Ground::local(2)).is_empty());
}

#[test]
fn a_quick_race_covers_every_operation_and_size() {
    let groups = groups(&wishes(), &limit(), Ground::local(2));
    let Some(Group {
        work: Work::Points(points),
        ..
    }) = groups
        .iter()
        .find(|g| g.tasks == 2 && g.suite == "primitives")
    else {
        panic!("no primitives with two tasks in {groups:?}");
    };
    assert_eq!(points.len(), operations::of(&suites::PRIMITIVES).count());
    assert_eq!(points[0], ("one-to-one".to_owned(), SIZES.to_vec()));
    assert!(
        groups
            .iter()
            .any(|g| g.tasks == 32 && g.suite == "oversubscribed")
    );
    assert!(
        groups
            .iter()
            .any(|g| g.work == Work::Own(Kind::IdleMemory) && g.tasks == 32)
    );
}

fn between(hosts: u32, cores: u32) -> Ground {
    Ground {
        network: Network::Hosts,
        hosts,
        cores,
    }
}

#[test]
fn the_suite_of_hosts_has_one_and_two_tasks_on_each_and_nothing_that_stays_on_one() {
    let wishes = |tasks: &[u32]| Wishes {
        suites: vec![suites::HOSTS.name.to_owned()],
        tasks: tasks.to_vec(),
        ..wishes()
    };
    let ours = [competitor("regatta", &crate::peers::regatta::Regatta)];
    let planned = |tasks: &[u32], hosts| {
        let groups = groups(&wishes(tasks), &ours, between(hosts, 1));
        let mut points = Vec::new();
        for group in groups {
            let Work::Points(here) = group.work else {
                panic!("launches of their own: {:?}", group.work);
            };
            let here = here.into_iter();
            points.extend(here.map(|(name, sizes)| (name, group.tasks, sizes)));
        }
        points
    };
    let with = |points: &[(String, u32, Vec<u64>)], name: &str| -> Vec<u32> {
        let here = points.iter().filter(|point| point.0 == name);
        here.map(|point| point.1).collect()
    };
    for hosts in [2, 4, 8] {
        let points = planned(&[], hosts);
        assert_eq!(with(&points, "barrier"), [hosts, 2 * hosts]);
        assert_eq!(with(&points, "complete-exchange"), [hosts, 2 * hosts]);
        let two: &[u32] = if hosts == 2 { &[2] } else { &[] };
        assert_eq!(with(&points, "one-to-one"), two);
        assert_eq!(with(&points, "exchange"), two);
        let large = |point: &&(String, u32, Vec<u64>)| {
            point.0 == "concatenation" && point.2.contains(&(4 << 20))
        };
        assert_eq!(points.iter().any(|point| large(&point)), hosts < 8);
    }
    let points = planned(&[4, 6], 4);
    assert_eq!(with(&points, "barrier"), [4], "six are not dealt evenly");
    assert!(planned(&[], 1).is_empty());
}

/// Open MPI has settings of its own for broadcasts, which would need another job than that of the expression.
#[test]
fn both_sides_of_a_guideline_are_in_one_job() {
    let wishes = Wishes {
        suites: vec![suites::GUIDELINES.name.to_owned()],
        ..wishes()
    };
    let peer = [competitor("openmpi", &crate::peers::openmpi::OpenMpi)];
    let groups = groups(&wishes, &peer, Ground::local(2));
    let numbers: Vec<u32> = groups.iter().map(|group| group.tasks).collect();
    assert_eq!(numbers, [2, 4, 8]);
    let Work::Points(points) = &groups[1].work else {
        panic!("{:?}", groups[1].work);
    };
    for operation in [
        "broadcast",
        "broadcast-by-scatter",
        "barrier",
        "reduce-scatter",
    ] {
        let point = points.iter().find(|point| point.0 == operation);
        let sizes = point.map(|point| point.1.len());
        let expected = match operation {
            "barrier" => 1,
            "broadcast" => 4,
            _ => 3,
        };
        assert_eq!(sizes, Some(expected), "{operation}");
    }
}

/// Checks every suite, with each kind of environment.
#[test]
fn every_operation_of_a_suite_is_planned_or_a_note_says_why_not() {
    for suite in suites::ALL {
        let wishes = Wishes {
            suites: vec![suite.name.to_owned()],
            ..wishes()
        };
        for &peer in crate::peers::ALL {
            let competitors = [competitor("it", peer)];
            let (network, ground) = match suite.on_many_hosts {
                true => (Network::Hosts, between(2, 64)),
                false => (Network::Local, Ground::local(64)),
            };
            let groups = groups(&wishes, &competitors, ground);
            let planned = |operation: &Operation| {
                groups.iter().any(|group| match &group.work {
                    Work::Points(points) => points.iter().any(|one| one.0 == operation.name),
                    own => own.operation() == operation.name,
                })
            };
            let notes = eligible::notes(&competitors, &wishes, network).join("\n");
            if !(suite.takes)(peer) {
                assert!(groups.is_empty(), "{peer:?} {groups:?}");
                continue;
            }
            for operation in operations::of(suite) {
                // A program of one task is not named where tasks communicate.
                let told = peer
                    .lacks(operation.need)
                    .is_some_and(|why| notes.contains(why) || peer.facts().one_task);
                let of_others = operation.of_the_limit && !peer.facts().limit;
                assert!(
                    planned(operation) || told || of_others,
                    "{operation:?} of {suite:?} with {peer:?}: {notes}"
                );
            }
        }
    }
}

#[test]
fn messages_beyond_the_usual_sizes_share_launches_with_few_others() {
    let wishes = Wishes {
        suites: vec![suites::MANIEZZO_SANNA.name.to_owned()],
        ..wishes()
    };
    let pvm = [competitor("pvm", &crate::peers::pvm::Pvm)];
    let groups = groups(&wishes, &pvm, Ground::local(2));
    let large: Vec<usize> = groups.iter().map(|one| one.work.large_points()).collect();
    assert!(large.iter().all(|n| *n <= MAX_LARGE_POINTS), "{large:?}");
    assert_eq!(
        large.iter().sum::<usize>(),
        20,
        "five kinds of four elements"
    );
}

#[test]
fn wishes_narrow_the_race() {
    let wishes = Wishes {
        operations: vec!["one-to-one".into()],
        tasks: vec![2],
        bytes: vec![8, 1024],
        ..wishes()
    };
    let groups = groups(&wishes, &limit(), Ground::local(2));
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(
        groups[0].work,
        Work::Points(vec![("one-to-one".into(), vec![8, 1024])])
    );
}

#[test]
fn a_task_that_starts_others_is_launched_alone_where_the_library_can() {
    let mut competitors = limit();
    let regatta = Competitor {
        name: "regatta".to_owned(),
        peer: &crate::peers::regatta::Regatta,
        ..competitors[0].clone()
    };
    competitors.push(regatta);
    let wishes = Wishes {
        operations: vec!["spawn".into(), "notify".into()],
        ..wishes()
    };
    let groups = groups(&wishes, &competitors, Ground::local(2));
    let found: Vec<(&str, u32)> = groups
        .iter()
        .map(|group| (group.work.operation(), group.tasks))
        .collect();
    let expected = [("spawn", 1), ("spawn", 10), ("spawn", 100), ("notify", 2)];
    assert_eq!(found, expected);
    assert!(
        groups
            .iter()
            .all(|g| g.competitor == 1 && g.launched() == 1)
    );
}

#[test]
fn a_full_race_gives_each_operation_its_own_launches() {
    let wishes = Wishes {
        effort: Effort::Full,
        tasks: vec![2],
        ..wishes()
    };
    let groups = groups(&wishes, &limit(), Ground::local(2));
    assert!(
        groups
            .iter()
            .all(|g| !matches!(&g.work, Work::Points(points) if points.len() > 1))
    );
    assert!(
        groups
            .iter()
            .filter(|g| g.suite == "primitives")
            .all(|g| g.launches >= 10)
    );
}

#[test]
fn every_round_holds_every_group_once_and_the_seed_gives_the_order() {
    let groups = groups(&wishes(), &limit(), Ground::local(2));
    let launches = order(&groups, 7);
    assert_eq!(launches, order(&groups, 7));
    assert_ne!(launches, order(&groups, 8));
    for (index, group) in groups.iter().enumerate() {
        assert_eq!(
            launches.iter().filter(|l| l.group == index).count() as u32,
            group.launches
        );
    }
    assert!(
        launches
            .windows(2)
            .all(|pair| pair[0].round <= pair[1].round)
    );
}

/// All papers in one race have the points that each has alone, and no point that is measured in the same way twice.
#[test]
fn all_papers_are_planned_in_one_race_and_no_point_twice() {
    let planned = |asked: &str, effort| {
        let wishes = Wishes {
            suites: suites::named(&[asked.to_owned()]),
            effort,
            ..wishes()
        };
        let peers = crate::peers::ALL.iter();
        let competitors: Vec<Competitor> = peers.map(|peer| competitor("it", *peer)).collect();
        groups(&wishes, &competitors, Ground::local(2))
    };
    for effort in [Effort::Quick, Effort::Normal] {
        let together = planned(suites::PAPERS, effort);
        let mut alone = 0;
        for suite in suites::OF_PAPERS {
            let of_it = planned(suite.name, effort);
            assert!(!of_it.is_empty(), "{suite:?}");
            for group in &of_it {
                assert!(together.contains(group), "{group:?}");
            }
            alone += of_it.len();
        }
        assert_eq!(together.len(), alone);
        // A point that is measured in turns differs from one that is not.
        let mut points = Vec::new();
        for group in &together {
            if let Work::Points(operations) = &group.work {
                let launched = suites::find(group.suite).map(|suite| suite.launched);
                for (operation, bytes) in operations
                    .iter()
                    .flat_map(|(name, sizes)| sizes.iter().map(move |size| (name, size)))
                {
                    let at = (group.competitor, group.tasks, launched, operation, bytes);
                    assert!(!points.contains(&at), "{at:?} of {}", group.suite);
                    points.push(at);
                }
            }
        }
    }
}

#[test]
fn a_quick_race_of_the_papers_has_the_smallest_problem_of_each_application() {
    let sizes = |effort| {
        let wishes = Wishes {
            suites: vec![suites::AHMAD_1997.name.to_owned()],
            operations: vec!["nbody".to_owned()],
            effort,
            ..wishes()
        };
        let regatta = [competitor("regatta", &crate::peers::regatta::Regatta)];
        let groups = groups(&wishes, &regatta, Ground::local(2));
        let sizes = groups.iter().filter_map(|group| match group.work {
            Work::Application(_, size) => Some(size),
            _ => None,
        });
        distinct(sizes)
    };
    assert_eq!(sizes(Effort::Quick), [512]);
    assert_eq!(sizes(Effort::Normal), [512, 1024, 2048, 4096, 8192, 16384]);
}

/// Checks every suite, also a paper's that has both messages and applications.
#[test]
fn applications_are_planned_once_and_never_as_points() {
    let regatta = Competitor {
        name: "regatta".to_owned(),
        peer: &crate::peers::regatta::Regatta,
        ..limit().remove(0)
    };
    let suites = suites::ALL.iter().map(|suite| suite.name.to_owned());
    let wishes = Wishes {
        suites: suites.collect(),
        ..wishes()
    };
    let mut planned = Vec::new();
    for group in groups(&wishes, &[regatta], Ground::local(2)) {
        match &group.work {
            Work::Points(points) => {
                let is_application = |name: &str| {
                    operations::find(name).is_some_and(|one| one.kind == Kind::Application)
                };
                assert!(
                    points.iter().all(|(name, _)| !is_application(name)),
                    "{points:?}"
                );
            }
            work => {
                let one = (group.suite, group.tasks, work.clone());
                assert!(!planned.contains(&one), "{one:?} is planned twice");
                planned.push(one);
            }
        }
    }
    for suite in [
        &suites::APPLICATIONS,
        &suites::AHMAD_1997,
        &suites::WHITE_1994,
        &suites::MANIEZZO_SANNA,
    ] {
        assert!(planned.iter().any(|one| one.0 == suite.name), "{suite:?}");
    }
}

#[test]
fn buffers_stay_within_bounds() {
    let wishes = Wishes {
        bytes: vec![16 << 20],
        tasks: vec![32],
        ..wishes()
    };
    for group in groups(&wishes, &limit(), Ground::local(2)) {
        if let Work::Points(points) = group.work {
            assert!(
                points.iter().all(|(name, _)| name != "complete-exchange"),
                "{points:?}"
            );
        }
    }
}
