//! Intercommunicators.
//!
//! The group whose first process has the lower task number is the low one: its processes come first in the engine's
//! groups. Each group determines that by itself.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use regatta_sys as rg;

use super::making::{
    UNTOLD, dup_group, make_groups, make_named_groups, of_colour, select, with_parts,
};
use super::{Communicator, Made, Members, Remote, internal_messages, making};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::groups;

/// Connects two groups. `own` is a new engine group of the local group, whose processes are all here. Both groups know
/// the tag. It distinguishes calls of several threads that connect the same processes.
pub fn join_sides(local: Members, own: rg::Group, remote: Members, tag: c_int) -> Result<Made> {
    let make = |all: &Members| make_groups(rg::ALL, Some(all), tag);
    join_sides_by(local, own, remote, make)
}

/// Connects two sides as [`join_sides`] does, with the group and the hidden one that `make` makes of all their processes.
fn join_sides_by(
    local: Members,
    own: rg::Group,
    remote: Members,
    make: impl FnOnce(&Members) -> Result<[rg::Group; 2]>,
) -> Result<Made> {
    if local.is_empty() || remote.is_empty() || !groups::filtered(&local, &remote, true).is_empty()
    {
        let text = "the two sides have processes in common, or one is empty";
        return Err(Error::new(ERR_COMM, text));
    }
    let low = local[0] < remote[0];
    let all = match low {
        true => groups::union(&local, &remote),
        false => groups::union(&remote, &local),
    };
    let [group, hidden] = make(&all)?;
    Ok(Made {
        group,
        hidden,
        rank: groups::own_rank(&local)?,
        base: if low { 0 } else { remote.len() as c_int },
        remote: Some(Remote {
            base: if low { local.len() as c_int } else { 0 },
            members: remote,
            own,
        }),
        local,
    })
}

/// The result of the exchange between the leaders of two sides.
pub struct LeaderExchange {
    /// Task numbers of the remote group.
    pub others: Vec<c_int>,
    /// Distinguishes calls of several threads that connect the same processes.
    pub tag: c_int,
}

impl LeaderExchange {
    /// Returns the result for processes that no other thread connects with at the same time.
    pub fn fresh(others: Vec<c_int>) -> LeaderExchange {
        let tag = UNTOLD;
        LeaderExchange { others, tag }
    }

    /// Exchanges the groups between both leaders by `exchange`. The tag is the id of the low leader's engine group:
    /// threads of that process connect different communicators.
    pub fn agree(
        comm: &Communicator,
        exchange: impl FnOnce(&[c_int]) -> Result<Vec<c_int>>,
    ) -> Result<LeaderExchange> {
        let own = comm.group.id;
        let words = [&[own], &comm.local[..]].concat();
        let theirs = exchange(&words)?;
        match theirs.split_first() {
            Some((&class, [])) => Err(Error::new(class, "the other side has failed")),
            Some((&other, others)) => Ok(LeaderExchange {
                tag: match comm.local.first() < others.first() {
                    true => own,
                    false => other,
                },
                others: others.to_vec(),
            }),
            None => Err(Error::new(ERR_INTERN, "the other side has not answered")),
        }
    }
}

/// Returns a new engine group of the local group. The steps that follow use it, so they are not interrupted when the
/// communicator is revoked, since the remote group waits for all. Fails if any process has called with an invalid
/// argument.
fn side_of(comm: &Communicator, given: Result) -> Result<rg::Group> {
    const APART: &str = "the two sides are not connected";
    let own = dup_group(comm.group)?;
    match internal_messages::meet_with(own, given, APART) {
        Ok((_, met)) => with_parts(&[own], met.map(|()| own)),
        Err(error) => {
            // All processes report that error, so the group is freed without revoking it.
            making::free(Some(own));
            Err(error)
        }
    }
}

/// Connects this communicator's processes with other ones. Only the process with rank `leader` calls `ask`, which
/// returns the others. All processes fail if `ask` does, or if a process passes an invalid argument, whose error is in
/// `given`.
pub fn connect(
    comm: &Communicator,
    leader: c_int,
    given: Result,
    ask: impl FnOnce() -> Result<LeaderExchange>,
) -> Result<Made> {
    connect_or(comm, leader, given, ask, |_| {})
}

/// Connects as [`connect`] does. If the local group fails before its leader calls `ask`, the leader calls `decline`
/// instead.
fn connect_or(
    comm: &Communicator,
    leader: c_int,
    given: Result,
    ask: impl FnOnce() -> Result<LeaderExchange>,
    decline: impl FnOnce(&Error),
) -> Result<Made> {
    let own = match side_of(comm, given) {
        Ok(own) => own,
        Err(error) => {
            if comm.rank == leader {
                decline(&error);
            }
            return Err(error);
        }
    };
    connect_side(comm, own, leader, ask)
}

fn connect_side(
    comm: &Communicator,
    own: rg::Group,
    leader: c_int,
    ask: impl FnOnce() -> Result<LeaderExchange>,
) -> Result<Made> {
    let mut failed = None;
    let mut words = Vec::new();
    if comm.rank == leader {
        match ask() {
            Ok(sides) => {
                words.extend([SUCCESS, sides.tag]);
                words.extend(sides.others);
            }
            Err(error) => {
                words.push(error.class());
                failed = Some(error);
            }
        }
    }
    let words = with_parts(&[own], internal_messages::broadcast(own, leader, words))?;
    match words[..] {
        [SUCCESS, tag, ref members @ ..] => {
            let members = Members::from(members.to_vec());
            with_parts(&[own], join_sides(comm.local.clone(), own, members, tag))
        }
        _ => {
            // All processes report that error, so the group is freed without revoking it.
            making::free(Some(own));
            Err(failed.unwrap_or_else(|| {
                let class = words.first().copied().unwrap_or(ERR_INTERN);
                let text = format!("the process with rank {leader} could not connect the sides");
                Error::new(class, text)
            }))
        }
    }
}

/// Connects two communicators whose leaders have a third one in common. At the leader, `bridge` is that communicator
/// with the rank of the remote leader in it. As in [`connect`], `given` may have the error of an invalid argument.
pub fn create_inter(
    comm: &Communicator,
    leader: c_int,
    given: Result,
    bridge: Option<(Arc<Communicator>, c_int)>,
    tag: c_int,
) -> Result<Made> {
    let exchange = |words: &[c_int]| {
        let (bridge, to) = bridge.as_ref().ok_or_else(nobody)?;
        exchange_by_tag(bridge, bridge.peer_base() + to, tag, words)
    };
    let ask = || LeaderExchange::agree(comm, exchange);
    // The remote leader waits for a message. If it cannot be sent, the remote leader gets an error of its own.
    connect_or(comm, leader, given, ask, |error| {
        drop(exchange(&[error.class()]));
    })
}

/// Tags of the hidden group for messages of leaders, one for each of the lowest tags of the program's.
const LEADER_TAGS: c_int = 0x7000_0000;
/// How many.
const LEADER_TAG_COUNT: c_int = 0x0100_0000;

/// Exchanges words with the leader that has this rank in the bridge's groups and says the same tag, whatever other threads exchange with it.
fn exchange_by_tag(
    bridge: &Communicator,
    to: c_int,
    tag: c_int,
    words: &[c_int],
) -> Result<Vec<c_int>> {
    if tag < LEADER_TAG_COUNT {
        return internal_messages::exchange(bridge.hidden, to, LEADER_TAGS | tag, words);
    }
    // The hidden group has fewer tags than the program: the two get a group of their own.
    let own = bridge.base + bridge.rank;
    let pair = select(bridge.group, &[own.min(to), own.max(to)], tag)?;
    let heard = internal_messages::exchange(pair, c_int::from(own < to), UNTOLD, words);
    making::free(Some(pair));
    heard
}

fn nobody() -> Error {
    Error::new(ERR_INTERN, "the leader does not know the other side")
}

/// Connects two groups of processes that have no communicator in common. At the leader, `remote` is the remote group.
pub fn create_inter_from_groups(
    local: &Members,
    leader: c_int,
    remote: Option<Members>,
    tag: &CStr,
) -> Result<Made> {
    let missing = || Error::new(ERR_GROUP, "this process is not in the local group");
    let side = making::create_from_group(local, tag)?.ok_or_else(missing)?;
    let remote = remote.map_or_else(Vec::new, |remote| remote.to_vec());
    let remote = Members::from(internal_messages::broadcast(side.group, leader, remote)?);
    let own = side.group;
    making::free(Some(side.hidden));
    let make = |all: &Members| make_named_groups(all, tag);
    join_sides_by(local.clone(), own, remote, make)
}

/// Merges both groups into an intracommunicator. The group that passes `high` comes last; if both pass the same, the
/// low group comes first.
pub fn merge(comm: &Communicator, high: bool) -> Result<Made> {
    let rows = internal_messages::allgather(comm.group, [0, c_int::from(high)])?;
    let ranks = of_colour(&rows, 0);
    let groups = make_groups(comm.group, Some(&ranks), UNTOLD)?;
    let tasks = Members::of_engine(comm.group)?;
    let local: Vec<c_int> = ranks.iter().map(|&rank| tasks[rank as usize]).collect();
    let local = Members::from(local);
    let rank = groups::own_rank(&local)?;
    Ok(Made::of(groups, local, rank))
}

/// Makes the intercommunicator of the processes with one colour in both groups, which have passed these rows of colour
/// and key.
pub(super) fn split(
    comm: &Communicator,
    remote: &Remote,
    rows: &[[c_int; 2]],
    colour: Option<c_int>,
) -> Result<Option<Made>> {
    let Some(colour) = colour else {
        return Ok(None);
    };
    let chosen = |base: c_int, members: &Members| {
        let ranks = of_colour(&rows[base as usize..][..members.len()], colour);
        let tasks: Vec<c_int> = ranks.iter().map(|&rank| members[rank as usize]).collect();
        (ranks, Members::from(tasks))
    };
    let (ranks, local) = chosen(comm.base, &comm.local);
    let (other_ranks, others) = chosen(remote.base, &remote.members);
    if others.is_empty() {
        return Ok(None);
    }
    let in_both = |base: c_int, ranks: &[c_int]| -> Vec<c_int> {
        ranks.iter().map(|rank| base + rank).collect()
    };
    let (here, there) = (
        in_both(comm.base, &ranks),
        in_both(remote.base, &other_ranks),
    );
    let low = comm.base == 0;
    let all = match low {
        true => [here, there].concat(),
        false => [there, here].concat(),
    };
    let [group, hidden] = make_groups(comm.group, Some(&all), UNTOLD)?;
    let own = with_parts(&[group, hidden], select(remote.own, &ranks, UNTOLD))?;
    Ok(Some(Made {
        group,
        hidden,
        rank: groups::own_rank(&local)?,
        base: if low { 0 } else { others.len() as c_int },
        remote: Some(Remote {
            base: if low { local.len() as c_int } else { 0 },
            members: others,
            own,
        }),
        local,
    }))
}
