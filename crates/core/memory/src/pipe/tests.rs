//! Tests of pipes and their pool.

use super::*;

const MAKER: Maker = Maker { task: 0, kind: 0 };

/// Returns a message of 1024 bytes between these two tasks.
fn between(source: u32, destination: u32) -> Message {
    Message {
        tasks: [source, destination],
        window: 1024,
        length: 1024,
        goes_on: false,
    }
}

fn pair(size: usize) -> (Segment, Pipe, Pipe) {
    let segment = Segment::create("test", 1 << 20).unwrap();
    let offset = segment.allocate(Pipe::footprint(size), 4096).unwrap();
    let one = Pipe::at(&segment, offset, size).unwrap();
    let two = Pipe::at(&segment, offset, size).unwrap();
    (segment, one, two)
}

fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep `bytes` alive and untouched while they copy.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

#[test]
fn two_threads_stream_a_message_through_a_small_pipe() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from: Vec<u8> = (0..1_000_003u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    let expected = from.clone();
    let sender = std::thread::spawn(move || {
        let views = block(&mut from);
        while tx.moved() < views.len() as u64 {
            let non_temporal = (tx.moved() / 400).is_multiple_of(3);
            if tx.fill(&views, 400, non_temporal).unwrap() == Filled::Some(0) {
                std::thread::yield_now();
            }
        }
    });
    let mut to = vec![0u8; expected.len()];
    let views = block(&mut to);
    while rx.moved() < expected.len() as u64 {
        if rx.drain(&views, expected.len() as u64, 300).unwrap() == 0 {
            std::thread::yield_now();
        }
    }
    sender.join().unwrap();
    assert_eq!(to, expected);
}

#[test]
fn a_short_buffer_keeps_the_front_and_the_pipe_runs_dry() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from = vec![7u8; 600];
    let mut to = vec![0u8; 100];
    assert_eq!(
        tx.fill(&block(&mut from), 4096, false).unwrap(),
        Filled::All
    );
    assert_eq!(rx.drain(&block(&mut to), 600, 4096).unwrap(), 600);
    assert_eq!(to, vec![7u8; 100]);
}

#[test]
fn counts_no_peer_writes_are_refused() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut bytes = vec![0u8; 4000];
    let views = block(&mut bytes);
    tx.fill(&views, 1024, false).unwrap();
    tx.control().filled.0.store(5000, Ordering::Relaxed);
    assert!(rx.drain(&views, 4000, 100).is_err());
    tx.control().drained.0.bytes.store(9999, Ordering::Relaxed);
    assert!(tx.fill(&views, 1024, false).is_err());
}

/// Returns this process, as a sender whose memory may be read.
fn myself() -> Remote {
    static WORD: u64 = 0x5eed_0f41;
    Remote {
        pid: std::process::id(),
        address: &raw const WORD as u64,
        word: WORD,
    }
}

#[test]
fn what_is_read_from_another_process_of_that_number_is_void() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from = vec![5u8; 3000];
    let mut to = vec![0u8; 3000];
    tx.set_address(from.as_ptr() as u64);
    let (source, into) = (block(&mut from), block(&mut to));
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Some(700));
    assert!(rx.take_over());
    while rx.drain(&into, 3000, 400).unwrap() > 0 {}
    let another = Remote {
        word: myself().word + 1,
        ..myself()
    };
    assert!(rx.pull(&into, 3000, &another).is_err());
    assert_eq!(rx.moved(), 700);
    let filled = tx.fill(&source, 700, false).unwrap();
    assert!(matches!(filled, Filled::Some(1..)), "its turn again");
}

#[test]
fn a_starving_receiver_takes_over_once_and_the_sender_is_told() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
    let mut to = vec![0u8; 3000];
    tx.set_address(from.as_ptr() as u64);
    let (source, into) = (block(&mut from), block(&mut to));
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Some(700));
    assert!(rx.take_over() && !rx.take_over());
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::TakenOver);
    while rx.drain(&into, 3000, 400).unwrap() > 0 {}
    match rx.pull(&into, 3000, &myself()) {
        Ok(complete) => assert!(complete),
        Err(refused) => {
            assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
            crate::skipped::skip("the kernel refuses the single copy from this process to itself");
            return;
        }
    }
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Pulled);
    assert_eq!(to, from);
}

#[test]
fn a_message_may_move_while_it_stands_still_and_not_while_it_is_read() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
    let (mut copy, mut to) = (from.clone(), vec![0u8; 3000]);
    tx.set_address(from.as_ptr() as u64);
    assert_eq!(
        tx.fill(&block(&mut from), 700, false).unwrap(),
        Filled::Some(700)
    );
    assert_eq!(tx.move_to(copy.as_ptr() as u64).unwrap(), None);
    from.fill(0);
    let into = block(&mut to);
    assert!(rx.take_over());
    assert_eq!(tx.move_to(8).unwrap(), Some(Filled::TakenOver));
    while rx.drain(&into, 3000, 400).unwrap() > 0 {}
    if rx.pull(&into, 3000, &myself()).is_err() {
        // This process may not read there.
        while rx.moved() < 3000 {
            tx.fill(&block(&mut copy), 700, false).unwrap();
            rx.drain(&into, 3000, 400).unwrap();
        }
    }
    assert_eq!(to, copy);
}

#[test]
fn what_cannot_be_read_is_filled_in_by_the_sender_after_all() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from: Vec<u8> = (0..3000u32).map(|i| (i * 7) as u8).collect();
    let mut to = vec![0u8; 3000];
    // No process has memory at this address.
    tx.set_address(8);
    let (source, into) = (block(&mut from), block(&mut to));
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Some(700));
    while rx.drain(&into, 3000, 400).unwrap() > 0 {}
    assert!(rx.take_over());
    assert!(rx.pull(&into, 3000, &myself()).is_err());
    while rx.moved() < 3000 {
        if tx.moved() < 3000 {
            tx.fill(&source, 700, false).unwrap();
        }
        rx.drain(&into, 3000, 400).unwrap();
    }
    assert_eq!(to, from);
}

#[test]
fn what_is_read_after_the_sender_gave_up_is_void() {
    let (_segment, mut tx, mut rx) = pair(1024);
    let mut from = vec![3u8; 3000];
    tx.set_address(from.as_ptr() as u64);
    let source = block(&mut from);
    let mut to = vec![0u8; 3000];
    let into = block(&mut to);
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Some(700));
    while rx.drain(&into, 3000, 400).unwrap() > 0 {}
    assert!(rx.take_over());
    assert_eq!(tx.give_up(), GivenUp::Receivers);
    assert!(!matches!(rx.pull(&into, 3000, &myself()), Ok(true)));
    assert_eq!(rx.moved(), 700);
    assert!(!rx.take_over());
}

#[test]
fn a_pull_that_breaks_off_leaves_nothing_to_drain() {
    let (_segment, mut tx, mut rx) = pair(1024);
    // SAFETY: a private anonymous mapping. Its second page is made unreadable, and both pages are only touched through
    // calls that report a fault.
    let memory = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), 8192, 3, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(at.add(4096), 4096, libc::PROT_NONE), 0);
        at.cast::<u8>()
    };
    tx.set_address(memory as u64);
    // SAFETY: only the first page is copied from here.
    let source = unsafe { Views::block(memory, 8192) };
    let mut to = vec![0u8; 8192];
    let into = block(&mut to);
    assert_eq!(tx.fill(&source, 700, false).unwrap(), Filled::Some(700));
    assert!(rx.take_over());
    while rx.drain(&into, 8192, 400).unwrap() > 0 {}
    assert!(rx.pull(&into, 8192, &myself()).is_err());
    assert!(!matches!(rx.drain(&into, 8192, 400), Ok(1..)));
    assert!(rx.moved() < 8192);
    // SAFETY: mapped above, and no longer used.
    unsafe { libc::munmap(memory.cast(), 8192) };
}

#[test]
fn a_complete_message_cannot_be_taken_over() {
    let (_segment, mut tx, rx) = pair(1024);
    let mut from = vec![1u8; 10];
    assert_eq!(tx.fill(&block(&mut from), 700, false).unwrap(), Filled::All);
    assert!(!rx.take_over());
}

#[test]
fn pipes_come_back_from_the_pool() {
    let segment = Segment::create("test", 1 << 20).unwrap();
    let (free, list) = (Stack::default(), List::default());
    let pool = Pool::new(&segment, &free, &list, 1024);
    assert!(pool.take(between(0, 1)).unwrap().is_none());
    let (a, b) = (
        pool.make(MAKER, between(0, 1)).unwrap(),
        pool.make(MAKER, between(0, 1)).unwrap(),
    );
    let offsets = [a.offset(), b.offset()];
    pool.give(a);
    pool.give(b);
    assert_eq!(
        pool.take(between(0, 1)).unwrap().unwrap().offset(),
        offsets[1]
    );
    assert_eq!(
        pool.take(between(0, 1)).unwrap().unwrap().offset(),
        offsets[0]
    );
    assert!(pool.take(between(0, 1)).unwrap().is_none());
    free.scribble(0xffff_fff0);
    assert!(
        pool.take(between(0, 1)).is_err(),
        "a scribbled head is noticed"
    );
}

#[test]
fn a_pipe_that_others_use_by_now_is_not_given_back() {
    let segment = Segment::create("test", 1 << 20).unwrap();
    let (free, list) = (Stack::default(), List::default());
    let pool = Pool::new(&segment, &free, &list, 1024);
    let full = pool.make(MAKER, between(0, 1)).unwrap();
    let place = full.offset();
    full.let_go(0);
    let attach = |tasks| Pipe::between(&segment, place, 1024, tasks);
    let late = attach([0, 1]).unwrap();
    assert!(attach([1, 0]).is_ok() && attach([0, 2]).is_err());
    // The receiver dies, and two other tasks get the pipe.
    let adopted = pool.adopt(&mut 0, between(2, 3), |task| task == 1).unwrap();
    assert_eq!(adopted.offset(), place);
    pool.give(late);
    assert!(pool.take(between(4, 5)).unwrap().is_none(), "it is in use");
    pool.give(adopted);
    assert_eq!(pool.take(between(4, 5)).unwrap().unwrap().offset(), place);
}

/// Takes pipes and gives them back as task `me`, whose predecessors are gone, until it is killed. Writes one byte to
/// `said` when it has begun.
fn use_pipes(pool: &Pool, me: u32, said: libc::c_int) -> ! {
    let mut cursor = 0;
    for uses in 0_u64.. {
        let pipe = pool.take(between(me, me)).ok().flatten();
        let pipe = pipe.or_else(|| pool.adopt(&mut cursor, between(me, me), |task| task < me));
        let pipe = pipe.or_else(|| pool.make(MAKER, between(me, me)).ok());
        pipe.into_iter().for_each(|pipe| pool.give(pipe));
        if uses == 50 {
            // SAFETY: writes one byte of `uses`.
            unsafe { libc::write(said, (&raw const uses).cast(), 1) };
        }
    }
    unreachable!("it is killed long before")
}

#[test]
fn pipes_of_tasks_that_are_killed_at_any_instruction_are_used_again() {
    let segment = Segment::create("test", 1 << 22).unwrap();
    let place = segment.allocate(2 * 64, 64).unwrap();
    // SAFETY: atomics only, in memory that the children of a fork share.
    let free: &Stack = unsafe { segment.words(place) }.unwrap();
    // SAFETY: atomics only, in memory that the children of a fork share.
    let list: &List = unsafe { segment.words(place + 64) }.unwrap();
    let pool = Pool::new(&segment, free, list, 1024);
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    for me in 0..200 {
        // SAFETY: the child calls nothing except the pool, which takes no lock and uses no memory of its process, and
        // one system call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            use_pipes(&pool, me, ends[1]);
        }
        assert!(child > 0);
        let mut byte = 0_u8;
        // SAFETY: the byte is local, and the child belongs to this process and is waited for.
        unsafe {
            assert_eq!(libc::read(ends[0], (&raw mut byte).cast(), 1), 1);
            assert_eq!(libc::kill(child, libc::SIGKILL), 0);
            assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
        }
    }
    let made = pool.made.all().count();
    assert!((1..=4).contains(&made), "{made} pipes for one at a time");
}

proptest::proptest! {
    /// Messages of any length, one after the other through one pipe, each with its own window.
    #[test]
    fn messages_cycle_through_their_windows_from_where_the_one_before_ended(
        messages in proptest::collection::vec((1_usize..20_000, 12_u32..16, 1_usize..5000, proptest::bool::ANY), 1..8),
    ) {
        const SIZE: usize = 1 << 14;
        let segment = Segment::create("test", 1 << 20).unwrap();
        let (free, list) = (Stack::default(), List::default());
        let pool = Pool::new(&segment, &free, &list, SIZE);
        let mut expected_base = 0;
        for (length, window, most, goes_on) in messages {
            let message = Message { tasks: [0, 1], window: 1 << window, length: length as u64, goes_on };
            let taken = pool.take(message).unwrap();
            let mut tx = taken.unwrap_or_else(|| pool.make(MAKER, message).unwrap());
            let mut rx = Pipe::between(&segment, tx.offset(), SIZE, [0, 1]).unwrap();
            let real = (1_u64 << window).min(SIZE as u64);
            let base = if goes_on { expected_base % real } else { 0 };
            proptest::prop_assert_eq!((rx.window, rx.base), (real, base));
            expected_base = (rx.base + length as u64).next_multiple_of(64);
            let mut from: Vec<u8> = (0..length).map(|i| (i ^ (i >> 8)) as u8).collect();
            let mut to = vec![0u8; length];
            let (source, into) = (block(&mut from), block(&mut to));
            while rx.moved() < length as u64 {
                if tx.moved() < length as u64 {
                    let non_temporal = tx.moved().is_multiple_of(3);
                    tx.fill(&source, most, non_temporal).unwrap();
                }
                proptest::prop_assert!(tx.moved() - rx.moved() <= real);
                rx.drain(&into, length as u64, most / 2 + 1).unwrap();
            }
            proptest::prop_assert_eq!(&to, &from);
            pool.give(rx);
        }
    }

    #[test]
    fn windows_that_no_peer_makes_are_refused(window: u32, base: u32) {
        let segment = Segment::create("test", 1 << 16).unwrap();
        let (free, list) = (Stack::default(), List::default());
        let pool = Pool::new(&segment, &free, &list, 1024);
        let pipe = pool.make(MAKER, between(0, 1)).unwrap();
        pipe.control().window.store(window, Ordering::Relaxed);
        pipe.control().base.store(base, Ordering::Relaxed);
        let possible = window.is_power_of_two() && window <= 1024 && base < window;
        let found = Pipe::between(&segment, pipe.offset(), 1024, [0, 1]);
        proptest::prop_assert_eq!(found.is_ok(), possible);
    }
}
