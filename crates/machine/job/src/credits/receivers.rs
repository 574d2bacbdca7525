//! A host's windows for the tasks that receive what its own tasks write.

use std::collections::BTreeMap;

/// Maximum number of bytes on their way from one host to one task.
const WINDOW_BYTES: usize = 256 << 10;
/// Maximum number of further bytes whose writers have ended.
const MAX_LAST_OUTPUT_BYTES: usize = 4 << 20;

/// The bytes on their way to one task, and the sources that wait until they are fewer.
#[derive(Debug, Default)]
struct Window {
    on_their_way: usize,
    waiting: Vec<u64>,
}

/// The windows, by receivers. Sources are the streams of writers, called as the host likes.
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
    /// Windows of this many bytes, and of this many more for the last output of tasks that have ended.
    pub fn new(size: usize, last_output: usize) -> Self {
        Self {
            size,
            last_output,
            windows: BTreeMap::new(),
        }
    }

    /// How many bytes are on their way to a task.
    pub fn on_their_way(&self, to: u32) -> usize {
        self.windows.get(&to).map_or(0, |one| one.on_their_way)
    }

    /// Whether nothing more is read for a task now.
    pub fn is_full(&self, to: u32) -> bool {
        self.on_their_way(to) >= self.size
    }

    /// Whether the last output of a task that has ended may still be sent to its receiver; otherwise it goes to the job's output, since it is
    /// to be heard before the end.
    pub fn takes_last_output(&self, to: u32) -> bool {
        self.on_their_way(to) < self.size + self.last_output
    }

    /// A source is not read until there is room for its receiver.
    pub fn wait(&mut self, to: u32, source: u64) {
        self.windows.entry(to).or_default().waiting.push(source);
    }

    /// This many bytes are sent to a task.
    pub fn sent(&mut self, to: u32, bytes: usize) {
        self.windows.entry(to).or_default().on_their_way += bytes;
    }

    /// A task has received so many bytes, or receives no more. The sources that may be read again.
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

    /// All bytes on their way are lost, or have arrived. The sources that may be read again.
    pub fn all_received(&mut self) -> Vec<u64> {
        let windows = std::mem::take(&mut self.windows).into_values();
        windows.flat_map(|window| window.waiting).collect()
    }

    /// Whether nothing is on its way, and nothing waits.
    pub fn are_whole(&self) -> bool {
        self.windows.is_empty()
    }
}
