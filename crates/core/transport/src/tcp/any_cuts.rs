//! Two links whose connections are cut and made at any time, several at once, which the two sides adopt in different
//! order. Bypasses beside the connections lose or delay anything. Frames must arrive once and in order, each byte of
//! a message must be in its place, and neither link may report a fault in what the other sent.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use proptest::prelude::*;
use regatta_connection::channel::Channel;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};
use rustix::net::sockopt;

use super::bypass::REPEAT_AFTER;
use super::bypass_tests::{Dice, Way, deliver};
use super::front_tests::channels;
use super::link::{Link, Trouble};

const STEPS: u32 = 8000;
/// Steps of a spell; new messages are offered in its first fifth.
const SPELL: u32 = 2000;
/// Maximum number of connections that wait to be adopted.
const PENDING: usize = 3;

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Offer { id: u32, length: usize },
    Withdrawn { id: u32 },
    Declined { id: u32 },
    Nothing,
}

/// Returns the bytes of a message.
fn bytes_of(id: u32, length: usize) -> Vec<u8> {
    let at = |at: usize| (id as usize * 31 + at * 7 + (at >> 8)) as u8;
    (0..length).map(at).collect()
}

fn views(bytes: &mut [u8]) -> Views {
    // SAFETY: a side keeps the bytes until its link does not use them any more.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

struct Side {
    link: Link,
    pending: Vec<Channel>,
    unsaid: VecDeque<Word>,
    /// Number of frames sent; `taken` counts those received.
    sent: i32,
    taken: i32,
    /// The streams and their memory.
    outs: Vec<(u32, Vec<u8>)>,
    offers: Vec<(u32, usize)>,
    ins: Vec<(u32, Vec<u8>)>,
    /// Memory that the link must no longer read.
    reused: Vec<Vec<u8>>,
    complete: u32,
    way: Way,
    /// The time that its ticks are given.
    now: Instant,
}

impl Side {
    fn new() -> Side {
        Side {
            link: Link::new(),
            pending: Vec::new(),
            unsaid: VecDeque::new(),
            sent: 0,
            taken: 0,
            outs: Vec::new(),
            offers: Vec::new(),
            ins: Vec::new(),
            reused: Vec::new(),
            complete: 0,
            way: Way::new(),
            now: Instant::now(),
        }
    }

    fn adopt(&mut self, channel: Channel) {
        match self.link.adopt(channel, true) {
            Ok(()) => self.begin(),
            Err(trouble) => self.link.trouble(trouble),
        }
    }

    /// Begins the connection. A connection that ends before it has begun is not tried again here.
    fn begin(&mut self) {
        if self.link.begin().is_err() {
            self.link.trouble(Trouble::Lost);
        }
    }

    fn offer(&mut self, dice: &mut Dice) {
        let most = [2000, 70_000, 600_000][dice.roll(3)];
        let length = 1 + dice.roll(most);
        let Some(id) = self.link.open_out(&Views::none()) else {
            return;
        };
        let mut bytes = bytes_of(id, length);
        self.link.streams.out(id).unwrap().message = Some(views(&mut bytes));
        self.outs.push((id, bytes));
        self.unsaid.push_back(Word::Offer { id, length });
    }

    /// Sends the pending words for which there is room.
    fn say(&mut self) {
        while let Some(&word) = self.unsaid.front() {
            let (kind, id, length) = match word {
                Word::Offer { id, length } => (0, id, length),
                Word::Withdrawn { id } => (1, id, 0),
                Word::Declined { id } => (2, id, 0),
                Word::Nothing => (3, 0, 0),
            };
            let mut body = vec![kind];
            body.extend_from_slice(&id.to_le_bytes());
            body.extend_from_slice(&(length as u32).to_le_bytes());
            body.resize(body.len() + id as usize * 37 % 3000, 0);
            if !self.link.outbox.has_room(body.len()) {
                return;
            }
            let frame = Frame {
                kind: Kind::Eager,
                context: 5,
                tag: self.sent,
            };
            self.sent += 1;
            self.link.send(frame, &views(&mut body));
            self.unsaid.pop_front();
        }
    }

    /// Receives a frame, if one has arrived.
    fn hear(&mut self) {
        let Some(head) = self.link.front() else {
            return;
        };
        assert_eq!(head.tag, self.taken, "a frame is lost or comes twice");
        self.taken += 1;
        let body = self.link.inbox.payload(&head);
        let number = |at: usize| u32::from_le_bytes(*body[at..].first_chunk().unwrap());
        let (kind, id, length) = (body[0], number(1), number(5) as usize);
        self.link.take(&head);
        match kind {
            0 => self.offers.push((id, length)),
            1 => {
                if let Some(at) = self.offers.iter().position(|one| one.0 == id) {
                    self.offers.remove(at);
                    self.link.attach_in(id).unwrap();
                }
                self.ins.retain(|one| one.0 != id);
                self.link.abandon_in(id);
            }
            2 => {
                self.link.retract(id, false);
                self.outs.retain(|one| one.0 != id);
            }
            _ => {}
        }
    }

    /// Receives an offered message, or declines it.
    fn receive(&mut self, dice: &mut Dice) {
        if self.offers.is_empty() {
            return;
        }
        let (id, length) = self.offers.remove(dice.roll(self.offers.len()));
        if dice.roll(12) == 0 {
            self.link.decline(id).unwrap();
            return self.unsaid.push_back(Word::Declined { id });
        }
        self.link.attach_in(id).unwrap();
        self.link.pump(0);
        self.ins.push((id, vec![0; length]));
    }

    /// Fills a stream as `Tcp::fill` does.
    fn fill(&mut self, at: usize) {
        let id = self.outs[at].0;
        let moved = self.link.try_pump(2).unwrap_or_else(|trouble| {
            self.link.trouble(trouble);
            false
        });
        if !moved {
            self.link.receive();
        }
        let stream = self.link.streams.out(id).expect("a stream of ours");
        if stream.complete {
            self.link.end_out(id);
            let (_, mut bytes) = self.outs.swap_remove(at);
            assert!(!self.link.outbox.reads(&bytes.as_ptr_range()));
            bytes.fill(0xee);
            self.reused.push(bytes);
            self.complete += 1;
        }
    }

    /// Copies the part of a message that the link may still read, and continues from the copy.
    fn copy_rest(&mut self, at: usize) {
        let (id, bytes) = &mut self.outs[at];
        let stream = self.link.streams.out(*id).expect("a stream of ours");
        let sent = stream.sent();
        assert!(sent.for_good <= sent.bytes);
        let mut copy = bytes.clone();
        copy[..sent.for_good as usize].fill(0xee);
        self.link.move_out(*id, &views(&mut copy));
        let mut before = std::mem::replace(bytes, copy);
        assert!(!self.link.outbox.reads(&before.as_ptr_range()));
        before.fill(0xee);
        self.reused.push(before);
    }

    /// Drains a stream as `Tcp::drain` does.
    fn drain(&mut self, at: usize) {
        let (id, place) = &mut self.ins[at];
        let (id, into) = (*id, views(place));
        self.link.streams.in_stream(id).unwrap().release(&into);
        if let Err(trouble) = self.link.pull(id, &into) {
            self.link.trouble(trouble);
        }
        let stream = self.link.streams.in_stream(id).unwrap();
        stream.release(&into);
        if stream.cancelled && stream.received < into.len() as u64 {
            return;
        }
        stream.extend(into.len() as u64);
        let end = stream.total;
        if let Some(end) = end {
            let (_, place) = self.ins.swap_remove(at);
            assert_eq!(end, place.len() as u64);
            assert!(place == bytes_of(id, place.len()), "a byte is out of place");
            self.link.streams.release_in(id);
        }
        self.link.pump(0);
    }

    /// Withdraws a message, whether it has been offered or not.
    fn withdraw(&mut self, at: usize) {
        let (id, bytes) = self.outs.swap_remove(at);
        let is_it = |word: &Word| matches!(word, Word::Offer { id: offered, .. } if *offered == id);
        match self.unsaid.iter().position(is_it) {
            Some(unsaid) => {
                self.unsaid.remove(unsaid);
                self.link.retract(id, false);
            }
            None => {
                self.link.abandon_out(id, false);
                self.unsaid.push_back(Word::Withdrawn { id });
            }
        }
        assert!(!self.link.outbox.reads(&bytes.as_ptr_range()));
    }

    fn look(&mut self) {
        match self.link.state.is_resuming() {
            true => self.begin(),
            false => self.link.receive(),
        }
        self.link.pump(0);
    }

    /// Takes a random step. In the spells without new messages a bypass can be used.
    fn step(&mut self, dice: &mut Dice, calm: usize, quiet: bool) {
        match dice.roll(20) {
            0..3 if quiet => self.unsaid.push_back(Word::Nothing),
            0..3 => self.offer(dice),
            3..6 if !self.outs.is_empty() => self.fill(dice.roll(self.outs.len())),
            6..9 if !self.ins.is_empty() => self.drain(dice.roll(self.ins.len())),
            9..11 => self.receive(dice),
            11..14 => (0..dice.roll(20)).for_each(|_| self.hear()),
            14 if !self.outs.is_empty() && dice.roll(8) == 0 => {
                self.withdraw(dice.roll(self.outs.len()));
            }
            14 if !self.outs.is_empty() && dice.roll(4) == 0 => {
                self.copy_rest(dice.roll(self.outs.len()));
            }
            15 if dice.roll(calm) == 0 => self.link.trouble(Trouble::Lost),
            16 if !self.pending.is_empty() => {
                let channel = self.pending.remove(dice.roll(self.pending.len()));
                self.adopt(channel);
            }
            17 => self.say(),
            18 if dice.roll(4) == 0 => {
                self.now += REPEAT_AFTER;
                self.link.tick_bypass(self.now);
            }
            19 if dice.roll(8) == 0 => {
                self.link.confirm_taken();
                self.link.repeat_by_connection();
            }
            _ => self.look(),
        }
        assert_eq!(self.link.state.fault(), None);
    }
}

/// Delivers, delays, repeats or loses frames of a side's bypass.
fn carry([one, other]: [&mut Side; 2], dice: &mut Dice) {
    if one.link.negotiation.is_due() || (one.link.is_open() && dice.roll(30) == 0) {
        one.way.tend(&mut one.link, 1);
    }
    one.way.collect();
    let frames = &mut one.way.frames;
    if frames.is_empty() {
        return;
    }
    match dice.roll(30) {
        0 => frames.clear(),
        1 => deliver(&frames[dice.roll(frames.len())], &mut other.link),
        2..4 => deliver(
            &frames.swap_remove(dice.roll(frames.len())),
            &mut other.link,
        ),
        4..12 => {}
        _ => frames
            .drain(..)
            .for_each(|frame| deliver(&frame, &mut other.link)),
    }
    assert_eq!(other.link.state.fault(), None);
}

/// Makes a new connection for both sides, whose sockets take little or much at a time, encrypted or not.
fn connect(sides: &mut [Side; 2], dice: &mut Dice) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    for socket in [&ours, &theirs] {
        sockopt::set_socket_send_buffer_size(socket, 2048 << dice.roll(8)).unwrap();
    }
    let channels = channels([ours, theirs], dice.roll(2) == 0);
    for (side, channel) in sides.iter_mut().zip(channels) {
        // A connection that is not adopted in time is given up.
        if side.pending.len() == PENDING || dice.roll(3) > 0 {
            side.pending.clear();
        }
        side.pending.push(channel);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nothing_is_lost_doubled_or_out_of_place_whatever_is_cut(seed in 1u64.., calm in 3usize..300) {
        let (mut dice, mut sides) = (Dice(seed), [Side::new(), Side::new()]);
        for step in 0..STEPS {
            let at = dice.roll(2);
            sides[at].step(&mut dice, calm, step % SPELL > SPELL / 5);
            let [first, second] = &mut sides;
            match dice.roll(2) {
                0 => carry([first, second], &mut dice),
                _ => carry([second, first], &mut dice),
            }
            let is_down = sides.iter().any(|side| !side.link.is_open());
            let is_waiting = sides.iter().any(|side| !side.pending.is_empty());
            if (is_down && !is_waiting && dice.roll(10) == 0) || dice.roll(100 * calm) == 0 {
                connect(&mut sides, &mut dice);
            }
        }
        prop_assert!(sides.iter().map(|side| side.complete).sum::<u32>() > 0);
    }
}
