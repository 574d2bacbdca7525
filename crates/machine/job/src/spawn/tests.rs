use super::*;
use crate::registry::DEFAULT_SPEED;
use crate::{HostRecord, Lifecycle, OnFailure, Policy, Registry};
use regatta_wire::control::Place;
use std::time::Duration;

/// A job with one task on each of two hosts.
struct Job {
    registry: ReplicatedRegistry,
    lifecycle: Lifecycle,
    spawns: Spawns,
}

fn lost() -> Refused {
    (RequestError::Host, "lost".to_owned())
}

fn order(place: Place, count: u32) -> Spawn {
    Spawn {
        count,
        place,
        ..Spawn::one_here(b"worker".to_vec())
    }
}

impl Job {
    fn new() -> Job {
        let host = |number| HostRecord {
            number,
            name: format!("h{number}"),
            architecture: "any".to_owned(),
            cores: 1,
            speed: DEFAULT_SPEED,
            alive: true,
        };
        let mut registry = Registry::new(vec![host(0), host(1)], &[0, 1], b"program");
        (0..2).for_each(|task| registry.task_started(task, 100 + task));
        let policy = Policy {
            on_failure: OnFailure::Stop,
            grace: Duration::from_secs(1),
            timeout: None,
            resident: false,
        };
        Job {
            registry: ReplicatedRegistry::new(registry, false),
            lifecycle: Lifecycle::new(policy, 2),
            spawns: Spawns::new(8),
        }
    }

    fn request(&mut self, id: u32, order: Spawn) {
        let (registry, lifecycle) = (&mut self.registry, &mut self.lifecycle);
        self.spawns.request((0, id), order, registry, lifecycle);
    }

    fn join(&mut self, host: u32, number: u32) {
        let (registry, lifecycle) = (&self.registry, &mut self.lifecycle);
        let order = order(Place::Here, 1);
        self.spawns
            .join((host, number), order, None, registry, lifecycle);
    }

    fn poll(&mut self) -> Option<SpawnEffect> {
        self.spawns.poll(&mut self.registry, &mut self.lifecycle)
    }

    /// Returns all effects up to the one that must be answered before any other call.
    fn effects(&mut self) -> Vec<SpawnEffect> {
        std::iter::from_fn(|| self.poll()).collect()
    }

    fn entered_here(&mut self, spawn: u32, outcome: Result<(), Refused>) {
        let (registry, lifecycle) = (&mut self.registry, &mut self.lifecycle);
        self.spawns
            .entered_here(spawn, outcome, registry, lifecycle);
    }

    /// Takes a spawn that both hosts have prepared to the step in which tasks are started.
    fn enter(&mut self, spawn: u32) -> Vec<SpawnEffect> {
        let [SpawnEffect::EnterHere { world, .. }] = &self.effects()[..] else {
            panic!("it is not entered")
        };
        let first = world.first;
        self.entered_here(spawn, Ok(()));
        assert!(matches!(
            self.poll(),
            Some(SpawnEffect::EnterElsewhere { .. })
        ));
        self.spawns.entering(spawn, [1]);
        assert_eq!(self.poll(), None);
        assert_eq!(self.spawns.entered(1, first, None), None);
        self.effects()
    }

    /// Returns the outcomes of each answered spawn, by the number of its request.
    fn answers(&mut self) -> Vec<(u32, Vec<Result<u32, RequestError>>)> {
        let answer = |(to, message): (u32, Tell)| match message {
            Tell::Spawned { id, tasks, .. } => {
                assert_eq!(to, 0);
                (id, tasks)
            }
            Tell::Refused { id, why, .. } => (id, vec![Err(why)]),
            other => panic!("{other:?}"),
        };
        self.registry
            .take_messages()
            .into_iter()
            .map(answer)
            .collect()
    }
}

fn prepare(spawn: u32, host: u32, count: u32) -> SpawnEffect {
    SpawnEffect::Prepare { spawn, host, count }
}

fn start(spawn: u32, host: u32, first: u32, count: u32) -> SpawnEffect {
    let share = SpawnedTasks {
        spawn,
        first,
        count,
    };
    SpawnEffect::Start { host, share }
}

#[test]
fn no_spawn_has_the_number_of_one_that_is_not_over() {
    let mut job = Job::new();
    job.request(7, order(Place::Any, 1));
    job.spawns.next = 0;
    job.request(8, order(Place::Any, 1));
    let numbers: Vec<u32> = job.spawns.open.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn a_spawn_takes_each_step_when_all_hosts_have_done_the_one_before() {
    let mut job = Job::new();
    job.request(7, order(Place::Any, 3));
    let [
        SpawnEffect::Prepare { count: two, .. },
        SpawnEffect::Prepare { count: one, .. },
    ] = job.effects()[..]
    else {
        panic!("two hosts prepare")
    };
    assert_eq!(two + one, 3);
    job.spawns.prepared(1, 0, Ok(vec![None; one as usize]));
    assert_eq!(job.poll(), None);
    job.spawns.prepared(0, 0, Ok(vec![None; two as usize]));
    let starts = job.enter(0);
    assert_eq!(starts, [start(0, 0, 2, two), start(0, 1, 2 + two, one)]);
    for task in [4, 2] {
        job.spawns.started(task, Ok(()));
        assert_eq!((job.poll(), job.answers()), (None, vec![]));
    }
    job.spawns.started(3, Ok(()));
    assert_eq!(job.poll(), None);
    assert_eq!(job.answers(), [(7, vec![Ok(2), Ok(3), Ok(4)])]);
}

#[test]
fn a_host_that_cannot_prepare_its_tasks_does_not_keep_the_others() {
    let mut job = Job::new();
    job.request(7, order(Place::Any, 2));
    job.effects();
    job.spawns
        .prepared(0, 0, Err((RequestError::Program, String::new())));
    job.spawns.prepared(1, 0, Ok(vec![None]));
    assert_eq!(job.enter(0), [start(0, 1, 2, 1)]);
    job.spawns.started(2, Ok(()));
    assert_eq!(job.poll(), None);
    assert_eq!(
        job.answers(),
        [(7, vec![Ok(2), Err(RequestError::Program)])]
    );
}

#[test]
fn a_host_that_does_not_say_where_all_its_tasks_listen_has_none() {
    let mut job = Job::new();
    job.request(7, order(Place::Host("h1".to_owned()), 2));
    assert_eq!(job.effects(), [prepare(0, 1, 2)]);
    job.spawns.prepared(1, 0, Ok(vec![None]));
    assert_eq!(job.poll(), None);
    assert_eq!(job.answers(), [(7, vec![Err(RequestError::System); 2])]);
    assert_eq!(job.registry.task_count(), 2);
}

#[test]
fn no_number_is_used_up_by_tasks_for_which_the_launcher_has_no_room() {
    let mut job = Job::new();
    job.request(7, order(Place::Any, 2));
    job.request(8, order(Place::Any, 2));
    job.effects();
    for (spawn, host) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        job.spawns.prepared(host, spawn, Ok(vec![None]));
    }
    // The other spawn waits, since it would get the same numbers.
    assert!(matches!(
        job.effects()[..],
        [SpawnEffect::EnterHere { spawn: 0, .. }]
    ));
    job.entered_here(0, Err((RequestError::Memory, String::new())));
    let forget = |host| SpawnEffect::Forget { spawn: 0, host };
    assert_eq!(job.poll(), Some(forget(0)));
    assert_eq!(job.poll(), Some(forget(1)));
    assert_eq!(job.answers(), [(7, vec![Err(RequestError::Memory)])]);
    assert_eq!(job.enter(1), [start(1, 0, 2, 1), start(1, 1, 3, 1)]);
}

#[test]
fn tasks_that_have_been_requested_and_have_no_numbers_yet_count() {
    let mut job = Job::new();
    let most = job.registry.task_count() + 4;
    job.spawns = Spawns::new(most);
    job.request(7, order(Place::Any, 3));
    job.effects();
    job.request(8, order(Place::Any, 2));
    assert_eq!(job.answers(), [(8, vec![Err(RequestError::Memory)])]);
    job.request(9, order(Place::Any, 1));
    assert_eq!(job.answers(), []);
}

#[test]
fn nothing_comes_of_tasks_that_some_host_cannot_enter() {
    let mut job = Job::new();
    job.request(7, order(Place::Host("h0".to_owned()), 2));
    job.effects();
    job.spawns.prepared(0, 0, Ok(vec![None, None]));
    assert_eq!(job.effects().len(), 1);
    job.entered_here(0, Ok(()));
    job.effects();
    job.spawns.entering(0, [1]);
    assert_eq!(job.spawns.entered(1, 2, Some(lost())), None);
    let (spawn, host, first, count) = (0, 0, 2, 2);
    let share = SpawnedTasks {
        spawn,
        first,
        count,
    };
    assert_eq!(job.effects(), [SpawnEffect::Abandon { host, share }]);
    assert_eq!(job.answers(), [(7, vec![Err(RequestError::Host)])]);
    // For tasks of no open spawn, the refusal is returned, so that the host is given up.
    assert_eq!(job.spawns.entered(1, 2, Some(lost())), Some(lost()));
}

#[test]
fn a_lost_host_is_waited_for_in_no_step() {
    for steps in 0..3 {
        let mut job = Job::new();
        job.request(7, order(Place::Any, 2));
        job.effects();
        job.spawns.prepared(0, 0, Ok(vec![None]));
        if steps > 0 {
            job.spawns.prepared(1, 0, Ok(vec![None]));
        }
        if steps == 2 {
            assert_eq!(job.enter(0).len(), 2);
        }
        if steps == 1 {
            job.effects();
            job.entered_here(0, Ok(()));
            job.effects();
            job.spawns.entering(0, [1]);
        }
        job.spawns.host_lost(1, &[3]);
        if steps == 0 {
            job.effects();
            job.entered_here(0, Ok(()));
            job.effects();
            job.spawns.entering(0, []);
        }
        // The launcher is asked to start tasks on both hosts, and reports that the lost one cannot.
        job.effects();
        if steps == 1 {
            job.spawns.started(3, Err(lost()));
        }
        job.spawns.started(2, Ok(()));
        assert_eq!(job.poll(), None, "after {steps} steps");
        assert_eq!(job.answers(), [(7, vec![Ok(2), Err(RequestError::Host)])]);
    }
}

#[test]
fn a_process_that_joins_is_admitted_or_turned_away() {
    let mut job = Job::new();
    job.join(1, 5);
    let starts = job.enter(0);
    let (host, process, task) = (1, 5, 2);
    let admit = SpawnEffect::Admit {
        host,
        process,
        task,
    };
    assert_eq!(starts, [admit]);
    job.spawns.started(2, Ok(()));
    assert_eq!((job.poll(), job.answers()), (None, vec![]));
    job.join(0, 6);
    job.effects();
    job.spawns.end(&mut job.registry, &mut job.lifecycle);
    let (host, process, refused) = (0, 6, job_ends());
    let away = SpawnEffect::TurnAway {
        host,
        process,
        refused,
    };
    assert_eq!(job.effects(), [away]);
}

#[test]
fn a_spawn_that_makes_no_sense_is_refused_at_once() {
    let mut job = Job::new();
    let on_behalf = |task| Spawn {
        on_behalf: Some(task),
        ..order(Place::Any, 1)
    };
    job.request(1, order(Place::Any, 0));
    job.request(2, order(Place::Any, 7));
    job.request(3, on_behalf(9));
    job.request(4, order(Place::Host("nowhere".to_owned()), 1));
    assert_eq!(job.poll(), None);
    let whys = [
        RequestError::Argument,
        RequestError::Memory,
        RequestError::Task,
        RequestError::Host,
    ];
    let refused: Vec<_> = (1..).zip(whys.map(|why| vec![Err(why)])).collect();
    assert_eq!(job.answers(), refused);
    assert!(job.lifecycle.is_over() || job.lifecycle.deadline().is_none());
}
