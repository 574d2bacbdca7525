//! Credit for bytes that are on their way between hosts, so that nobody's memory fills up because somebody does not read.
//!
//! | bytes | sender's window | repaid |
//! |---|---|---|
//! | output of a host's tasks for the job's output | [`SendWindow`] of the host | by the launcher ([`Credits`]), when its own output is not full |
//! | output of a host's tasks for another task | [`ReceiverWindows`] of the host, one for each receiver | by the receiver; by the launcher, where nobody receives it |
//! | standard input of the first task | [`SendWindow`] of the launcher | by the host |
//!
//! Promises:
//!
//! - A window is overrun by its last piece at most, and by the last output of tasks that have ended, which is heard before their ends.
//! - What was sent too much is missing from the room that repayments make: a window never grows.
//! - What was repaid too much changes nothing: nothing less than nothing is on its way.
//! - A window is whole again when all that was sent has been repaid, its receiver has ended, or another launcher has begun.

use std::collections::BTreeMap;

use crate::registry::Piece;

mod receivers;

pub use receivers::ReceiverWindows;

/// Maximum number of bytes of output on their way from one host to the launcher.
pub const HOST_WINDOW_BYTES: u32 = 1 << 20;

/// A window of bytes of one sender. It is shut until it is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendWindow {
    size: usize,
    on_their_way: usize,
}

impl SendWindow {
    /// Opens a window of this many bytes, with none on their way.
    pub fn open(size: usize) -> Self {
        Self {
            size,
            on_their_way: 0,
        }
    }

    /// Whether more may be sent.
    pub fn has_room(&self) -> bool {
        self.on_their_way < self.size
    }

    /// This many bytes are sent.
    pub fn sent(&mut self, bytes: usize) {
        self.on_their_way += bytes;
    }

    /// This many bytes have been dealt with.
    pub fn repaid(&mut self, bytes: usize) {
        self.on_their_way = self.on_their_way.saturating_sub(bytes);
    }

    /// How many bytes have been sent and not repaid.
    pub fn on_their_way(&self) -> usize {
        self.on_their_way
    }
}

/// Bytes that a host may send once more to a task, since nobody waits for those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repayment {
    /// The task that was to receive them.
    pub by: u32,
    /// The task that wrote them: its host has the window.
    pub task: u32,
    /// How many.
    pub bytes: u32,
}

/// The launcher's debts: output that it has taken, and whose senders have not been told so.
#[derive(Debug)]
pub struct Credits {
    /// The windows of all hosts.
    window: u32,
    /// By hosts, of output for the job's output.
    hosts: BTreeMap<u32, u64>,
    /// Of output for tasks, which went to the job's output because they do not receive it.
    diverted: Vec<Repayment>,
}

impl Default for Credits {
    fn default() -> Self {
        Self::new(HOST_WINDOW_BYTES)
    }
}

impl Credits {
    /// Of a launcher whose hosts have windows of this many bytes.
    pub fn new(window: u32) -> Self {
        Self {
            window,
            hosts: BTreeMap::new(),
            diverted: Vec::new(),
        }
    }

    /// A host has sent so many bytes for the job's output.
    pub fn host_sent(&mut self, host: u32, bytes: usize) {
        *self.hosts.entry(host).or_default() += bytes as u64;
    }

    /// A piece goes to the job's output, perhaps in a receiver's place.
    pub fn piece_diverted(&mut self, piece: &Piece) {
        if let Some(route) = piece.route.filter(|_| !piece.bytes.is_empty()) {
            self.diverted.push(Repayment {
                by: route.to,
                task: piece.task,
                bytes: piece.bytes.len() as u32,
            });
        }
    }

    /// How much to repay to a host now, in large pieces: or a chatty task would cost a message for each of its own.
    pub fn repay_host(&mut self, host: u32, output_is_full: bool) -> Option<u32> {
        let owed = self.hosts.get_mut(&host).filter(|_| !output_is_full)?;
        let bytes = u32::try_from(*owed).unwrap_or(u32::MAX);
        if bytes < self.window / 4 {
            return None;
        }
        *owed -= u64::from(bytes);
        Some(bytes)
    }

    /// Repayments that are due now, to the hosts of writers.
    pub fn repay_diverted(&mut self, output_is_full: bool) -> Vec<Repayment> {
        match output_is_full {
            true => Vec::new(),
            false => std::mem::take(&mut self.diverted),
        }
    }

    /// Nothing is owed to a host that is lost.
    pub fn host_lost(&mut self, host: u32) {
        self.hosts.remove(&host);
    }

    /// How much is owed to a host for the job's output.
    pub fn owed(&self, host: u32) -> u64 {
        self.hosts.get(&host).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
