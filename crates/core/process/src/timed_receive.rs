//! Receives that take only a message that fits, within a time limit: for interfaces that allocate the memory for a message once they know its
//! length.

use std::time::Duration;

use regatta_engine::{Attempt, Error, GroupId, Peer, Result, Select, Status, TagSelect, Upkeep};
use regatta_memory::views::Views;

use crate::fast::POLLS_BEFORE_REQUEST;
use crate::message::{ANY, just, selection, wait_or_forget};
use crate::state::{Held, Process, as_owner, enter, enter_to_look};
use crate::wait::{Awaited, MAX_SLEEP, wait_for};

/// The result of such a receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// This message was received.
    Whole(Status),
    /// This message is longer than the memory. It was not received.
    TooLong(Status),
    /// No message arrived in time.
    Nothing,
}

/// Receives a small message that has arrived, or arrives soon if `waits`, on a fast path ([`fast`](crate::fast)). Source and tag may be any. Returns
/// the message's source, tag and length.
#[inline(always)]
pub fn try_receive_any_as_owner(
    into: &Views,
    from: i32,
    tag: i32,
    group: GroupId,
    waits: bool,
) -> Option<(i32, i32, usize)> {
    as_owner(|process| {
        let (source, context) = select_now(process, from, group)?;
        if tag < ANY {
            return None;
        }
        let wanted = (tag >= 0).then_some(tag);
        let answers = source.unwrap_or(process.last_source);
        let looks = if waits && process.pace.spins() {
            POLLS_BEFORE_REQUEST
        } else {
            1
        };
        for look in 0..looks {
            match process.engine.poll_any(source, context, wanted, into) {
                Attempt::Received(source, tag, length) => {
                    process.last_source = source;
                    return Some((rank_now(process, source, group), tag, length));
                }
                Attempt::Nothing => std::hint::spin_loop(),
                Attempt::NeedsRequest => return None,
            }
            if look == 0 {
                process.engine.prepare(answers);
            }
        }
        None
    })
}

/// Returns the source (`None` for any) and context of a receive. Returns `None` if members may have died and the source is any, which needs further
/// checks.
#[inline(always)]
fn select_now(process: &Process, from: i32, group: GroupId) -> Option<(Option<Peer>, u32)> {
    if from != ANY {
        let (peer, context) = process.address_now(group, from)?;
        return Some((Some(peer), context));
    }
    match group.channel() {
        Some(context) => Some((None, context)),
        None if process.engine.is_whole() => {
            let group = process.engine.live_group(group)?;
            (!group.is_revoked()).then_some((None, group.context))
        }
        None => None,
    }
}

#[inline(always)]
fn rank_now(process: &Process, source: Peer, group: GroupId) -> i32 {
    if group.channel().is_some() {
        return source as i32;
    }
    let group = process.engine.live_group(group);
    let rank = group.and_then(|group| group.rank_of(source));
    rank.map_or(source as i32, |rank| rank as i32)
}

/// Receives a message that fits, within this time limit. `None` means no limit.
#[inline(never)]
pub fn receive_within(
    into: Views,
    from: i32,
    tag: TagSelect,
    group: GroupId,
    patience: Option<Duration>,
) -> Result<(Came, Option<Error>)> {
    let mut held = enter()?;
    let select = selection(&held, group, from, tag)?;
    // A message that was too long for `try_receive_any_as_owner` is here already: receive it without reading the clock.
    if patience != Some(Duration::ZERO) {
        held.engine.progress();
        if let Some(status) = held.engine.probe(&select)? {
            return receive_seen(held, status, into);
        }
    }
    drop(held);
    loop {
        let found = match patience {
            Some(Duration::ZERO) => {
                enter()?.engine.transport_mut().look_everywhere();
                crate::message::probe_now(from, tag, group)?.is_some()
            }
            patience => wait_for(Probe {
                select,
                patience,
                late: false,
            })?,
        };
        let mut held = enter()?;
        // Another thread may have taken the message meanwhile.
        let Some(status) = held.engine.probe(&select)? else {
            match found {
                true => continue,
                false => return Ok((Came::Nothing, None)),
            }
        };
        return receive_seen(held, status, into);
    }
}

/// Receives the message that the engine has just found, if it fits.
fn receive_seen(mut held: Held, seen: Status, into: Views) -> Result<(Came, Option<Error>)> {
    if seen.length > into.len() {
        return Ok((Came::TooLong(held.in_ranks(seen)), None));
    }
    let handle = held.engine.start_receive(just(&seen), into)?;
    drop(held);
    let (status, error) = wait_or_forget(handle)?;
    Ok((Came::Whole(status), error))
}

/// Receives a message that fits and was passed over: it arrived before one that was received since, or before the launcher's last answer. Neither
/// waits nor handles new frames.
#[inline(never)]
pub fn receive_passed(
    into: Views,
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<(Came, Option<Error>)> {
    let mut held = enter()?;
    let select = selection(&held, group, from, tag)?;
    let Some(status) = held.engine.probe_passed(&select) else {
        return Ok((Came::Nothing, None));
    };
    if status.length > into.len() {
        return Ok((Came::TooLong(held.in_ranks(status)), None));
    }
    let handle = held.engine.start_receive(select, into)?;
    drop(held);
    let (status, error) = wait_or_forget(handle)?;
    Ok((Came::Whole(status), error))
}

/// Marks all messages that have arrived as passed over, as an answer of the launcher does.
pub fn pass_over() -> Result<()> {
    enter()?.engine.pass_over();
    Ok(())
}

/// Returns the index of the channel whose waiting message arrived first.
pub fn first_arrived(groups: impl Iterator<Item = GroupId>) -> Result<Option<usize>> {
    let mut held = enter_to_look()?;
    let contexts: Result<Vec<u32>> = groups.map(|group| held.context(group)).collect();
    let contexts = contexts?;
    held.engine.transport_mut().look_everywhere();
    let moved = held.handle_news();
    let found = held.engine.first_arrived(&contexts);
    held.looked(moved || found.is_some());
    Ok(found)
}

struct Probe {
    select: Select,
    patience: Option<Duration>,
    late: bool,
}

impl Awaited for Probe {
    type Output = bool;
    const PROGRESSES: bool = false;
    const INTERRUPTIBLE: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<bool>> {
        let found = process.engine.probe(&self.select)?.is_some();
        Ok((found || self.late).then_some(found))
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        self.late = self.patience.is_some_and(|patience| waited >= patience);
        crate::message::check_wait(process, &self.select, waited)
    }

    fn patience(&self) -> Duration {
        self.patience
            .map_or(MAX_SLEEP, |patience| patience.min(MAX_SLEEP))
    }
}
