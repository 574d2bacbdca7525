//! A living task that another host's table calls dead: both sides are notified of a death, and neither takes what the
//! other sent for damage.

#[path = "support/hosts.rs"]
mod hosts;

use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Engine, Error, Handle, Mode, Presence, Select, Settings, TagSelect, Upkeep};
use regatta_memory::views::Views;
use regatta_segment::job::Cause;
use regatta_transport::paths::Paths;

const AWAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than what a sender may send before its receiver asks for it.
const LARGE_MESSAGE_BYTES: usize = 1 << 20;

type Task = Engine<Paths>;

fn memory(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep what they send or receive until the request is complete.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

fn send(task: &mut Task, to: u32, tag: i32, bytes: &mut [u8]) -> Result<Handle, Error> {
    task.start_send(to, 0, tag, memory(bytes), Mode::Standard)
}

fn receive(task: &mut Task, from: u32, tag: i32, bytes: &mut [u8]) -> Result<Handle, Error> {
    let select = Select {
        context: 0,
        source: Some(from),
        tag: TagSelect::Exactly(tag),
    };
    task.start_receive(select, memory(bytes))
}

/// Makes progress in both tasks until `is_so` returns true.
fn until(tasks: &mut [Task; 2], what: &str, mut is_so: impl FnMut(&mut [Task; 2]) -> bool) {
    let start = Instant::now();
    while !is_so(tasks) {
        assert!(start.elapsed() < AWAIT_TIMEOUT, "not in time: {what}");
        for task in tasks.iter_mut() {
            task.progress();
        }
    }
}

fn outcome(tasks: &mut [Task; 2], me: usize, handle: Handle) -> Option<Error> {
    let mut found = None;
    until(tasks, "the end of a request", |tasks| {
        match tasks[me].finish(handle).unwrap() {
            Some((_, error)) => found = Some(error),
            None => return false,
        }
        true
    });
    found.unwrap()
}

fn start(trusted: bool) -> (Hosts, [Task; 2]) {
    let hosts = Hosts::new(trusted, [9; 32], |address| address);
    let tasks = [0, 1].map(|me| Engine::new(hosts.join(me), Settings::default()));
    (hosts, tasks)
}

/// Declares task 1 dead on the host of task 0, after each has offered the other a large message.
fn declared_dead_with_messages_under_way(trusted: bool) {
    let (hosts, mut tasks) = start(trusted);
    let (mut small, mut there, mut back) = (
        [5; 4],
        vec![1; LARGE_MESSAGE_BYTES],
        vec![2; LARGE_MESSAGE_BYTES],
    );
    send(&mut tasks[0], 1, 1, &mut small).unwrap();
    let there = send(&mut tasks[0], 1, 2, &mut there).unwrap();
    let back = send(&mut tasks[1], 0, 3, &mut back).unwrap();
    // The last message of each task is behind its offer.
    for me in [0, 1] {
        let (mut word, mut heard) = ([me as u8; 4], [9; 4]);
        send(&mut tasks[me], 1 - me as u32, 4, &mut word).unwrap();
        let last = receive(&mut tasks[1 - me], me as u32, 4, &mut heard).unwrap();
        assert_eq!(outcome(&mut tasks, 1 - me, last), None);
        assert_eq!(heard, word);
    }
    hosts.jobs[0].mark_dead(1, Cause::Lost);
    assert_eq!(outcome(&mut tasks, 0, there), Some(Error::Dead(1)));
    until(&mut tasks, "task 1 hears of it", |tasks| {
        tasks[1].presence(0) == Presence::Dead
    });
    assert!(tasks[1].transport().is_disowned_by(0));
    assert_eq!(outcome(&mut tasks, 1, back), Some(Error::Dead(0)));
    // A message that had arrived whole is received; the other receives fail, because their messages will not arrive.
    let mut heard = [0; 4];
    let whole = receive(&mut tasks[1], 0, 1, &mut heard).unwrap();
    assert_eq!((outcome(&mut tasks, 1, whole), heard), (None, small));
    for (me, tag) in [(0_usize, 3), (1, 2), (0, 7), (1, 7)] {
        let (from, mut room) = (1 - me as u32, vec![0; LARGE_MESSAGE_BYTES]);
        let error = match receive(&mut tasks[me], from, tag, &mut room) {
            Ok(handle) => outcome(&mut tasks, me, handle),
            Err(error) => Some(error),
        };
        assert_eq!(error, Some(Error::Dead(from)), "task {me}, tag {tag}");
    }
    let refused = send(&mut tasks[1], 0, 8, &mut small);
    assert_eq!(refused.err(), Some(Error::Dead(0)));
}

#[test]
fn whoever_is_declared_dead_hears_that_and_nothing_is_taken_for_damage() {
    declared_dead_with_messages_under_way(true);
}

#[test]
fn the_same_when_connections_are_encrypted() {
    declared_dead_with_messages_under_way(false);
}

#[test]
fn whoever_was_declared_dead_before_it_calls_hears_that_too() {
    let (hosts, mut tasks) = start(true);
    hosts.jobs[0].mark_dead(1, Cause::Lost);
    until(&mut tasks, "task 0 knows", |tasks| {
        tasks[0].presence(1) == Presence::Dead
    });
    let mut room = [0; 4];
    let answer = receive(&mut tasks[1], 0, 1, &mut room).unwrap();
    send(&mut tasks[1], 0, 1, &mut [1; 4]).unwrap();
    assert_eq!(outcome(&mut tasks, 1, answer), Some(Error::Dead(0)));
}
