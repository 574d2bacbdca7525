//! Receiving the message that a probe has found: the probe takes the message out of matching, so no other thread can receive it.

use std::time::Duration;

use regatta_engine::{Error, GroupId, Handle, Message, Result, Select, Status, TagSelect};
use regatta_memory::views::Views;

use crate::message::{NONE, check_wait, look_before_waiting, selection, wait_or_forget};
use crate::state::{Process, enter, enter_to_look};
use crate::wait::{Awaited, wait_for};

/// Takes a message that could be received now out of matching, if there is one.
pub fn match_probe_now(
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<Option<(Status, Message)>> {
    if from == NONE {
        enter()?.check_open(group)?;
        return Ok(Some((Status::EMPTY, Message::OF_NOBODY)));
    }
    let mut held = enter_to_look()?;
    let select = selection(&held, group, from, tag)?;
    let moved = held.handle_news() | held.engine.progress();
    let found = held.engine.match_probe(&select)?;
    held.looked(moved || found.is_some());
    Ok(found.map(|(status, message)| (held.in_ranks(status), message)))
}

/// Takes a message out of matching. Blocks until there is one.
pub fn match_probe(from: i32, tag: TagSelect, group: GroupId) -> Result<(Status, Message)> {
    if from == NONE {
        enter()?.check_open(group)?;
        return Ok((Status::EMPTY, Message::OF_NOBODY));
    }
    let select = selection(&*enter()?, group, from, tag)?;
    let probe = MatchProbe(select);
    if let Some(found) = look_before_waiting(&select, |process| probe.look(process))? {
        return Ok(found);
    }
    wait_for(probe)
}

struct MatchProbe(Select);

impl MatchProbe {
    fn look(&self, process: &mut Process) -> Result<Option<(Status, Message)>> {
        let found = process.engine.match_probe(&self.0)?;
        Ok(found.map(|(status, message)| (process.in_ranks(status), message)))
    }
}

impl Awaited for MatchProbe {
    type Output = (Status, Message);
    const PROGRESSES: bool = false;
    const INTERRUPTIBLE: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>> {
        self.look(process)
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        check_wait(process, &self.0, waited)
    }
}

/// Receives a message that was taken out of matching. Blocks until it was received completely.
pub fn receive_matched(message: Message, into: Views) -> Result<(Status, Option<Error>)> {
    wait_or_forget(start_receive_matched(message, into)?)
}

/// Starts to receive a message that was taken out of matching. The message becomes invalid unless this fails because it is unknown.
pub fn start_receive_matched(message: Message, into: Views) -> Result<Handle> {
    enter()?.engine.start_matched_receive(message, into)
}
