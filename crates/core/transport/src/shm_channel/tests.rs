//! Robustness against damage: another task may write anything over a ring at any time. Every call still returns,
//! without a panic, and accesses nothing outside the ring.

use proptest::prelude::*;
use regatta_memory::ends::Ends;
use regatta_memory::list::Link;
use regatta_memory::ring::Lines;

use super::*;
use regatta_segment::job::Geometry;
use regatta_segment::ring_memory::RING_CONTROL;

/// The bytes behind the ring. A run of them can come from nowhere else.
const BEHIND: u8 = 0xee;
const BEHIND_LEN: usize = 128 << 10;
/// Offset in a ring's memory of the word in which its sender stores the wide buffer's offset.
const WIDE_AT: usize = 32;

#[derive(Clone, Debug)]
enum Step {
    /// Writes a word of the ring's memory.
    Scribble(usize, u64),
    /// Writes a line's header with a plausible lap and kind.
    Header(u32, u16, u8, u8, u32),
    /// Writes the positions that the receiver publishes.
    Read(u32),
    Freed(u64),
    Send(usize),
    Front,
    Accept(usize),
    Matching(usize),
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..100u32,
        prop::sample::select(vec![
            8191,
            8192,
            8193,
            16_383,
            16_384,
            16_385,
            65_536,
            u32::MAX
        ]),
        any::<u32>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let words = RingMemory::footprint(Geometry::for_tasks(2)) / 8;
    // The word with the wide buffer's offset is excluded: the receiver may read whatever part of the segment it
    // names.
    let words = (0..words).prop_filter("the wide buffer's place", |at| *at != WIDE_AT / 8);
    let buffer = prop::sample::select(vec![0, 1, 48, 100, 8192, 20_000, 100_000]);
    prop_oneof![
        1 => (words, any::<u64>()).prop_map(|(at, word)| Step::Scribble(at, word)),
        4 => (0..8u32, 0..4u16, 0..8u8, 0..3u8, length()).prop_map(|(a, b, c, d, e)| Step::Header(a, b, c, d, e)),
        1 => prop_oneof![0..10u32, any::<u32>()].prop_map(Step::Read),
        1 => prop_oneof![0..70_000u64, any::<u64>()].prop_map(Step::Freed),
        4 => prop::sample::select(vec![0, 1, 48, 49, 1000, 8192, 20_000]).prop_map(Step::Send),
        2 => Just(Step::Front),
        4 => buffer.clone().prop_map(Step::Accept),
        4 => buffer.prop_map(Step::Matching),
    ]
}

/// Returns a ring from task 0 to task 1 of a job, and its offset.
fn ring(job: &Job) -> (Out, u64) {
    let out = Out::open(job, 0, 1, Policy::Learn, &mut 0).unwrap();
    let lines = out.memory.word(0, 0) as usize;
    let offset = job.segment().offset_of(lines).unwrap() - RING_CONTROL as u64;
    (out, offset)
}

/// Returns the link from a ring to the one that was opened before it.
fn next_opened(job: &Job, ring: u64) -> &Link {
    // SAFETY: `Link` consists of atomics only.
    unsafe { job.segment().words(ring + size_of::<Ends>() as u64) }.unwrap()
}

fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep `bytes` alive and do not access it during the copy.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

/// Takes the step. Returns what was copied out.
fn take(step: Step, out: &mut Out, inn: &mut In) -> Vec<u8> {
    let mut bytes = vec![0; 100_000];
    let header = |lap, kind, flags, length| {
        lap as u64 | (kind as u64) << 16 | (flags as u64) << 24 | (length as u64) << 32
    };
    match step {
        // SAFETY: the word is in the ring's memory, which begins `RING_CONTROL` before its lines.
        Step::Scribble(at, word) => unsafe {
            let start = out.memory.word(0, 0).byte_sub(RING_CONTROL);
            start.add(at).write(word);
        },
        Step::Header(line, lap, kind, flags, length) => {
            out.memory.publish(line, header(lap, kind, flags, length));
        }
        Step::Read(read) => out.memory.publish_read(read),
        Step::Freed(freed) => {
            out.memory.freed(false).store(freed, Ordering::Release);
            out.memory.freed(true).store(freed, Ordering::Release);
        }
        Step::Send(len) => {
            let frame = Frame {
                kind: Kind::Eager,
                context: 0,
                tag: 0,
            };
            let _ = out.send(frame, &block(&mut bytes[..len]), Positions::default);
        }
        Step::Front => {
            inn.has_line();
            let _ = inn.front();
        }
        Step::Accept(len) => {
            inn.accept(&block(&mut bytes[..len]));
        }
        Step::Matching(len) => {
            let polled = inn.poll_matching(0, 0, &block(&mut bytes[..len])).0;
            assert!(!matches!(polled, Polled::Received(length) if length > len));
        }
    }
    bytes
}

proptest! {
    #[test]
    fn scribbles_are_noticed_or_harmless(steps in prop::collection::vec(step(), 0..40)) {
        let job = Job::create(2).unwrap();
        let (mut out, offset) = ring(&job);
        let behind = job.segment().allocate(BEHIND_LEN, 64).unwrap();
        prop_assert!(behind >= offset + RingMemory::footprint(job.geometry()) as u64);
        prop_assert!(behind < offset + RingMemory::footprint(job.geometry()) as u64 + 64);
        let behind = job.segment().at(behind, BEHIND_LEN).unwrap();
        // SAFETY: the range was just allocated for this.
        unsafe { behind.write_bytes(BEHIND, BEHIND_LEN) };
        let (_, mut inn) = In::opened(&job, 1).pop().unwrap();
        for step in steps {
            let copied = take(step, &mut out, &mut inn);
            let leaked = copied.chunks_exact(64).any(|piece| piece == [BEHIND; 64]);
            prop_assert!(!leaked, "what lies behind the ring was read");
        }
        // SAFETY: nothing writes to the range any more.
        let behind = unsafe { std::slice::from_raw_parts(behind.as_ptr(), BEHIND_LEN) };
        prop_assert!(behind == [BEHIND; BEHIND_LEN], "what lies behind the ring was written");
    }

    #[test]
    fn payloads_of_both_buffers_come_whole_and_in_order(
        steps in prop::collection::vec((any::<bool>(), 0..3u8, 0usize..WIDE_EAGER), 1..400),
    ) {
        let job = Job::create(2).unwrap();
        let (mut out, _) = ring(&job);
        let (_, mut inn) = In::opened(&job, 1).pop().unwrap();
        let frame = Frame { kind: Kind::Eager, context: 7, tag: 9 };
        let (mut expected, mut sent, mut heard) = (std::collections::VecDeque::new(), 0_u32, 0);
        for (send, kind, length) in steps {
            if kind == 2 && out.wide.is_none() {
                out.widen(true);
            }
            // The choice for payloads that fit into both buffers may change at any time.
            out.learners = ByLength::new(footprint::MAX_SHORT_BYTES, [WIDE; 2], Policy::Learn);
            if kind != 0 && out.wide.is_some() {
                out.learners.short.keep_wide();
                out.learners.long.keep_wide();
            }
            if send {
                let length = length.min(out.longest());
                sent += 1;
                let mut bytes: Vec<u8> = (0..length as u32).map(|i| (i * sent) as u8).collect();
                // The receiver's position is reported to the sender, or the sender still has an older one.
                if kind != 1 {
                    heard = inn.positions().mine;
                }
                let positions = || Positions { mine: 0, heard };
                if out.send(frame, &block(&mut bytes), positions).unwrap() {
                    expected.push_back(bytes);
                }
            } else {
                let front = inn.front().unwrap().map(|front| front.length);
                let wanted = expected.pop_front();
                prop_assert_eq!(front, wanted.as_ref().map(Vec::len));
                let mut bytes = vec![0; front.unwrap_or(0)];
                let views = block(&mut bytes);
                match kind {
                    0 => { inn.accept(&views); }
                    _ => prop_assert_eq!(
                        inn.poll_matching(7, 9, &views).0,
                        front.map_or(Polled::Nothing, Polled::Received)
                    ),
                }
                prop_assert_eq!(bytes, wanted.unwrap_or_default());
            }
        }
    }

    #[test]
    fn links_may_lead_anywhere(
        links in prop::array::uniform3((0..6usize, any::<u64>(), 0..4u32, 0..3u32)),
    ) {
        let job = Job::create(2).unwrap();
        let rings = [ring(&job), ring(&job)].map(|(_, offset)| offset);
        let place = |kind: usize, any: u64| match kind {
            0 | 1 => rings[kind],
            2 => 0,
            3 => any,
            4 => any % job.segment().used() / 64 * 64,
            _ => u64::MAX - 63,
        };
        for (offset, (kind, any, source, destination)) in rings.into_iter().zip(links) {
            // SAFETY: `Ends` consists of atomics only.
            let ends: &Ends = unsafe { job.segment().words(offset) }.unwrap();
            ends.begin(source, destination);
            next_opened(&job, offset).scribble(place(kind, any));
        }
        let (kind, any, ..) = links[2];
        job.opened_rings(1).scribble(place(kind, any));
        let channels = In::opened(&job, 1);
        prop_assert!(channels.len() <= 2);
        for (source, mut channel) in channels {
            prop_assert!(source < 2);
            let _ = channel.front();
            channel.accept(&Views::none());
        }
    }
}

#[test]
fn rings_that_lead_in_a_circle_are_seen_and_left() {
    let job = Job::create(2).unwrap();
    let (_, offset) = ring(&job);
    next_opened(&job, offset).scribble(offset);
    let sources: Vec<Peer> = In::opened(&job, 1)
        .iter()
        .map(|channel| channel.0)
        .collect();
    assert_eq!(sources, [0, 0]);
    assert_eq!(In::opened(&job, 1).len(), 0);
}

/// Each payload carries the position up to which its sender has read, so all payloads lie at the same place.
#[test]
fn two_that_answer_each_other_touch_one_payload_each_way() {
    const LENGTH: usize = 4000;
    let job = Job::create(2).unwrap();
    let out = |me| Out::open(&job, me, 1 - me, Policy::Narrow, &mut 0).unwrap();
    let mut outs = [out(0), out(1)];
    let opened = |me| In::opened(&job, me).pop().unwrap().1;
    let mut ins = [opened(0), opened(1)];
    let frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };
    for turn in 0..100_u8 {
        let (from, to) = ((turn & 1) as usize, (turn & 1 ^ 1) as usize);
        let (mut bytes, mut came) = (vec![turn + 1; LENGTH], vec![0; LENGTH]);
        let positions = || ins[from].positions();
        let sent = outs[from].send(frame, &block(&mut bytes), positions);
        assert!(sent.unwrap());
        ins[to].accept(&block(&mut came));
        assert_eq!(came, bytes);
    }
    for out in &outs {
        let memory = out.narrow.memory;
        // SAFETY: the buffer is mapped, and nothing writes to it any more.
        let bytes =
            unsafe { std::slice::from_raw_parts(memory.start.as_ptr(), memory.size as usize) };
        // The first task's first two payloads were sent before it had received a position.
        assert!(
            bytes[2 * LENGTH.next_multiple_of(64)..]
                .iter()
                .all(|byte| *byte == 0)
        );
    }
}
