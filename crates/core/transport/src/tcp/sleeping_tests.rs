//! A task must not sleep while records wait in memory that it has read together with others, since no socket reports
//! these any more.

use std::net::TcpListener;
use std::time::Instant;

use regatta_engine::{Frames, Streams, Upkeep};
use regatta_memory::views::Scratch;
use rustix::event::epoll;
use rustix::net::sockopt;

use super::calling_tests::{AWAIT_TIMEOUT, HERE, WORD, task_on, until};

#[test]
fn a_task_does_not_sleep_over_records_that_it_has_not_looked_at() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    // The kernel receives all of it before the task polls.
    sockopt::set_socket_recv_buffer_size(&listeners[1], 200_000).unwrap();
    let [mut sender, mut receiver] = [0, 1].map(|me| task_on(me, &listeners, false));
    let memory = Scratch::new(40_000).unwrap();
    let nothing = memory.part(0, 0);
    assert!(sender.send(1, WORD, &nothing).unwrap());
    until(&mut sender, "they meet", |sender| {
        receiver.poll();
        sender.link(1).unwrap().is_open() && receiver.front(0).unwrap().is_some()
    });
    receiver.accept(0, &nothing);
    // Sends messages that are not received yet, and a frame behind them.
    let message = memory.part(0, 40_000);
    for _ in 0..3 {
        let (mut wire, _) = sender.open(1, &message).unwrap().unwrap();
        sender.fill(1, &mut wire, &message).unwrap();
    }
    assert!(sender.send(1, WORD, &nothing).unwrap());
    until(&mut sender, "it arrives", |sender| {
        let link = sender.link(1).unwrap();
        let channel = link.state.channel().expect("the connection is there");
        !link.is_blocked() && channel.is_delivered()
    });
    // A poll reads a limited amount, and does not reach the frame.
    receiver.poll();
    assert_eq!(receiver.next_ready(&mut 0), None);
    receiver.arm();
    let (job, start) = (receiver.job.clone(), Instant::now());
    job.bell(1)
        .sleep(job.fencing(), Some(AWAIT_TIMEOUT), || false);
    assert!(start.elapsed() < AWAIT_TIMEOUT / 2, "it slept");
    until(&mut receiver, "the word is there", |receiver| {
        receiver.next_ready(&mut 0) == Some(0)
    });
}

#[test]
fn a_task_that_looks_at_no_frames_hears_a_question_behind_them() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    sockopt::set_socket_recv_buffer_size(&listeners[1], 200_000).unwrap();
    let [mut sender, mut receiver] = [0, 1].map(|me| task_on(me, &listeners, false));
    let memory = Scratch::new(1000).unwrap();
    let nothing = memory.part(0, 0);
    assert!(sender.send(1, WORD, &nothing).unwrap());
    until(&mut sender, "they meet", |sender| {
        receiver.poll();
        sender.link(1).unwrap().is_open() && receiver.front(0).unwrap().is_some()
    });
    for _ in 0..50 {
        assert!(sender.send(1, WORD, &memory.part(0, 1000)).unwrap());
    }
    sender.inquire(1);
    until(&mut sender, "it arrives", |sender| {
        let channel = sender.link(1).unwrap().state.channel();
        channel.is_some_and(|channel| channel.is_delivered())
    });
    receiver.poll();
    assert!(
        receiver.link(0).unwrap().holds_back(),
        "it has read all at once"
    );
    receiver.arm();
    receiver.poll();
    until(&mut sender, "the answer comes", |sender| {
        sender.poll();
        sender.inquire(1).is_some()
    });
}

#[test]
fn a_caller_that_cannot_be_let_in_wakes_nobody_until_it_can() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    let mut task = task_on(0, &listeners, false);
    task.listener.pause();
    let caller = std::net::TcpStream::connect(listeners[0].local_addr().unwrap()).unwrap();
    let events = |task: &super::Tcp, limit: u64| {
        let limit = rustix::event::Timespec {
            tv_sec: limit as i64,
            tv_nsec: 0,
        };
        let mut room = [const { std::mem::MaybeUninit::uninit() }; 4];
        epoll::wait(&task.epoll, &mut room, Some(&limit))
            .unwrap()
            .0
            .len()
    };
    assert_eq!(events(&task, AWAIT_TIMEOUT.as_secs()), 1);
    task.accept_guests();
    assert_eq!(events(&task, 0), 0);
    until(&mut task, "the pause is over", |task| {
        task.listener.guest(super::FIRST_GUEST_TOKEN + 1).is_some()
    });
    drop(caller);
}
