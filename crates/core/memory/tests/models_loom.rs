//! The model checker runs the lock-free structures in every order in which two threads can execute them, under the
//! memory model of the language, and reports every unordered access to a payload. Run by `scripts/check-models`.
//!
//! | structure | what runs | what does not |
//! |---|---|---|
//! | ring | `Producer` and `Consumer` as shipped, over loom's atomics and cells | |
//! | bell | `Bell` as shipped, fenced; the futex is a lock and a condition | sleepers that run `membarrier` instead of the senders' fence: loom knows no such call |
//! | wake request | `WakeRequest` as shipped, with `Bell`: a sleeper that waits for one publisher after the other | |
//! | memory handed out | `Next` and `Making` as shipped: a task that dies at any step of an allocation | |
//! | block | `Block` as shipped: leaving, dying at any instruction, handing over, keeping, claiming | its memory,
//! replaced by one cell |
//! | ends | `Ends` as shipped: an end that finishes, one that is gone, two that claim, one that ends the use | |
//! | losses | `Losses` as shipped | |
//! | shared barrier | `SharedBarrier` as shipped | reuse of its memory |
//! | pipe | `Control` as shipped: turns, counts, taking over, moving, giving up | the copying of `Pipe`, replaced by one cell a byte |
//!
//! The crate's guide (`README.md`) lists the lock-free structures that have no model, and why. Each model states a
//! minimum number of orders, so that no model passes without having run.
#![cfg(loom)]

mod orders;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
use orders::every_order;
use regatta_memory::bell::{Bell, Fencing, Payers};
use regatta_memory::block::Block;
use regatta_memory::ends::{End, Ends};
use regatta_memory::losses::Losses;
use regatta_memory::making::{Making, Next};
use regatta_memory::pipe::{Control, Filled, GivenUp};
use regatta_memory::ring::{Consumer, Header, Lines, Producer};
use regatta_memory::shared_barrier::{Crossing, SharedBarrier, Word};
use regatta_memory::wake_request::WakeRequest;

/// The smallest ring. A line's payload is a cell: loom checks who may touch it when.
struct Ring {
    headers: [AtomicU64; 4],
    payload: [UnsafeCell<u32>; 4],
    read: AtomicU32,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            headers: std::array::from_fn(|_| AtomicU64::new(0)),
            payload: std::array::from_fn(|_| UnsafeCell::new(0)),
            read: AtomicU32::new(0),
        }
    }
}

impl Lines for Ring {
    fn count(&self) -> u32 {
        4
    }
    fn header(&self, line: u32) -> u64 {
        self.headers[line as usize].load(Ordering::Acquire)
    }
    fn publish(&self, line: u32, header: u64) {
        self.headers[line as usize].store(header, Ordering::Release);
    }
    fn read(&self) -> u32 {
        self.read.load(Ordering::Acquire)
    }
    fn publish_read(&self, position: u32) {
        self.read.store(position, Ordering::Release);
    }
}

fn produce(ring: &Ring, count: u32) {
    let mut producer = Producer::new();
    for n in 0..count {
        let line = loop {
            match producer.claim(ring).unwrap() {
                Some(line) => break line,
                None => thread::yield_now(),
            }
        };
        // SAFETY: the line is claimed, so no other thread touches it; loom checks that.
        ring.payload[line as usize].with_mut(|word| unsafe { *word = 100 + n });
        let header = Header {
            kind: 1,
            flags: 0,
            length: n,
        };
        producer.publish(ring, header);
    }
}

fn consume(ring: &Ring, count: u32) {
    let mut consumer = Consumer::new();
    for n in 0..count {
        let (line, header) = loop {
            match consumer.peek(ring).unwrap() {
                Some(found) => break found,
                None => thread::yield_now(),
            }
        };
        // SAFETY: the line is full and not taken, so no other thread writes it; loom checks that.
        let word = ring.payload[line as usize].with(|word| unsafe { *word });
        assert_eq!((header.length, word), (n, 100 + n));
        consumer.take(ring);
    }
    assert!(consumer.peek(ring).unwrap().is_none());
}

#[test]
fn a_ring_of_four_lines_wraps_around() {
    every_order(3, 100, || {
        const MESSAGES: u32 = 6;
        let ring = Arc::new(Ring::new());
        let there = ring.clone();
        let producer = thread::spawn(move || produce(&there, MESSAGES));
        consume(&ring, MESSAGES);
        producer.join().unwrap();
    });
}

/// The bell only orders sleep and work: the message is one relaxed word.
#[test]
fn a_ring_of_the_bell_is_never_lost() {
    every_order(5, 100, || {
        let payers: &'static Payers = Box::leak(Box::default());
        payers.begin(true);
        // SAFETY: `payers` is never dropped.
        let fenced = unsafe { Fencing::of_job(payers) };
        let shared = Arc::new((Bell::default(), AtomicU32::new(0)));
        let there = shared.clone();
        let sender = thread::spawn(move || {
            for n in 1..=2 {
                there.1.store(n, Ordering::Relaxed);
                there.0.ring(fenced);
            }
        });
        for n in 1..=2 {
            let come = || shared.1.load(Ordering::Relaxed) >= n;
            while !come() {
                shared.0.sleep(fenced, None, come);
            }
        }
        sender.join().unwrap();
    });
}

/// Members that publish once each, and one that sleeps until both have published.
#[derive(Default)]
struct Awaited {
    bell: Bell,
    request: WakeRequest,
    published: [AtomicU32; 2],
}

impl Awaited {
    fn publish(&self, member: u32, fenced: Fencing) {
        self.published[member as usize].store(1, Ordering::Relaxed);
        fenced.before_look();
        if self.request.names(member) {
            self.bell.wake();
        }
    }

    /// Checks the members from `at` on. Returns whether all have published.
    fn look(&self, at: &mut usize) -> bool {
        let has = |word: &AtomicU32| word.load(Ordering::Relaxed) == 1;
        while self.published.get(*at).is_some_and(has) {
            *at += 1;
        }
        *at == self.published.len()
    }
}

#[test]
fn whoever_waits_for_one_after_the_other_is_woken_by_the_last() {
    every_order(3, 100, || {
        let payers: &'static Payers = Box::leak(Box::default());
        payers.begin(true);
        // SAFETY: `payers` is never dropped.
        let fenced = unsafe { Fencing::of_job(payers) };
        let shared = Arc::new(Awaited::default());
        let publishers: Vec<_> = (0..2)
            .map(|member| {
                let there = shared.clone();
                thread::spawn(move || there.publish(member, fenced))
            })
            .collect();
        let mut at = 0;
        while !shared.look(&mut at) {
            shared.request.name(Some(at as u32));
            shared.bell.sleep(fenced, None, || {
                shared.look(&mut at) || !shared.request.name(Some(at as u32))
            });
        }
        publishers.into_iter().for_each(|one| one.join().unwrap());
    });
}

/// A pipe of two bytes and a message of three, one byte per turn.
struct Piped {
    control: Control,
    data: [UnsafeCell<u8>; SIZE],
    message: [UnsafeCell<u8>; TOTAL],
    /// The message, if its address is not 0.
    copy: [UnsafeCell<u8>; TOTAL],
}

const SIZE: usize = 2;
const TOTAL: usize = 3;

impl Piped {
    fn new() -> Piped {
        Piped {
            control: Control::default(),
            data: std::array::from_fn(|_| UnsafeCell::new(0)),
            message: std::array::from_fn(|n| UnsafeCell::new(10 + n as u8)),
            copy: std::array::from_fn(|_| UnsafeCell::new(0)),
        }
    }

    /// Gives the pipe back, which no other thread may hold any more; loom reports it if one does.
    fn give_back(&self) {
        for byte in &self.data {
            // SAFETY: this thread owns the pipe; loom checks that.
            byte.with_mut(|byte| unsafe { *byte = 0 });
        }
        self.control.reset();
    }

    /// Copies the message and sets its new address. Returns `false` if the receiver has taken it over.
    fn move_message(&self) -> bool {
        match self.control.enter().unwrap() {
            None => {
                for (from, to) in self.message.iter().zip(&self.copy) {
                    // SAFETY: both belong to the sender; loom checks that.
                    let byte = from.with(|byte| unsafe { *byte });
                    to.with_mut(|into| unsafe { *into = byte });
                    // SAFETY: the old memory may be overwritten by its owner from now on; loom checks that.
                    from.with_mut(|byte| unsafe { *byte = 0 });
                }
                self.control.set_address(1);
                self.control.leave(0, false);
                true
            }
            Some(_) => false,
        }
    }

    /// Runs the sender, until its buffer may be reused.
    fn send(&self) {
        self.send_from(&self.message);
    }

    fn send_from(&self, message: &[UnsafeCell<u8>; TOTAL]) {
        let mut at = 0;
        let last = loop {
            match self.control.enter().unwrap() {
                Some(Filled::TakenOver) => thread::yield_now(),
                Some(last) => break last,
                None => {
                    let room = at - (self.control.drained() as usize) < SIZE;
                    if room {
                        // SAFETY: the sender may read the message, and the byte has been drained; loom checks both.
                        let byte = message[at].with(|byte| unsafe { *byte });
                        self.data[at % SIZE].with_mut(|into| unsafe { *into = byte });
                        at += 1;
                    }
                    self.control.leave(at as u64, at == TOTAL);
                    if at == TOTAL {
                        break Filled::All;
                    }
                    if !room {
                        thread::yield_now();
                    }
                }
            }
        };
        for byte in message {
            // SAFETY: the message has been sent; loom reports it if the receiver still reads it.
            byte.with_mut(|byte| unsafe { *byte = 0 });
        }
        if last == Filled::Pulled {
            self.give_back();
        }
    }

    /// Runs the receiver of a message that may be withdrawn. Returns `true` if it was faster and took over.
    fn receive_until(&self, withdrawn: &AtomicU32, impatient: bool) -> bool {
        let mut at = 0;
        loop {
            while at < self.control.filled() {
                // SAFETY: filled and not drained; loom checks that.
                self.data[at as usize % SIZE].with(|byte| unsafe { *byte });
                at += 1;
                self.control.publish_drained(at);
            }
            // Bytes that were read from the sender's memory then may be invalid; the kernel reads them.
            if impatient && self.control.take_over() && self.control.end_take_over(true) {
                return true;
            }
            if withdrawn.load(Ordering::Acquire) == 1 {
                return false;
            }
            thread::yield_now();
        }
    }

    /// Runs the receiver. If `impatient`, it takes over as soon as it finds nothing.
    fn receive(&self, impatient: bool) -> Vec<u8> {
        let mut got = Vec::new();
        let mut taken_over = false;
        while got.len() < TOTAL {
            while (got.len() as u64) < self.control.filled() {
                // SAFETY: filled and not drained; loom checks that.
                let byte = self.data[got.len() % SIZE].with(|byte| unsafe { *byte });
                got.push(byte);
                self.control.publish_drained(got.len() as u64);
            }
            if taken_over {
                let message = match self.control.address() {
                    0 => &self.message,
                    _ => &self.copy,
                };
                for byte in &message[got.len()..] {
                    // SAFETY: taken over, so the sender does not touch the message; loom checks that.
                    got.push(byte.with(|byte| unsafe { *byte }));
                }
                assert!(self.control.end_take_over(true));
                return got;
            }
            if got.len() < TOTAL {
                taken_over = impatient && self.control.take_over();
                if !taken_over {
                    thread::yield_now();
                }
            }
        }
        self.give_back();
        got
    }
}

/// A sender puts one byte in, then withdraws the message and says so; the side that gives the pipe back is the last to
/// touch it.
fn taken_back(impatient: bool) {
    let pipe = Arc::new(Piped::new());
    let withdrawn = Arc::new(AtomicU32::new(0));
    let (there, word) = (pipe.clone(), withdrawn.clone());
    let sender = thread::spawn(move || {
        if there.control.enter().unwrap().is_none() {
            // SAFETY: the sender may read the message, and nothing is in; loom checks both.
            let byte = there.message[0].with(|byte| unsafe { *byte });
            there.data[0].with_mut(|into| unsafe { *into = byte });
            there.control.leave(1, false);
        }
        if there.control.give_up() == GivenUp::Senders {
            there.give_back();
        }
        word.store(1, Ordering::Release);
    });
    let taken_over = pipe.receive_until(&withdrawn, impatient);
    sender.join().unwrap();
    if !taken_over {
        pipe.give_back();
    }
    assert_eq!(pipe.control.enter().unwrap(), None, "given back");
}

#[test]
fn a_message_that_was_taken_back_leaves_its_pipe_to_one_side() {
    // Few orders: the two threads interact little.
    every_order(3, 40, || taken_back(false));
    every_order(3, 60, || taken_back(true));
}

fn through_a_pipe(impatient: bool) {
    let pipe = Arc::new(Piped::new());
    let there = pipe.clone();
    let sender = thread::spawn(move || there.send());
    assert_eq!(pipe.receive(impatient), [10, 11, 12]);
    sender.join().unwrap();
    // The task that gave the pipe back was the last to touch it, so it is reset.
    assert_eq!((pipe.control.filled(), pipe.control.drained()), (0, 0));
    assert_eq!(pipe.control.enter().unwrap(), None);
}

/// A sender that copies the message before any byte was sent, if it may, and sends the copy.
fn from_a_copy(impatient: bool) {
    let pipe = Arc::new(Piped::new());
    let there = pipe.clone();
    let sender = thread::spawn(move || match there.move_message() {
        true => there.send_from(&there.copy),
        false => there.send(),
    });
    assert_eq!(pipe.receive(impatient), [10, 11, 12]);
    sender.join().unwrap();
    assert_eq!(pipe.control.enter().unwrap(), None);
}

#[test]
fn a_message_that_moves_is_read_where_it_is() {
    every_order(3, 100, || from_a_copy(false));
    every_order(3, 100, || from_a_copy(true));
}

#[test]
fn a_pipe_carries_a_message_longer_than_itself() {
    every_order(3, 100, || through_a_pipe(false));
}

#[test]
fn a_message_is_taken_over_or_not_and_arrives_once() {
    every_order(3, 100, || through_a_pipe(true));
}

/// A shared barrier that is lent and withdrawn.
#[derive(Default)]
struct Lent {
    word: Word,
    lines: [Word; 2],
}

const ROUNDS: u32 = 2;

impl Lent {
    fn barrier(&self) -> SharedBarrier<'_> {
        SharedBarrier::of(&self.word, &self.lines)
    }

    /// Lets a member meet the other a few times. Returns its last round, and whether it was counted in it.
    fn meet(&self, place: u32) -> (u32, bool) {
        for round in 0..ROUNDS {
            let mut passage = self.barrier().come(place, round, place + 1);
            let counted = passage != Crossing::Shut;
            while passage == Crossing::Waiting {
                thread::yield_now();
                passage = self.barrier().look(round);
            }
            if passage == Crossing::Shut {
                return (round, counted);
            }
        }
        (ROUNDS, false)
    }
}

#[test]
fn all_agree_on_the_last_round_of_a_shared_barrier_and_nobody_is_forgotten() {
    every_order(3, 100, || {
        let lent = Arc::new(Lent::default());
        let members: Vec<_> = (0..2)
            .map(|place| {
                let there = lent.clone();
                thread::spawn(move || there.meet(place))
            })
            .collect();
        let found = lent.barrier().shut();
        let ends: Vec<_> = members.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(ends[0].0, ends[1].0, "the round they have come to");
        for (place, &(_, counted)) in (0..).zip(&ends) {
            assert!(!counted || found.contains(&(place, place + 1)));
        }
        assert!(
            ends[0].0 < ROUNDS || found.is_empty(),
            "those of a round that was met"
        );
    });
}

/// A block whose memory is a cell, and four tasks that may be gone.
struct Owned {
    block: Block,
    memory: UnsafeCell<u32>,
    gone: [AtomicU32; 4],
    /// Number of tasks that have got the memory.
    users: AtomicU32,
}

impl Owned {
    fn new(owner: u32) -> Owned {
        let block = Block::default();
        block.begin(64, owner);
        Owned {
            block,
            memory: UnsafeCell::new(0),
            gone: std::array::from_fn(|_| AtomicU32::new(0)),
            users: AtomicU32::new(0),
        }
    }

    fn is_gone(&self, task: u32) -> bool {
        self.gone[task as usize].load(Ordering::Acquire) != 0
    }

    fn go(&self, task: u32) {
        self.gone[task as usize].store(1, Ordering::Release);
    }

    fn write(&self, task: u32) {
        // SAFETY: by the protocol no other thread touches the memory; loom checks that.
        self.memory.with_mut(|word| unsafe { *word = task });
    }

    fn claim(&self, task: u32) {
        let claimed = self.block.claim(task, |other| self.is_gone(other));
        if claimed.is_some() {
            self.write(task);
            self.users.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Starts two tasks that claim the block.
fn claimers(owned: &Arc<Owned>) -> Vec<thread::JoinHandle<()>> {
    let claimer = |task| {
        let there = owned.clone();
        thread::spawn(move || there.claim(task))
    };
    (1..3).map(claimer).collect()
}

/// Checks that in the end exactly one task has the block: a claimer, a later claimer, or the owner.
fn one_user(owned: &Owned, claimers: Vec<thread::JoinHandle<()>>) {
    claimers.into_iter().for_each(|one| one.join().unwrap());
    owned.claim(3);
    assert_eq!(owned.users.load(Ordering::Relaxed), 1);
}

/// The owner writes, releases the memory and frees the block; it is gone after that, or after this many of these steps.
fn ends_after(steps: u32) {
    every_order(2, 20, move || {
        let owned = Arc::new(Owned::new(0));
        let claimers = claimers(&owned);
        owned.write(0);
        match steps {
            0 => {}
            // Dead within `let_go`, before its store.
            1 => owned.write(0),
            _ => owned.block.let_go(0, || owned.write(0)),
        }
        owned.go(0);
        one_user(&owned, claimers);
    });
}

#[test]
fn a_block_of_a_task_that_ends_at_any_instruction_has_one_next_owner() {
    (0..3).for_each(ends_after);
}

#[test]
fn a_block_that_is_kept_has_one_next_user() {
    every_order(2, 20, || {
        let owned = Arc::new(Owned::new(0));
        let claimers = claimers(&owned);
        owned.write(0);
        assert!(owned.block.keep(0));
        if owned.block.reuse(0) {
            owned.write(0);
            owned.users.fetch_add(1, Ordering::Relaxed);
        }
        one_user(&owned, claimers);
    });
}

#[test]
fn a_block_under_way_has_one_owner_whoever_dies() {
    every_order(2, 20, || {
        let owned = Arc::new(Owned::new(0));
        let message = Arc::new(AtomicU32::new(0));
        let receiver = {
            let (owned, message) = (owned.clone(), message.clone());
            thread::spawn(move || {
                let came = message.load(Ordering::Acquire) != 0;
                if came && owned.block.arrive(1, 0) {
                    owned.write(1);
                }
                owned.go(1);
            })
        };
        let next_owner = {
            let owned = owned.clone();
            thread::spawn(move || owned.claim(2))
        };
        owned.write(0);
        assert!(owned.block.send(0, 1));
        if owned.is_gone(1) {
            // The send is refused, and the sender has the block again unless it has a next owner.
            if owned.block.take_back(0, 1) {
                owned.write(0);
                owned.go(0);
            }
        } else {
            message.store(1, Ordering::Release);
        }
        receiver.join().unwrap();
        next_owner.join().unwrap();
        owned.claim(3);
        assert_eq!(owned.users.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn whoever_reads_a_count_of_losses_finds_the_states_it_counts() {
    every_order(3, 20, || {
        let shared = Arc::new((Losses::default(), AtomicU32::new(0), AtomicU32::new(0)));
        let lose = |first: bool| {
            let there = shared.clone();
            thread::spawn(move || {
                let state = if first { &there.1 } else { &there.2 };
                state.store(1, Ordering::Relaxed);
                there.0.add();
            })
        };
        let (one, two) = (lose(true), lose(false));
        let count = shared.0.count();
        let found = shared.1.load(Ordering::Relaxed) + shared.2.load(Ordering::Relaxed);
        assert!(found >= count, "{found} of {count}");
        one.join().unwrap();
        two.join().unwrap();
    });
}

#[test]
fn a_piece_that_two_are_done_with_has_one_next_use() {
    every_order(2, 20, || {
        let shared = Arc::new((Ends::default(), UnsafeCell::new(0), AtomicU32::new(0)));
        let of = shared.0.begin(1, 2);
        let claimers: Vec<_> = (3..5)
            .map(|task| {
                let there = shared.clone();
                thread::spawn(move || {
                    let gone = |other: u32| other == 2 && there.2.load(Ordering::Acquire) != 0;
                    let claimed = there.0.claim(task, task, gone).is_some();
                    if claimed {
                        // SAFETY: no other thread touches the piece; loom checks that.
                        there.1.with_mut(|word| unsafe { *word = task });
                    }
                    claimed as u32
                })
            })
            .collect();
        // SAFETY: this thread is the source of the current use.
        shared.1.with_mut(|word| unsafe { *word = 1 });
        shared.0.finish(of, End::Source);
        shared.2.store(1, Ordering::Release);
        let claims: u32 = claimers.into_iter().map(|one| one.join().unwrap()).sum();
        let last = shared.0.claim(5, 5, |other| other == 2).is_some() as u32;
        assert_eq!(claims + last, 1);
    });
}

#[test]
fn a_piece_whose_use_one_end_ends_has_one_next_user() {
    every_order(3, 20, || {
        let shared = Arc::new((Ends::default(), UnsafeCell::new(0)));
        let of = shared.0.begin(1, 2);
        let (other, claimer) = (shared.clone(), shared.clone());
        let sender = thread::spawn(move || {
            other.0.finish(of, End::Source);
            // The message could not be sent after all.
            let away = other.0.end(of) && other.0.claim(3, 4, |_| false).is_some();
            if away {
                // SAFETY: no other thread touches the piece; loom checks that.
                other.1.with_mut(|word| unsafe { *word = 1 });
            }
            away
        });
        let third = thread::spawn(move || {
            // The receiver is gone.
            let claimed = claimer.0.claim(5, 6, |task| task == 2).is_some();
            if claimed {
                // SAFETY: no other thread touches the piece; loom checks that.
                claimer.1.with_mut(|word| unsafe { *word = 5 });
            }
            claimed
        });
        // A receiver that was late.
        shared.0.finish(of, End::Destination);
        let (away, claimed) = (sender.join().unwrap(), third.join().unwrap());
        assert!(away != claimed);
        let source = if away { 3 } else { 5 };
        assert_eq!(shared.0.present().map(|of| of.source()), Some(source));
        // The destination of the new use has not finished, whatever was stored for the old use.
        assert_eq!(shared.0.claim(7, 8, |task| task == source), None);
    });
}

/// The allocator's word, and the records of two tasks.
#[derive(Default)]
struct Handed {
    next: Next,
    makings: [Making; 2],
}

impl Handed {
    fn making(&self, task: u32) -> Option<&Making> {
        self.makings.get(task as usize)
    }

    /// Lets a task take 64 bytes and list them; it dies after this many steps. Returns the offset, if they were taken,
    /// and whether they were listed.
    fn take(&self, task: u32, steps: u32) -> Option<(u64, bool)> {
        loop {
            let seen = self.next.look(|task| self.making(task));
            if steps == 0 {
                return None;
            }
            let making = &self.makings[task as usize];
            making.begin(task as u8, seen.place(), seen.place() + 64);
            if steps == 1 {
                return None;
            }
            if self.next.take(seen, seen.place() + 64, Some(task)) {
                if steps == 2 {
                    return Some((seen.place(), false));
                }
                making.end();
                return Some((seen.place(), true));
            }
            making.end();
        }
    }
}

/// One task is killed after this many steps while another one takes memory twice. The cleanup finds what the first had
/// taken.
fn taker_dies_after(steps: u32) {
    every_order(2, 5, move || {
        let handed = Arc::new(Handed::default());
        let there = handed.clone();
        let other = thread::spawn(move || [there.take(1, 3), there.take(1, 3)]);
        let there = handed.clone();
        let killed = thread::spawn(move || there.take(0, steps));
        let had = killed.join().unwrap();
        let left = handed.next.left_by(0, |task| handed.making(task));
        let expected = had.and_then(|(start, listed)| (!listed).then_some(start));
        assert_eq!(left.map(|left| left.start), expected);
        assert!(left.is_none_or(|left| (left.kind, left.end - left.start) == (0, 64)));
        let others = other.join().unwrap();
        let end = handed.next.look(|task| handed.making(task)).place();
        let pieces = others.iter().flatten().count() + had.iter().count();
        assert_eq!(end, 64 * pieces as u64, "every byte is somebody's");
        assert!(handed.next.left_by(1, |task| handed.making(task)).is_none());
    });
}

#[test]
fn memory_of_a_task_that_dies_between_taking_and_listing_is_known() {
    (0..4).for_each(taker_dies_after);
}
