//! Making groups.

use regatta_engine::{
    Call, Error, GroupId, Handle, Kind, Operation, Parts, Result, Shrinking, no_place,
};
use regatta_memory::views::{Scratch, Views};
use regatta_wire::fields;
use rustc_hash::FxHashSet;

use crate::collective::run;
use crate::message::{check_tag, wait_or_forget};
use crate::state::{Process, enter, enter_to_look};
use crate::wait::{Awaited, wait_for};

/// Returns this task's rank.
pub fn rank(group: GroupId) -> Result<u32> {
    Ok(enter()?.engine.group(group)?.rank)
}

/// Returns this task's rank in a group and the number of members.
pub fn place(group: GroupId) -> Result<(u32, u32)> {
    let held = enter()?;
    let group = held.engine.group(group)?;
    Ok((group.rank, group.size()))
}

/// Returns the number of members. For a channel, that is the number of tasks so far.
pub fn size(group: GroupId) -> Result<u32> {
    let held = enter()?;
    match group.channel() {
        Some(_) => Ok(held.job.tasks()),
        None => Ok(held.engine.group(group)?.size()),
    }
}

/// Returns this task's id.
pub fn tid() -> Result<u32> {
    Ok(enter()?.engine.me())
}

/// Returns the id of a member.
pub fn tid_of(group: GroupId, rank: i32) -> Result<u32> {
    enter()?.peer(group, rank)
}

/// Returns the rank of a task.
pub fn rank_of(group: GroupId, tid: i32) -> Result<u32> {
    let held = enter()?;
    let group = held.engine.group(group)?;
    let peer = u32::try_from(tid)
        .ok()
        .filter(|&tid| tid < held.job.tasks());
    let rank = peer.and_then(|peer| group.rank_of(peer));
    rank.ok_or(Error::Task(tid as i64))
}

/// Frees a group.
pub fn free(group: GroupId) -> Result<()> {
    enter()?.engine.free_group(group)
}

/// Lets receives from any source continue without the dead members. Returns the number of dead members.
pub fn acknowledge_dead(group: GroupId) -> Result<u32> {
    enter()?.engine.acknowledge(group)
}

/// Returns the ranks of the members that have died, as far as this task knows.
pub fn dead_members(group: GroupId) -> Result<Vec<u32>> {
    let held = enter()?;
    let dead = held.engine.dead_members(group)?;
    let group = held.engine.group(group)?;
    Ok(dead
        .iter()
        .filter_map(|&peer| group.rank_of(peer))
        .collect())
}

/// Two numbers that a member gives to all others.
type Words = (i64, i64);

/// Exchanges two numbers among all members. Returns those of all, in rank order.
fn exchange(group: GroupId, mine: Words) -> Result<Vec<Words>> {
    let size = enter()?.engine.closed(group)?.size() as usize;
    let (input, output) = (Scratch::new(16)?, Scratch::new(16 * size)?);
    input.part(0, 16).fill(&fields::bytes_of(&mine));
    let all = output.part(0, 16 * size);
    let gathering = Operation {
        input: Some(input.part(0, 16)),
        output: Some(all.clone()),
        gets: Parts::Even(16),
        ..Operation::of(Kind::Allgather)
    };
    run(group, gathering)?;
    let words = fields::all(&all.to_vec());
    words.map_err(|_| Error::State(c"a message from a group's members is incomplete"))
}

/// Makes a group of the same members, with its own context.
pub fn duplicate(group: GroupId) -> Result<GroupId> {
    made(start_duplicate(group)?)
}

/// Starts to make a group of the same members. It can be used when the request is complete.
pub fn start_duplicate(group: GroupId) -> Result<(GroupId, Handle)> {
    let mut held = enter()?;
    let call = held.engine.next_call(group)?;
    let peers = held.engine.group(group)?.peers();
    held.engine.start_group(group, peers, call)
}

/// Waits for a group that is being made.
fn made((group, handle): (GroupId, Handle)) -> Result<GroupId> {
    match wait_or_forget(handle)? {
        (_, None) => Ok(group),
        (_, Some(error)) => Err(error),
    }
}

/// Stands for a colour: this member has no entry for a group.
const NO_PLACE_COLOUR: i64 = i64::MIN;
/// Number of entries that a member of a split needs. Interfaces that have two groups per communicator duplicate the new one; without this check they
/// would find out only then, among its members alone, that there is no entry.
const PLACES: usize = 2;

/// Makes a group of the members with equal colour, ordered by (key, rank). A member with a negative colour joins none and gets `None`. If a member
/// that joins a group has no entry for it, all members fail: those that go on would wait for it.
pub fn split(group: GroupId, colour: i32, key: i32) -> Result<Option<GroupId>> {
    let (call, full) = {
        let mut held = enter()?;
        let full = colour >= 0 && held.engine.room_for_groups() < PLACES;
        (held.engine.next_call(group)?, full)
    };
    let word = if full { NO_PLACE_COLOUR } else { colour as i64 };
    let words = exchange(group, (word, key as i64))?;
    if let Some(rank) = words.iter().position(|word| word.0 == NO_PLACE_COLOUR) {
        return Err(no_place(enter()?.peer(group, rank as i32)?));
    }
    if colour < 0 {
        return Ok(None);
    }
    let mut chosen: Vec<(i64, u32)> = (0..words.len() as u32)
        .filter(|&rank| words[rank as usize].0 == colour as i64)
        .map(|rank| (words[rank as usize].1, rank))
        .collect();
    chosen.sort();
    let mut held = enter()?;
    let old = held.engine.group(group)?;
    let peers = chosen.iter().filter_map(|&(_, rank)| old.peer(rank));
    let peers = peers.collect();
    let started = held.engine.start_group(group, peers, call)?;
    drop(held);
    made(started).map(Some)
}

/// Returns the task that started this one, or `None` if the launcher did.
pub fn parent() -> Result<Option<u32>> {
    let held = enter()?;
    let member = held.job.membership(held.engine.me());
    let member = member.map_err(|_| Error::State(c"this task is not in the job's table"))?;
    Ok(member.parent)
}

/// Makes a group of the members with these ranks, in that order. Only they call this. Several threads may do so at once if their tags differ.
pub fn select(group: GroupId, ranks: &[i32], tag: Option<i32>) -> Result<GroupId> {
    let mut held = enter()?;
    let peers = selected(&held, group, ranks, tag)?;
    let call = tag.map_or(Call::Selecting, Call::Tagged);
    let started = held.engine.start_group(group, peers, call)?;
    drop(held);
    made(started)
}

/// Starts to make `count` groups at once of the members with these ranks, which alone call this, or of all members if `ranks` is `None`. The groups
/// can be used when the request is complete.
pub fn start_select(
    group: GroupId,
    ranks: Option<&[i32]>,
    tag: i32,
    count: usize,
) -> Result<(Vec<GroupId>, Handle)> {
    let mut held = enter()?;
    let (call, peers) = match ranks {
        Some(ranks) => {
            let peers = selected(&held, group, ranks, Some(tag))?;
            (Call::Tagged(tag), peers)
        }
        None => {
            let call = held.engine.next_call(group)?;
            (call, held.engine.group(group)?.peers())
        }
    };
    held.engine.start_groups(group, peers, call, count)
}

/// Returns the members with these ranks. Fails if a rank is invalid or occurs twice, or if this task is not among them.
fn selected(
    process: &Process,
    group: GroupId,
    ranks: &[i32],
    tag: Option<i32>,
) -> Result<Vec<u32>> {
    if let Some(tag) = tag {
        check_tag(tag)?;
    }
    let mut peers = vec![];
    let mut known = FxHashSet::default();
    for &rank in ranks {
        let peer = process.peer(group, rank)?;
        if !known.insert(peer) {
            return Err(Error::Argument(format!(
                "rank {rank} is listed twice in the new group"
            )));
        }
        peers.push(peer);
    }
    if !known.contains(&process.engine.me()) {
        return Err(Error::Argument(
            "this task's rank is not in the new group; only members of the new group may make this call".into(),
        ));
    }
    Ok(peers)
}

/// Revokes a group: all operations of all its members in it end with an error. Not collective.
pub fn revoke(group: GroupId) -> Result<()> {
    let mut held = enter()?;
    held.engine.revoke(group)?;
    // Other threads of this task may wait in the group.
    held.engine.progress();
    held.wake_sleepers();
    Ok(())
}

/// Makes progress, and returns whether the group is revoked, as far as this task knows.
pub fn is_revoked(group: GroupId) -> Result<bool> {
    let mut held = enter_to_look()?;
    let moved = held.engine.progress();
    held.looked(moved);
    held.engine.is_revoked(group)
}

/// Ties two groups: if one of them is revoked, the other is, too.
pub fn tie(one: GroupId, other: GroupId) -> Result<()> {
    enter()?.engine.tie(one, other)
}

/// Makes departures of members end only waits in this group.
pub fn tolerate_departures(group: GroupId, threads: bool) -> Result<()> {
    enter()?.engine.tolerate_departures(group, threads)
}

/// Returns the bitwise AND of the flags of all members. Every survivor calls this. All get the same error if a member has died whose death not all
/// have acknowledged.
pub fn agree(group: GroupId, flag: i32) -> Result<(i32, Option<Error>)> {
    let scratch = Scratch::new(4)?;
    let into = scratch.part(0, 4);
    let handle = start_agree(group, flag, into.clone())?;
    let (_, error) = wait_or_forget(handle)?;
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&into.to_vec());
    Ok((i32::from_ne_bytes(bytes), error))
}

/// Starts to agree on the bitwise AND of all flags, which is written to `into`.
pub fn start_agree(group: GroupId, flag: i32, into: Views) -> Result<Handle> {
    enter()?.engine.start_agree(group, flag, into)
}

/// Makes a group of the survivors, in rank order. Every survivor calls this.
pub fn shrink(group: GroupId) -> Result<GroupId> {
    let shrinking = enter()?.engine.start_shrink(group)?;
    wait_for(Survivors(shrinking))?
}

struct Survivors(Shrinking);

impl Awaited for Survivors {
    type Output = Result<GroupId>;
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Result<GroupId>>> {
        Ok(process.engine.shrunk(&self.0))
    }
}
