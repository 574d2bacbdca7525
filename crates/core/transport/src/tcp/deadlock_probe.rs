//! Deadlock probes: tasks on different hosts ask each other for whom they wait; the process's `cycle` explains why.
//!
//! An answer is sent only after everything else that the task had to send has been written, so nothing of that is in
//! transit behind the answer. Questions are answered here, whenever the asked task makes progress.

use std::sync::atomic::Ordering;

use regatta_engine::{Peer, WaitState};
use regatta_wire::deadlock_probe::{DeadlockProbe, MAX_MEMBERS};

use super::Tcp;

impl Tcp {
    /// Returns the last answer of a peer, and sends a new question unless an answer is outstanding. Returns `None` if
    /// the peer has not answered yet, or is not connected.
    pub(crate) fn inquire(&mut self, peer: Peer) -> Option<WaitState> {
        if !self.link_to(peer).ok()?.is_open() {
            // The peer may have an address by now.
            let _ = self.reach(peer);
            return None;
        }
        let link = self.link(peer)?;
        if let Some(number) = link.probes.next_question()
            && link.send_probe(&DeadlockProbe::Ask(number))
        {
            link.probes.asked(number);
        }
        link.probes.last_answer()
    }

    /// Sends this task's wait state to a peer, as the answer to a question or unasked. Returns false if it cannot be
    /// sent now.
    pub(super) fn answer_probe(&mut self, peer: Peer, number: u32) -> bool {
        let me = self.own.me;
        let state = DeadlockProbe::State {
            number,
            word: self.job.blocked_on(me).load(Ordering::SeqCst),
            looks: self.job.vain_looks(me).load(Ordering::SeqCst),
        };
        self.link(peer).is_some_and(|link| link.send_probe(&state))
    }

    /// Notifies a peer that the wait that it has reported with `word` is part of a cycle. Returns false if that
    /// cannot be sent now.
    pub(crate) fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        let members = members.to_vec();
        let link = self.link(peer).filter(|_| members.len() <= MAX_MEMBERS);
        link.is_some_and(|link| link.send_probe(&DeadlockProbe::Circle { word, members }))
    }

    /// Handles the probes of a peer.
    pub(super) fn handle_probes(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else {
            return;
        };
        for probe in link.probes.take() {
            match probe {
                DeadlockProbe::Ask(number) => {
                    if !self.answer_probe(peer, number)
                        && let Some(link) = self.link(peer).filter(|link| link.is_open())
                    {
                        link.probes.keep(probe);
                    }
                }
                DeadlockProbe::State {
                    number,
                    word,
                    looks,
                } => {
                    if let Some(link) = self.link(peer) {
                        link.probes.note_state(number, (word, looks));
                    }
                }
                DeadlockProbe::Circle { word, members } => self.believe(word, &members),
            }
        }
    }

    /// Records a cycle that another task has found. If this task still waits as it did then, it is notified and its
    /// wait is resolved.
    fn believe(&mut self, word: u64, members: &[Peer]) {
        let (job, me) = (&self.job, self.own.me);
        let known = members.iter().all(|&member| member < job.tasks());
        if !known || !members.contains(&me) {
            return;
        }
        job.write_down_ring(members);
        job.notify_in_ring(me, word);
    }
}
