//! A host's windows for the tasks that receive the output of its own tasks.

use std::collections::BTreeMap;

/// Maximum number of bytes in flight from one host to one task.
const WINDOW_BYTES: usize = 256 << 10;
/// Maximum number of further bytes in flight whose writers have ended.
const MAX_LAST_OUTPUT_BYTES: usize = 4 << 20;

/// The bytes in flight to one task, and the sources that wait until there are fewer.
#[derive(Debug, Default)]
struct Window {
    on_their_way: usize,
    waiting: Vec<u64>,
}

/// The windows by receiver. A source is a stream of a writer, with a number that the host chooses.
#[derive(Debug)]
pub struct ReceiverWindows {
    size: usize,
    last_output: usize,
    windows: BTreeMap<u32, Window>,
}

impl Default for ReceiverWindows {
    fn default() -> Self {
        Self::new(WINDOW_BYTES, MAX_LAST_OUTPUT_BYTES)
    }
}

impl ReceiverWindows {
    /// Returns windows of `size` bytes each, which allow `last_output` bytes more for the last output of tasks that
    /// have ended.
    pub fn new(size: usize, last_output: usize) -> Self {
        Self {
            size,
            last_output,
            windows: BTreeMap::new(),
        }
    }

    /// Returns the number of bytes in flight to a task.
    pub fn on_their_way(&self, to: u32) -> usize {
        self.windows.get(&to).map_or(0, |one| one.on_their_way)
    }

    /// Returns whether the window of a receiver is full, so that its sources must not be read.
    pub fn is_full(&self, to: u32) -> bool {
        self.on_their_way(to) >= self.size
    }

    /// Returns whether the last output of a task that has ended may still be sent to its receiver. Otherwise it goes to
    /// the job's output, since it must be delivered before the end of the task.
    pub fn takes_last_output(&self, to: u32) -> bool {
        self.on_their_way(to) < self.size + self.last_output
    }

    /// Records that `source` is not read until the window of its receiver has room.
    pub fn wait(&mut self, to: u32, source: u64) {
        self.windows.entry(to).or_default().waiting.push(source);
    }

    /// Records that this many bytes are sent to a task.
    pub fn sent(&mut self, to: u32, bytes: usize) {
        self.windows.entry(to).or_default().on_their_way += bytes;
    }

    /// Records that a task has received this many bytes. Returns the sources that may be read again.
    pub fn received(&mut self, by: u32, bytes: usize) -> Vec<u64> {
        let Some(window) = self.windows.get_mut(&by) else {
            return Vec::new();
        };
        window.on_their_way = window.on_their_way.saturating_sub(bytes);
        if window.on_their_way >= self.size {
            return Vec::new();
        }
        let again = std::mem::take(&mut window.waiting);
        if window.on_their_way == 0 {
            self.windows.remove(&by);
        }
        again
    }

    /// Empties all windows: the bytes in flight have arrived or are lost. Returns the sources that may be read again.
    pub fn all_received(&mut self) -> Vec<u64> {
        let windows = std::mem::take(&mut self.windows).into_values();
        windows.flat_map(|window| window.waiting).collect()
    }

    /// Returns whether no bytes are in flight and no source waits.
    pub fn are_whole(&self) -> bool {
        self.windows.is_empty()
    }
}
