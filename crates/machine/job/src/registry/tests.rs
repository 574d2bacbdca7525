//! The registry, with requests and reports but without processes.

use regatta_wire::control::{
    GroupInfo, Output, OutputFormat, Place, StreamState, WatchKind, flags,
};

use super::*;
use regatta_wire::control::Ask;

mod copies;

fn host(number: u32, name: &str, cores: u32) -> HostRecord {
    HostRecord {
        number,
        name: name.to_owned(),
        architecture: if number == 2 { "aarch64" } else { "x86_64" }.to_owned(),
        cores,
        speed: DEFAULT_SPEED,
        alive: true,
    }
}

/// Returns a registry of three tasks on the first of three hosts.
fn registry() -> Registry {
    let hosts = vec![host(0, "alpha", 4), host(1, "beta", 2), host(2, "gamma", 4)];
    let mut registry = Registry::new(hosts, &[0, 0, 0], b"program");
    (0..3).for_each(|task| registry.task_started(task, 100 + task));
    registry
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

fn watch(
    registry: &mut Registry,
    by: u32,
    id: u32,
    what: WatchKind,
    subject: u32,
) -> Vec<(u32, Tell)> {
    registry.handle_request(by, Ask::Watch { id, what, subject });
    registry.take_messages()
}

fn done(to: u32, id: u32, value: u64) -> (u32, Tell) {
    (to, Tell::Done { id, value })
}

fn put(
    registry: &mut Registry,
    by: u32,
    index: Option<u32>,
    flags: u32,
    value: &[u8],
) -> Vec<(u32, Tell)> {
    let (name, value) = ("box".to_owned(), value.to_vec());
    registry.handle_request(
        by,
        Ask::Put {
            id: 1,
            name,
            index,
            flags,
            value,
        },
    );
    registry.take_messages()
}

fn get(registry: &mut Registry, by: u32, index: u32, flags: u32) -> Vec<(u32, Tell)> {
    let name = "box".to_owned();
    registry.handle_request(
        by,
        Ask::Get {
            id: 2,
            name,
            index,
            flags,
        },
    );
    registry.take_messages()
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

fn refused(messages: &[(u32, Tell)], expected: RequestError) -> bool {
    matches!(messages, [(_, Tell::Refused { why, .. })] if *why == expected)
}

#[test]
fn a_watch_fires_once_and_at_once_if_it_is_over() {
    let mut registry = registry();
    assert_eq!(
        watch(&mut registry, 0, 7, WatchKind::TaskEnds, 1),
        [done(0, 7, 0)]
    );
    registry.task_ended(1, KILLED);
    let event = ended(1, Ending::Signalled(9));
    let expected = (
        0,
        Tell::Event {
            watch: 7,
            event: event.clone(),
        },
    );
    assert_eq!(registry.take_messages(), [expected]);
    let expected = (0, Tell::Event { watch: 8, event });
    let messages = watch(&mut registry, 0, 8, WatchKind::TaskEnds, 1);
    assert_eq!(messages, [done(0, 8, 0), expected]);
    let messages = watch(&mut registry, 0, 9, WatchKind::TaskEnds, 77);
    assert!(matches!(
        &messages[1].1,
        Tell::Event {
            event: Event::TaskEnded {
                ending: Ending::Unknown,
                ..
            },
            ..
        }
    ));
    registry.task_ended(1, KILLED);
    assert_eq!(registry.take_messages(), []);
}

#[test]
fn the_watch_of_the_task_that_has_started_it_excuses_a_death_that_was_faster() {
    let mut registry = registry();
    let child = registry.add_tasks(Some(1), &[0], b"child", None);
    registry.task_started(child, 200);
    registry.task_ended(child, KILLED);
    let mut watch = |by, subject| {
        let what = WatchKind::TaskEnds;
        registry.handle_request(
            by,
            Ask::Watch {
                id: 7,
                what,
                subject,
            },
        )
    };
    assert_eq!(watch(0, child), None, "it could have come to know it");
    assert_eq!(watch(1, child), Some(Effect::Excused { task: child }));
    assert_eq!(watch(1, 0), None, "it is alive");
}

#[test]
fn a_cancelled_watch_is_silent_and_so_is_that_of_a_dead_watcher() {
    let mut registry = registry();
    watch(&mut registry, 0, 7, WatchKind::TaskEnds, 1);
    registry.handle_request(0, Ask::Unwatch { id: 8, watch: 7 });
    assert_eq!(registry.take_messages(), [done(0, 8, 1)]);
    registry.handle_request(0, Ask::Unwatch { id: 9, watch: 7 });
    assert_eq!(registry.take_messages(), [done(0, 9, 0)]);
    watch(&mut registry, 2, 7, WatchKind::TaskEnds, 1);
    assert!(registry.is_excused(1));
    registry.task_ended(2, KILLED);
    assert!(!registry.is_excused(1));
    registry.task_ended(1, KILLED);
    assert_eq!(registry.take_messages(), []);
}

#[test]
fn each_change_of_members_has_a_version_of_its_own_and_nothing_else_has() {
    let mut registry = registry();
    let group = || "crew".to_owned();
    let mut version = registry.groups_version();
    assert_ne!(version, 0);
    let mut is_new = |registry: &Registry| {
        let before = std::mem::replace(&mut version, registry.groups_version());
        version != before
    };
    let join = |id| Ask::Join { id, group: group() };
    registry.handle_request(0, join(1));
    assert!(is_new(&registry));
    registry.handle_request(0, join(2));
    assert!(!is_new(&registry), "it is a member already");
    registry.handle_request(1, join(1));
    assert!(is_new(&registry));
    registry.handle_request(
        0,
        Ask::Members {
            id: 3,
            group: group(),
        },
    );
    registry.handle_request(
        0,
        Ask::Meet {
            id: 4,
            group: group(),
            count: 2,
        },
    );
    assert!(!is_new(&registry));
    let leave = |id| Ask::Leave { id, group: group() };
    registry.handle_request(0, leave(5));
    assert!(is_new(&registry));
    registry.handle_request(0, leave(6));
    assert!(!is_new(&registry), "it is no member any more");
    registry.task_ended(2, KILLED);
    assert!(!is_new(&registry), "it was in no group");
    registry.task_ended(1, KILLED);
    assert!(is_new(&registry));
}

#[test]
fn the_loss_of_a_host_is_notified_after_that_of_its_tasks() {
    let mut registry = registry();
    watch(&mut registry, 0, 1, WatchKind::HostLost, 1);
    let task = registry.add_tasks(Some(0), &[1], b"worker", None);
    watch(&mut registry, 0, 2, WatchKind::TaskEnds, task);
    registry.task_ended(task, End::Lost);
    registry.host_lost(1);
    let watches: Vec<u32> = registry
        .take_messages()
        .iter()
        .filter_map(|(_, tell)| match tell {
            Tell::Event { watch, .. } => Some(*watch),
            _ => None,
        })
        .collect();
    assert_eq!(watches, [2, 1]);
    assert_eq!(watch(&mut registry, 0, 3, WatchKind::HostLost, 1).len(), 2);
}

#[test]
fn requested_deaths_are_excused() {
    let mut registry = registry();
    let signal = |id, task, signal| Ask::Signal {
        id,
        task,
        signal,
        end: true,
    };
    let effect = registry.handle_request(0, signal(1, 2, 9));
    assert_eq!(effect, Some(Effect::Signal { task: 2, signal: 9 }));
    assert!(registry.is_excused(2) && !registry.is_excused(1));
    assert_eq!(registry.handle_request(0, signal(2, 1, 0)), None);
    registry.take_messages();
    for (task, number, why) in [(9, 9, RequestError::Task), (1, 999, RequestError::Argument)] {
        assert_eq!(registry.handle_request(0, signal(3, task, number)), None);
        assert!(refused(&registry.take_messages(), why));
    }
}

#[test]
fn entries_are_put_read_and_taken() {
    let mut registry = registry();
    assert!(refused(&get(&mut registry, 1, 0, 0), RequestError::Name));
    assert_eq!(put(&mut registry, 0, None, 0, b"one"), [done(0, 1, 0)]);
    assert!(refused(
        &put(&mut registry, 1, None, 0, b"two"),
        RequestError::Exists
    ));
    assert!(refused(
        &put(&mut registry, 1, Some(0), 0, b"two"),
        RequestError::Denied
    ));
    assert_eq!(put(&mut registry, 0, Some(0), 0, b"three"), [done(0, 1, 0)]);
    assert_eq!(get(&mut registry, 1, 0, 0), entry(1, 0, b"three"));
    assert!(refused(
        &get(&mut registry, 1, 0, flags::DELETE),
        RequestError::Denied
    ));
    assert_eq!(
        get(&mut registry, 0, 0, flags::DELETE),
        entry(0, 0, b"three")
    );
    assert!(refused(&get(&mut registry, 0, 0, 0), RequestError::Name));
}

#[test]
fn several_entries_stand_side_by_side() {
    let mut registry = registry();
    let several = flags::SEVERAL | flags::OVERWRITABLE;
    for (by, index) in [(0, 0_u32), (1, 1), (0, 2)] {
        let messages = put(&mut registry, by, None, several, &[by as u8]);
        assert_eq!(messages, [done(by, 1, u64::from(index))]);
    }
    assert_eq!(
        get(&mut registry, 2, 1, flags::DELETE | flags::FIRST),
        entry(2, 1, &[1])
    );
    assert_eq!(get(&mut registry, 2, 1, flags::FIRST), entry(2, 2, &[0]));
    let messages = put(&mut registry, 2, None, several, &[9]);
    assert_eq!(messages, [done(2, 1, 1)]);
}

#[test]
fn entries_go_with_their_owners_unless_they_are_persistent() {
    let mut registry = registry();
    put(&mut registry, 0, Some(0), 0, b"goes");
    put(&mut registry, 0, Some(1), flags::PERSISTENT, b"stays");
    registry.task_ended(0, End::Exited(0));
    assert!(refused(&get(&mut registry, 1, 0, 0), RequestError::Name));
    assert_eq!(
        get(&mut registry, 1, 0, flags::FIRST),
        entry(1, 1, b"stays")
    );
    // It has no owner any more, so any task may delete it.
    assert_eq!(
        get(&mut registry, 1, 1, flags::DELETE),
        entry(1, 1, b"stays")
    );
}

#[test]
fn waiters_for_an_entry_are_served_in_turn() {
    let mut registry = registry();
    let take = flags::WAIT | flags::DELETE;
    assert_eq!(get(&mut registry, 1, 0, take), []);
    assert_eq!(get(&mut registry, 2, 0, take), []);
    registry.task_ended(1, KILLED);
    let messages = put(&mut registry, 0, None, flags::OVERWRITABLE, b"x");
    assert_eq!(messages[1..], entry(2, 0, b"x"));
    assert_eq!(put(&mut registry, 0, None, 0, b"y").len(), 1);
}

/// One thread of a task leaves the group while another one waits in its barrier.
#[test]
fn a_thread_that_waits_in_a_barrier_hears_that_its_task_has_left() {
    let mut registry = registry();
    let group = || "crew".to_owned();
    for by in 0..2 {
        registry.handle_request(
            by,
            Ask::Join {
                id: 1,
                group: group(),
            },
        );
    }
    let meet = |id| Ask::Meet {
        id,
        group: group(),
        count: 2,
    };
    registry.handle_request(0, meet(2));
    registry.take_messages();
    let (id, group) = (3, group());
    registry.handle_request(0, Ask::Leave { id, group });
    let messages = registry.take_messages();
    assert!(refused(&messages[..1], RequestError::State), "{messages:?}");
    assert_eq!(messages[1..], [done(0, 3, 0)]);
    // The next one waits for two others.
    registry.handle_request(1, meet(2));
    assert_eq!(registry.take_messages(), []);
}

#[test]
fn numbers_in_named_groups_are_the_lowest_that_are_free() {
    let mut registry = registry();
    let join = |registry: &mut Registry, by| {
        let group = "crew".to_owned();
        registry.handle_request(by, Ask::Join { id: 3, group });
        registry.take_messages()
    };
    for by in 0..3 {
        assert_eq!(join(&mut registry, by), [done(by, 3, u64::from(by))]);
    }
    assert!(refused(&join(&mut registry, 1), RequestError::Exists));
    let group = || "crew".to_owned();
    let (id, crew) = (4, group());
    registry.handle_request(1, Ask::Leave { id, group: crew });
    assert_eq!(registry.take_messages(), [done(1, 4, 0)]);
    let (id, crew) = (5, group());
    registry.handle_request(0, Ask::Members { id, group: crew });
    let tasks = vec![Some(0), None, Some(2)];
    assert_eq!(
        registry.take_messages(),
        [(0, Tell::Members { id: 5, tasks })]
    );
    let alone = "alone".to_owned();
    registry.handle_request(
        1,
        Ask::Join {
            id: 6,
            group: alone,
        },
    );
    registry.take_messages();
    registry.handle_request(
        2,
        Ask::Meet {
            id: 7,
            group: group(),
            count: 2,
        },
    );
    registry.handle_request(1, Ask::Groups { id: 8 });
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
    assert_eq!(
        registry.take_messages(),
        [(1, Tell::Groups { id: 8, groups })]
    );
    registry.task_ended(0, KILLED);
    assert_eq!(join(&mut registry, 1), [done(1, 3, 0)]);
}

#[test]
fn members_meet_when_enough_have_come() {
    let mut registry = registry();
    let group = || "crew".to_owned();
    let meet = |registry: &mut Registry, by, count| {
        registry.handle_request(
            by,
            Ask::Meet {
                id: by,
                group: group(),
                count,
            },
        );
        registry.take_messages()
    };
    assert!(refused(&meet(&mut registry, 0, 1), RequestError::Name));
    for by in 0..3 {
        registry.handle_request(
            by,
            Ask::Join {
                id: 9,
                group: group(),
            },
        );
    }
    registry.take_messages();
    let all = |id| {
        let tasks = vec![Some(0), Some(1), Some(2)];
        let barrier = 0;
        (id, Tell::Met { id, tasks, barrier })
    };
    for _ in 0..2 {
        assert_eq!(meet(&mut registry, 0, 3), []);
        assert_eq!(meet(&mut registry, 1, 3), []);
        assert!(refused(&meet(&mut registry, 2, 2), RequestError::Argument));
        assert_eq!(meet(&mut registry, 2, 3), [all(0), all(1), all(2)]);
    }
    // If some members are missing, the group's members are not in the answer.
    assert_eq!(meet(&mut registry, 0, 2), []);
    assert_eq!(meet(&mut registry, 2, 2), [done(0, 0, 0), done(2, 2, 0)]);
}

#[test]
fn tasks_go_where_there_is_room() {
    let mut registry = registry();
    let place = |registry: &Registry, place: Place, count| registry.place_tasks(0, &place, count);
    // Three of alpha's four cores are used.
    assert_eq!(
        place(&registry, Place::Any, 6),
        Ok(vec![(0, 1), (1, 2), (2, 3)])
    );
    let beta = || Place::Host("beta".to_owned());
    assert_eq!(place(&registry, beta(), 3), Ok(vec![(1, 3)]));
    assert_eq!(place(&registry, Place::Here, 2), Ok(vec![(0, 2)]));
    let arm = Place::Architecture("aarch64".to_owned());
    assert_eq!(place(&registry, arm, 2), Ok(vec![(2, 2)]));
    let elsewhere = Place::Elsewhere(String::new());
    assert_eq!(place(&registry, elsewhere, 2), Ok(vec![(1, 1), (2, 1)]));
    registry.host_lost(1);
    let refused = place(&registry, beta(), 1).unwrap_err();
    assert!(refused.0 == RequestError::Host && refused.1.contains("alpha, gamma"));
}

#[test]
fn every_host_that_joins_is_notified_and_used() {
    let mut registry = registry();
    watch(&mut registry, 1, 7, WatchKind::HostAdded, 0);
    let added = |number: u32, name: &str| {
        let (host, name) = (number, name.to_owned());
        let event = Event::HostAdded { host, name };
        vec![(1, Tell::Event { watch: 7, event })]
    };
    registry.host_added(host(3, "delta", 2));
    assert_eq!(registry.take_messages(), added(3, "delta"));
    assert_eq!(
        registry.place_tasks(0, &Place::Host("delta".to_owned()), 2),
        Ok(vec![(3, 2)])
    );
    // The host joins again under its name, which does not mean the old one any more.
    registry.host_lost(3);
    registry.host_added(host(4, "delta", 2));
    assert_eq!(registry.take_messages(), added(4, "delta"));
    assert_eq!(
        registry.place_tasks(0, &Place::Host("delta".to_owned()), 1),
        Ok(vec![(4, 1)])
    );
    assert_eq!(registry.host_infos().len(), 5);
    registry.handle_request(1, Ask::Unwatch { id: 8, watch: 7 });
    registry.take_messages();
    registry.host_added(host(5, "epsilon", 2));
    assert_eq!(registry.take_messages(), []);
}

#[test]
fn output_goes_to_the_task_that_requested_it_as_long_as_it_receives() {
    let mut registry = registry();
    let manner = OutputFormat {
        context: 5,
        tag: 6,
        lines: true,
        births: false,
    };
    let route = registry.route(1, Output::Me(manner));
    assert_eq!(route, Some(Route { to: 1, manner }));
    let child = registry.add_tasks(Some(1), &[0], b"child", route);
    // Output of a child's own children follows the same route, unless the child requests another one.
    assert_eq!(registry.route(child, Output::AsMine), route);
    assert_eq!(registry.route(child, Output::Job), None);
    let third = Route { to: 0, manner };
    assert_eq!(registry.route(child, Output::Task(third)), Some(third));
    let nobody = Route { to: 9, manner };
    assert_eq!(registry.route(child, Output::Task(nobody)), None);
    let piece = |bytes: &[u8], then| Piece {
        task: child,
        stream: 1,
        route,
        bytes: bytes.to_vec(),
        then,
    };
    assert!(registry.task_wrote(&mut piece(b"words", StreamState::More)));
    let output = |stream, bytes: &[u8], then| Tell::Output {
        task: child,
        stream,
        manner,
        bytes: bytes.to_vec(),
        then,
    };
    assert_eq!(
        registry.take_messages(),
        [(1, output(1, b"words", StreamState::More))]
    );
    // Its host is lost after one of its streams has been closed.
    registry.task_wrote(&mut piece(b"", StreamState::Closed));
    registry.take_messages();
    registry.close_streams(child);
    assert_eq!(
        registry.take_messages(),
        [(1, output(0, b"", StreamState::Closed))]
    );
    assert!(
        registry.stop_output_to(1) && !registry.stop_output_to(1) && !registry.stop_output_to(2)
    );
    let mut lost = piece(b"words", StreamState::More);
    assert!(!registry.task_wrote(&mut lost));
    assert_eq!(lost.bytes, b"words");
    assert_eq!(registry.route(child, Output::AsMine), None);
}

/// The last launcher was lost before a replica knew of a spawn. The next one knows the tasks, but not the receiver of
/// their output.
#[test]
fn a_task_that_gets_output_without_a_known_route_is_a_receiver_on_all_copies() {
    let mut registry = ReplicatedRegistry::new(registry(), true);
    let child = registry.add_tasks(Some(1), &[0], b"child", None);
    registry.take_changes();
    let mut copy = Registry::from_snapshot(&registry.snapshot()).expect("a snapshot");
    let manner = OutputFormat {
        context: 5,
        tag: 6,
        lines: true,
        births: false,
    };
    let piece = |to| Piece {
        task: child,
        stream: 0,
        route: Some(Route { to, manner }),
        bytes: b"words".to_vec(),
        then: StreamState::More,
    };
    assert!(registry.task_wrote(&mut piece(1)));
    // This is recorded once, and not for a task that does not exist.
    assert!(registry.task_wrote(&mut piece(1)) && !registry.task_wrote(&mut piece(9)));
    let changes = registry.take_changes();
    assert_eq!(changes.len(), 1, "{changes:?}");
    for change in changes {
        copy.apply(change).expect("a change");
    }
    assert!(
        registry.stop_output_to(1),
        "nobody repays what it has not read"
    );
    assert!(copy.stop_output_to(1), "nobody repays it after a take-over");
    assert!(!registry.task_wrote(&mut piece(1)));
}

/// Entries of 16 MiB together, with long names.
#[test]
fn a_list_that_fits_no_message_is_refused() {
    let mut registry = registry();
    for number in 0..20 {
        let put = Ask::Put {
            id: 1,
            name: format!("{number}{}", "n".repeat(1 << 20)),
            index: None,
            flags: 0,
            value: Vec::new(),
        };
        registry.handle_request(0, put);
    }
    registry.take_messages();
    let pattern = "*".to_owned();
    registry.handle_request(1, Ask::Names { id: 2, pattern });
    let refused = registry.take_messages().pop();
    let why = |message| match message {
        Some((1, Tell::Refused { id: 2, why, .. })) => Some(why),
        _ => None,
    };
    assert_eq!(why(refused), Some(RequestError::Memory));
    let pattern = "1n*".to_owned();
    registry.handle_request(1, Ask::Names { id: 3, pattern });
    let named = registry.take_messages().pop();
    assert!(matches!(named, Some((1, Tell::Names { id: 3, .. }))));
}

#[test]
fn a_request_that_fits_no_message_is_refused_and_not_recorded() {
    let mut registry = ReplicatedRegistry::new(registry(), true);
    let put = Ask::Put {
        id: 4,
        name: "large".to_owned(),
        index: None,
        flags: 0,
        value: vec![0; MAX_REQUEST_BYTES],
    };
    let mut bytes = Vec::new();
    put.encode(&mut bytes);
    registry.handle_request(0, &bytes);
    let refused = registry.take_messages().pop();
    let is_right = |message: &Tell| {
        matches!(
            message,
            Tell::Refused {
                id: 4,
                why: RequestError::Memory,
                ..
            }
        )
    };
    assert!(refused.is_some_and(|(to, message)| to == 0 && is_right(&message)));
    let changes = registry.take_changes();
    assert!(
        changes
            .iter()
            .all(|change| matches!(change, Change::Sent { .. }))
    );
}

#[test]
fn a_sentence_with_a_long_name_fits_every_message() {
    let mut registry = registry();
    let name = "\u{1}".repeat(4 << 20);
    let (id, index, flags) = (1, 0, 0);
    registry.handle_request(
        0,
        Ask::Get {
            id,
            name,
            index,
            flags,
        },
    );
    let (_, answer) = registry.take_messages().pop().expect("an answer");
    let mut bytes = Vec::new();
    answer.encode(&mut bytes);
    assert!(bytes.len() < 2 * MAX_SENTENCE_BYTES, "{}", bytes.len());
}

#[test]
fn names_count_as_their_values_do() {
    let mut registry = registry();
    let mut refused = 0;
    for number in 0..40 {
        let put = Ask::Put {
            id: 1,
            name: format!("{number}{}", "n".repeat(8 << 20)),
            index: None,
            flags: 0,
            value: Vec::new(),
        };
        registry.handle_request(0, put);
        let answer = registry.take_messages().pop();
        refused += u32::from(matches!(answer, Some((0, Tell::Refused { .. }))));
    }
    assert!((8..12).contains(&refused), "{refused} of 40");
    let group = "g".repeat(5000);
    registry.handle_request(0, Ask::Join { id: 2, group });
    let answer = registry.take_messages().pop();
    assert!(matches!(answer, Some((0, Tell::Refused { id: 2, .. }))));
}

#[test]
fn receivers_of_output_are_notified_of_starts_if_they_have_requested_it() {
    let mut registry = registry();
    let manner = |births| OutputFormat {
        context: 5,
        tag: 6,
        lines: true,
        births,
    };
    let quiet = registry.route(1, Output::Me(manner(false)));
    let first = registry.add_tasks(Some(1), &[0], b"child", quiet);
    registry.notify_starts(first);
    assert_eq!(registry.take_messages(), []);
    let manner = manner(true);
    let route = registry.route(1, Output::Me(manner));
    let child = registry.add_tasks(Some(1), &[0], b"child", route);
    registry.notify_starts(child);
    let started = |task, parent| {
        let message = Tell::Born {
            task,
            parent,
            manner,
        };
        (1, message)
    };
    assert_eq!(registry.take_messages(), [started(child, Some(1))]);
    // A task is also notified of its grandchildren. A detached task has no parent.
    let route = registry.route(child, Output::AsMine);
    let grandchild = registry.add_tasks(Some(child), &[0], b"grandchild", route);
    registry.detach(grandchild);
    registry.notify_starts(grandchild);
    assert_eq!(registry.take_messages(), [started(grandchild, None)]);
    // Only running tasks are listed.
    registry.task_started(child, 7);
    registry.task_started(grandchild, 8);
    let parent = |task: u32| {
        registry
            .task_infos()
            .into_iter()
            .find(|info| info.task == task)
            .map(|info| info.parent)
    };
    assert_eq!(parent(child), Some(Some(1)));
    assert_eq!(parent(grandchild), Some(Some(grandchild)));
}

#[test]
fn a_request_about_hosts_is_an_effect() {
    let mut registry = registry();
    let hosts = vec!["beta".to_owned()];
    let effect = registry.handle_request(
        1,
        Ask::AddHosts {
            id: 4,
            hosts: hosts.clone(),
            terminal: Some("/dev/pts/1".to_owned()),
        },
    );
    let change = HostChange::Add(hosts);
    let terminal = Some("/dev/pts/1".to_owned());
    let requester = Requester {
        by: 1,
        id: 4,
        terminal,
    };
    assert_eq!(effect, Some(Effect::Hosts { requester, change }));
    assert_eq!(registry.take_messages(), []);
}
