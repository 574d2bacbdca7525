//! The desk, asked and told without any process.

use regatta_wire::control::{GroupInfo, Manner, Output, Place, Then, What, flags};

use super::*;
use crate::caught::Piece;

fn host(number: u32, name: &str, cores: u32) -> Host {
    Host {
        number,
        name: name.to_owned(),
        architecture: if number == 2 { "aarch64" } else { "x86_64" }.to_owned(),
        cores,
        speed: SPEED,
        lives: true,
    }
}

/// Three tasks on the first of three hosts.
fn desk() -> Desk {
    let hosts = vec![host(0, "alpha", 4), host(1, "beta", 2), host(2, "gamma", 4)];
    let mut desk = Desk::new(hosts, &[0, 0, 0], b"program");
    (0..3).for_each(|task| desk.started(task, 100 + task));
    desk
}

const KILLED: End = End::Signalled {
    signal: 9,
    core: false,
};

fn ended(task: u32, ending: Ending) -> Event {
    Event::TaskEnded {
        task,
        host: 0,
        ending,
    }
}

fn watch(desk: &mut Desk, by: u32, id: u32, what: What, subject: u32) -> Vec<(u32, Tell)> {
    desk.asked(by, Ask::Watch { id, what, subject });
    desk.take_said()
}

fn done(to: u32, id: u32, value: u64) -> (u32, Tell) {
    (to, Tell::Done { id, value })
}

fn put(desk: &mut Desk, by: u32, index: Option<u32>, flags: u32, value: &[u8]) -> Vec<(u32, Tell)> {
    let (name, value) = ("box".to_owned(), value.to_vec());
    desk.asked(
        by,
        Ask::Put {
            id: 1,
            name,
            index,
            flags,
            value,
        },
    );
    desk.take_said()
}

fn get(desk: &mut Desk, by: u32, index: u32, flags: u32) -> Vec<(u32, Tell)> {
    let name = "box".to_owned();
    desk.asked(
        by,
        Ask::Get {
            id: 2,
            name,
            index,
            flags,
        },
    );
    desk.take_said()
}

fn entry(to: u32, index: u32, value: &[u8]) -> Vec<(u32, Tell)> {
    let value = value.to_vec();
    vec![(
        to,
        Tell::Entry {
            id: 2,
            index,
            value,
        },
    )]
}

fn refused(said: &[(u32, Tell)], expected: Why) -> bool {
    matches!(said, [(_, Tell::Refused { why, .. })] if *why == expected)
}

#[test]
fn a_watch_fires_once_and_at_once_if_it_is_over() {
    let mut desk = desk();
    assert_eq!(watch(&mut desk, 0, 7, What::TaskEnds, 1), [done(0, 7, 0)]);
    desk.ended(1, KILLED);
    let event = ended(1, Ending::Signalled(9));
    let told = (
        0,
        Tell::Event {
            watch: 7,
            event: event.clone(),
        },
    );
    assert_eq!(desk.take_said(), [told]);
    let told = (0, Tell::Event { watch: 8, event });
    let said = watch(&mut desk, 0, 8, What::TaskEnds, 1);
    assert_eq!(said, [done(0, 8, 0), told]);
    let said = watch(&mut desk, 0, 9, What::TaskEnds, 77);
    assert!(matches!(
        &said[1].1,
        Tell::Event {
            event: Event::TaskEnded {
                ending: Ending::Unknown,
                ..
            },
            ..
        }
    ));
    desk.ended(1, KILLED);
    assert_eq!(desk.take_said(), []);
}

#[test]
fn a_cancelled_watch_is_silent_and_so_is_that_of_a_dead_watcher() {
    let mut desk = desk();
    watch(&mut desk, 0, 7, What::TaskEnds, 1);
    desk.asked(0, Ask::Unwatch { id: 8, watch: 7 });
    assert_eq!(desk.take_said(), [done(0, 8, 1)]);
    desk.asked(0, Ask::Unwatch { id: 9, watch: 7 });
    assert_eq!(desk.take_said(), [done(0, 9, 0)]);
    watch(&mut desk, 2, 7, What::TaskEnds, 1);
    assert!(desk.is_excused(1));
    desk.ended(2, KILLED);
    assert!(!desk.is_excused(1));
    desk.ended(1, KILLED);
    assert_eq!(desk.take_said(), []);
}

#[test]
fn each_change_of_members_has_a_version_of_its_own_and_nothing_else_has() {
    let mut desk = desk();
    let group = || "crew".to_owned();
    let mut version = desk.groups_version();
    assert_ne!(version, 0);
    let mut is_new = |desk: &Desk| {
        let before = std::mem::replace(&mut version, desk.groups_version());
        version != before
    };
    let join = |id| Ask::Join { id, group: group() };
    desk.asked(0, join(1));
    assert!(is_new(&desk));
    desk.asked(0, join(2));
    assert!(!is_new(&desk), "it is a member already");
    desk.asked(1, join(1));
    assert!(is_new(&desk));
    desk.asked(
        0,
        Ask::Members {
            id: 3,
            group: group(),
        },
    );
    desk.asked(
        0,
        Ask::Meet {
            id: 4,
            group: group(),
            count: 2,
        },
    );
    assert!(!is_new(&desk));
    let leave = |id| Ask::Leave { id, group: group() };
    desk.asked(0, leave(5));
    assert!(is_new(&desk));
    desk.asked(0, leave(6));
    assert!(!is_new(&desk), "it is no member any more");
    desk.ended(2, KILLED);
    assert!(!is_new(&desk), "it was in no group");
    desk.ended(1, KILLED);
    assert!(is_new(&desk));
}

#[test]
fn the_loss_of_a_host_is_told_after_that_of_its_tasks() {
    let mut desk = desk();
    watch(&mut desk, 0, 1, What::HostLost, 1);
    let task = desk.add_tasks(Some(0), &[1], b"worker", None);
    watch(&mut desk, 0, 2, What::TaskEnds, task);
    desk.ended(task, End::Lost);
    desk.host_lost(1);
    let watches: Vec<u32> = desk
        .take_said()
        .iter()
        .filter_map(|(_, tell)| match tell {
            Tell::Event { watch, .. } => Some(*watch),
            _ => None,
        })
        .collect();
    assert_eq!(watches, [2, 1]);
    assert_eq!(watch(&mut desk, 0, 3, What::HostLost, 1).len(), 2);
}

#[test]
fn asked_for_deaths_are_excused() {
    let mut desk = desk();
    let signal = |id, task, signal| Ask::Signal {
        id,
        task,
        signal,
        end: true,
    };
    let deed = desk.asked(0, signal(1, 2, 9));
    assert_eq!(deed, Some(Deed::Signal { task: 2, signal: 9 }));
    assert!(desk.is_excused(2) && !desk.is_excused(1));
    assert_eq!(desk.asked(0, signal(2, 1, 0)), None);
    desk.take_said();
    for (task, number, why) in [(9, 9, Why::Task), (1, 999, Why::Argument)] {
        assert_eq!(desk.asked(0, signal(3, task, number)), None);
        assert!(refused(&desk.take_said(), why));
    }
}

#[test]
fn entries_are_put_read_and_taken() {
    let mut desk = desk();
    assert!(refused(&get(&mut desk, 1, 0, 0), Why::Name));
    assert_eq!(put(&mut desk, 0, None, 0, b"one"), [done(0, 1, 0)]);
    assert!(refused(&put(&mut desk, 1, None, 0, b"two"), Why::Exists));
    assert!(refused(&put(&mut desk, 1, Some(0), 0, b"two"), Why::Denied));
    assert_eq!(put(&mut desk, 0, Some(0), 0, b"three"), [done(0, 1, 0)]);
    assert_eq!(get(&mut desk, 1, 0, 0), entry(1, 0, b"three"));
    assert!(refused(&get(&mut desk, 1, 0, flags::DELETE), Why::Denied));
    assert_eq!(get(&mut desk, 0, 0, flags::DELETE), entry(0, 0, b"three"));
    assert!(refused(&get(&mut desk, 0, 0, 0), Why::Name));
}

#[test]
fn several_entries_stand_side_by_side() {
    let mut desk = desk();
    let several = flags::SEVERAL | flags::OVERWRITABLE;
    for (by, index) in [(0, 0_u32), (1, 1), (0, 2)] {
        let said = put(&mut desk, by, None, several, &[by as u8]);
        assert_eq!(said, [done(by, 1, u64::from(index))]);
    }
    assert_eq!(
        get(&mut desk, 2, 1, flags::DELETE | flags::FIRST),
        entry(2, 1, &[1])
    );
    assert_eq!(get(&mut desk, 2, 1, flags::FIRST), entry(2, 2, &[0]));
    let said = put(&mut desk, 2, None, several, &[9]);
    assert_eq!(said, [done(2, 1, 1)]);
}

#[test]
fn entries_go_with_their_owners_but_for_those_that_stay() {
    let mut desk = desk();
    put(&mut desk, 0, Some(0), 0, b"goes");
    put(&mut desk, 0, Some(1), flags::PERSISTENT, b"stays");
    desk.ended(0, End::Exited(0));
    assert!(refused(&get(&mut desk, 1, 0, 0), Why::Name));
    assert_eq!(get(&mut desk, 1, 0, flags::FIRST), entry(1, 1, b"stays"));
    // Nobody's any more, so anybody's.
    assert_eq!(get(&mut desk, 1, 1, flags::DELETE), entry(1, 1, b"stays"));
}

#[test]
fn who_waits_for_an_entry_is_served_in_turn() {
    let mut desk = desk();
    let take = flags::WAIT | flags::DELETE;
    assert_eq!(get(&mut desk, 1, 0, take), []);
    assert_eq!(get(&mut desk, 2, 0, take), []);
    desk.ended(1, KILLED);
    let said = put(&mut desk, 0, None, flags::OVERWRITABLE, b"x");
    assert_eq!(said[1..], entry(2, 0, b"x"));
    assert_eq!(put(&mut desk, 0, None, 0, b"y").len(), 1);
}

#[test]
fn numbers_in_named_groups_are_the_lowest_that_are_free() {
    let mut desk = desk();
    let join = |desk: &mut Desk, by| {
        let group = "crew".to_owned();
        desk.asked(by, Ask::Join { id: 3, group });
        desk.take_said()
    };
    for by in 0..3 {
        assert_eq!(join(&mut desk, by), [done(by, 3, u64::from(by))]);
    }
    assert!(refused(&join(&mut desk, 1), Why::Exists));
    let group = || "crew".to_owned();
    desk.asked(
        1,
        Ask::Leave {
            id: 4,
            group: group(),
        },
    );
    assert_eq!(desk.take_said(), [done(1, 4, 0)]);
    desk.asked(
        0,
        Ask::Members {
            id: 5,
            group: group(),
        },
    );
    let tasks = vec![Some(0), None, Some(2)];
    assert_eq!(desk.take_said(), [(0, Tell::Members { id: 5, tasks })]);
    let alone = "alone".to_owned();
    desk.asked(
        1,
        Ask::Join {
            id: 6,
            group: alone,
        },
    );
    desk.take_said();
    desk.asked(
        2,
        Ask::Meet {
            id: 7,
            group: group(),
            count: 2,
        },
    );
    desk.asked(1, Ask::Groups { id: 8 });
    let info = |name: &str, members, waiting, wanted| GroupInfo {
        name: name.to_owned(),
        members,
        waiting,
        wanted,
    };
    let groups = vec![
        info("alone", vec![Some(1)], vec![], 0),
        info("crew", vec![Some(0), None, Some(2)], vec![2], 2),
    ];
    assert_eq!(desk.take_said(), [(1, Tell::Groups { id: 8, groups })]);
    desk.ended(0, KILLED);
    assert_eq!(join(&mut desk, 1), [done(1, 3, 0)]);
}

#[test]
fn members_meet_when_enough_have_come() {
    let mut desk = desk();
    let group = || "crew".to_owned();
    let meet = |desk: &mut Desk, by, count| {
        desk.asked(
            by,
            Ask::Meet {
                id: by,
                group: group(),
                count,
            },
        );
        desk.take_said()
    };
    assert!(refused(&meet(&mut desk, 0, 1), Why::Name));
    for by in 0..3 {
        desk.asked(
            by,
            Ask::Join {
                id: 9,
                group: group(),
            },
        );
    }
    desk.take_said();
    let all = |id| {
        let tasks = vec![Some(0), Some(1), Some(2)];
        let gate = 0;
        (id, Tell::Met { id, tasks, gate })
    };
    for _ in 0..2 {
        assert_eq!(meet(&mut desk, 0, 3), []);
        assert_eq!(meet(&mut desk, 1, 3), []);
        assert!(refused(&meet(&mut desk, 2, 2), Why::Argument));
        assert_eq!(meet(&mut desk, 2, 3), [all(0), all(1), all(2)]);
    }
    // Where some stay away, nobody hears who the others are.
    assert_eq!(meet(&mut desk, 0, 2), []);
    assert_eq!(meet(&mut desk, 2, 2), [done(0, 0, 0), done(2, 2, 0)]);
}

#[test]
fn tasks_go_where_there_is_room() {
    let mut desk = desk();
    let place = |desk: &Desk, place: Place, count| desk.place(0, &place, count);
    // Three of alpha's four cores are taken.
    assert_eq!(
        place(&desk, Place::Any, 6),
        Ok(vec![(0, 1), (1, 2), (2, 3)])
    );
    let beta = || Place::Host("beta".to_owned());
    assert_eq!(place(&desk, beta(), 3), Ok(vec![(1, 3)]));
    assert_eq!(place(&desk, Place::Here, 2), Ok(vec![(0, 2)]));
    let arm = Place::Architecture("aarch64".to_owned());
    assert_eq!(place(&desk, arm, 2), Ok(vec![(2, 2)]));
    let elsewhere = Place::Elsewhere(String::new());
    assert_eq!(place(&desk, elsewhere, 2), Ok(vec![(1, 1), (2, 1)]));
    desk.host_lost(1);
    let refused = place(&desk, beta(), 1).unwrap_err();
    assert!(refused.0 == Why::Host && refused.1.contains("alpha, gamma"));
}

#[test]
fn a_host_that_comes_is_told_of_again_and_again_and_used() {
    let mut desk = desk();
    watch(&mut desk, 1, 7, What::HostAdded, 0);
    let added = |number: u32, name: &str| {
        let (host, name) = (number, name.to_owned());
        let event = Event::HostAdded { host, name };
        vec![(1, Tell::Event { watch: 7, event })]
    };
    desk.host_added(host(3, "delta", 2));
    assert_eq!(desk.take_said(), added(3, "delta"));
    assert_eq!(
        desk.place(0, &Place::Host("delta".to_owned()), 2),
        Ok(vec![(3, 2)])
    );
    // It comes again under its name: the old one is not meant any more.
    desk.host_lost(3);
    desk.host_added(host(4, "delta", 2));
    assert_eq!(desk.take_said(), added(4, "delta"));
    assert_eq!(
        desk.place(0, &Place::Host("delta".to_owned()), 1),
        Ok(vec![(4, 1)])
    );
    assert_eq!(desk.host_infos().len(), 5);
    desk.asked(1, Ask::Unwatch { id: 8, watch: 7 });
    desk.take_said();
    desk.host_added(host(5, "epsilon", 2));
    assert_eq!(desk.take_said(), []);
}

#[test]
fn output_goes_to_who_asked_for_it_as_long_as_that_hears() {
    let mut desk = desk();
    let manner = Manner {
        context: 5,
        tag: 6,
        lines: true,
        births: false,
    };
    let route = desk.route(1, Output::Me(manner));
    assert_eq!(route, Some(Route { to: 1, manner }));
    let child = desk.add_tasks(Some(1), &[0], b"child", route);
    // What a child starts goes the same way, unless it says otherwise.
    assert_eq!(desk.route(child, Output::AsMine), route);
    assert_eq!(desk.route(child, Output::Job), None);
    let third = Route { to: 0, manner };
    assert_eq!(desk.route(child, Output::Task(third)), Some(third));
    let nobody = Route { to: 9, manner };
    assert_eq!(desk.route(child, Output::Task(nobody)), None);
    let piece = |bytes: &[u8], then| Piece {
        task: child,
        stream: 1,
        route,
        bytes: bytes.to_vec(),
        then,
    };
    assert!(desk.wrote(&mut piece(b"words", Then::More)));
    let told = |stream, bytes: &[u8], then| Tell::Output {
        task: child,
        stream,
        manner,
        bytes: bytes.to_vec(),
        then,
    };
    assert_eq!(desk.take_said(), [(1, told(1, b"words", Then::More))]);
    // Its host is lost after one of its streams has ended.
    desk.wrote(&mut piece(b"", Then::Closed));
    desk.take_said();
    desk.writes_no_more(child);
    assert_eq!(desk.take_said(), [(1, told(0, b"", Then::Closed))]);
    assert!(desk.hush(1) && !desk.hush(1) && !desk.hush(2));
    let mut lost = piece(b"words", Then::More);
    assert!(!desk.wrote(&mut lost));
    assert_eq!(lost.bytes, b"words");
    assert_eq!(desk.route(child, Output::AsMine), None);
}

#[test]
fn births_are_told_to_who_wants_to_know_of_them() {
    let mut desk = desk();
    let manner = |births| Manner {
        context: 5,
        tag: 6,
        lines: true,
        births,
    };
    let quiet = desk.route(1, Output::Me(manner(false)));
    let first = desk.add_tasks(Some(1), &[0], b"child", quiet);
    desk.tell_births(first);
    assert_eq!(desk.take_said(), []);
    let manner = manner(true);
    let route = desk.route(1, Output::Me(manner));
    let child = desk.add_tasks(Some(1), &[0], b"child", route);
    desk.tell_births(child);
    let born = |task, parent| {
        let tell = Tell::Born {
            task,
            parent,
            manner,
        };
        (1, tell)
    };
    assert_eq!(desk.take_said(), [born(child, Some(1))]);
    // A child's child is told of to the same task; an orphan has no parent.
    let route = desk.route(child, Output::AsMine);
    let grandchild = desk.add_tasks(Some(child), &[0], b"grandchild", route);
    desk.orphan(grandchild);
    desk.tell_births(grandchild);
    assert_eq!(desk.take_said(), [born(grandchild, None)]);
    // Only what runs is listed.
    desk.started(child, 7);
    desk.started(grandchild, 8);
    let parent = |task: u32| {
        desk.task_infos()
            .into_iter()
            .find(|info| info.task == task)
            .map(|info| info.parent)
    };
    assert_eq!(parent(child), Some(Some(1)));
    assert_eq!(parent(grandchild), Some(Some(grandchild)));
}

#[test]
fn what_is_asked_of_hosts_is_a_deed() {
    let mut desk = desk();
    let hosts = vec!["beta".to_owned()];
    let deed = desk.asked(
        1,
        Ask::AddHosts {
            id: 4,
            hosts: hosts.clone(),
            terminal: Some("/dev/pts/1".to_owned()),
        },
    );
    let wish = Wish::Add(hosts);
    let terminal = Some("/dev/pts/1".to_owned());
    let asker = Asker {
        by: 1,
        id: 4,
        terminal,
    };
    assert_eq!(deed, Some(Deed::Hosts { asker, wish }));
    assert_eq!(desk.take_said(), []);
}

mod copies {
    use proptest::prelude::*;
    use regatta_wire::fields::Message;

    use super::super::original::{Change, Original};
    use super::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![Just("one".to_owned()), Just("two".to_owned())]
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let (id, task) = (0..9_u32, 0..6_u32);
        let value = proptest::collection::vec(any::<u8>(), 0..4);
        prop_oneof![
            (id.clone(), task.clone()).prop_map(|(id, subject)| Ask::Watch {
                id,
                what: What::TaskEnds,
                subject
            }),
            (id.clone(), 0..4_u32).prop_map(|(id, subject)| Ask::Watch {
                id,
                what: What::HostLost,
                subject
            }),
            (id.clone(), id.clone()).prop_map(|(id, watch)| Ask::Unwatch { id, watch }),
            (id.clone(), name(), 0..8_u32, value).prop_map(|(id, name, flags, value)| Ask::Put {
                id,
                name,
                index: None,
                flags,
                value
            }),
            (id.clone(), name(), 0..64_u32).prop_map(|(id, name, flags)| Ask::Get {
                id,
                name,
                index: 0,
                flags
            }),
            (id.clone(), name()).prop_map(|(id, group)| Ask::Join { id, group }),
            (id.clone(), name()).prop_map(|(id, group)| Ask::Leave { id, group }),
            (id.clone(), name(), 0..3_u32).prop_map(|(id, group, count)| Ask::Meet {
                id,
                group,
                count
            }),
            (id.clone(), task).prop_map(|(id, task)| Ask::Signal {
                id,
                task,
                signal: 9,
                end: true
            }),
            id.prop_map(|id| Ask::Tasks { id }),
        ]
    }

    #[derive(Debug, Clone)]
    enum Step {
        Asked(u32, Box<Ask>),
        Ended(u32),
        HostLost(u32),
        HostAdded(u32),
        Born(u32),
        Speak,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..6_u32, ask()).prop_map(|(task, ask)| Step::Asked(task, Box::new(ask))),
            1 => (0..6_u32).prop_map(Step::Ended),
            1 => (0..4_u32).prop_map(Step::HostLost),
            1 => (3..9_u32).prop_map(Step::HostAdded),
            1 => (0..6_u32).prop_map(Step::Born),
            2 => Just(Step::Speak),
        ]
    }

    fn take(desk: &mut Original, step: Step) {
        match step {
            Step::Asked(by, ask) => {
                let mut bytes = Vec::new();
                ask.encode(&mut bytes);
                desk.asked(by, &bytes);
            }
            Step::Ended(task) => desk.ended(task, KILLED),
            Step::HostLost(number) => desk.host_lost(number),
            Step::HostAdded(number) => desk.host_added(host(number, "later", 1)),
            Step::Born(parent) => {
                let first = desk.count();
                desk.add_tasks(Some(parent), &[1, 2], b"child", None);
                desk.started(first, 7);
                desk.answer(parent, 5, Ok(u64::from(first)));
            }
            Step::Speak => drop(desk.take_said()),
        }
    }

    proptest! {
        #[test]
        fn a_copy_that_follows_does_what_the_desk_does(
            before in proptest::collection::vec(step(), 0..30),
            after in proptest::collection::vec(step(), 0..30),
            then in proptest::collection::vec(step(), 0..30),
        ) {
            let mut original = Original::new(desk(), true);
            before.into_iter().for_each(|step| take(&mut original, step));
            original.take_changes();
            let mut copy = Desk::from_bytes(&original.to_bytes()).unwrap();
            after.into_iter().for_each(|step| take(&mut original, step));
            for change in original.take_changes() {
                let mut bytes = Vec::new();
                change.encode(&mut bytes);
                copy.follow(Change::decode(&bytes).unwrap()).unwrap();
            }
            original.take_said();
            let mut successor = Original::new(copy, true);
            for task in 0..6 {
                prop_assert_eq!(original.untold(task, 0), successor.untold(task, 0));
            }
            for step in then {
                take(&mut original, step.clone());
                take(&mut successor, step);
                prop_assert_eq!(original.take_said(), successor.take_said());
            }
        }

        #[test]
        fn no_bytes_make_a_copy_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Desk::from_bytes(&bytes);
            if let Ok(change) = Change::decode(&bytes) {
                let _ = desk().follow(change);
            }
        }
    }
}
