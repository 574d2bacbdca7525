//! Traffic between two tasks in both directions at once, of which every byte is known beforehand.
//!
//! Size, layout and contents of message `n` of a task follow from the seed, the task and `n`; `n` is also the
//! message's tag. So each side knows what it must receive and in which order, and notices at once if a message is
//! lost, duplicated, reordered or damaged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use regatta_engine::{Engine, Error, Handle, Mode, Select, Settings, TagSelect};
use regatta_memory::views::{View, Views};
use regatta_segment::job::{Geometry, Job};
use regatta_segment::ring_memory::WIDE_EAGER;
use regatta_transport::footprint::Policy;
use regatta_transport::shm::Shm;

/// Number of polls without progress before a task sleeps.
const POLLS_BEFORE_SLEEP: u32 = 500;
/// Layout of strided messages: bytes of a block, and bytes between two blocks.
const BLOCK: usize = 24;
const GAP: usize = 8;
const UNTOUCHED: u8 = 0xa5;

/// The sizes of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Up to a line and slightly more.
    Small,
    /// Around every threshold of the transport, up to several MiB.
    Every,
}

/// The plan of the traffic, which both tasks share.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub mix: Mix,
    /// Number of messages in each direction.
    pub count: u64,
    /// Number of sends, and of receives, in progress at a time.
    pub window: usize,
    pub seed: u64,
}

/// A task's progress, in shared memory. It outlives the task.
#[repr(C, align(64))]
pub struct Counts {
    /// Number of sends that have been started.
    pub started: AtomicU64,
    /// Number of complete sends, counted from the first on without a gap.
    pub completed: AtomicU64,
}

fn hash(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Plan {
    /// Returns the footprints, which depend on the seed: narrow, wide, or learned.
    fn footprints(&self) -> Policy {
        [Policy::Learn, Policy::Wide, Policy::Narrow][self.seed as usize % 3]
    }

    fn key(&self, task: u32, n: u64) -> u64 {
        hash(self.seed ^ hash((task as u64) << 32 | n))
    }

    /// Returns the length of message `n` of a task.
    pub fn length(&self, task: u32, n: u64) -> usize {
        let key = self.key(task, n);
        if self.mix == Mix::Small {
            return (key % 65) as usize;
        }
        let geometry = Geometry::for_tasks(2);
        let (eager, pipe) = (geometry.eager_limit(), geometry.pipe as usize);
        let of = |sizes: &[usize]| sizes[(key >> 8) as usize % sizes.len()];
        match key % 64 {
            0..40 => of(&[0, 1, 8, 31, 32, 33, 47, 48, 49, 64]),
            40..56 => of(&[1023, 1024, 1025, 4096, eager - 1, eager]),
            56..63 => of(&[
                eager + 1,
                WIDE_EAGER,
                WIDE_EAGER + 1,
                pipe - 1,
                pipe,
                pipe + 1,
                2 * pipe + 1,
            ]),
            _ => (3 << 20) + 5,
        }
    }

    fn contents(&self, task: u32, n: u64) -> Vec<u8> {
        let (len, mut word) = (self.length(task, n), self.key(task, n));
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&word.to_le_bytes());
            word = word.rotate_left(9).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ len as u64;
        }
        bytes.truncate(len);
        bytes
    }

    fn synchronous(&self, task: u32, n: u64) -> bool {
        self.mix == Mix::Every && self.key(task, n) >> 32 & 7 == 0
    }
}

/// The memory of one message, contiguous or strided.
struct Buffer {
    bytes: Vec<u8>,
    views: Views,
}

impl Buffer {
    fn new(len: usize, strided: bool) -> Buffer {
        if !strided {
            let mut bytes = vec![UNTOUCHED; len];
            // SAFETY: `bytes` does not move while the message is in transit, since nothing is pushed.
            let views = unsafe { Views::block(bytes.as_mut_ptr(), len) };
            return Buffer { bytes, views };
        }
        let blocks = len / BLOCK;
        let mut bytes = vec![UNTOUCHED; blocks * (BLOCK + GAP) + BLOCK];
        let base = bytes.as_mut_ptr();
        // SAFETY: `bytes` does not move while the message is in transit, and all blocks are inside it.
        let list = unsafe {
            let rest = base.add(blocks * (BLOCK + GAP));
            vec![
                View::new(base, BLOCK, blocks, (BLOCK + GAP) as isize),
                View::new(rest, len % BLOCK, 1, 0),
            ]
        };
        let views = Views::strided(list).expect("no overflow");
        Buffer { bytes, views }
    }

    /// Checks that the bytes between the blocks of a strided buffer have not changed.
    fn check_gaps(&self, len: usize) {
        if matches!(self.views, Views::Strided(..)) {
            let whole = self.bytes.chunks_exact(BLOCK + GAP).take(len / BLOCK);
            let touched = whole
                .flat_map(|piece| &piece[BLOCK..])
                .any(|byte| *byte != UNTOUCHED);
            assert!(!touched, "bytes between the blocks were written");
        }
    }
}

struct Pending {
    n: u64,
    handle: Handle,
    buffer: Buffer,
}

/// The part of one task.
pub struct Traffic {
    pub engine: Engine<Shm>,
    pub job: Arc<Job>,
    plan: Plan,
    me: u32,
    counts: u64,
    sends: VecDeque<Pending>,
    receives: VecDeque<Pending>,
    started: u64,
    posted: u64,
    /// Number of receives that succeeded: here the first ones, and below those after one that failed.
    pub received: u64,
    pub received_after_loss: u64,
    /// The error that ended the traffic early.
    pub loss: Option<Error>,
}

impl Traffic {
    /// Returns the part of task `me` (0 or 1) of a job of two that it has joined. `counts` is the offset of its
    /// counts in the segment.
    pub fn new(job: Arc<Job>, me: u32, plan: Plan, counts: u64) -> Traffic {
        let mut shm = Shm::new(job.clone(), me);
        shm.choose_footprints(plan.footprints());
        Traffic {
            engine: Engine::new(shm, Settings::default()),
            job,
            plan,
            me,
            counts,
            sends: VecDeque::new(),
            receives: VecDeque::new(),
            started: 0,
            posted: 0,
            received: 0,
            received_after_loss: 0,
            loss: None,
        }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: `Counts` consists of atomics only.
        unsafe { self.job.segment().words(self.counts) }.expect("counts lie in the segment")
    }

    /// Returns whether nothing is left to do: all messages have been transferred, or no more can be.
    pub fn is_over(&self) -> bool {
        let all = self.loss.is_some()
            || (self.started, self.posted) == (self.plan.count, self.plan.count);
        all && self.sends.is_empty() && self.receives.is_empty()
    }

    /// Does what can be done. Returns whether anything was done.
    pub fn turn(&mut self) -> bool {
        let mut moved = self.start_some();
        moved |= self.finish_sends();
        moved |= self.finish_receives();
        moved | self.engine.progress()
    }

    /// Takes turns until `until` returns true. A task with nothing to do sleeps on its bell without a timeout, so a
    /// lost wake-up hangs the test.
    pub fn run(&mut self, mut until: impl FnMut(&Traffic) -> bool) {
        let mut idle = 0;
        while !until(self) {
            idle = if self.turn() { 0 } else { idle + 1 };
            if idle < POLLS_BEFORE_SLEEP {
                std::hint::spin_loop();
                continue;
            }
            let (job, fencing) = (self.job.clone(), self.engine.transport().fencing());
            let me = self.me;
            job.bell(me)
                .sleep(fencing, None, || self.turn() || until(self));
            job.bell(me).awake();
            idle = 0;
        }
    }

    fn start_some(&mut self) -> bool {
        let before = (self.started, self.posted);
        while self.loss.is_none()
            && self.posted < self.plan.count
            && self.receives.len() < self.plan.window
        {
            self.post();
        }
        while self.loss.is_none()
            && self.started < self.plan.count
            && self.sends.len() < self.plan.window
        {
            self.send();
        }
        before != (self.started, self.posted)
    }

    fn post(&mut self) {
        let (n, from) = (self.posted, 1 - self.me);
        let key = self.plan.key(from, n);
        let spare = (key >> 16 & 3) as usize;
        let buffer = Buffer::new(self.plan.length(from, n) + spare, key >> 20 & 3 == 0);
        let select = Select {
            context: 0,
            source: (key >> 24 & 1 == 0).then_some(from),
            tag: match key >> 26 & 1 {
                0 => TagSelect::Exactly(n as i32),
                _ => TagSelect::Any,
            },
        };
        match self.engine.start_receive(select, buffer.views.clone()) {
            Ok(handle) => self.receives.push_back(Pending { n, handle, buffer }),
            Err(error) => self.loss = Some(error),
        }
        self.posted += 1;
    }

    fn send(&mut self) {
        let (n, to) = (self.started, 1 - self.me);
        let strided = self.plan.key(self.me, n) >> 22 & 3 == 0;
        let contents = self.plan.contents(self.me, n);
        let buffer = Buffer::new(contents.len(), strided);
        buffer.views.fill(&contents);
        let mode = match self.plan.synchronous(self.me, n) {
            true => Mode::Synchronous,
            false => Mode::Standard,
        };
        self.started += 1;
        self.counts().started.store(self.started, Ordering::SeqCst);
        let sent = self
            .engine
            .start_send(to, 0, n as i32, buffer.views.clone(), mode);
        match sent {
            Ok(handle) => self.sends.push_back(Pending { n, handle, buffer }),
            Err(error) => self.loss = Some(error),
        }
    }

    fn finish_sends(&mut self) -> bool {
        let before = self.sends.len();
        while let Some(front) = self.sends.front() {
            let Some((_, error)) = self.engine.finish(front.handle).expect("a live request") else {
                break;
            };
            if error.is_none() && self.loss.is_none() {
                self.counts().completed.store(front.n + 1, Ordering::SeqCst);
            }
            self.loss = self.loss.take().or(error);
            self.sends.pop_front();
        }
        before != self.sends.len()
    }

    fn finish_receives(&mut self) -> bool {
        let before = self.receives.len();
        while let Some(front) = self.receives.front() {
            let Some((status, error)) = self.engine.finish(front.handle).expect("a live request")
            else {
                break;
            };
            let done = self.receives.pop_front().expect("looked at above");
            if let Some(error) = error {
                self.loss.get_or_insert(error);
                continue;
            }
            assert_eq!(
                (status.source, status.tag as u64),
                (1 - self.me as i32, done.n),
                "order"
            );
            let expected = self.plan.contents(1 - self.me, done.n);
            assert_eq!(
                status.length,
                expected.len(),
                "length of message {}",
                done.n
            );
            let intact = done.buffer.views.to_vec()[..expected.len()] == expected[..];
            assert!(
                intact,
                "message {} of {} bytes is damaged",
                done.n,
                expected.len()
            );
            done.buffer.check_gaps(expected.len());
            if self.received == done.n {
                self.received += 1;
            } else {
                self.received_after_loss += 1;
            }
        }
        before != self.receives.len()
    }
}
