//! Messages that a task has sent in full are received, however soon afterwards it dies or leaves.

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
/// Length in bytes of a small message, and below how many of them are sent.
const SMALL_MESSAGE_BYTES: usize = 1000;
const SMALL_MESSAGES: usize = 20;

type Task = Engine<Paths>;

fn memory(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep what they send or receive until both tasks are gone.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

fn send(task: &mut Task, to: u32, tag: i32, bytes: &mut [u8]) -> Handle {
    task.start_send(to, 0, tag, memory(bytes), Mode::Standard)
        .unwrap()
}

fn receive(task: &mut Task, from: u32, tag: i32, bytes: &mut [u8]) -> Result<Handle, Error> {
    let select = Select {
        context: 0,
        source: Some(from),
        tag: TagSelect::Exactly(tag),
    };
    task.start_receive(select, memory(bytes))
}

/// Returns the outcome of a receive while only this task makes progress.
fn outcome(task: &mut Task, handle: Result<Handle, Error>) -> Option<Error> {
    let handle = match handle {
        Ok(handle) => handle,
        Err(error) => return Some(error),
    };
    let start = Instant::now();
    loop {
        if let Some((_, error)) = task.finish(handle).unwrap() {
            return error;
        }
        assert!(start.elapsed() < AWAIT_TIMEOUT, "a receive does not end");
        task.progress();
    }
}

/// Returns two tasks that have exchanged messages.
fn acquainted(trusted: bool) -> (Hosts, [Task; 2]) {
    let hosts = Hosts::new(trusted, [11; 32], |address| address);
    let mut tasks = [0, 1].map(|me| Engine::new(hosts.join(me), Settings::default()));
    for me in [0, 1] {
        let (mut word, mut heard) = ([7; 4], [0; 4]);
        let handle = receive(&mut tasks[1 - me], me as u32, 1, &mut heard).unwrap();
        send(&mut tasks[me], 1 - me as u32, 1, &mut word);
        let start = Instant::now();
        while tasks[1 - me].finish(handle).unwrap().is_none() {
            assert!(start.elapsed() < AWAIT_TIMEOUT, "they do not meet");
            tasks.iter_mut().for_each(|task| _ = task.progress());
        }
    }
    (hosts, tasks)
}

/// Lets task 0 begin `streams` large messages, send small ones in full behind them, and be gone before task 1 polls.
fn what_was_sent_in_full_is_received(trusted: bool, streams: usize, lose: impl Fn(&Hosts)) {
    let (hosts, [mut sender, mut receiver]) = acquainted(trusted);
    let mut large = vec![1; LARGE_MESSAGE_BYTES];
    let mut small: Vec<_> = (0..SMALL_MESSAGES)
        .map(|n| vec![n as u8; SMALL_MESSAGE_BYTES])
        .collect();
    for _ in 0..streams {
        send(&mut sender, 1, 2, &mut large);
    }
    for bytes in &mut small {
        let handle = send(&mut sender, 1, 3, bytes);
        assert!(sender.finish(handle).unwrap().is_some(), "it is sent");
    }
    // These messages wait for nothing but room in the socket, and there is enough of it.
    while sender.progress() {}
    drop(sender);
    lose(&hosts);
    // The first poll of the sockets finds the connection closed at the other end, and most of the received bytes
    // unread.
    receiver.transport_mut().go_on();
    for bytes in &small {
        let mut heard = vec![255; SMALL_MESSAGE_BYTES];
        let handle = receive(&mut receiver, 0, 3, &mut heard);
        assert_eq!(outcome(&mut receiver, handle), None, "{streams} streams");
        assert_eq!(&heard, bytes);
    }
    let mut heard = vec![0; LARGE_MESSAGE_BYTES];
    for _ in 0..=streams {
        let handle = receive(&mut receiver, 0, 2, &mut heard);
        let error = outcome(&mut receiver, handle).expect("it never came whole");
        assert!(
            matches!(error, Error::Dead(0) | Error::Left(0)),
            "{error:?}, not a loss"
        );
    }
}

fn dies(hosts: &Hosts) {
    hosts.jobs[1].mark_dead(0, Cause::Exited(1));
}

fn leaves(hosts: &Hosts) {
    hosts.jobs[1].leave(0);
}

#[test]
fn small_messages_outlive_their_sender_behind_large_ones_it_had_begun() {
    for trusted in [true, false] {
        for streams in [0, 2, 3, 5] {
            what_was_sent_in_full_is_received(trusted, streams, dies);
        }
    }
}

#[test]
fn small_messages_outlive_a_sender_that_leaves_large_ones_behind() {
    for trusted in [true, false] {
        for streams in [0, 2, 3, 5] {
            what_was_sent_in_full_is_received(trusted, streams, leaves);
        }
    }
}

/// The receiver has taken a large message whole and leaves; its confirmation is still unread.
#[test]
fn a_large_message_that_was_received_before_its_receiver_left_was_sent() {
    for trusted in [true, false] {
        let (hosts, [mut sender, mut receiver]) = acquainted(trusted);
        let (mut there, mut heard) = (vec![3; LARGE_MESSAGE_BYTES], vec![0; LARGE_MESSAGE_BYTES]);
        let sent = send(&mut sender, 1, 2, &mut there);
        let received = receive(&mut receiver, 0, 2, &mut heard).unwrap();
        let start = Instant::now();
        while receiver.finish(received).unwrap().is_none() {
            assert!(start.elapsed() < AWAIT_TIMEOUT, "it does not come");
            sender.progress();
            receiver.progress();
        }
        while !receiver.transport_mut().deliver(true) {
            assert!(
                start.elapsed() < AWAIT_TIMEOUT,
                "its last words do not go out"
            );
        }
        drop(receiver);
        hosts.jobs[0].leave(1);
        sender.transport_mut().go_on();
        assert_eq!(outcome(&mut sender, Ok(sent)), None);
        assert_eq!(there, heard);
    }
}

/// The host of this task was cut off from the launcher, and the task does not know that.
#[test]
fn a_task_that_is_called_dead_and_sends_on_and_on_is_dead_all_the_same() {
    let (hosts, [mut caller, mut lives]) = acquainted(true);
    hosts.jobs[0].mark_dead(1, Cause::Lost);
    let (mut word, mut heard) = ([1; 4], [0; 4]);
    let start = Instant::now();
    while caller.presence(1) != Presence::Dead {
        assert!(
            start.elapsed() < AWAIT_TIMEOUT,
            "it is waited for without end"
        );
        let _ = lives.start_send(0, 0, 5, memory(&mut word), Mode::Standard);
        let _ = receive(&mut caller, 1, 5, &mut heard);
        caller.progress();
    }
}
