//! Messages in place.

use regatta_engine::{Error, GroupId, Mode, Peer, Result, Status};
use regatta_engine::{Loans, Peers, TagSelect};
use regatta_memory::views::Views;

use crate::message::{NONE, just, probe, wait_or_forget};
use crate::state::{Process, enter};

/// Allocates a loan of shared memory.
pub fn lend(len: usize) -> Result<Views> {
    let (_, views) = enter()?.engine.transport_mut().lend(len)?;
    Ok(views)
}

fn place_of(address: usize) -> Result<(u64, usize)> {
    let held = enter()?;
    let found = held.engine.transport().loan_at(address);
    found.ok_or_else(|| {
        Error::Argument(
            "the address is not the start of a loan that this task holds; the loan may have been sent or freed".into(),
        )
    })
}

/// Sends a loan as a message of `len` bytes. Does not block.
pub fn send_loan(address: usize, len: usize, to: i32, tag: i32, group: GroupId) -> Result<()> {
    let (place, size) = place_of(address)?;
    if len > size {
        return Err(Error::Argument(format!(
            "the message of {len} bytes is longer than its loan of {size}"
        )));
    }
    if tag < 0 {
        return Err(Error::Tag(tag as i64));
    }
    let mut held = enter()?;
    if to == NONE {
        held.engine.transport_mut().give_back(place);
        return Ok(());
    }
    let (peer, context) = held.address(group, to)?;
    let near = peer == held.engine.me() || held.engine.transport_mut().shares_memory(peer);
    if !near || !held.engine.transport_mut().hand_over_loan(place, peer) {
        return send_copy(&mut held, place, len, peer, context, tag);
    }
    let sent = held.engine.send_loan(peer, context, tag, place, len as u64);
    if sent.is_err() {
        held.engine.transport_mut().take_back_loan(place, peer);
    }
    sent
}

/// Lets another task read a loan, which this task continues to own. Returns the name by which the other task opens it, or `None` if that task must
/// get a copy.
pub fn share_loan(address: usize, to: i32, group: GroupId) -> Result<Option<u64>> {
    let (place, _) = place_of(address)?;
    let mut held = enter()?;
    let (peer, _) = held.address(group, to)?;
    Ok(held.engine.transport_mut().share_loan(place, peer))
}

/// Returns the memory of a loan that its owner has shared with this task.
pub fn open_loan(name: u64, len: usize) -> Result<*const u8> {
    let opened = enter()?.engine.transport_mut().open_loan(name, len);
    opened
        .map(|memory| memory.as_ptr().cast_const())
        .map_err(|corrupt| Error::Argument(corrupt.what.into()))
}

/// Closes a shared loan. Called when it is not read any more, or by its owner if the reader will never learn of it.
pub fn close_loan(name: u64) -> Result<()> {
    enter()?.engine.transport_mut().close_loan(name);
    Ok(())
}

/// Sends a loan as a copy: to another host, or because other tasks are reading it. The loan is given back when the copy was sent.
fn send_copy(
    process: &mut Process,
    place: u64,
    len: usize,
    peer: Peer,
    context: u32,
    tag: i32,
) -> Result<()> {
    let engine = &mut process.engine;
    let me = engine.me();
    let message = engine.transport_mut().borrowed(me, place, len as u64)?;
    let handle = engine.start_send(peer, context, tag, message, Mode::Standard)?;
    let give_back = move |_, _| {
        if let Ok(mut held) = enter() {
            held.engine.transport_mut().give_back(place);
            held.copies -= 1;
        }
    };
    process.copies += 1;
    process.call_back(handle, Box::new(give_back))
}

/// Receives a message in place. Blocks. A message that was not sent as a loan is copied into a new one.
pub fn receive_loan(from: i32, tag: TagSelect, group: GroupId) -> Result<(Views, Status)> {
    if from == NONE {
        return Ok((lend(0)?, Status::EMPTY));
    }
    loop {
        probe(from, tag, group)?;
        let mut held = enter()?;
        let select = crate::message::selection(&held, group, from, tag)?;
        if let Some((status, _, views)) = held.engine.take_loan(&select)? {
            return Ok((views, held.in_ranks(status)));
        }
        // Another thread may have taken the message meanwhile. From here to the start of the receive, none can.
        let Some(seen) = held.engine.probe(&select)? else {
            continue;
        };
        let (place, views) = held.engine.transport_mut().lend(seen.length)?;
        let started = held.engine.start_receive(just(&seen), views.clone());
        drop(held);
        return match started.and_then(wait_or_forget) {
            Ok((status, None)) => Ok((views, status)),
            Ok((_, Some(error))) | Err(error) => {
                enter()?.engine.transport_mut().give_back(place);
                Err(error)
            }
        };
    }
}

/// Gives a loan back.
pub fn free_loan(address: usize) -> Result<()> {
    let (place, _) = place_of(address)?;
    enter()?.engine.transport_mut().give_back(place);
    Ok(())
}
