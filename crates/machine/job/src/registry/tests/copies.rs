//! Copies that apply the changes of a registry, in random histories.

use proptest::prelude::*;
use regatta_wire::fields::Message;

use super::super::{Change, ReplicatedRegistry};
use super::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("one".to_owned()), Just("two".to_owned())]
}

fn request() -> impl Strategy<Value = Ask> {
    let (id, task) = (0..9_u32, 0..6_u32);
    let value = proptest::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        (id.clone(), task.clone()).prop_map(|(id, subject)| Ask::Watch {
            id,
            what: WatchKind::TaskEnds,
            subject
        }),
        (id.clone(), 0..4_u32).prop_map(|(id, subject)| Ask::Watch {
            id,
            what: WatchKind::HostLost,
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
        (id.clone(), name(), id.clone()).prop_map(|(id, name, amount)| Ask::Add {
            id,
            name,
            index: 0,
            amount: amount.into(),
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
    Requested(u32, Box<Ask>),
    Ended(u32),
    HostLost(u32),
    HostAdded(u32),
    Spawned(u32),
    /// A spawn whose output goes to the parent.
    SpawnedFor(u32),
    Closed(u32, u32),
    Decided(u32),
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..6_u32, request()).prop_map(|(task, request)| Step::Requested(task, Box::new(request))),
        1 => (0..6_u32).prop_map(Step::Ended),
        1 => (0..4_u32).prop_map(Step::HostLost),
        1 => (3..9_u32).prop_map(Step::HostAdded),
        1 => (0..6_u32).prop_map(Step::Spawned),
        1 => (0..6_u32).prop_map(Step::SpawnedFor),
        2 => (3..9_u32, 0..3_u32).prop_map(|(task, stream)| Step::Closed(task, stream)),
        1 => (0..3_u32).prop_map(Step::Decided),
        2 => Just(Step::Take),
    ]
}

fn take(registry: &mut ReplicatedRegistry, step: Step) {
    match step {
        Step::Requested(by, request) => {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            registry.handle_request(by, &bytes);
        }
        Step::Ended(task) => registry.task_ended(task, KILLED),
        Step::HostLost(number) => registry.host_lost(number),
        Step::HostAdded(number) => registry.host_added(host(number, "later", 1)),
        Step::Spawned(parent) => {
            let first = registry.task_count();
            registry.add_tasks(Some(parent), &[1, 2], b"child", None);
            registry.task_started(first, 7);
            registry.reply(parent, 5, Ok(u64::from(first)));
        }
        Step::SpawnedFor(parent) => {
            let manner = OutputFormat {
                context: 1,
                tag: 2,
                lines: true,
                births: true,
            };
            let route = registry.route(parent, Output::Me(manner));
            let first = registry.add_tasks(Some(parent), &[1], b"child", route);
            registry.task_started(first, 8);
            registry.notify_starts(first);
        }
        Step::Closed(task, stream) => {
            registry.close_stream(task, stream);
        }
        Step::Decided(status) => registry.set_decision(Decision {
            status,
            asked: 0,
            is_ending: status == 2,
            first_failure: None,
        }),
        Step::Take => drop(registry.take_messages()),
    }
}

proptest! {
    #[test]
    fn a_copy_that_applies_the_changes_does_what_the_original_does(
        before in proptest::collection::vec(step(), 0..30),
        after in proptest::collection::vec(step(), 0..30),
        then in proptest::collection::vec(step(), 0..30),
    ) {
        let mut original = ReplicatedRegistry::new(registry(), true);
        before.into_iter().for_each(|step| take(&mut original, step));
        original.take_changes();
        let mut copy = Registry::from_snapshot(&original.snapshot()).unwrap();
        after.into_iter().for_each(|step| take(&mut original, step));
        for change in original.take_changes() {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            copy.apply(Change::decode(&bytes).unwrap()).unwrap();
        }
        prop_assert_eq!(original.snapshot(), copy.snapshot());
        original.take_messages();
        let mut successor = ReplicatedRegistry::new(copy, true);
        for task in 0..6 {
            prop_assert_eq!(original.unacknowledged(task, 0), successor.unacknowledged(task, 0));
        }
        for step in then {
            take(&mut original, step.clone());
            take(&mut successor, step);
            prop_assert_eq!(original.take_messages(), successor.take_messages());
        }
    }

    #[test]
    fn no_bytes_make_a_copy_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Registry::from_snapshot(&bytes);
        if let Ok(change) = Change::decode(&bytes) {
            let _ = registry().apply(change);
        }
    }
}
