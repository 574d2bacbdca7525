//! Bypasses beside connections: whatever happens to their frames, the link receives everything once and in order,
//! nothing in between can read or add anything, and a peer that has the key may send anything.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Instant;

use proptest::prelude::*;
use regatta_connection::channel::Channel;
use regatta_connection::packet_socket::Sender;
use regatta_memory::ticks::{ticks, ticks_of};
use regatta_memory::views::Views;
use regatta_wire::bypass::{FRONT_BYTES, Offer, WORD_BYTES, Word, split};
use regatta_wire::link::{HEAD, Head, Parcel};
use regatta_wire::{Frame, Kind};

use super::bypass::{CONNECTION_CHECK_INTERVAL_MICROSECONDS, REPEAT_AFTER, WINDOW_FRAMES};
use super::early::MAX_AHEAD_BYTES;
use super::front_tests::sessions;
use super::link::{Link, Trouble};
use super::outbox::Outbox;

/// Pseudo-random choices, determined by the seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

/// The path of a side's frames to the other side.
pub(super) struct Way {
    sender: Sender,
    out: UnixDatagram,
    /// Frames in transit; `seen` has all frames ever sent.
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) seen: Vec<Vec<u8>>,
}

impl Way {
    pub(super) fn new() -> Way {
        let (ours, out) = UnixDatagram::pair().unwrap();
        out.set_nonblocking(true).unwrap();
        Way {
            sender: Sender::new(OwnedFd::from(ours)),
            out,
            frames: Vec::new(),
            seen: Vec::new(),
        }
    }

    pub(super) fn collect(&mut self) {
        let mut room = [0; 4096];
        while let Ok(n) = self.out.recv(&mut room) {
            self.frames.push(room[..n].to_vec());
            self.seen.push(room[..n].to_vec());
        }
    }

    /// Offers or completes a bypass, as `Tcp::tend_bypass` does.
    pub(super) fn tend(&self, link: &mut Link, slot: u8) {
        link.negotiation.begin();
        let offer = Offer {
            mac: [2, 0, 0, 0, 0, slot],
            mtu: 1500,
            tag: slot.into(),
            slot,
        };
        if link.bypass.is_none() && link.set_up_bypass(self.sender.clone(), &offer).is_none() {
            return;
        }
        if let Some(offer) = link.negotiation.take_offer() {
            link.meet_bypass(&offer);
        }
    }
}

pub(super) fn deliver(frame: &[u8], link: &mut Link) {
    if let Some((slot, number, sealed)) = split(frame) {
        link.take_frame(slot, number, sealed);
    }
}

/// Two links with bypass paths beside their connection.
struct Pair {
    links: [Link; 2],
    ways: [Way; 2],
    /// Number of frames that each side has sent; `heard` counts those each has received.
    said: [i32; 2],
    heard: [i32; 2],
    /// Number of frames sent by the bypass.
    by_bypass: u32,
    /// One of this many events on frames is something other than their arrival.
    harsh: usize,
    /// Number of times that frames waited for the connection.
    early: u32,
    /// The time that ticks are given.
    now: Instant,
}

fn length_of(number: i32) -> usize {
    number as usize * 389 % if number % 50 == 0 { 3000 } else { 60 }
}

fn body_of(number: i32) -> Vec<u8> {
    (0..length_of(number))
        .map(|at| (at as i32 ^ number) as u8)
        .collect()
}

impl Pair {
    /// Makes a connected pair. Keys change after this many records.
    fn new(records: u64) -> Pair {
        let mut pair = Pair {
            links: [Link::new(), Link::new()],
            ways: [Way::new(), Way::new()],
            said: [0; 2],
            heard: [0; 2],
            by_bypass: 0,
            harsh: 1,
            early: 0,
            now: Instant::now(),
        };
        pair.connect(records);
        pair
    }

    fn connect(&mut self, records: u64) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for ((link, socket), session) in self
            .links
            .iter_mut()
            .zip([ours, theirs])
            .zip(sessions(records))
        {
            socket.set_nonblocking(true).unwrap();
            let mut channel = Channel::plain(OwnedFd::from(socket));
            channel.secure(session);
            link.adopt(channel, true).unwrap();
        }
        for link in &mut self.links {
            link.begin().unwrap();
        }
    }

    /// Ticks, long enough after the last tick for frames that it found unconfirmed to be repeated.
    fn tick(&mut self, at: usize) {
        self.now += REPEAT_AFTER;
        self.links[at].tick_bypass(self.now);
    }

    fn say(&mut self, at: usize) {
        let number = self.said[at];
        let mut body = body_of(number);
        let link = &mut self.links[at];
        if !link.outbox.has_room(body.len()) {
            return;
        }
        let frame = Frame {
            kind: Kind::Eager,
            context: 9,
            tag: number,
        };
        self.said[at] += 1;
        let before = link.outbox.is_written();
        // SAFETY: the bytes live across the call, which copies them.
        let payload = unsafe { Views::block(body.as_mut_ptr(), body.len()) };
        link.send(frame, &payload);
        self.by_bypass += u32::from(before && link.outbox.is_unsure());
    }

    /// Takes the frames that have arrived.
    fn hear(&mut self, at: usize) {
        let link = &mut self.links[at];
        while let Some(head) = link.front() {
            assert_eq!(head.tag, self.heard[at], "lost, doubled, or out of order");
            assert!(
                link.inbox.payload(&head) == body_of(head.tag),
                "another body"
            );
            self.heard[at] += 1;
            link.take(&head);
        }
        assert_eq!(link.state.fault(), None);
    }

    /// Takes the frames in the inbox, without polling the connection.
    fn hear_taken(&mut self, at: usize) {
        while let Some(head) = self.links[at].inbox.front() {
            assert_eq!(head.tag, self.heard[at]);
            self.heard[at] += 1;
            self.links[at].take(&head);
        }
    }

    fn look(&mut self, at: usize) {
        self.links[at].receive();
        self.links[at].pump(0);
        if self.links[at].negotiation.is_due() {
            self.ways[at].tend(&mut self.links[at], at as u8 + 1);
        }
        self.hear(at);
        self.ways[at].collect();
    }

    /// Delivers all frames in transit.
    fn bring_all(&mut self) {
        for at in 0..2 {
            self.ways[at].collect();
            for frame in std::mem::take(&mut self.ways[at].frames) {
                deliver(&frame, &mut self.links[1 - at]);
            }
        }
    }

    /// Sends and receives until the bypass is used in both directions.
    fn open(&mut self) {
        for _ in 0..100 {
            for at in 0..2 {
                self.say(at);
                self.look(at);
            }
            self.bring_all();
        }
        assert!(self.by_bypass > 0, "the bypass is not used");
        for turn in 0..1000 {
            // The next frames are short.
            let is_near = |said: &i32| (1..20).contains(&(said % 50));
            let heard = self.said == [self.heard[1], self.heard[0]];
            let free = self.links.iter_mut().all(|link| link.is_bypass_free(200));
            if heard && free && self.said.iter().all(is_near) {
                return;
            }
            if turn % 3 == 0 {
                self.say(turn % 2);
            }
            (0..2).for_each(|at| self.look(at));
            self.bring_all();
            (0..2).for_each(|at| self.hear(at));
        }
        panic!("the bypass is not free");
    }

    /// Delivers, damages or loses a frame that side `at` has sent, or delivers an old one again.
    fn happen(&mut self, at: usize, dice: &mut Dice) {
        let (way, other) = (&mut self.ways[at], &mut self.links[1 - at]);
        if !way.frames.is_empty() {
            let which = dice.roll(way.frames.len().min(4));
            let calm = dice.roll(self.harsh) > 0;
            match if calm { 10 } else { dice.roll(10) } {
                0 => _ = way.frames.remove(which),
                1 => deliver(&way.frames[which], other),
                2 => {
                    let mut frame = way.frames[which].clone();
                    let bit = dice.roll(frame.len());
                    frame[bit] ^= 1 << dice.roll(8);
                    deliver(&frame, other);
                }
                3 => way.frames.clear(),
                4..6 => {}
                6..10 => {
                    let frame = way.frames.remove(which);
                    deliver(&frame, other);
                }
                _ => way
                    .frames
                    .drain(..)
                    .for_each(|frame| deliver(&frame, other)),
            }
        }
        self.early += u32::from(other.has_early());
        if !way.seen.is_empty() && dice.roll(4) == 0 {
            let old = &way.seen[dice.roll(way.seen.len())];
            deliver(old, other);
            deliver(old, &mut self.links[at]);
        }
    }
}

/// Makes a run in which frames are lost, delayed, repeated, damaged or returned, and connections are cut.
fn stir(seed: u64, calm: usize, harsh: usize) -> Pair {
    let (mut dice, mut pair) = (Dice(seed), Pair::new(600));
    pair.harsh = harsh;
    for _ in 0..8000 {
        let at = dice.roll(2);
        match dice.roll(12) {
            0..4 => pair.say(at),
            4..6 => pair.look(at),
            6 => pair.hear(at),
            7 if dice.roll(24) == 0 => pair.tick(at),
            8 if dice.roll(6) == 0 => {
                pair.links[at].confirm_taken();
                pair.links[at].repeat_by_connection();
            }
            9 if dice.roll(calm) == 0 => pair.links[at].trouble(Trouble::Lost),
            10 if dice.roll(20) == 0 => pair.links[at].try_bypass_again(),
            _ => pair.happen(at, &mut dice),
        }
        if pair.links.iter().any(|link| !link.is_open()) && dice.roll(20) == 0 {
            pair.connect(600);
        }
    }
    if pair.links.iter().any(|link| !link.is_open()) {
        pair.connect(600);
    }
    // The bypass is no longer used, and the connection delivers the rest.
    for _ in 0..20 {
        for at in 0..2 {
            pair.tick(at);
            pair.links[at].pump(0);
            pair.look(at);
        }
    }
    pair
}

/// A single run may have no early frame.
#[test]
fn frames_come_early_in_such_runs() {
    let early = |seed| stir(seed, 2000, 40).early;
    assert!((1..=8).map(early).sum::<u32>() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_lost_doubled_or_out_of_order_whatever_becomes_of_a_bypass(seed in 1u64.., calm in 20usize..4000, harsh in 1usize..60) {
        let pair = stir(seed, calm, harsh);
        prop_assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
        prop_assert!(harsh < 20 || calm < 500 || pair.by_bypass > 0, "the bypass is not used");
    }

    #[test]
    fn any_bytes_on_a_bypass_are_nobodys(frames in prop::collection::vec((0u8..4, any::<u64>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40)) {
        let mut pair = Pair::new(u64::MAX);
        pair.open();
        for (slot, number, sealed) in &frames {
            pair.links[0].take_frame(*slot, *number % 300, sealed);
            deliver(sealed, &mut pair.links[0]);
        }
        pair.open();
        prop_assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
    }

    /// The peer has the key, and may be malicious.
    #[test]
    fn any_content_of_a_frame_is_taken_or_refused(
        words in prop::collection::vec((0u64..3, 0u64..3, 0u64..3, 0u64..3, any::<bool>(), 0usize..4), 1..20),
        kind in 0u8..44,
        length in 0u32..20,
    ) {
        let (mut pair, scale) = (Pair::new(u64::MAX), 4000);
        pair.open();
        for (position, reached, heard, got, asks, form) in words {
            let word = Word { position: position * scale, reached: reached * scale, heard: heard * scale, got: got * 40, asks, after: heard * scale };
            let mut head = Head::bare(Parcel::Taken, 0, 0).encode();
            (head[0], head[4]) = (kind, length as u8);
            let mut parcel = head.to_vec();
            parcel.resize(HEAD + length as usize, 1);
            parcel.truncate([0, 1, HEAD, HEAD + length as usize][form]);
            let position = pair.links[0].inbox.reached;
            let word = if form == 3 { Word { position, ..word } } else { word };
            if let Some(bypass) = pair.links[1].bypass.as_deref_mut() {
                bypass.send(&word, &parcel);
            }
            pair.bring_all();
            while let Some(head) = pair.links[0].front() {
                let _ = pair.links[0].inbox.payload(&head);
                pair.links[0].take(&head);
            }
        }
    }
}

#[test]
fn a_frame_that_is_sent_again_or_comes_late_does_nothing() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let before = pair.heard;
    let seen = [0, 1].map(|at: usize| pair.ways[at].seen.clone());
    for (at, frames) in seen.iter().enumerate() {
        for frame in frames {
            deliver(frame, &mut pair.links[1 - at]);
            deliver(frame, &mut pair.links[at]);
        }
    }
    pair.bring_all();
    (0..2).for_each(|at| pair.hear(at));
    assert_eq!(pair.heard, before);
    assert!(
        [0, 1]
            .iter()
            .all(|&at: &usize| pair.ways[at].seen.len() == seen[at].len()),
        "it was answered"
    );
}

/// Both sides give up what was sent by the bypass, as tasks that sleep do. Then both send in each round before the
/// other's confirmation of the previous round arrives.
#[test]
fn two_that_both_send_at_once_find_back_to_the_bypass() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    (0..2).for_each(|at| pair.say(at));
    pair.links.iter_mut().for_each(Link::repeat_by_connection);
    let (rounds, before) = (200, pair.by_bypass);
    for _ in 0..rounds {
        (0..2).for_each(|at| pair.say(at));
        pair.bring_all();
        for at in 0..2 {
            pair.hear(at);
            pair.look(at);
        }
        assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
    }
    let used = pair.by_bypass - before;
    assert!(used > 300, "{used} of {} went by the bypass", 2 * rounds);
}

/// The long messages would make the connection repeat what was sent ahead of it.
#[test]
fn two_that_send_something_short_and_something_long_do_not_say_the_short_ones_twice() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let mut long = [7; 3000];
    let frame = Frame {
        kind: Kind::Eager,
        context: 9,
        tag: -1,
    };
    let (rounds, before) = (200, pair.by_bypass);
    for _ in 0..rounds {
        for at in 0..2 {
            pair.say(at);
            // SAFETY: the bytes live across the call, which copies them.
            let payload = unsafe { Views::block(long.as_mut_ptr(), long.len()) };
            pair.links[at].send(frame, &payload);
        }
        pair.bring_all();
        for at in 0..2 {
            let link = &mut pair.links[at];
            while let Some(head) = link.front() {
                pair.heard[at] += i32::from(head.tag >= 0);
                link.take(&head);
            }
            pair.ways[at].collect();
        }
        assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
    }
    let used = pair.by_bypass - before;
    assert!(used < 10, "{used} of {} went by the bypass", 2 * rounds);
}

/// A side that has received something may send ahead of what it sent by the connection.
#[test]
fn a_frame_waits_for_the_connection_that_it_comes_after() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    go_ahead(&mut pair);
    let (before, reached) = (pair.heard[1], pair.links[1].inbox.reached);
    (0..2).for_each(|_| pair.say(0));
    pair.bring_all();
    assert!(pair.links[1].inbox.front().is_none() && pair.links[1].has_early());
    assert_eq!(pair.links[1].inbox.reached, reached);
    // Some of it arrives twice.
    for frame in pair.ways[0].seen.clone() {
        deliver(&frame, &mut pair.links[1]);
    }
    pair.look(1);
    assert!(!pair.links[1].has_early());
    assert_eq!(pair.heard[1], before + 3);
    assert_eq!(pair.said[0], pair.heard[1]);
}

/// Lets side 0 send a frame by the connection, which is not received yet, and then receive one.
fn go_ahead(pair: &mut Pair) {
    pair.links[0].bypass.as_mut().unwrap().rest_once();
    pair.say(0);
    assert!(
        !pair.links[0].outbox.is_unsure(),
        "it goes by the connection"
    );
    pair.say(1);
    pair.bring_all();
    pair.hear(0);
}

/// This applies not only to numbered parcels: a parcel about a stream is not overtaken either.
#[test]
fn a_frame_waits_for_words_of_the_connection() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    go_ahead(&mut pair);
    pair.look(1);
    let id = pair.links[0].streams.open_in();
    pair.links[0].streams.in_stream(id).unwrap().announce = true;
    pair.links[0].pump(0);
    let before = pair.heard[1];
    pair.say(0);
    assert!(pair.links[0].outbox.is_unsure(), "it goes by the bypass");
    pair.bring_all();
    pair.hear_taken(1);
    assert_eq!(pair.heard[1], before);
    // The parcel is about an unknown stream, and has no other effect.
    pair.look(1);
    assert_eq!(pair.heard[1], before + 1);
}

/// A side that only sends would send everything twice.
#[test]
fn who_hears_nothing_does_not_go_ahead_of_the_connection() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    pair.links[0].bypass.as_mut().unwrap().rest_once();
    pair.say(0);
    let before = pair.by_bypass;
    (0..10).for_each(|_| pair.say(0));
    assert_eq!(pair.by_bypass, before);
    pair.look(1);
    pair.links[1].ask_by_bypass();
    pair.bring_all();
    pair.say(0);
    assert_eq!(pair.by_bypass, before + 1, "all has been heard");
}

/// Both sides keep to the bound; a frame for which there is no room is repeated by the connection.
#[test]
fn so_many_bytes_go_ahead_of_the_connection_at_most() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    go_ahead(&mut pair);
    let mut body = [7; 1000];
    let frame = Frame {
        kind: Kind::Eager,
        context: 9,
        tag: -1,
    };
    for _ in 0..WINDOW_FRAMES {
        // SAFETY: the bytes live across the call, which copies them.
        let payload = unsafe { Views::block(body.as_mut_ptr(), body.len()) };
        pair.links[0].send(frame, &payload);
        assert!(pair.links[0].outbox.unsure() <= MAX_AHEAD_BYTES);
    }
    pair.ways[0].collect();
    assert_eq!(
        pair.ways[0].frames.len(),
        MAX_AHEAD_BYTES / (HEAD + body.len())
    );
    pair.bring_all();
    assert!(pair.links[1].inbox.front().is_none());
    for number in -1..WINDOW_FRAMES as i32 {
        pair.links[1].receive();
        let head = pair.links[1].front().unwrap();
        assert!((number == -1) == (head.tag >= 0));
        pair.links[1].take(&head);
    }
    assert!(pair.links[1].front().is_none());
}

/// A waiting frame is lost with the connection that precedes it, and the next connection repeats it.
#[test]
fn a_frame_that_waits_is_not_taken_when_its_connection_ends_before() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    go_ahead(&mut pair);
    let before = pair.heard[1];
    pair.say(0);
    pair.links[1].trouble(Trouble::Lost);
    pair.bring_all();
    pair.hear_taken(1);
    assert_eq!(pair.heard[1], before);
    pair.links[0].trouble(Trouble::Lost);
    pair.connect(u64::MAX);
    (0..3).for_each(|_| (0..2).for_each(|at| pair.look(at)));
    assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
}

/// A frame sealed with a key that the receiver does not know is lost.
#[test]
fn a_new_key_is_not_used_before_the_other_side_has_heard_of_it() {
    let mut pair = Pair::new(600);
    pair.open();
    let key = |pair: &Pair| pair.links[0].bypass.as_ref().unwrap().told;
    let first = key(&pair);
    (0..2).for_each(|at| pair.say(at));
    while key(&pair) == first {
        pair.bring_all();
        for at in 0..2 {
            pair.hear(at);
            pair.look(at);
        }
        assert!(pair.said[0] < 3000, "the key does not change");
        (0..2).for_each(|at| pair.say(at));
    }
    // The sender receives a frame that does not confirm the key.
    pair.say(1);
    pair.ways[1].collect();
    for frame in std::mem::take(&mut pair.ways[1].frames) {
        deliver(&frame, &mut pair.links[0]);
    }
    pair.hear_taken(0);
    assert_eq!(pair.said[1], pair.heard[0]);
    let before = pair.by_bypass;
    (0..4).for_each(|_| pair.say(0));
    assert_eq!(pair.by_bypass, before, "it is not known yet");
    pair.look(1);
    pair.open();
}

/// Neither the text nor the header of a message is in the clear.
#[test]
fn nothing_of_a_message_can_be_read_on_the_way() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let mut text = *b"nobody else may read this, neither in whole nor in part";
    // SAFETY: the bytes live across the call, which copies them.
    let payload = unsafe { Views::block(text.as_mut_ptr(), text.len()) };
    let frame = Frame {
        kind: Kind::Eager,
        context: 0x1234_5678,
        tag: 0x0bad_cafe,
    };
    let before = pair.ways[0].seen.len();
    pair.links[0].send(frame, &payload);
    pair.ways[0].collect();
    let seen = &pair.ways[0].seen[before..];
    assert_eq!(seen.len(), 1, "it goes by the bypass");
    let has = |part: &[u8]| seen[0].windows(part.len()).any(|bytes| bytes == part);
    assert!(text.windows(6).all(|part| !has(part)));
    assert!(!has(&0x1234_5678_u32.to_le_bytes()) && !has(&0x0bad_cafe_u32.to_le_bytes()));
    assert_eq!(
        seen[0].len(),
        FRONT_BYTES + WORD_BYTES + HEAD + text.len() + regatta_secure::TAG
    );
}

/// A frame is lost, and both sides go on. The confirmation of later frames must not delay its repetition.
#[test]
fn a_lost_frame_comes_by_the_connection_soon_though_others_come_behind_it() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    pair.say(0);
    pair.ways[0].collect();
    assert_eq!(pair.ways[0].frames.len(), 1, "it goes by the bypass");
    pair.ways[0].frames.clear();
    let lost = pair.heard[1];
    for tick in 0.. {
        assert!(tick < 3, "{tick} ticks");
        (0..2).for_each(|at| pair.say(at));
        pair.bring_all();
        pair.hear(0);
        pair.links.iter_mut().for_each(Link::confirm_taken);
        pair.bring_all();
        (0..2).for_each(|at| pair.tick(at));
        pair.look(1);
        if pair.heard[1] > lost {
            break;
        }
    }
}

/// A dead bypass costs some frames, and delays a message by a few ticks at most.
#[test]
fn a_bypass_that_does_not_answer_any_more_is_not_used() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let before = pair.ways[0].seen.len();
    for _ in 0..200 {
        pair.say(0);
        for at in 0..2 {
            (0..2).for_each(|_| pair.tick(at));
            pair.look(at);
        }
        pair.ways.iter_mut().for_each(|way| way.frames.clear());
        assert_eq!(pair.heard[1], pair.said[0]);
    }
    let sent = pair.ways[0].seen.len() - before;
    assert!(sent < 40, "{sent} frames");
    // Once it answers again it is used again.
    pair.links.iter_mut().for_each(Link::try_bypass_again);
    pair.by_bypass = 0;
    pair.open();
}

#[test]
fn frames_without_an_answer_are_bounded_and_the_connection_takes_over() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let before = pair.ways[0].seen.len();
    (0..1000).for_each(|_| pair.say(0));
    pair.ways[0].collect();
    assert!(pair.ways[0].seen.len() - before <= WINDOW_FRAMES as usize);
    for _ in 0..100 {
        (0..2).for_each(|at| pair.look(at));
    }
    assert_eq!(pair.heard[1], pair.said[0], "all came by the connection");
}

/// The sender dies. What has arrived by the bypass is taken even after the end of the connection.
#[test]
fn what_has_come_by_the_bypass_is_taken_after_the_end_of_its_connection() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let before = pair.by_bypass;
    (0..3).for_each(|_| pair.say(0));
    assert_eq!(pair.by_bypass, before + 3);
    pair.links[0].trouble(Trouble::Lost);
    pair.links[1].receive();
    assert!(!pair.links[1].is_open());
    pair.bring_all();
    pair.hear(1);
    assert_eq!(pair.heard[1], pair.said[0]);
}

#[test]
fn a_task_that_leaves_lets_the_connection_bring_all() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    pair.say(0);
    assert!(pair.links[0].outbox.is_unsure());
    pair.links[0].repeat_by_connection();
    assert!(!pair.links[0].outbox.is_unsure());
    pair.look(1);
    assert_eq!(pair.heard[1], pair.said[0]);
    // The frame also arrives by the bypass, too late.
    pair.bring_all();
    pair.hear(1);
}

/// No chunk is overtaken, and no frame is sent while the last question is unanswered.
#[test]
fn a_bypass_rests_while_a_stream_is_open_or_a_question_is() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    let free = |pair: &mut Pair| pair.links[0].is_bypass_free(100);
    let settle = |pair: &mut Pair| {
        for _ in 0..4 {
            (0..2).for_each(|at| pair.look(at));
            // This frame confirms what was received.
            pair.say(1);
            pair.bring_all();
            pair.hear(0);
        }
    };
    assert!(free(&mut pair));
    let id = pair.links[0].open_out(&Views::none()).unwrap();
    assert!(!free(&mut pair), "a stream is open");
    pair.links[0].retract(id, false);
    settle(&mut pair);
    assert!(free(&mut pair), "it is closed");
    pair.links[0].ask_by_bypass();
    assert!(!free(&mut pair), "it has asked");
    settle(&mut pair);
    assert!(free(&mut pair), "it is answered");
}

/// The connection names the byte at which it continues, and repeats the unconfirmed parcels before later ones.
#[test]
fn parcels_that_may_not_have_come_are_repeated_before_everything_else() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (mut outbox, mut channel) = (Outbox::new(), Channel::plain(OwnedFd::from(ours)));
    let frame = |tag| Frame {
        kind: Kind::Eager,
        context: 0,
        tag,
    };
    for tag in 0..3 {
        outbox.keep(&Head::frame(frame(tag), 0, 0), &Views::none());
        outbox.went_by_bypass();
    }
    outbox.reached(HEAD as u64).unwrap();
    outbox.urge(&Head::bare(Parcel::Released, 0, 0), &[]);
    outbox.pump(&mut channel, &mut [], 0).unwrap();
    let mut bytes = [0; 4 * HEAD];
    theirs.read_exact(&mut bytes).unwrap();
    let (heads, _) = bytes.as_chunks::<HEAD>();
    let heads: Vec<_> = heads
        .iter()
        .map(|head| Head::decode(head).unwrap())
        .collect();
    assert_eq!(heads[0], Head::bare(Parcel::Place, 0, HEAD as u64));
    assert_eq!(
        heads[1..3].iter().map(|head| head.tag).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(heads[3].parcel, Parcel::Released);
    // Nothing is left to repeat.
    assert!(!outbox.is_unsure() && outbox.is_written());
}

/// The confirmation of the first transmission arrives while the parcels are being sent a second time.
#[test]
fn a_word_that_comes_while_something_is_repeated_is_believed() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    (0..3).for_each(|_| pair.say(0));
    pair.ways[0].collect();
    for frame in std::mem::take(&mut pair.ways[0].frames) {
        deliver(&frame, &mut pair.links[1]);
    }
    pair.hear(1);
    pair.say(1);
    pair.links[0].outbox.repeat_unsure();
    pair.bring_all();
    pair.hear(0);
    (0..3).for_each(|_| (0..2).for_each(|at| pair.look(at)));
    assert_eq!(pair.said, [pair.heard[1], pair.heard[0]]);
    // A confirmation of bytes that were never sent is refused.
    let word = Word {
        reached: pair.links[0].inbox.reached + 10_000,
        ..Word::default()
    };
    assert!(
        pair.links[1]
            .bypass
            .as_deref_mut()
            .unwrap()
            .send(&word, &[])
    );
    pair.bring_all();
    assert!(pair.links[0].state.fault().is_some());
}

/// A spinning wait skips most polls of the connection while frames arrive by the bypass; a rare poll includes it.
#[test]
fn only_looks_in_quick_succession_spare_the_connection() {
    let mut pair = Pair::new(u64::MAX);
    pair.open();
    pair.say(0);
    pair.bring_all();
    pair.hear(1);
    let bypass = pair.links[1].bypass.as_mut().unwrap();
    assert!(
        (0..50).any(|_| bypass.spares_look()),
        "frames have come by it"
    );
    for _ in 0..3 {
        let start = ticks();
        while ticks().wrapping_sub(start) <= ticks_of(CONNECTION_CHECK_INTERVAL_MICROSECONDS) {}
        assert!(!bypass.spares_look(), "the last look was long ago");
    }
}
