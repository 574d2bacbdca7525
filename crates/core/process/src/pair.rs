//! Small collectives of a pair, by the quickest way in.
//!
//! Two tasks need no member that leads and no list of members to look at: a round is a contribution, this task's own part while the other one's is on its way, and a look at
//! one word. A broadcast is a message.
//!
//! *Rules of this path:* no lock but the biased one of the process, no allocation, no system call unless the other one sleeps; a trial of footprints may allocate once.

use regatta_engine::{GroupId, Peer, Result, Round};
use regatta_memory::views::Views;

use crate::collective::AwaitedRound;
use crate::state::{Process, as_owner, enter};
use crate::wait::wait_for;

/// Runs a round of a pair, by the quickest way in: this task gives what `gives` says for its rank, does its own part `meanwhile`, and reads the other one's
/// contribution with `read`. `Ok(false)`: nothing has been done, as the group is no pair or there is more to it.
#[inline(always)]
pub(crate) fn run_pair_round(
    group: GroupId,
    bytes: usize,
    gives: impl FnOnce(u32) -> Views,
    meanwhile: impl FnOnce(u32),
    read: impl Fn(&Process, &Round, u32),
) -> Result<bool> {
    let begun = as_owner(|process| {
        let (rank, size) = process.engine.place(group)?;
        if size != 2 {
            return None;
        }
        let gives = gives(rank);
        let round = process.engine.begin_pair_round(group, bytes, &gives)?;
        meanwhile(rank);
        if process.look_at_pair(&round) {
            read(process, &round, rank);
            return Some(None);
        }
        Some(Some((round, rank)))
    });
    match begun {
        None => return Ok(false),
        Some(None) => {}
        Some(Some((mut round, rank))) => {
            wait_for(AwaitedRound(&mut round))?;
            read(&*enter()?, &round, rank);
        }
    }
    Ok(true)
}

impl Process {
    /// As [`Process::look`], in a pair's round.
    #[inline(always)]
    fn look_at_pair(&mut self, round: &Round) -> bool {
        let looks = self.looks();
        self.engine.look_at_pair_round(round, looks)
    }
}

/// The message of a broadcast between two that was neither sent nor received at once.
pub(crate) struct PairBroadcast {
    pub(crate) rank: u32,
    pub(crate) peer: Peer,
    pub(crate) context: u32,
    pub(crate) tag: i32,
}

/// Carries out the broadcast of a group of two as far as it goes without waiting long. Returns whether it is done; if not, its message is in `open`.
/// (Returned as well, it would be written field by field and read as a whole, which costs as much as the message.)
#[inline(always)]
pub(crate) fn pair_broadcast(
    group: GroupId,
    root: u32,
    buffer: &Views,
    open: &mut Option<PairBroadcast>,
) -> Option<bool> {
    as_owner(|process| {
        if root >= 2 {
            return None;
        }
        let (rank, peer, context, tag) = process.engine.try_pair(group)?;
        let done = if rank == root {
            process.engine.try_send(peer, context, tag, buffer)
        } else {
            let got = process.receive_soon(peer, context, tag, buffer);
            got.is_some()
        };
        if !done {
            *open = Some(PairBroadcast {
                rank,
                peer,
                context,
                tag,
            });
        }
        Some(done)
    })
}
