//! The two ends of a secure channel, and an attacker between them. The input is a list of steps: bytes are sent,
//! delivered in pieces, changed, dropped, duplicated, swapped, and injected. Keys change every few records.

use std::io::{IoSlice, IoSliceMut};

use regatta_secure::{Bounds, Callee, Caller, HEAD, Session, TAG};

/// The smallest bounds that allow records of any length.
const BOUNDS: Bounds = Bounds {
    least: 3,
    most: 12,
    bytes: 6 << 16,
};
/// Lengths in bytes of parts that are sent, around the lengths at which records are split.
const LENGTHS: [usize; 8] = [0, 1, 24, 100, 1000, 5000, 65_519, 65_520];
/// Lengths in bytes of parts that are received into.
const ROOMS: [usize; 4] = [1, 24, 4096, 70_000];
const STEPS: usize = 300;
const KEY: [u8; 32] = [7; 32];

/// The bytes of the input, in order, followed by zeros.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        self.0.next().copied().unwrap_or(0).into()
    }

    /// Returns a number below `most`, or 0 if `most` is 0.
    fn below(&mut self, most: usize) -> usize {
        let word = self.byte() << 8 | self.byte();
        // Words above 0xff00 count from the end of the range, so that both ends of a long range are reached.
        let word = if word > 0xff00 {
            most.wrapping_sub(0x1_0000 - word)
        } else {
            word
        };
        word % most.max(1)
    }
}

/// One direction of the channel.
struct Way {
    from: Session,
    to: Session,
    /// All bytes that were sent.
    sent: Vec<u8>,
    received: usize,
    /// The stream as it was written.
    written: Vec<u8>,
    passed: Vec<u8>,
    delivered: usize,
    ended: bool,
}

/// Returns two sessions for one direction. Each direction has a handshake of its own, so that a session is used in one
/// direction only.
fn sessions(records: u64) -> (Session, Session) {
    let (caller, first) = Caller::begin(&KEY, b"fuzz").expect("random numbers");
    let (callee, second) = Callee::answer(&KEY, b"fuzz", &first).expect("a sound message");
    let (ours, third) = caller
        .finish(&second, BOUNDS, records)
        .expect("a sound message");
    let theirs = callee.finish(&third, BOUNDS, records);
    (ours, theirs.expect("a sound message"))
}

impl Way {
    fn new((from, to): (Session, Session)) -> Way {
        Way {
            from,
            to,
            sent: Vec::new(),
            received: 0,
            written: Vec::new(),
            passed: Vec::new(),
            delivered: 0,
            ended: false,
        }
    }

    /// Sends two parts in one call. The stream accepts them in pieces.
    fn send(&mut self, input: &mut Input) {
        let parts = [(); 2].map(|()| {
            let (length, byte) = (LENGTHS[input.byte() % 8], input.byte() as u8);
            vec![byte; length]
        });
        let slices = parts.each_ref().map(|part| IoSlice::new(part));
        let piece = 1 + input.below(70_000);
        let before = self.written.len();
        let written = &mut self.written;
        let done = self.from.send(&slices, |bytes| {
            let n = bytes.len().min(piece);
            written.extend_from_slice(&bytes[..n]);
            Ok(Some(n))
        });
        let whole = parts.concat();
        assert_eq!(done.expect("a key is never used up"), whole.len());
        assert!(self.from.is_flushed());
        self.sent.extend(whole);
        self.passed.extend_from_slice(&self.written[before..]);
    }

    /// Calls the receiver once, and delivers at most a random number of further bytes to it.
    fn deliver(&mut self, input: &mut Input) {
        let most = input.below(200_000);
        let (rooms, mut have) = ([input.byte() % 4, input.byte() % 4], most);
        let mut place = rooms.map(|room| vec![0; ROOMS[room]]);
        let mut parts = place.each_mut().map(|part| IoSliceMut::new(part));
        let (passed, delivered) = (&self.passed, &mut self.delivered);
        let received = self.to.recv(&mut parts, |room| {
            let rest = &passed[*delivered..];
            let n = rest.len().min(room.len()).min(have);
            room[..n].copy_from_slice(&rest[..n]);
            (*delivered, have) = (*delivered + n, have - n);
            Ok((n > 0).then_some(n))
        });
        match received {
            Ok(n) => {
                assert!(!self.ended, "it goes on after its end");
                let n = n.unwrap_or(0);
                let expected = &self.sent[self.received..];
                assert!(expected.starts_with(&place.concat()[..n]));
                self.received += n;
            }
            Err(_) => self.ended = true,
        }
    }

    /// Changes bytes that have not been delivered, as an attacker could. `other` has the bytes of the other direction.
    fn tamper(&mut self, kind: usize, other: &[u8], input: &mut Input) {
        let rest = self.passed.split_off(self.delivered);
        let at = input.below(rest.len());
        let length = input.below(rest.len() - at + 1);
        let (before, after) = rest.split_at(at);
        let (these, those) = after.split_at(length);
        let mut changed = [these, those].concat();
        match kind {
            0 => {
                if let Some(byte) = changed.first_mut() {
                    *byte ^= 1 << (input.byte() % 8);
                }
            }
            1 => changed = those.to_vec(),
            2 => changed = [these, these, those].concat(),
            3 => changed = [those, these].concat(),
            4 => {
                let from = input.below(other.len());
                let some = &other[from..];
                changed.splice(0..0, some[..some.len().min(length + 18)].iter().copied());
            }
            _ => {
                let made_up: Vec<u8> = (0..input.byte()).map(|_| input.byte() as u8).collect();
                changed.splice(0..0, made_up);
            }
        }
        self.passed.extend_from_slice(before);
        self.passed.extend(changed);
    }

    /// Checks that no bytes were received from after the first changed byte, and that an unchanged stream is received
    /// completely.
    fn check(&mut self) {
        let same = self
            .written
            .iter()
            .zip(&self.passed)
            .take_while(|(a, b)| a == b);
        let same = same.count();
        let (mut at, mut sound) = (0, 0);
        while let Some([high, low]) = self.written[at..].first_chunk::<HEAD>() {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            at += HEAD + length;
            if at > same {
                break;
            }
            sound += length - TAG;
        }
        assert!(self.received <= sound);
        if same == self.passed.len() {
            assert!(!self.ended, "a sound stream is refused");
            if self.delivered == same && !self.to.holds_back() {
                assert_eq!(self.received, sound);
            }
        }
    }
}

/// Checks that an attacker cannot make the receiver return bytes that were not sent, or in another order, or twice, and
/// that a channel ends once it has noticed a change.
///
/// Panics if the system has no random numbers.
pub fn records(bytes: &[u8]) {
    let mut input = Input(bytes.iter());
    let limit = input.byte() as u64;
    let mut ways = [(); 2].map(|()| Way::new(sessions(limit)));
    for _ in 0..STEPS {
        if input.0.as_slice().is_empty() {
            break;
        }
        let kind = input.byte();
        let which = kind >> 7;
        let other = ways[1 - which].written.clone();
        let way = &mut ways[which];
        match kind % 16 {
            0..4 if way.sent.len() < 1 << 20 => way.send(&mut input),
            kind @ 10..16 => way.tamper(kind - 10, &other, &mut input),
            _ => way.deliver(&mut input),
        }
        way.check();
    }
}
