//! Credit for bytes in flight between hosts. It bounds the memory used when a receiver does not read.
//!
//! | bytes | sender's window | repaid |
//! |---|---|---|
//! | output of a host's tasks for the job's output | [`SendWindow`] of the host | by the launcher ([`Credits`]), when its own output is not full |
//! | output of a host's tasks for another task | [`ReceiverWindows`] of the host, one for each receiver | by the receiver, or by the launcher if no task receives it |
//! | standard input of the first task | [`SendWindow`] of the launcher | by the host |
//!
//! Promises:
//!
//! - A window is exceeded by at most its last piece, and by the last output of tasks that have ended, which is
//!   delivered before their ends.
//! - Bytes sent beyond the window count against later repayments: a window never grows.
//! - Repayments of more than was sent have no effect: the number of bytes in flight is never negative.
//! - A window is empty again once all bytes sent have been repaid, its receiver has ended, or another launcher has
//!   begun.

use std::collections::BTreeMap;

use crate::registry::Piece;

mod receivers;

pub use receivers::ReceiverWindows;

/// Maximum number of bytes of output in flight from one host to the launcher.
pub const HOST_WINDOW_BYTES: u32 = 1 << 20;

/// The window of one sender, in bytes. A window made by `default` allows nothing until it is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendWindow {
    size: usize,
    on_their_way: usize,
}

impl SendWindow {
    /// Returns a window of `size` bytes with none in flight.
    pub fn open(size: usize) -> Self {
        Self {
            size,
            on_their_way: 0,
        }
    }

    /// Returns whether more may be sent.
    pub fn has_room(&self) -> bool {
        self.on_their_way < self.size
    }

    /// Records that this many bytes have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.on_their_way += bytes;
    }

    /// Records that the receiver has consumed this many bytes.
    pub fn repaid(&mut self, bytes: usize) {
        self.on_their_way = self.on_their_way.saturating_sub(bytes);
    }

    /// Returns the number of bytes that have been sent and not repaid.
    pub fn on_their_way(&self) -> usize {
        self.on_their_way
    }
}

/// Bytes that a host may send to a task again, since as many have been consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repayment {
    /// The task that the bytes were sent to.
    pub by: u32,
    /// The task that wrote the bytes. Its host has the window.
    pub task: u32,
    /// The number of bytes.
    pub bytes: u32,
}

/// The repayments that the launcher owes: output that it has taken, and for which it has not repaid the senders.
#[derive(Debug)]
pub struct Credits {
    /// The size of each host's window in bytes.
    window: u32,
    /// Bytes owed for the job's output, by host.
    hosts: BTreeMap<u32, u64>,
    /// Repayments for output that was sent to a task but written to the job's output, because that task does not
    /// receive it.
    diverted: Vec<Repayment>,
}

impl Default for Credits {
    fn default() -> Self {
        Self::new(HOST_WINDOW_BYTES)
    }
}

impl Credits {
    /// Returns the credits of a launcher whose hosts have windows of `window` bytes.
    pub fn new(window: u32) -> Self {
        Self {
            window,
            hosts: BTreeMap::new(),
            diverted: Vec::new(),
        }
    }

    /// Records that a host has sent this many bytes for the job's output.
    pub fn host_sent(&mut self, host: u32, bytes: usize) {
        *self.hosts.entry(host).or_default() += bytes as u64;
    }

    /// Records that a piece goes to the job's output. If it was for a task, its writer's host is owed a repayment.
    pub fn piece_diverted(&mut self, piece: &Piece) {
        if let Some(route) = piece.route.filter(|_| !piece.bytes.is_empty()) {
            self.diverted.push(Repayment {
                by: route.to,
                task: piece.task,
                bytes: piece.bytes.len() as u32,
            });
        }
    }

    /// Returns how many bytes to repay to a host now, or `None` if that is less than a quarter of the window. Repaying
    /// in large pieces saves a message for each small write of a task.
    pub fn repay_host(&mut self, host: u32, output_is_full: bool) -> Option<u32> {
        let owed = self.hosts.get_mut(&host).filter(|_| !output_is_full)?;
        let bytes = u32::try_from(*owed).unwrap_or(u32::MAX);
        if bytes < self.window / 4 {
            return None;
        }
        *owed -= u64::from(bytes);
        Some(bytes)
    }

    /// Takes the repayments that are due now, to be sent to the hosts of the writers.
    pub fn repay_diverted(&mut self, output_is_full: bool) -> Vec<Repayment> {
        match output_is_full {
            true => Vec::new(),
            false => std::mem::take(&mut self.diverted),
        }
    }

    /// Forgets what is owed to a host that is lost.
    pub fn host_lost(&mut self, host: u32) {
        self.hosts.remove(&host);
    }

    /// Returns the bytes owed to a host for the job's output.
    pub fn owed(&self, host: u32) -> u64 {
        self.hosts.get(&host).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
