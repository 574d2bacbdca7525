//! The clocks of a job's hosts, for tasks that ask.

use regatta_wire::control::Why;

use super::Supervisor;
use crate::channel::messages::Order;

/// A question that a host has not answered yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    host: u32,
    by: u32,
    id: u32,
}

impl Supervisor<'_> {
    /// Asks a host what time it is, for a task.
    pub(super) fn ask_clock(&mut self, by: u32, id: u32, host: u32) {
        // If that fails the host is about to be lost.
        let _ = self.order(host, Order::Clock { by, id });
        self.clocks.push(Asked { host, by, id });
    }

    /// A host has said what time it is.
    pub(super) fn clock_told(&mut self, host: u32, by: u32, id: u32, time: u64) {
        let asked = Asked { host, by, id };
        if let Some(at) = self.clocks.iter().position(|known| *known == asked) {
            self.clocks.swap_remove(at);
            self.registry.reply(by, id, Ok(time));
        }
    }

    /// A host answers nothing more.
    pub(super) fn clock_lost(&mut self, host: u32) {
        let all = std::mem::take(&mut self.clocks).into_iter();
        let (lost, kept) = all.partition(|asked: &Asked| asked.host == host);
        self.clocks = kept;
        for Asked { by, id, .. } in lost {
            let sentence = "the host was lost before it said what time it is".to_owned();
            self.registry.reply(by, id, Err((Why::Host, sentence)));
        }
    }
}
