//! Output that goes to the tasks which have started its writers; and the part of it that goes to the job's output, because
//! nobody receives it any more.

use super::Supervisor;
use crate::channel::messages::Order;
use crate::streams::Heard;
use regatta_job::credits::Repayment;
use regatta_job::registry::Piece;
use regatta_wire::control::Then;

impl Supervisor<'_> {
    /// Shows what a task of a host has written to a stream of the job's output; nothing: that is its end.
    pub(super) fn pass_output(&mut self, host: u32, (rank, stream): (u32, u32), bytes: &[u8]) {
        let which = stream as usize;
        let heard = match bytes.is_empty() {
            true => Heard::End(rank, which),
            false => Heard::Bytes(rank, which, bytes),
        };
        if !self.output.pass(heard, host) && !bytes.is_empty() {
            let _ = self.order(host, Order::Deaf { rank, stream });
        }
    }

    /// A task of some host has written this.
    pub(super) fn caught(&mut self, mut piece: Piece) {
        if self.registry.task_wrote(&mut piece) {
            return;
        }
        let (task, stream) = (piece.task, piece.stream);
        let host = self.registry.host_of(task).unwrap_or_default();
        if !piece.bytes.is_empty() {
            self.pass_output(host, (task, stream), &piece.bytes);
        }
        if piece.then == Then::Closed {
            self.pass_output(host, (task, stream), &[]);
        }
        self.credits.piece_diverted(&piece);
    }

    /// Lets hosts go on whose tasks' output went the job's way, unless too much waits to be written there.
    pub(super) fn repay_caught(&mut self) {
        for Repayment { by, task, bytes } in self.credits.repay_diverted(self.output.is_full()) {
            self.order_for(task, Order::Taken { by, bytes });
        }
    }

    /// A task receives nothing more of what others write: nobody waits for it any more.
    pub(super) fn hushed(&mut self, by: u32) {
        if !self.registry.stop_output_to(by) {
            return;
        }
        let bytes = u32::MAX;
        self.worker.obey(Order::Taken { by, bytes });
        self.send_to_all(&Order::Taken { by, bytes });
    }
}
