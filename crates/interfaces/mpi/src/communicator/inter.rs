//! Communicators with two sides.
//!
//! The side whose first process has the lower task number is the low one: its processes come first in the groups of the
//! engine's. Both sides know that by themselves.

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

/// Connects two sides, each of which has met already: `own` is a new group of this side's. The tag, which both sides know,
/// tells calls of several threads apart that connect the same processes.
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
        let text = "the two sides have processes in common, or one has none";
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
    /// The other side's processes.
    pub others: Vec<c_int>,
    /// Tells calls of several threads apart that connect the same processes.
    pub tag: c_int,
}

impl LeaderExchange {
    /// Processes that nobody else connects with at the same time.
    pub fn fresh(others: Vec<c_int>) -> LeaderExchange {
        let tag = UNTOLD;
        LeaderExchange { others, tag }
    }

    /// Both leaders give their words to each other by `exchange`. The tag is the number that the leader of the low side has
    /// for its group: its threads connect different communicators.
    pub fn agree(
        comm: &Communicator,
        exchange: impl FnOnce(&[c_int]) -> Result<Vec<c_int>>,
    ) -> Result<LeaderExchange> {
        let own = comm.group.id;
        let words = [&[own], &comm.local[..]].concat();
        let theirs = exchange(&words)?;
        match theirs.split_first() {
            Some((&class, [])) => Err(Error::new(class, "the other side has given up")),
            Some((&other, others)) => Ok(LeaderExchange {
                tag: match comm.local.first() < others.first() {
                    true => own,
                    false => other,
                },
                others: others.to_vec(),
            }),
            None => Err(Error::new(ERR_INTERN, "the other side has said nothing")),
        }
    }
}

/// A new group of this communicator's side, which all its processes have: what follows does not end when the communicator is revoked, for
/// the other side waits for all. There is none if one has called with an argument that is wrong.
fn side_of(comm: &Communicator, given: Result) -> Result<rg::Group> {
    const APART: &str = "the two sides are not connected";
    let own = dup_group(comm.group)?;
    match internal_messages::meet_with(own, given, APART) {
        Ok((_, met)) => with_parts(&[own], met.map(|()| own)),
        Err(error) => {
            // All hear of that error, and not that the group is revoked.
            making::free(Some(own));
            Err(error)
        }
    }
}

/// Connects this communicator's processes with others, whom the process with rank `leader` hears of: `ask` is called there
/// alone. An error of it is everybody's, and so is a wrong argument of one process, whose error is in `given`.
pub fn connect(
    comm: &Communicator,
    leader: c_int,
    given: Result,
    ask: impl FnOnce() -> Result<LeaderExchange>,
) -> Result<Made> {
    connect_or(comm, leader, given, ask, |_| {})
}

/// Connects as [`connect`] does. If this side comes to nothing before its leader has asked, that calls `decline` instead.
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
            // All hear of that error, and not that the group is revoked.
            making::free(Some(own));
            Err(failed.unwrap_or_else(|| {
                let class = words.first().copied().unwrap_or(ERR_INTERN);
                let text = format!("the process with rank {leader} could not connect the sides");
                Error::new(class, text)
            }))
        }
    }
}

/// Connects two communicators whose leaders have a third one in common: there, `bridge` is that one, with the rank of the
/// other side's leader in it. As in [`connect`], `given` may have an error of this process' arguments.
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
    // The leader of the other side waits for a word. If it cannot be told it has an error of its own.
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

/// Connects two sides whose processes have no communicator: `remote` is the other one's group, at the leader.
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

/// Both sides in one: the side that says so behind the other one, else the low one in front.
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

/// Makes the communicator of the processes of one colour on both sides, which have given these rows.
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
