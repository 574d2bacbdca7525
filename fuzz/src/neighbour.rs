//! Two engines on one segment, and a writer that changes words of it between their calls. The input is a list of steps:
//! calls, and words written anywhere after the segment's first 128 bytes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use regatta_engine::{Engine, Handle, Mode, Select, Settings, TagSelect};
use regatta_memory::segment::RESERVED_FRONT;
use regatta_memory::views::Scratch;
use regatta_segment::job::Job;
use regatta_transport::shm::Shm;

/// Lengths around the limits of the ways in which a message travels between two tasks.
const LENGTHS: [usize; 8] = [0, 8, 48, 49, 1000, 8192, 8193, 70_000];
/// Words that damaged memory often contains: turns, laps, ranks, sizes, and numbers that no counter reaches.
const WORDS: [u64; 8] = [0, 1, 2, 3, 4, 0x1_0000, u32::MAX as u64, u64::MAX];
const STEPS: usize = 200;
const TASKS: u32 = 2;

/// The bytes of the input, in order, followed by zeros.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, most: usize) -> usize {
        self.byte() as usize % most
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

struct World {
    job: Arc<Job>,
    file: File,
    tasks: Vec<Engine<Shm>>,
    open: Vec<Vec<Handle>>,
    memory: Scratch,
    /// Offsets of the parts of the segment: the job's table, each ring, each pipe, each loan.
    pieces: Vec<u64>,
}

impl World {
    fn new() -> World {
        let job = Arc::new(Job::create(TASKS).expect("a small job"));
        let file = job.fd().try_clone_to_owned().expect("a descriptor").into();
        for rank in 0..TASKS {
            job.announce(rank, std::process::id());
        }
        let engine = |rank| Engine::new(Shm::new(job.clone(), rank), Settings::default());
        World {
            file,
            tasks: (0..TASKS).map(engine).collect(),
            open: vec![Vec::new(); TASKS as usize],
            memory: Scratch::new(2 * LENGTHS[7]).expect("a little memory"),
            pieces: vec![RESERVED_FRONT as u64],
            job,
        }
    }

    fn step(&mut self, input: &mut Input) {
        let kind = input.byte();
        let me = (kind >> 7) as usize;
        let before = self.job.segment().used();
        let task = &mut self.tasks[me];
        let to = (1 - me) as u32;
        let select = |tag: u8| Select {
            context: 0,
            source: (tag & 1 == 0).then_some(to),
            tag: match tag & 6 {
                0 => TagSelect::Any,
                _ => TagSelect::Exactly((tag >> 1 & 3) as i32),
            },
        };
        let started = match kind % 8 {
            0 | 1 => {
                let (len, tag) = (LENGTHS[input.below(8)], input.below(4) as i32);
                let message = self.memory.part(0, len);
                let mode = [Mode::Standard, Mode::Synchronous][(kind >> 3 & 1) as usize];
                task.start_send(to, 0, tag, message, mode)
            }
            2 | 3 => {
                let (len, tag) = (LENGTHS[input.below(8)], input.byte());
                let into = self.memory.part(LENGTHS[7], len);
                task.start_receive(select(tag), into)
            }
            4 => return self.finish(me),
            5 => return self.lend(me, input),
            _ => return self.scribble(input),
        };
        self.open[me].extend(started.ok());
        self.note(before);
    }

    /// Records the offset of a part that was allocated since `before` bytes were used.
    fn note(&mut self, before: u64) {
        let aligned = before.next_multiple_of(4096);
        if self.job.segment().used() > before && self.pieces.len() < 64 {
            self.pieces.push(aligned);
        }
    }

    fn finish(&mut self, me: usize) {
        let before = self.job.segment().used();
        let task = &mut self.tasks[me];
        while task.progress() {}
        self.open[me].retain(|&handle| !matches!(task.finish(handle), Ok(Some(_)) | Err(_)));
        self.note(before);
    }

    fn lend(&mut self, me: usize, input: &mut Input) {
        let before = self.job.segment().used();
        let task = &mut self.tasks[me];
        use regatta_engine::Loans;
        let any = Select {
            context: 0,
            source: None,
            tag: TagSelect::Any,
        };
        match input.below(4) {
            0 | 1 => {
                let len = LENGTHS[input.below(8)];
                if let Ok((place, _)) = task.transport_mut().lend(len) {
                    let _ = task.send_loan((1 - me) as u32, 0, 0, place, len as u64);
                }
            }
            2 => {
                let _ = task.probe(&any);
            }
            _ => {
                if let Ok(Some((status, place, views))) = task.take_loan(&any) {
                    assert_eq!(views.len(), status.length);
                    task.transport_mut().give_back(place);
                }
            }
        }
        self.note(before);
    }

    fn scribble(&mut self, input: &mut Input) {
        let piece = self.pieces[input.below(self.pieces.len())];
        let far = input.byte();
        let at = match far % 4 {
            0 => (input.byte() as u64) << 8 | input.byte() as u64,
            _ => input.byte() as u64,
        };
        let word = match far >> 4 {
            few @ 0..8 => WORDS[few as usize],
            8 => self.pieces[input.below(self.pieces.len())],
            _ => input.word(),
        };
        let at = piece + at * 8;
        // A write beyond the end would make the file longer.
        let end = self.file.metadata().map_or(0, |file| file.len());
        if at + 8 <= end {
            let _ = self.file.write_all_at(&word.to_le_bytes(), at);
        }
    }
}

/// Checks that every call returns, nothing panics, and nothing outside the segment and the callers' memory is accessed,
/// whatever is written into the segment.
pub fn neighbour(bytes: &[u8]) {
    let mut input = Input(bytes.iter());
    let mut world = World::new();
    for _ in 0..STEPS {
        if input.0.as_slice().is_empty() {
            break;
        }
        world.step(&mut input);
    }
    for me in [0, 1, 0, 1] {
        world.finish(me);
    }
}
