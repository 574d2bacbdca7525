//! Messages that their sender gives up: it leaves, withdraws them, or never gets to offer them. Their receiver sees
//! the same whether or not it shares memory with the sender, and takes nothing for damage.

#[path = "support/hosts.rs"]
mod hosts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{
    Engine, Error, Handle, Mode, Presence, Select, Settings, TagSelect, Transport, Upkeep,
};
use regatta_memory::views::Views;
use regatta_segment::job::{Job, JoinToken};
use regatta_transport::paths::Paths;
use regatta_transport::shm::Shm;

const AWAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than what a sender may send before its receiver asks for it.
const LARGE_MESSAGE_BYTES: usize = 1 << 20;

fn memory(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep what they send or receive until both tasks are gone.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

fn send<T: Transport>(task: &mut Engine<T>, to: u32, tag: i32, bytes: &mut [u8]) -> Handle {
    task.start_send(to, 0, tag, memory(bytes), Mode::Standard)
        .unwrap()
}

fn receive<T: Transport>(
    task: &mut Engine<T>,
    from: u32,
    tag: i32,
    bytes: &mut [u8],
) -> Result<Handle, Error> {
    let select = Select {
        context: 0,
        source: Some(from),
        tag: TagSelect::Exactly(tag),
    };
    task.start_receive(select, memory(bytes))
}

/// Makes progress in both tasks until `is_so` returns true.
fn until<T: Transport>(
    tasks: &mut [Engine<T>; 2],
    what: &str,
    mut is_so: impl FnMut(&mut [Engine<T>; 2]) -> bool,
) {
    let start = Instant::now();
    while !is_so(tasks) {
        assert!(start.elapsed() < AWAIT_TIMEOUT, "not in time: {what}");
        tasks.iter_mut().for_each(|task| _ = task.progress());
    }
}

fn outcome<T: Transport>(
    tasks: &mut [Engine<T>; 2],
    me: usize,
    handle: Result<Handle, Error>,
) -> Option<Error> {
    let Ok(handle) = handle else {
        return handle.err();
    };
    let mut found = None;
    until(tasks, "the end of a request", |tasks| {
        found = tasks[me].finish(handle).unwrap();
        found.is_some()
    });
    found.unwrap().1
}

/// Checks that a message of this length gets through, so that nothing earlier blocks it.
fn goes_through<T: Transport>(tasks: &mut [Engine<T>; 2], from: usize, length: usize) {
    let (mut there, mut heard) = (vec![from as u8 + 1; length], vec![0; length]);
    let sent = send(&mut tasks[from], 1 - from as u32, 9, &mut there);
    let received = receive(&mut tasks[1 - from], from as u32, 9, &mut heard);
    assert_eq!(outcome(tasks, 1 - from, received), None);
    assert_eq!(outcome(tasks, from, Ok(sent)), None);
    assert_eq!(there, heard);
}

fn near(settings: Settings) -> ([Engine<Shm>; 2], impl Fn()) {
    let job = Arc::new(Job::create(2).unwrap());
    let tasks = [0, 1].map(|rank| {
        let fd = job.fd().try_clone_to_owned().unwrap();
        let own = Job::join(fd, JoinToken::handed(rank, 2)).unwrap();
        Engine::new(Shm::new(Arc::new(own), rank), settings)
    });
    (tasks, move || job.leave(0))
}

/// Returns two tasks on different hosts, and a function that makes task 0 leave.
fn far(trusted: bool, settings: Settings) -> ([Engine<Paths>; 2], impl Fn()) {
    let hosts = Hosts::new(trusted, [13; 32], |address| address);
    let tasks = [0, 1].map(|me| Engine::new(hosts.join(me), settings));
    (tasks, move || hosts.jobs[1].leave(0))
}

/// Makes task 0 leave in the middle of a large message, with small messages before and after it.
fn leaves_in_the_middle<T: Transport>(
    (mut tasks, leave): ([Engine<T>; 2], impl Fn()),
    say_bye: impl Fn(&mut Engine<T>) -> bool,
) {
    for from in [0, 1] {
        goes_through(&mut tasks, from, 4);
    }
    let (mut before, mut large, mut after) = ([6; 4], vec![5; LARGE_MESSAGE_BYTES], [7; 4]);
    send(&mut tasks[0], 1, 6, &mut before);
    send(&mut tasks[0], 1, 5, &mut large);
    send(&mut tasks[0], 1, 7, &mut after);
    tasks[0].leave();
    until(&mut tasks, "the last words arrive", |tasks| {
        say_bye(&mut tasks[0])
    });
    leave();
    // The small message behind the large one has been received, so the large one's offer has been taken.
    for (tag, expected, error) in [
        (6, [6; 4], None),
        (7, [7; 4], None),
        (5, [0; 4], Some(Error::Left(0))),
        (7, [0; 4], Some(Error::Left(0))),
    ] {
        let mut heard = vec![0; LARGE_MESSAGE_BYTES];
        let handle = receive(&mut tasks[1], 0, tag, &mut heard);
        assert_eq!(outcome(&mut tasks, 1, handle), error, "tag {tag}");
        if error.is_none() {
            assert_eq!(heard[..4], expected);
        }
    }
}

#[test]
fn a_message_its_sender_left_in_the_middle_of_ends_as_left() {
    leaves_in_the_middle(near(Settings::default()), |_| true);
    for trusted in [true, false] {
        leaves_in_the_middle(far(trusted, Settings::default()), |task| {
            task.transport_mut().deliver(true)
        });
    }
}

/// Makes task 0 withdraw a message before its receiver has handled its offer. A short message may have arrived whole.
fn taken_back_at_once<T: Transport>(mut tasks: [Engine<T>; 2], length: usize, early: bool) {
    for from in [0, 1] {
        goes_through(&mut tasks, from, 4);
    }
    // More messages than a sender may have in transit at a time.
    for round in 0..200 {
        let mut heard = vec![0; length];
        let posted = early.then(|| receive(&mut tasks[1], 0, 5, &mut heard));
        let mut bytes = vec![5; length];
        let sent = send(&mut tasks[0], 1, 5, &mut bytes);
        // Everything about the message arrives at once.
        tasks[0].forget(sent);
        match posted.and_then(|posted| outcome(&mut tasks, 1, posted)) {
            Some(error) => assert_eq!(error, Error::Cancelled, "round {round}"),
            None if early => assert!(
                length < LARGE_MESSAGE_BYTES && heard == bytes,
                "round {round}"
            ),
            None => {}
        }
        if round % 50 == 0 {
            goes_through(&mut tasks, 0, LARGE_MESSAGE_BYTES);
        }
    }
    for from in [0, 1, 0, 1] {
        goes_through(&mut tasks, from, LARGE_MESSAGE_BYTES);
    }
    for me in [0, 1] {
        assert_eq!(tasks[me].presence(1 - me as u32), Presence::Here);
    }
}

#[test]
fn a_message_that_is_taken_back_at_once_harms_nothing() {
    for length in [20_000, LARGE_MESSAGE_BYTES] {
        for early in [true, false] {
            taken_back_at_once(near(Settings::default()).0, length, early);
            taken_back_at_once(far(true, Settings::default()).0, length, early);
            taken_back_at_once(far(false, Settings::default()).0, length, early);
        }
    }
}

/// Makes task 0 recall a large message whose receive has not begun, repeatedly; if `forget`, it also forgets the
/// request.
fn asked_back<T: Transport>(mut tasks: [Engine<T>; 2], forget: bool) {
    for from in [0, 1] {
        goes_through(&mut tasks, from, 4);
    }
    for _ in 0..200 {
        let mut large = vec![5; LARGE_MESSAGE_BYTES];
        let sent = send(&mut tasks[0], 1, 5, &mut large);
        tasks[0].recall(sent).unwrap();
        if forget {
            tasks[0].forget(sent);
            continue;
        }
        assert_eq!(outcome(&mut tasks, 0, Ok(sent)), Some(Error::Cancelled));
    }
    for from in [0, 1, 0, 1] {
        goes_through(&mut tasks, from, LARGE_MESSAGE_BYTES);
    }
}

#[test]
fn streams_of_messages_that_were_asked_back_are_used_again() {
    for forget in [false, true] {
        asked_back(near(Settings::default()).0, forget);
        asked_back(far(true, Settings::default()).0, forget);
    }
}

/// The queue of task 0 holds the offer of a message whose bytes have all arrived. The task withdraws the message.
fn filled_and_never_offered<T: Transport>(mut tasks: [Engine<T>; 2]) {
    const SMALL_MESSAGE_BYTES: usize = 990;
    const SMALL_MESSAGES: usize = 400;
    // The streams of the two sides have different numbers.
    for from in [0, 0, 0, 1] {
        goes_through(&mut tasks, from, 40_000);
    }
    for _ in 0..100 {
        let mut small = vec![vec![1; SMALL_MESSAGE_BYTES]; SMALL_MESSAGES];
        let sent: Vec<_> = small
            .iter_mut()
            .map(|bytes| send(&mut tasks[0], 1, 1, bytes))
            .collect();
        let mut large = vec![2; 32_000];
        let never = send(&mut tasks[0], 1, 2, &mut large);
        let full = |task: &Engine<T>| task.buffer_is_full();
        until(&mut tasks, "the buffer is full", |tasks| full(&tasks[1]));
        // Some more turns, in which the bytes arrive whose offer is still queued.
        (0..200).for_each(|_| tasks.iter_mut().for_each(|task| _ = task.progress()));
        tasks[0].forget(never);
        for handle in sent {
            let mut heard = vec![0; SMALL_MESSAGE_BYTES];
            let received = receive(&mut tasks[1], 0, 1, &mut heard);
            assert_eq!(outcome(&mut tasks, 1, received), None);
            assert_eq!(outcome(&mut tasks, 0, Ok(handle)), None);
        }
        for from in [1, 0, 1] {
            goes_through(&mut tasks, from, 50_000);
        }
    }
    let mut nothing = [0; 4];
    let none = receive(&mut tasks[1], 0, 2, &mut nothing).unwrap();
    goes_through(&mut tasks, 0, 4);
    assert_eq!(tasks[1].finish(none).unwrap().map(|_| ()), None);
}

#[test]
fn a_filled_stream_that_is_never_offered_is_used_again() {
    let settings = Settings { buffer: 4096 };
    filled_and_never_offered(near(settings).0);
    filled_and_never_offered(far(true, settings).0);
    filled_and_never_offered(far(false, settings).0);
}
