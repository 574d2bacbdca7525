//! What a member contributes to the rounds of a collective, and what it reads of the others' contributions.
//!
//! An exchange of more bytes than a contribution holds takes several rounds. Each round moves `n` bytes of every part, from byte `from` of the part on.
//!
//! *Rules:* all of a collective that takes one round: no allocation, no lock, no system call.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::operation::{Kind, Operation};
use crate::round::{Need, Round};
use crate::transport::{Part, Transport};

impl Operation {
    /// Whose contributions member `rank` needs in a round of it, and whether it contributes itself.
    pub(crate) fn needs(&self, rank: u32) -> (Need, bool) {
        match self.kind {
            Kind::Broadcast if rank == self.root => (Need::Nobody, true),
            Kind::Broadcast => (Need::From(self.root), false),
            Kind::Reduce if rank == self.root => (Need::All, true),
            Kind::Reduce => (Need::Nobody, true),
            _ => (Need::Everyone, true),
        }
    }

    /// Returns how many bytes of member `rank`'s part a round of an allgather moves, from byte `from` on: `n`, or fewer if the part ends earlier.
    #[inline(always)]
    fn left(&self, rank: u32, (from, n): (usize, usize)) -> usize {
        self.gets.of(rank).0.saturating_sub(from).min(n)
    }

    /// Returns what member `rank` of `size` contributes: of an exchange `n` bytes of each part from byte `from` on. `kind` equals `self.kind`;
    /// callers that serve one kind pass a constant, so that the other branches are compiled away.
    #[inline(always)]
    pub fn contribution(
        &self,
        kind: Kind,
        (rank, size): (u32, u32),
        (from, n): (usize, usize),
    ) -> Views {
        match kind {
            Kind::Barrier => Views::none(),
            Kind::Allgather => {
                let own = match &self.input {
                    Some(input) => input.clone(),
                    None => self.gets.cut(&self.out(), rank),
                };
                own.part(from, self.left(rank, (from, n)))
            }
            // Of two each gives what the other one gets. Of more each gives a piece for everybody, for itself as well.
            Kind::Alltoall if size == 2 => {
                self.gives.cut(&self.given(), 1 - rank.min(1)).part(from, n)
            }
            Kind::Alltoall => {
                let len = self.gives.longest();
                self.given().pieces(from, n, len, size as usize)
            }
            _ => self.given(),
        }
    }

    /// Copies what member `rank` gets from itself in an exchange.
    #[inline(always)]
    pub fn keep_own(&self, kind: Kind, rank: u32) {
        match (kind, &self.input) {
            (Kind::Allgather, Some(input)) => {
                input.copy_to(&self.gets.cut(&self.out(), rank));
            }
            (Kind::Alltoall, Some(input)) => {
                let own = self.gives.cut(input, rank);
                own.copy_to(&self.gets.cut(&self.out(), rank));
            }
            _ => {}
        }
    }

    /// Does all of it in a group of one.
    #[inline(always)]
    pub fn do_alone(&self) {
        let (Some(input), Some(output)) = (&self.input, &self.output) else {
            return;
        };
        match self.kind {
            Kind::Barrier | Kind::Broadcast | Kind::Exscan => {}
            Kind::Reduce | Kind::Allreduce | Kind::Scan => {
                input.copy_to(output);
            }
            Kind::ReduceScatter | Kind::Scatter => {
                self.gives.cut(input, 0).copy_to(output);
            }
            Kind::Gather => {
                input.copy_to(&self.gets.cut(output, 0));
            }
            Kind::Allgather | Kind::Alltoall => self.keep_own(self.kind, 0),
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Takes what member `rank` of `size` gets from a round: of an exchange `n` bytes of each part from byte `from` on. `work` is as in
    /// [`Engine::poll`].
    pub(crate) fn read_round(
        &self,
        operation: &Operation,
        (rank, size): (u32, u32),
        round: &Round,
        (from, n): (usize, usize),
        work: &Views,
    ) {
        if let Some(what) = &operation.reduction {
            let (given, out) = (operation.given(), operation.out());
            match operation.kind {
                Kind::Reduce if rank != operation.root => {}
                Kind::Exscan if rank == 0 => {}
                Kind::Exscan => self.fold(round, rank, &out, what, work),
                Kind::Scan => self.fold(round, rank + 1, &out, what, work),
                Kind::ReduceScatter => {
                    let (own, first) = operation.gives.of(rank);
                    let (part, stretch) = (what.of_bytes(own), (first, what.bytes()));
                    self.fold_part(round, size, stretch, &out, &part, work);
                }
                Kind::Allreduce => {
                    self.fold_for_all(round, (rank, size), (&given, &out), what, work);
                }
                _ => self.fold(round, size, &out, what, work),
            }
            return;
        }
        match operation.kind {
            Kind::Broadcast if rank != operation.root => {
                let out = operation.out();
                let total = out.len();
                self.collect(round, operation.root, Part { offset: 0, total }, &out);
            }
            Kind::Allgather | Kind::Alltoall => {
                for other in (0..size).filter(|&other| other != rank) {
                    let stretch = (from, n);
                    self.take_part(
                        operation.kind,
                        operation,
                        (rank, size),
                        round,
                        stretch,
                        other,
                    );
                }
            }
            _ => {}
        }
    }

    /// Takes what member `other` gives this one in a round of an exchange.
    #[inline(always)]
    pub fn take_part(
        &self,
        kind: Kind,
        operation: &Operation,
        (rank, size): (u32, u32),
        round: &Round,
        (from, n): (usize, usize),
        other: u32,
    ) {
        let part = match kind {
            Kind::Alltoall if size > 2 => Part {
                offset: n * rank as usize,
                total: n * size as usize,
            },
            Kind::Alltoall => Part {
                offset: 0,
                total: n,
            },
            _ => Part {
                offset: 0,
                total: operation.left(other, (from, n)),
            },
        };
        let into = operation.gets.cut(&operation.out(), other);
        let n = n.min(part.total);
        self.collect(round, other, part, &into.part(from, n));
    }
}
