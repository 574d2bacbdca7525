//! Calls to tasks that compute: the kernels of their hosts accept the connections, and the tasks answer when they
//! poll, however late.

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_engine::{Frames, Upkeep};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use super::Tcp;
use regatta_connection::dial;
use regatta_connection::handshake::Handshake;
use regatta_segment::job::{Job, MAX_TASKS};
use regatta_segment::place::{Key, Places, listen_at};

pub(super) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(super) const AWAIT_TIMEOUT: Duration = Duration::from_secs(20);
pub(super) const WORD: Frame = Frame {
    kind: Kind::Eager,
    context: 0,
    tag: 0,
};

fn task(me: u32, listeners: &[TcpListener; 2]) -> Tcp {
    task_on(me, listeners, true)
}

pub(super) fn task_on(me: u32, listeners: &[TcpListener; 2], trusted: bool) -> Tcp {
    let places = Places {
        here: me,
        host_of: vec![0, 1],
        key: Key::taken(&mut [3; 32]),
        trusted,
        most: MAX_TASKS,
    };
    let job = Job::create_across(&places).unwrap();
    for (rank, listener) in (0..).zip(listeners) {
        job.set_address(rank, listener.local_addr().unwrap());
    }
    let listener = OwnedFd::from(listeners[me as usize].try_clone().unwrap());
    Tcp::new(Arc::new(job), me, listener).unwrap()
}

/// Polls until `is_so` returns true.
pub(super) fn until(task: &mut Tcp, what: &str, mut is_so: impl FnMut(&mut Tcp) -> bool) {
    let start = Instant::now();
    while !is_so(task) {
        assert!(start.elapsed() < AWAIT_TIMEOUT, "not in time: {what}");
        task.poll();
    }
}

fn has_sent_hello(task: &mut Tcp) -> bool {
    let call = task.link(1).unwrap().state.call();
    call.is_some_and(Handshake::has_sent_hello)
}

/// Sets the timeout of a handshake into the past, and lets the task handle that.
fn let_time_pass(task: &mut Tcp) {
    let past = Instant::now() - Duration::from_millis(1);
    let link = task.link(1).unwrap();
    if let Some(shake) = link.state.call_mut() {
        shake.until = past;
    }
    if let Some(spare) = link.stall.spare_mut() {
        spare.until = past;
    }
    task.restless = true;
    task.poll();
}

fn callers(listener: &TcpListener) -> Vec<TcpStream> {
    listener.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| Some(listener.accept().ok()?.0)).collect()
}

#[test]
fn a_task_that_computes_is_called_once_however_long_that_takes() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    let mut caller = task(0, &listeners);
    assert!(caller.send(1, WORD, &Views::none()).unwrap());
    until(&mut caller, "the other host has the call", has_sent_hello);
    for _ in 0..200 {
        let_time_pass(&mut caller);
        assert!(has_sent_hello(&mut caller), "the call waits");
        caller.watch_over();
    }
    assert!(!caller.has_reaches(), "its host answers");
    // At last the task polls.
    let mut listener = task(1, &listeners);
    until(&mut caller, "they meet", |caller| {
        listener.poll();
        caller.link(1).unwrap().is_open() && listener.front(0).unwrap().is_some()
    });
    assert!(callers(&listeners[1]).is_empty(), "it was called once");
}

#[test]
fn a_fresh_call_past_a_connection_that_says_nothing_is_made_once_too() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    let mut tasks = [0, 1].map(|me| task(me, &listeners));
    assert!(tasks[0].send(1, WORD, &Views::none()).unwrap());
    let [caller, listener] = &mut tasks;
    until(caller, "they meet", |caller| {
        listener.poll();
        caller.link(1).unwrap().is_open()
    });
    for _ in 0..200 {
        caller.call_anew(1);
        until(caller, "the other host has the call", |caller| {
            caller.handle_spare_event(1);
            caller.link(1).unwrap().stall.has_called_anew()
        });
        let_time_pass(caller);
    }
    assert_eq!(callers(&listeners[1]).len(), 1);
}

/// A full queue has the same effect on a call as a network that is cut.
#[test]
fn a_call_that_the_other_host_has_not_taken_comes_to_nothing() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    rustix::net::listen(&listeners[1], 0).unwrap();
    let address = listeners[1].local_addr().unwrap();
    let _queue: Vec<_> = (0..4).map(|_| dial::dial(address).unwrap()).collect();
    let mut caller = task(0, &listeners);
    assert!(caller.send(1, WORD, &Views::none()).unwrap());
    assert!(!has_sent_hello(&mut caller));
    let_time_pass(&mut caller);
    let state = &caller.link(1).unwrap().state;
    assert!(state.is_unconnected() && !state.is_idle(), "it rests");
}

#[test]
fn hundreds_of_tasks_may_call_one_that_has_not_looked_yet() {
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let many = 400.min(allowed.trim().parse::<usize>().unwrap());
    let listener = listen_at(HERE).unwrap();
    let address = listener.local_addr().unwrap();
    let call = |_| TcpStream::connect_timeout(&address, Duration::from_secs(1));
    let calls: Vec<_> = (0..many).map(call).collect();
    assert!(calls.iter().all(Result::is_ok), "the queue is full");
    assert_eq!(callers(&listener).len(), many);
}

#[test]
fn strangers_do_not_drive_out_a_guest_that_only_owes_its_proof() {
    let listeners = [0, 1].map(|_| TcpListener::bind((HERE, 0)).unwrap());
    let [mut caller, mut listener] = [0, 1].map(|me| task(me, &listeners));
    assert!(caller.send(1, WORD, &Views::none()).unwrap());
    until(&mut caller, "it greets", has_sent_hello);
    until(&mut listener, "it is welcomed", |listener| {
        listener.listener.welcomed() == 1
    });
    let address = listeners[1].local_addr().unwrap();
    let strangers: Vec<_> = (0..300)
        .map(|_| {
            let stranger = TcpStream::connect(address).unwrap();
            listener.poll();
            stranger
        })
        .collect();
    assert_eq!(listener.listener.welcomed(), 1);
    until(&mut caller, "they meet", |caller| {
        listener.poll();
        let link = caller.link(1).unwrap();
        assert!(
            !link.state.is_unconnected() || link.state.is_idle(),
            "it was hung up on"
        );
        link.is_open()
    });
    drop(strangers);
}
