//! Small blocking collectives of groups on several hosts: the engine's `across`, in time.

use regatta_engine::{Error, GroupId, Handle, Part, Reduction, Result, Round};
use regatta_memory::views::Views;

use crate::collective::{AwaitedRound, fold_others, outcome};
use crate::state::{Held, Process, enter};
use crate::wait::{Awaited, wait_for};

/// Combine all members' elements, the result to all; without elements: a barrier. `Ok(false)`: this group does it
/// another way, and nothing has happened.
pub(crate) fn across(
    group: GroupId,
    input: &Views,
    output: &Views,
    what: Option<&Reduction>,
) -> Result<bool> {
    let bytes = what.map_or(0, Reduction::bytes);
    if what.is_some_and(|what| !what.operator.commutative()) {
        return Ok(false);
    }
    let room = {
        let mut held = enter()?;
        if !held.engine.crosses(group, bytes)? {
            return Ok(false);
        }
        held.engine.start_room(group)?
    };
    if let Some((found, name)) = room {
        outcome(found)?;
        enter()?.engine.enter_room(group, &name)?;
    }
    let Some(mut round) = enter()?.engine.cross(group, input)? else {
        return Ok(false);
    };
    let leads = enter()?.engine.leads(&round);
    let taken = match leads {
        None => follow(&mut round, bytes, output),
        Some(members) => lead(&mut round, members, input, output, what),
    };
    match taken {
        Ok(()) => Ok(true),
        Err(error) => {
            enter()?.engine.fail_crossing(&round, &error);
            Err(error)
        }
    }
}

/// Until all is there that is needed on this host.
fn await_contributions(round: &mut Round) -> Result<Held> {
    let mut held = enter()?;
    if !held.look(round) {
        drop(held);
        wait_for(AwaitedRound(round))?;
        held = enter()?;
    }
    Ok(held)
}

/// Take what the leader has contributed.
fn follow(round: &mut Round, bytes: usize, output: &Views) -> Result<()> {
    let held = await_contributions(round)?;
    let part = Part {
        offset: 0,
        total: bytes,
    };
    held.engine.collect(round, 0, part, output);
    Ok(())
}

/// The leaders' exchange.
struct Exchange(Handle);

impl Awaited for Exchange {
    type Output = Option<Error>;
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Option<Error>>> {
        process.engine.progress();
        let finished = process.engine.finish(self.0)?;
        Ok(finished.map(|(_, error)| error))
    }

    fn is_worth_patience(&self) -> bool {
        true
    }
}

fn exchanged(exchange: Handle) -> Result<()> {
    match wait_for(Exchange(exchange)) {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(error) => {
            // The memory is the caller's again.
            enter()?.engine.forget(exchange);
            Err(error)
        }
    }
}

/// Gather here, exchange with the other leaders, and contribute the result.
fn lead(
    round: &mut Round,
    members: u32,
    input: &Views,
    output: &Views,
    what: Option<&Reduction>,
) -> Result<()> {
    let mut held = await_contributions(round)?;
    if let Some(what) = what {
        input.copy_to(output);
        fold_others(&held, round, members, output, what);
    }
    let exchange = held.engine.start_exchange(round, output, what)?;
    drop(held);
    exchanged(exchange)?;
    enter()?.engine.end_crossing(round, output);
    Ok(())
}
