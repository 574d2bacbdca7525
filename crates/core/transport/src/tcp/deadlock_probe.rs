//! Tasks on different hosts ask each other whom they wait for; the process's `cycle` has the why.
//!
//! An answer goes when everything else has been written that the task had to send, so behind it nothing of that is left on
//! its way. Questions are answered here, whenever the asked task makes progress.

use std::mem::discriminant;
use std::sync::atomic::Ordering;

use regatta_engine::Peer;
use regatta_wire::deadlock_probe::{DeadlockProbe, MAX_MEMBERS};

use super::Tcp;

/// A task's answer about itself, on another host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The task it waits for, as in its host's table.
    pub word: u64,
    /// How often it has looked around in vain.
    pub looks: u32,
    /// How many questions it has answered.
    pub answers: u32,
}

/// Keep what a peer has said until it is dealt with: one of each kind, however much it says. A newer word makes an older one
/// void, but the answer to a question stays an answer.
pub(super) fn note(said: &mut Vec<DeadlockProbe>, mut new: DeadlockProbe) {
    let same = |old: &&mut DeadlockProbe| discriminant(&**old) == discriminant(&new);
    let Some(old) = said.iter_mut().find(same) else {
        return said.push(new);
    };
    if let (
        DeadlockProbe::State {
            number: answered, ..
        },
        DeadlockProbe::State { number, .. },
    ) = (&*old, &mut new)
        && *number == 0
    {
        *number = *answered;
    }
    *old = new;
}

/// A peer's word about being blocked has come, and is kept if it makes sense.
pub(super) fn read(said: &mut Vec<DeadlockProbe>, body: &[u8]) -> Result<(), &'static str> {
    let new =
        DeadlockProbe::decode(body).map_err(|_| "a word about being blocked makes no sense")?;
    note(said, new);
    Ok(())
}

impl Tcp {
    /// The last answer of a peer; it is asked anew, unless it still owes an answer. `None`: it has not said anything, or
    /// is not connected.
    pub(crate) fn inquire(&mut self, peer: Peer) -> Option<Heard> {
        if !self.link_to(peer).ok()?.is_open() {
            // It may have an address by then.
            let _ = self.reach(peer);
            return None;
        }
        let link = self.link(peer)?;
        // Never 0.
        let number = link.heard.answers.wrapping_add(1).max(1);
        if link.owes == 0 && link.send_probe(&DeadlockProbe::Ask(number)) {
            link.owes = number;
        }
        (link.heard.answers > 0).then_some(link.heard)
    }

    /// Tell a peer how it is with this task, as the answer to a question or to none. False: not now.
    pub(crate) fn send_state(&mut self, peer: Peer, number: u32) -> bool {
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
        for probe in std::mem::take(&mut link.probes) {
            match probe {
                DeadlockProbe::Ask(number) => {
                    if !self.send_state(peer, number)
                        && let Some(link) = self.link(peer).filter(|link| link.is_open())
                    {
                        note(&mut link.probes, probe);
                    }
                }
                DeadlockProbe::State {
                    number,
                    word,
                    looks,
                } => self.note_state(peer, number, (word, looks)),
                DeadlockProbe::Circle { word, members } => self.believe(word, &members),
            }
        }
    }

    fn note_state(&mut self, peer: Peer, number: u32, (word, looks): (u64, u32)) {
        let Some(link) = self.link(peer) else {
            return;
        };
        (link.heard.word, link.heard.looks) = (word, looks);
        if number != 0 && number == link.owes {
            link.heard.answers = number;
            link.owes = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_the_newest_word_is_kept() {
        let state = |number, looks| DeadlockProbe::State {
            number,
            word: 9,
            looks,
        };
        let circle = |word| DeadlockProbe::Circle {
            word,
            members: vec![0, 1],
        };
        let mut said = Vec::new();
        for round in 0..1000 {
            note(&mut said, DeadlockProbe::Ask(round));
            note(&mut said, state(round, round));
            note(&mut said, circle(round.into()));
        }
        assert_eq!(
            said,
            [DeadlockProbe::Ask(999), state(999, 999), circle(999)]
        );
        note(&mut said, state(0, 1000));
        assert_eq!(said[1], state(999, 1000), "the question has been answered");
    }
}
