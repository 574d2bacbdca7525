//! Tasks on different hosts ask each other whom they wait for; the process's `cycle` has the why.
//!
//! An answer goes when everything else has been written that the task had to send, so behind it nothing of that is left on
//! its way. Questions are answered here, whenever the asked task makes progress.

use std::sync::atomic::Ordering;

use regatta_engine::{Peer, WaitState};
use regatta_wire::deadlock_probe::{DeadlockProbe, MAX_MEMBERS};

use super::Tcp;

impl Tcp {
    /// The last answer of a peer; it is asked anew, unless it still owes an answer. `None`: it has not said anything, or
    /// is not connected.
    pub(crate) fn inquire(&mut self, peer: Peer) -> Option<WaitState> {
        if !self.link_to(peer).ok()?.is_open() {
            // It may have an address by then.
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

    /// Tell a peer how it is with this task, as the answer to a question or to none. False: not now.
    pub(super) fn answer_probe(&mut self, peer: Peer, number: u32) -> bool {
        let me = self.own.me;
        let state = DeadlockProbe::State {
            number,
            word: self.job.blocked_on(me).load(Ordering::SeqCst),
            looks: self.job.vain_looks(me).load(Ordering::SeqCst),
        };
        self.link(peer).is_some_and(|link| link.send_probe(&state))
    }

    /// Tell a peer that the wait it has shown with `word` is part of a circle. False: not now.
    pub(crate) fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        let members = members.to_vec();
        let link = self.link(peer).filter(|_| members.len() <= MAX_MEMBERS);
        link.is_some_and(|link| link.send_probe(&DeadlockProbe::Circle { word, members }))
    }

    /// Deal with what a peer has said.
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

    /// Another task has found this one in a circle. If it still waits as it did then, its wait is about to end.
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
