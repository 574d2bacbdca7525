//! A core dump of a task does not contain the job's key: neither the task's own memory nor the shared memory has it
//! there.

#[path = "support/hosts.rs"]
mod hosts;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Engine, Mode, Select, Settings, TagSelect};
use regatta_memory::views::Views;

/// Longer than the test takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);
/// Number of bytes of each mapping that are searched: all of the program's own mappings, and the front of a job's
/// segment, of which little is used.
const MAX_SCANNED_BYTES: u64 = 16 << 20;
const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];

/// A writable mapping of this process.
struct Mapping {
    start: u64,
    end: u64,
    /// Whether core dumps exclude it.
    left_out: bool,
}

fn mappings() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut found, mut is_writable) = (Vec::<Mapping>::new(), false);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next(), words.next());
        let range = first.and_then(|range| range.split_once('-'));
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        if let Some((start, end)) = range.and_then(|(start, end)| Some((hex(start)?, hex(end)?))) {
            is_writable = second.is_some_and(|rights| rights.starts_with("rw"));
            found.extend(is_writable.then_some(Mapping {
                start,
                end,
                left_out: false,
            }));
        } else if let (Some("VmFlags:"), true, Some(last)) = (first, is_writable, found.last_mut())
        {
            last.left_out = line.split_whitespace().any(|flag| flag == "dd");
        }
    }
    found
}

/// Returns whether these bytes, of which the first must not be 0, are in the mapping.
fn holds(memory: &File, mapping: &Mapping, wanted: &[u8; 32]) -> bool {
    let mut bytes = [0; PAGE + 32];
    (mapping.start..mapping.end.min(mapping.start + MAX_SCANNED_BYTES))
        .step_by(PAGE)
        .any(|at| {
            let length = bytes.len().min((mapping.end - at) as usize);
            // A mapping can be longer than its file.
            let count = memory.read_at(&mut bytes[..length], at).unwrap_or(0);
            let here = &bytes[..count];
            here[..count.min(PAGE)] != ZEROS[..count.min(PAGE)]
                && here.windows(wanted.len()).any(|window| window == wanted)
        })
}

#[test]
fn no_core_dump_of_a_task_has_the_jobs_key() {
    let hosts = Hosts::new(
        false,
        std::array::from_fn(|n| (n as u8).wrapping_mul(0x3b) ^ 0x5a),
        |address| address,
    );
    let mut tasks = [0, 1].map(|rank| Engine::new(hosts.join(rank), Settings::default()));
    let (mut bytes, mut into) = ([7_u8; 8], [0_u8; 8]);
    // SAFETY: both stay valid and unmoved until both requests are finished.
    let [message, place] =
        [&mut bytes, &mut into].map(|bytes| unsafe { Views::block(bytes.as_mut_ptr(), 8) });
    let select = Select {
        context: 0,
        source: Some(0),
        tag: TagSelect::Any,
    };
    let receive = tasks[1].start_receive(select, place).unwrap();
    let send = tasks[0].start_send(1, 0, 1, message, Mode::Standard);
    let start = Instant::now();
    for (task, request) in [(0, send.unwrap()), (1, receive)] {
        while tasks[task].finish(request).unwrap().is_none() {
            tasks.iter_mut().for_each(|task| {
                task.progress();
            });
            assert!(start.elapsed() < TEST_TIMEOUT, "a message does not arrive");
        }
    }
    assert_eq!(into, bytes);

    let (key, _) = hosts.jobs[0].key();
    let memory = File::open("/proc/self/mem").unwrap();
    // Functions that were called have left copies on the stack.
    let stack = &raw const start as u64;
    let (mut dumped, mut left_out) = (0, 0);
    for mapping in mappings() {
        if (mapping.start..mapping.end).contains(&stack) {
            continue;
        }
        let found = holds(&memory, &mapping, &key);
        match mapping.left_out {
            true => left_out += u32::from(found),
            false => {
                assert!(
                    !found,
                    "the key is at {:x} to {:x}",
                    mapping.start, mapping.end
                );
                dumped += 1;
            }
        }
    }
    // The key is in two mappings of each task's segment, and in `key` here.
    assert!(
        left_out >= 5,
        "it is looked for where it cannot be found: {left_out}"
    );
    assert!(dumped > 4);
}
