//! Making groups: the members agree on a context and on a collective buffer.

use regatta_engine::{Error, GroupId, Handle, Mode, Parts, Peer, Presence, Result};
use regatta_engine::{Select, Shrinking, TagSelect};
use regatta_memory::views::Scratch;
use regatta_wire::fields;

use crate::collective::allgather;
use crate::message::wait_or_forget;
use crate::state::{Process, enter};
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
    Ok(enter()?.address(group, rank)?.0)
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

/// A member's words.
type Words = (i64, i64, i64);

/// All members' words, in rank order.
fn exchange(group: GroupId, mine: Words) -> Result<Vec<Words>> {
    let size = enter()?.engine.closed(group)?.size() as usize;
    let (input, output) = (Scratch::new(24)?, Scratch::new(24 * size)?);
    input.part(0, 24).fill(&fields::bytes_of(&mine));
    let all = output.part(0, 24 * size);
    allgather(group, Some(input.part(0, 24)), all.clone(), Parts::Even(24))?;
    let words = fields::all(&all.to_vec());
    words.map_err(|_| Error::State("the words of a group's members are not whole"))
}

/// A group of the same members, with a context of its own.
pub fn duplicate(group: GroupId) -> Result<GroupId> {
    split(group, 0, rank(group)? as i32).map(|made| made.unwrap_or(group))
}

/// Members with equal colour, by (key, rank). A negative colour joins nothing.
pub fn split(group: GroupId, colour: i32, key: i32) -> Result<Option<GroupId>> {
    let context = enter()?.engine.next_context() as i64;
    let words = exchange(group, (colour as i64, key as i64, context))?;
    let context = words.iter().map(|row| row.2).max().unwrap_or(2) as u32;
    let mut chosen: Vec<(i64, u32)> = (0..words.len() as u32)
        .filter(|&rank| words[rank as usize].0 == colour as i64)
        .map(|rank| (words[rank as usize].1, rank))
        .collect();
    chosen.sort();
    let (me, peers) = {
        let held = enter()?;
        let old = held.engine.group(group)?;
        let peers = chosen.iter().filter_map(|&(_, rank)| old.peer(rank));
        (old.rank, peers.collect::<Vec<Peer>>())
    };
    let leads = colour >= 0 && chosen.first().is_some_and(|first| first.1 == me);
    // A collective buffer that cannot be had is the whole group's error: all learn of it.
    let buffer = if leads {
        enter()?.engine.make_collective_buffer(&peers)
    } else {
        Ok(0)
    };
    let told = buffer.as_ref().map_or(-1, |&name| name as i64);
    let names = exchange(group, (told, 0, 0))?;
    if colour < 0 {
        return Ok(None);
    }
    let name = chosen.first().map_or(-1, |first| names[first.1 as usize].0);
    if name < 0 {
        let reason = buffer.err();
        return Err(reason
            .unwrap_or_else(|| Error::Memory("no collective buffer for the new group".into())));
    }
    let made = enter()?.engine.add_group(peers, context, name as u64);
    made.map(Some)
}

/// Internal messages of the function below: collectives' context, tags beyond theirs.
const ASSEMBLY: i32 = 0x4000_0000;

fn send_words(to: Peer, context: u32, tag: i32, words: &[u64]) -> Result<()> {
    let bytes = fields::bytes_of_all(words);
    let message = Scratch::new(bytes.len())?.part(0, bytes.len());
    message.fill(&bytes);
    let sent = enter()?
        .engine
        .start_send(to, context, tag, message, Mode::Standard)?;
    finish(sent).map(|_| ())
}

fn receive_words(from: Peer, context: u32, tag: i32, most: usize) -> Result<Vec<u64>> {
    let into = Scratch::new(8 * most)?.part(0, 8 * most);
    let select = Select {
        context,
        source: Some(from),
        tag: TagSelect::Exactly(tag),
    };
    let handle = enter()?.engine.start_receive(select, into.clone())?;
    let length = finish(handle)?.min(8 * most);
    // A message that makes no sense says nothing.
    Ok(fields::all(&into.to_vec()[..length]).unwrap_or_default())
}

fn finish(handle: Handle) -> Result<usize> {
    match wait_or_forget(handle)? {
        (status, None) => Ok(status.length),
        (_, Some(error)) => Err(error),
    }
}

/// The task that started this one; none: the launcher.
pub fn parent() -> Result<Option<u32>> {
    let held = enter()?;
    let member = held.job.membership(held.engine.me());
    let member = member.map_err(|_| Error::State("the job's table does not know this task"))?;
    Ok(member.parent)
}

/// The members with these ranks, in that order. Only they call.
pub fn select(group: GroupId, ranks: &[i32]) -> Result<GroupId> {
    let held = enter()?;
    let mut peers = vec![];
    for &rank in ranks {
        let peer = held.address(group, rank)?.0;
        if peers.contains(&peer) {
            return Err(Error::Argument(format!(
                "rank {rank} stands twice in the new group"
            )));
        }
        peers.push(peer);
    }
    let me = held.engine.me();
    let context = held.context(group)? + 1;
    let mut next = held.engine.next_context();
    drop(held);
    if !peers.contains(&me) {
        return Err(Error::Argument(
            "this task is not among the ranks of the new group; only its members call".into(),
        ));
    }
    let leader = peers[0];
    if me != leader {
        send_words(leader, context, ASSEMBLY, &[next as u64])?;
        let words = receive_words(leader, context, ASSEMBLY + 1, 2)?;
        return match words[..] {
            [context, buffer] => enter()?.engine.add_group(peers, context as u32, buffer),
            [lost] => Err(gone(lost as Peer)),
            _ => Err(Error::Memory(
                "no memory for the new group where its first member is".into(),
            )),
        };
    }
    let mut led = || -> Result<u64> {
        for &peer in &peers[1..] {
            let word = receive_words(peer, context, ASSEMBLY, 1)?;
            next = next.max(word.first().map_or(0, |&word| word as u32));
        }
        enter()?.engine.make_collective_buffer(&peers)
    };
    // The others wait for the result, good or bad.
    let buffer = led();
    let words = match &buffer {
        Ok(buffer) => vec![next as u64, *buffer],
        Err(Error::Dead(peer) | Error::Left(peer) | Error::Corrupt { peer, .. }) => {
            vec![*peer as u64]
        }
        Err(_) => vec![],
    };
    for &peer in &peers[1..] {
        let told = send_words(peer, context, ASSEMBLY + 1, &words);
        if buffer.is_ok() {
            told?;
        }
    }
    enter()?.engine.add_group(peers, next, buffer?)
}

/// Why nothing can be done with a task that another one has found gone.
fn gone(peer: Peer) -> Error {
    let presence =
        |held: crate::state::Held| (peer < held.job.tasks()).then(|| held.engine.presence(peer));
    match enter().map(presence) {
        Ok(None) => {
            Error::State("a member named a task that does not exist as the one that is gone")
        }
        Ok(Some(Presence::Left)) => Error::Left(peer),
        _ => Error::Dead(peer),
    }
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
