//! A core dump of a task does not have the job's key: neither in the task's own memory nor in what it shares with others.

#[path = "support/hosts.rs"]
mod hosts;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use hosts::Hosts;
use regatta_engine::{Engine, Mode, Select, Settings, TagSelect};
use regatta_memory::views::Views;

/// Longer than the test takes.
const PATIENCE: Duration = Duration::from_secs(100);
/// So much of each mapping is looked at: all of the program's own, and the front of the job's segment, of which little is used.
const MOST: u64 = 64 << 20;
const PIECE: u64 = 1 << 20;

/// A piece of this process's memory.
struct Mapping {
    start: u64,
    end: u64,
    /// A core dump has it.
    dumped: bool,
}

/// The memory of this process that can be written to.
fn mappings() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut found = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next(), words.next());
        let range = first.and_then(|range| range.split_once('-'));
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        if let Some((start, end)) = range.and_then(|(start, end)| Some((hex(start)?, hex(end)?))) {
            found.push(Mapping {
                start,
                end,
                dumped: second.is_some_and(|rights| rights.starts_with("rw")),
            });
        } else if let (Some("VmFlags:"), Some(last)) = (first, found.last_mut()) {
            last.dumped &= !line.split_whitespace().any(|flag| flag == "dd");
        }
    }
    found
}

/// Whether these bytes, of which only their place is known here, are in that mapping.
fn holds(memory: &File, mapping: &Mapping, wanted: &[u8; 32]) -> bool {
    let mut bytes = vec![0; PIECE as usize + wanted.len()];
    let end = mapping.end.min(mapping.start + MOST);
    let mut at = mapping.start;
    while at < end {
        let length = (end - at).min(bytes.len() as u64) as usize;
        // A mapping can be longer than its file.
        let Ok(count) = memory.read_at(&mut bytes[..length], at) else {
            return false;
        };
        let mut windows = bytes[..count].windows(wanted.len());
        if windows.any(|window| window[0] == wanted[0] && window == wanted) {
            return true;
        }
        at += PIECE;
    }
    false
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
    // SAFETY: both stay where they are until both requests are finished.
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
            assert!(start.elapsed() < PATIENCE, "a message does not arrive");
        }
    }
    assert_eq!(into, bytes);

    let (key, _) = hosts.jobs[0].key();
    let memory = File::open("/proc/self/mem").unwrap();
    // Functions that were called have left copies here.
    let stack = &raw const start as u64;
    let (mut dumped, mut kept) = (0, 0);
    for mapping in mappings() {
        if (mapping.start..mapping.end).contains(&stack) {
            continue;
        }
        let found = holds(&memory, &mapping, &key);
        match mapping.dumped {
            true => assert!(
                !found,
                "the key is at {:x} to {:x}",
                mapping.start, mapping.end
            ),
            false => kept += u32::from(found),
        }
        dumped += u32::from(mapping.dumped);
    }
    // Of each task's segment there are two mappings, and a key is here.
    assert!(
        kept >= 5,
        "the key is looked for where it cannot be found: {kept}"
    );
    assert!(dumped > 4);
}
