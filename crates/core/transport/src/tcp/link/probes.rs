//! Deadlock probes between two tasks (see [`crate::tcp::deadlock_probe`]).

use std::mem::discriminant;

use regatta_engine::WaitState;
use regatta_wire::deadlock_probe::DeadlockProbe;

/// The probes of a link.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// The peer's probes that have not been handled yet.
    said: Vec<DeadlockProbe>,
    /// The peer's last answer.
    heard: WaitState,
    /// Number of the question that the peer has not answered, or 0.
    owes: u32,
}

impl Probes {
    /// Returns whether all of the peer's probes have been handled.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Decodes and keeps a probe of the peer. Fails if the probe is invalid.
    pub(super) fn read(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let new = DeadlockProbe::decode(body).map_err(|_| "a deadlock probe is not valid")?;
        self.keep(new);
        Ok(())
    }

    /// Keeps a probe of the peer until it is handled: one of each kind, however many the peer sends. A newer probe
    /// replaces an older one, but the answer to a question stays an answer.
    pub(in crate::tcp) fn keep(&mut self, mut new: DeadlockProbe) {
        let same = |old: &&mut DeadlockProbe| discriminant(&**old) == discriminant(&new);
        let Some(old) = self.said.iter_mut().find(same) else {
            return self.said.push(new);
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

    pub(in crate::tcp) fn take(&mut self) -> Vec<DeadlockProbe> {
        std::mem::take(&mut self.said)
    }

    /// Returns the number of the next question, never 0. Returns `None` if the last one has not been answered.
    pub(in crate::tcp) fn next_question(&self) -> Option<u32> {
        (self.owes == 0).then(|| self.heard.answers.wrapping_add(1).max(1))
    }

    /// Records that this question was sent to the peer.
    pub(in crate::tcp) fn asked(&mut self, number: u32) {
        self.owes = number;
    }

    /// Forgets the outstanding question, since it or its answer may be lost with the connection.
    pub(super) fn forget_question(&mut self) {
        self.owes = 0;
    }

    /// Records the wait state that the peer has sent: the answer to question `number`, or an unasked report if
    /// `number` is 0.
    pub(in crate::tcp) fn note_state(&mut self, number: u32, (word, looks): (u64, u32)) {
        (self.heard.word, self.heard.looks) = (word, looks);
        if number != 0 && number == self.owes {
            self.heard.answers = number;
            self.owes = 0;
        }
    }

    /// Returns the peer's last answer, or `None` if it has not answered yet.
    pub(in crate::tcp) fn last_answer(&self) -> Option<WaitState> {
        (self.heard.answers > 0).then_some(self.heard)
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
        let mut probes = Probes::default();
        for round in 0..1000 {
            probes.keep(DeadlockProbe::Ask(round));
            probes.keep(state(round, round));
            probes.keep(circle(round.into()));
        }
        assert_eq!(
            probes.said,
            [DeadlockProbe::Ask(999), state(999, 999), circle(999)]
        );
        probes.keep(state(0, 1000));
        assert_eq!(
            probes.said[1],
            state(999, 1000),
            "the question has been answered"
        );
    }
}
