//! Upkeep: adaptation to a crowded host, and the description of paths. Peers of one host are always reachable.

use regatta_engine::{Frames, Peer, Upkeep};
use regatta_memory::ring::INLINE;

use super::streams::Pull;
use super::{Out, Shm};

impl Upkeep for Shm {
    fn path(&mut self, peer: Peer) -> String {
        if peer == self.me {
            return "self: one copy inside the task".into();
        }
        let window = self.window(self.learners.short.kept()) >> 10;
        let chosen = match self.learners.short.is_fixed() {
            true => "",
            false => " (so far; narrower and wider ones are tried now and then)",
        };
        let pull = match self.pull(peer) {
            Some(Pull::Yes) => "single copy by the kernel (CMA) when the sender is away",
            Some(Pull::No) => {
                "no single copy: the kernel denies process_vm_readv between these tasks"
            }
            None => "whether single copy is available is known once that task has joined",
        };
        format!(
            "shm: up to {INLINE} bytes in one cache line; up to {} bytes through the pair's ring; \
             larger ones through a pipe of {window} KiB{chosen}, copied by both sides at once; {pull}",
            self.eager_limit_to(peer),
        )
    }

    fn look_around(&mut self) {
        self.crowded = self.job.is_crowded();
        if self.crowded {
            self.learners.stay_narrow();
            self.outs.iter_mut().flatten().for_each(Out::stay_narrow);
        }
    }

    fn note_crossing(&mut self, to: Peer) {
        self.crossing.note(to);
    }
}
