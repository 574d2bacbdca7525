use super::*;
use crate::End;
use regatta_wire::control::{Output, OutputFormat, StreamState};
use regatta_wire::life::TaskState;

struct Hands(ReplicatedRegistry);

impl Successor for Hands {
    fn registry(&mut self) -> &mut ReplicatedRegistry {
        &mut self.0
    }
    fn enter(&mut self, _: u32, _: &World) {}
    fn notify_gone(&mut self, _: u32, _: Option<Cause>) {}
    fn replicate(&mut self) {}
    fn send_again(&mut self, _: u32, _: u32, _: Vec<u8>) {}
    fn task_ended(&mut self, ended: Ended) {
        self.0.task_ended(ended.rank, ended.end);
    }
    fn host_lost(&mut self, _: u32, _: &Absence) {}
    fn not_started(&mut self, task: u32) {
        self.0.task_ended(task, End::Lost);
    }
    fn request(&mut self, _: u32, _: &[u8]) {
        panic!("its tasks have numbers")
    }
}

fn put_together(registry: &mut Registry, handovers: Vec<Handover>) -> Takeover {
    let launcher = ("h0", Absence::UnknownRun);
    Takeover::new(registry, handovers, BTreeMap::new(), launcher, b"program")
}

/// Task 1 writes output for task 0, on the same host.
#[test]
fn a_stream_that_was_closed_while_nobody_led_ends_and_a_kill_is_repeated() {
    let mut registry = Registry::new(Vec::new(), &[1], b"program");
    registry.task_started(0, 100);
    let manner = OutputFormat {
        context: 0,
        tag: 1,
        lines: false,
        births: false,
    };
    let route = registry.route(0, Output::Me(manner));
    registry.add_tasks(Some(0), &[1], b"child", route);
    registry.task_started(1, 101);
    let kill = Ask::Signal {
        id: 3,
        task: 1,
        signal: libc::SIGKILL,
        end: true,
    };
    registry.handle_request(0, kill);
    registry.take_messages();
    let handovers = [Handover {
        host: 1,
        tasks: 2,
        running: vec![(0, 100), (1, 101)],
        open_streams: vec![(1, 1)],
        ..Handover::default()
    }];
    let takeover = put_together(&mut registry, handovers.into());
    let mut hands = Hands(ReplicatedRegistry::new(registry, true));
    take_over(&mut hands, takeover);
    let told = hands.0.take_messages();
    let closed = |stream| Tell::Output {
        task: 1,
        stream,
        manner,
        bytes: Vec::new(),
        then: StreamState::Closed,
    };
    assert!(told.contains(&(0, closed(0))) && !told.contains(&(0, closed(1))));
    assert_eq!(hands.0.killed_at_once(), [1]);
}

#[test]
fn a_spawned_task_that_has_ended_while_nobody_led_has_started() {
    let mut registry = Registry::new(Vec::new(), &[1], b"program");
    registry.task_started(0, 100);
    let order = Spawn::one_here(b"worker".to_vec());
    let mut bytes = Vec::new();
    Ask::Spawn { id: 7, order }.encode(&mut bytes);
    let worlds = vec![World {
        first: 1,
        parent: Some(0),
        request: Some((0, 7)),
        places: vec![(1, None)],
    }];
    let ended = Ended {
        rank: 1,
        pid: 101,
        end: End::Exited(0),
        state: TaskState::Left,
    };
    let handovers = [Handover {
        host: 1,
        tasks: 2,
        running: vec![(0, 100)],
        ended: vec![ended],
        requests: vec![(0, bytes)],
        worlds,
        ..Handover::default()
    }];
    let takeover = put_together(&mut registry, handovers.into());
    let mut hands = Hands(ReplicatedRegistry::new(registry, true));
    take_over(&mut hands, takeover);
    let mut told = hands.0.take_messages().into_iter();
    let is_named =
        |message: &Tell| matches!(message, Tell::Spawned { tasks, .. } if tasks[..] == [Ok(1)]);
    assert!(told.any(|(_, message)| is_named(&message)));
}

fn hosts(count: u32) -> Vec<HostRecord> {
    let host = |number| HostRecord {
        number,
        name: format!("h{number}"),
        architecture: "any".to_owned(),
        cores: 1,
        speed: crate::registry::DEFAULT_SPEED,
        alive: true,
    };
    (0..count).map(host).collect()
}

/// Returns the state for hosts 0 to 3 with one task each, led from host 0 and taken over by host 1. Host 2 has handed
/// over its state, and host 3 has not.
fn lost_launcher() -> (Registry, Vec<Handover>) {
    let mut registry = Registry::new(hosts(4), &[0, 1, 2, 3], b"program");
    (0..4).for_each(|task| registry.task_started(task, 100 + task));
    let handover = |host| Handover {
        host,
        tasks: 4,
        running: vec![(host, 100 + host)],
        ..Handover::default()
    };
    (registry, vec![handover(1), handover(2)])
}

#[test]
fn a_host_of_the_registry_that_hands_nothing_over_is_lost() {
    let (mut registry, handovers) = lost_launcher();
    let lost = BTreeMap::from([(3, Absence::NotHeard)]);
    let silent = Absence::Gone("it has been silent".to_owned());
    let launcher = ("h0", silent.clone());
    let takeover = Takeover::new(&mut registry, handovers, lost, launcher, b"program");
    let expected = [(0, silent), (3, Absence::NotHeard)];
    assert_eq!(takeover.lost, expected.into());
    // A host that could not be claimed because it is not in the succession order has no other cause.
    let (mut registry, handovers) = lost_launcher();
    let takeover = put_together(&mut registry, handovers);
    assert_eq!(takeover.lost[&3], Absence::UnknownRun);
}

#[test]
fn a_host_whose_tasks_some_table_has_as_gone_is_lost_although_it_answers() {
    let (mut registry, mut handovers) = lost_launcher();
    handovers[0].gone = vec![(2, Some(Cause::Lost))];
    let takeover = put_together(&mut registry, handovers);
    assert_eq!(takeover.lost[&2], Absence::GivenUpBefore);
    // The host that takes over has its own tasks, whatever other tables record.
    let (mut registry, mut handovers) = lost_launcher();
    handovers[1].gone = vec![(1, Some(Cause::Lost))];
    let takeover = put_together(&mut registry, handovers);
    assert!(!takeover.lost.contains_key(&1));
}

#[test]
fn the_job_is_over_when_all_tasks_have_ended_that_anybody_has_started() {
    let policy = Policy {
        on_failure: crate::OnFailure::Continue,
        grace: std::time::Duration::ZERO,
        timeout: None,
        resident: false,
    };
    let (mut registry, mut handovers) = lost_launcher();
    // Host 2 has been given up, and its task runs. The end of a second task of host 1 is to be handled.
    registry.add_tasks(None, &[1], b"program", None);
    handovers[0].gone = vec![(2, Some(Cause::Lost))];
    handovers[0].ended.push(Ended {
        rank: 4,
        pid: 104,
        end: End::Exited(0),
        state: TaskState::Left,
    });
    let takeover = put_together(&mut registry, handovers);
    assert_eq!(takeover.begun(&registry), 5);
    let mut lifecycle = takeover.lifecycle(policy, Vec::new(), &registry, 4);
    let (now, mut actions) = (std::time::Duration::ZERO, Vec::new());
    let ends = [0, 1, 2, 3, 4].map(|task| (task, 100 + task));
    for (task, pid) in ends {
        assert!(!lifecycle.is_over());
        let end = (End::Exited(0), TaskState::Left);
        lifecycle.task_ended(now, (task, pid), end, false, &mut actions);
    }
    assert!(lifecycle.is_over());
}
