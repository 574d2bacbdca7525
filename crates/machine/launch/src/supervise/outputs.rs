//! The job's output and input. A task's output goes to the task that started it, if that has requested it. What the
//! receiver does not take any more goes to the job's output.

use std::cell::RefCell;

use regatta_job::credits::Repayment;
use regatta_job::registry::Piece;
use regatta_job::{Credits, ReplicatedRegistry};
use regatta_wire::control::StreamState;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;
use serde_json::Value;

use super::Supervisor;
use crate::channel::messages::{Order, Report};
use crate::channel::remote::Remote;
use crate::streams::Heard;
use crate::streams::input::Input;
use crate::streams::output::Output;
use crate::tasks::worker::Worker;

/// The job's output to the user, its input, and the repayments owed for output.
pub(super) struct UserStreams {
    output: Output,
    /// The standard input, if it is for a task on another host.
    input: Option<Input>,
    /// Output that was taken and not repaid to its senders yet.
    credits: Credits,
}

impl UserStreams {
    pub(super) fn new(output: Output, input: Option<Input>) -> Self {
        Self {
            output,
            input,
            credits: Credits::default(),
        }
    }

    /// Prints a sentence for the user.
    pub(super) fn report(&mut self, sentence: &str) {
        self.output.report(sentence);
    }

    /// Reports an event to the program that reads the output.
    pub(super) fn event(&mut self, event: &Value) {
        self.output.event(event);
    }

    /// Returns whether so much waits to be written that tasks must wait.
    pub(super) fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Returns whether everything has been written.
    pub(super) fn is_flushed(&self) -> bool {
        self.output.is_flushed()
    }

    /// Writes what can be written now.
    pub(super) fn flush(&mut self) {
        self.output.flush();
    }

    /// Reports at the end if output was lost. Returns whether any was.
    pub(super) fn report_loss(&mut self) -> bool {
        self.output.report_loss()
    }

    /// Returns the descriptors to poll.
    pub(super) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let blocked = self.output.blocked();
        let blocked = blocked.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT));
        blocked.chain(self.input.iter().flat_map(Input::polls))
    }

    /// Returns the process that reads the standard input.
    pub(super) fn reader(&self) -> Option<Pid> {
        self.input.as_ref().and_then(Input::reader)
    }

    /// Records the end of a child, which may be that process.
    pub(super) fn reaped(&mut self, pid: Pid) {
        self.input.iter_mut().for_each(|input| input.reaped(pid));
    }

    /// Sends the available input to the host of task 0.
    pub(super) fn send_input(&mut self, to: &mut Remote) {
        while let Some(bytes) = self.input.as_mut().and_then(|input| input.next()) {
            let _ = to.send(&Order::Input { bytes });
        }
    }

    /// Records that the host has consumed this many bytes of input.
    pub(super) fn input_taken(&mut self, bytes: u32) {
        let bytes = bytes as usize;
        self.input.iter_mut().for_each(|input| input.taken(bytes));
    }

    /// Stops reading the input, because it is not wanted any more.
    pub(super) fn close_input(&mut self) {
        self.input.iter_mut().for_each(Input::close);
    }

    /// Updates the host's state and its credit from a report. Fails with the reason if the host must be given up.
    pub(super) fn note(&mut self, report: &Report, of: &mut Remote) -> Result<(), String> {
        of.note(report, &mut self.credits)
    }

    /// Repays the host's output that has been passed on to the user, so that it may send more.
    pub(super) fn repay(&mut self, remote: &mut Remote) {
        let full = self.output.is_full();
        if let Some(bytes) = self.credits.repay_host(remote.number, full) {
            let _ = remote.send(&Order::Credit { bytes });
        }
    }

    /// Forgets what is owed to a host that is lost.
    pub(super) fn host_lost(&mut self, number: u32) {
        self.credits.host_lost(number);
    }

    /// Passes what the tasks of this host have written to the job's output, as far as that takes it.
    pub(super) fn pump(&mut self, worker: &mut Worker, registry: &ReplicatedRegistry) {
        let output = RefCell::new(&mut self.output);
        let has_room = || !output.borrow().is_full();
        worker.pump(has_room, &mut |heard| {
            let host = registry.host_of(heard.rank());
            output.borrow_mut().pass(heard, host.unwrap_or_default())
        });
    }

    /// Passes on everything that is still in the pipes of this host's tasks. No process writes to them any more.
    pub(super) fn drain(&mut self, worker: &mut Worker, registry: &ReplicatedRegistry) {
        worker.drain(|| true, &mut |heard| {
            let host = registry.host_of(heard.rank());
            self.output.pass(heard, host.unwrap_or_default())
        });
    }
}

impl Supervisor<'_> {
    /// Writes what a task of a host has written to the job's output. Empty `bytes` mark the end of the stream.
    pub(super) fn pass_output(&mut self, host: u32, (rank, stream): (u32, u32), bytes: &[u8]) {
        let which = stream as usize;
        let heard = match bytes.is_empty() {
            true => Heard::End(rank, which),
            false => Heard::Bytes(rank, which, bytes),
        };
        if !self.streams.output.pass(heard, host) && !bytes.is_empty() {
            let _ = self.order(host, Order::Deaf { rank, stream });
        }
    }

    /// Handles a piece that a task on any host has written for another task.
    pub(super) fn caught(&mut self, mut piece: Piece) {
        if self.registry.task_wrote(&mut piece) {
            return;
        }
        let (task, stream) = (piece.task, piece.stream);
        let host = self.registry.host_of(task).unwrap_or_default();
        if !piece.bytes.is_empty() {
            self.pass_output(host, (task, stream), &piece.bytes);
        }
        if piece.then == StreamState::Closed {
            self.pass_output(host, (task, stream), &[]);
        }
        self.streams.credits.piece_diverted(&piece);
    }

    /// Repays hosts whose tasks' output went to the job's output, unless too much waits to be written there.
    pub(super) fn repay_caught(&mut self) {
        let full = self.streams.is_full();
        for Repayment { by, task, bytes } in self.streams.credits.repay_diverted(full) {
            self.order_for(task, Order::Taken { by, bytes });
        }
    }

    /// Handles that a task does not receive output of others any more, so that their writers do not wait for it.
    pub(super) fn hushed(&mut self, by: u32) {
        if !self.registry.stop_output_to(by) {
            return;
        }
        let bytes = u32::MAX;
        self.worker.obey(Order::Taken { by, bytes });
        self.peers.send_to_all(&Order::Taken { by, bytes });
    }
}
