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

/// This task's rank.
pub fn rank(group: GroupId) -> Result<u32> {
    Ok(enter()?.engine.group(group)?.rank)
}

/// How many members.
pub fn size(group: GroupId) -> Result<u32> {
    let held = enter()?;
    match group.channel() {
        Some(_) => Ok(held.job.tasks()),
        None => Ok(held.engine.group(group)?.size()),
    }
}

/// This task's id.
pub fn tid() -> Result<u32> {
    Ok(enter()?.engine.me())
}

/// The id of a member.
pub fn tid_of(group: GroupId, rank: i32) -> Result<u32> {
    enter()?.peer(group, rank)
}

/// The rank of a task.
pub fn rank_of(group: GroupId, tid: i32) -> Result<u32> {
    let held = enter()?;
    let group = held.engine.group(group)?;
    let peer = u32::try_from(tid)
        .ok()
        .filter(|&tid| tid < held.job.tasks());
    let rank = peer.and_then(|peer| group.rank_of(peer));
    rank.ok_or(Error::Task(tid as i64))
}

/// Forget a group.
pub fn free(group: GroupId) -> Result<()> {
    enter()?.engine.free_group(group)
}

/// Let receives from any source go on without the dead members; returns how many there are.
pub fn acknowledge_dead(group: GroupId) -> Result<u32> {
    enter()?.engine.acknowledge(group)
}

/// The ranks of members that have died, as far as is known here.
pub fn dead_members(group: GroupId) -> Result<Vec<u32>> {
    let held = enter()?;
    let dead = held.engine.dead_members(group)?;
    let group = held.engine.group(group)?;
    Ok(dead
        .iter()
        .filter_map(|&peer| group.rank_of(peer))
        .collect())
}

/// A member's words.
type Words = (i64, i64);

/// All members' words, in rank order.
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
    words.map_err(|_| Error::State(c"the words of a group's members are not whole"))
}

/// A group of the same members, with a context of its own.
pub fn duplicate(group: GroupId) -> Result<GroupId> {
    made(start_duplicate(group)?)
}

/// Start to make a group of the same members. It can be used when the request is complete.
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

/// In place of a colour: this member has no place for a group.
const NO_PLACE_COLOUR: i64 = i64::MIN;
/// Places that a member of a split needs: interfaces that have two groups for each communicator duplicate the new one, and would
/// find out then, with its members alone, that there is none.
const PLACES: usize = 2;

/// Members with equal colour, by (key, rank). A negative colour joins nothing. If a member that joins something has no place for it,
/// that is an error for all of them: who goes on would wait for who does not.
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

/// The task that started this one; none: the launcher.
pub fn parent() -> Result<Option<u32>> {
    let held = enter()?;
    let member = held.job.membership(held.engine.me());
    let member = member.map_err(|_| Error::State(c"the job's table does not know this task"))?;
    Ok(member.parent)
}

/// The members with these ranks, in that order. Only they call; several threads at once if their tags differ.
pub fn select(group: GroupId, ranks: &[i32], tag: Option<i32>) -> Result<GroupId> {
    let mut held = enter()?;
    let peers = selected(&held, group, ranks, tag)?;
    let call = tag.map_or(Call::Selecting, Call::Tagged);
    let started = held.engine.start_group(group, peers, call)?;
    drop(held);
    made(started)
}

/// Starts to make so many groups at once of the members with these ranks, who alone call, or of all members. They can be used when the request is complete.
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

/// Returns the members with these ranks, if they can be selected by one of them.
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
                "rank {rank} stands twice in the new group"
            )));
        }
        peers.push(peer);
    }
    if !known.contains(&process.engine.me()) {
        return Err(Error::Argument(
            "this task is not among the ranks of the new group; only its members call".into(),
        ));
    }
    Ok(peers)
}

/// End all that is done in a group, by whichever member, with an error. Not collective.
pub fn revoke(group: GroupId) -> Result<()> {
    let mut held = enter()?;
    held.engine.revoke(group)?;
    // Others of this task's threads may wait in it.
    held.engine.progress();
    held.wake_sleepers();
    Ok(())
}

/// Has the group been revoked, as far as is known here now?
pub fn is_revoked(group: GroupId) -> Result<bool> {
    let mut held = enter_to_look()?;
    let moved = held.engine.progress();
    held.looked(moved);
    held.engine.is_revoked(group)
}

/// From now on the two groups are revoked together.
pub fn tie(one: GroupId, other: GroupId) -> Result<()> {
    enter()?.engine.tie(one, other)
}

/// From now on departures of members end waits alone in this group.
pub fn tolerate_departures(group: GroupId, threads: bool) -> Result<()> {
    enter()?.engine.tolerate_departures(group, threads)
}

/// The bits that the flags of all members have in common. Every survivor calls. Of a death that not all have acknowledged all hear.
pub fn agree(group: GroupId, flag: i32) -> Result<(i32, Option<Error>)> {
    let scratch = Scratch::new(4)?;
    let into = scratch.part(0, 4);
    let handle = start_agree(group, flag, into.clone())?;
    let (_, error) = wait_or_forget(handle)?;
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&into.to_vec());
    Ok((i32::from_ne_bytes(bytes), error))
}

/// Start to agree on the bits that all flags have in common: they will be in `into`.
pub fn start_agree(group: GroupId, flag: i32, into: Views) -> Result<Handle> {
    enter()?.engine.start_agree(group, flag, into)
}

/// The survivors, in rank order. Every survivor calls.
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
