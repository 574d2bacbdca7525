//! Small collectives of a pair, by the quickest way in.
//!
//! Two tasks need no member that leads and no list of members to look at: a round is a contribution, this task's own part while the other one's is on its way, and a look at
//! one word; a member that gets nothing does not look. What goes one way without being combined is a message.
//!
//! *Rules of this path:* no lock but the biased one of the process, no allocation, no system call unless the other one sleeps; a trial of footprints may allocate once.

use regatta_engine::{GroupId, Kind, Peer, Result, Round, Terms};

use crate::collective::await_round;
use crate::state::{Process, as_owner, enter, enter_or};

/// How far a round of a pair has come without waiting.
enum Begun {
    /// This task has its part.
    Complete,
    /// The other one is still to contribute; and this task's rank.
    Open(Round, u32),
}

/// Runs a round of a pair, by the quickest way in. `Ok(false)`: nothing has been done, as the group is no pair or there is more to it.
#[inline(always)]
pub(crate) fn run_pair_round(kind: Kind, group: GroupId, terms: Terms<'_>) -> Result<bool> {
    match begin_pair_round(kind, group, terms) {
        None => return Ok(false),
        Some(Begun::Complete) => {}
        Some(Begun::Open(mut round, rank)) => {
            await_round(&mut round)?;
            enter()?.read_any_round(kind, terms, (rank, 2), &round);
        }
    }
    Ok(true)
}

/// Begins a round of a pair, and takes this task's part if the other one contributes soon. `None`: nothing has been done, as the group is no pair or there is more
/// to it.
#[inline(always)]
fn begin_pair_round(kind: Kind, group: GroupId, terms: Terms<'_>) -> Option<Begun> {
    enter_or!(try_enter_as_owner, process, None);
    let (bytes, root) = (terms.bytes(kind), terms.root);
    let (rank, size) = process.engine.place(group)?;
    let is_simple = kind.parts_are_known() || terms.is_even();
    if size != 2 || !is_simple || (kind.is_rooted() && root >= 2) {
        return None;
    }
    let gives = terms.contribution(kind, (rank, 2), (0, bytes));
    let round = process.engine.begin_pair_round(group, bytes, &gives)?;
    terms.keep_own(kind, (rank, 2));
    if kind.hears(root, rank, 1 - rank.min(1)) {
        if !process.look_at_pair(&round) {
            return Some(Begun::Open(round, rank));
        }
        process.read_round(kind, terms, (rank, 2), &round);
    }
    Some(Begun::Complete)
}

impl Process {
    /// As [`Process::look`], in a pair's round.
    #[inline(always)]
    fn look_at_pair(&mut self, round: &Round) -> bool {
        let looks = self.looks();
        self.engine.look_at_pair_round(round, looks)
    }
}

/// The message of a one-way collective between two that was neither sent nor received at once.
pub(crate) struct PairMessage {
    pub(crate) rank: u32,
    pub(crate) peer: Peer,
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// What this member gets from itself is still to be copied.
    pub(crate) keeps_own: bool,
}

/// Bytes of a message up to which this task's own part is copied before the receive is made, while the message is on its way. A longer message needs the receive
/// first.
const MAX_KEPT_FIRST_BYTES: usize = 16 << 10;

/// Carries out a one-way collective of a group of two as far as it goes without waiting long. Returns whether it is done; if not, its message is in `open`.
/// (Returned as well, it would be written field by field and read as a whole, which costs as much as the message.)
#[inline(always)]
pub(crate) fn pair_message(
    kind: Kind,
    group: GroupId,
    terms: Terms<'_>,
    open: &mut Option<PairMessage>,
) -> Option<bool> {
    as_owner(|process| {
        if terms.root >= 2 {
            return None;
        }
        let (rank, peer, context, tag) = process.engine.try_pair(group)?;
        let (done, kept) = match terms.message(kind, rank) {
            Ok(message) => {
                let sent = process.engine.try_send(peer, context, tag, &message);
                (sent, false)
            }
            Err(into) => {
                let kept = into.len() <= MAX_KEPT_FIRST_BYTES;
                if kept {
                    terms.keep_own(kind, (rank, 2));
                }
                let got = process.receive_soon(peer, context, tag, &into);
                (got.is_some(), kept)
            }
        };
        if done && !kept {
            terms.keep_own(kind, (rank, 2));
        }
        if !done {
            *open = Some(PairMessage {
                rank,
                peer,
                context,
                tag,
                keeps_own: !kept,
            });
        }
        Some(done)
    })
}
