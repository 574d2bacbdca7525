//! Small collectives of two members, on the fastest path.
//!
//! Two tasks need neither a leader nor a list of members to check. A round consists of a contribution, the task's own part while the other one is in
//! flight, and polls of one word; a member that gets nothing does not poll. One-way collectives that do not combine use a message.
//!
//! *Rules of this path:* no lock except the biased one of the process, no allocation, and no system call unless the other task sleeps. A trial of
//! footprints may allocate once.

use regatta_engine::{GroupId, Kind, Peer, Result, Round, Terms};

use crate::collective::await_round;
use crate::state::{Process, as_owner, enter, enter_or};

/// The state of a round of two members after the first polls.
enum Begun {
    /// This task has its result.
    Complete,
    /// The other member has not contributed yet. Contains this task's rank.
    Open(Round, u32),
}

/// Runs a round of two members on the fast path. Returns `Ok(false)`, without effect, if the group has not two members or the fast path does not
/// apply.
#[inline(always)]
pub(crate) fn run_pair_round(kind: Kind, group: GroupId, terms: Terms<'_>) -> Result<bool> {
    match begin_pair_round(kind, group, terms) {
        None => return Ok(false),
        Some(Begun::Complete) => {}
        Some(Begun::Open(mut round, rank)) => {
            await_round(&mut round)?;
            if kind.moves_data() {
                enter()?.read_any_round(kind, terms, (rank, 2), &round);
            }
        }
    }
    Ok(true)
}

/// Begins a round of two members, and reads this task's result if the other one contributes soon. Returns `None`, without effect, if the group has
/// not two members or the fast path does not apply.
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
    /// Does the same as [`Process::look`], for a round of two members.
    #[inline(always)]
    fn look_at_pair(&mut self, round: &Round) -> bool {
        let looks = self.looks();
        self.engine.look_at_pair_round(round, looks)
    }
}

/// The message of a one-way collective of two members that was not sent or received at once.
pub(crate) struct PairMessage {
    pub(crate) rank: u32,
    pub(crate) peer: Peer,
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// This member's part from itself was not copied yet.
    pub(crate) keeps_own: bool,
}

/// Maximum size of a message for which this task copies its own part before it polls for the message, in bytes. A longer message is received first.
const MAX_KEPT_FIRST_BYTES: usize = 16 << 10;

/// Runs a one-way collective of two members as far as possible without waiting long. Returns whether it is complete; if not, its message is in
/// `open`. Returns `None`, without effect, if the fast path does not apply. (As a part of the result, the message would be written field by field
/// and read as a whole, which costs as much as sending it.)
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
