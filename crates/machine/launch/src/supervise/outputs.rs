//! Output that goes to the tasks which have started its writers; and the part of it that goes to the job's output, because
//! nobody receives it any more.

use super::Supervisor;
use crate::channel::messages::Order;
use crate::streams::Heard;
use regatta_job::registry::Piece;
use regatta_wire::control::Then;

/// Output that went the job's way, for whose window its host has not been repaid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owed {
    task: u32,
    by: u32,
    bytes: u32,
}

impl Supervisor<'_> {
    /// Passes on what tasks of this host have written for others.
    pub(super) fn pass_caught(&mut self) {
        let mut pieces = Vec::new();
        if let Some(tasks) = &mut self.tasks {
            tasks.pump_caught(&mut |piece| pieces.push(piece));
        }
        pieces.into_iter().for_each(|piece| self.caught(piece));
        self.repay_caught();
    }

    /// Passes on the last output of a task of this host, before its end is reported.
    pub(super) fn pass_last_words(&mut self, task: u32) {
        let mut pieces = Vec::new();
        if let Some(tasks) = &mut self.tasks {
            tasks
                .caught
                .last_words(task, &mut |piece| pieces.push(piece));
        }
        pieces.into_iter().for_each(|piece| self.caught(piece));
    }

    /// The rest, when nobody writes any more.
    pub(super) fn drain_caught(&mut self) {
        let mut pieces = Vec::new();
        if let Some(tasks) = &mut self.tasks {
            tasks.caught.drain(&mut |piece| pieces.push(piece));
        }
        pieces.into_iter().for_each(|piece| self.caught(piece));
    }

    /// A task of some host has written this.
    pub(super) fn caught(&mut self, mut piece: Piece) {
        if self.registry.task_wrote(&mut piece) {
            return;
        }
        let (task, stream) = (piece.task, piece.stream);
        let host = self.registry.host_of(task).unwrap_or_default();
        if !piece.bytes.is_empty() {
            let heard = Heard::Bytes(task, stream as usize, &piece.bytes);
            if !self.output.pass(heard, host) {
                self.deafen(task, stream);
            }
        }
        if piece.then == Then::Closed {
            self.output.pass(Heard::End(task, stream as usize), host);
        }
        if let Some(route) = piece.route.filter(|_| !piece.bytes.is_empty()) {
            self.owed.push(Owed {
                task,
                by: route.to,
                bytes: piece.bytes.len() as u32,
            });
        }
    }

    fn deafen(&mut self, task: u32, stream: u32) {
        let host = self.registry.host_of(task);
        if let Some(remote) = host.and_then(|host| self.remote(host)) {
            let _ = remote.send(&Order::Deaf { rank: task, stream });
        } else if let Some(tasks) = &mut self.tasks {
            tasks.caught.deafen(task, stream);
        }
    }

    /// Lets hosts go on whose tasks' output went the job's way, unless too much waits to be written there.
    fn repay_caught(&mut self) {
        if self.output.is_full() {
            return;
        }
        for Owed { task, by, bytes } in std::mem::take(&mut self.owed) {
            self.taken(by, task, bytes);
        }
    }

    /// A task has received so much of what another one has written.
    pub(super) fn taken(&mut self, by: u32, task: u32, bytes: u32) {
        let host = self.registry.host_of(task);
        if let Some(remote) = host.and_then(|host| self.remote(host)) {
            let _ = remote.send(&Order::Taken { by, bytes });
        } else if let Some(tasks) = &mut self.tasks {
            tasks.caught.taken(by, bytes as usize);
        }
    }

    /// A task receives nothing more of what others write: nobody waits for it any more.
    pub(super) fn hushed(&mut self, by: u32) {
        if !self.registry.stop_output_to(by) {
            return;
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.caught.taken(by, usize::MAX);
        }
        let bytes = u32::MAX;
        self.send_to_all(&Order::Taken { by, bytes });
    }
}
