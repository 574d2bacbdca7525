//! Blocking calls. The engine does not use the memory after they return, even with an error.
#![deny(unsafe_code)]

use std::marker::PhantomData;

use regatta_process::{self as process, GroupId, Mode, Operation, TagSelect};

use super::{Block, Gives, Takes, outside};
use crate::error::{Error, Result, ours};
use crate::memory::Data;
use crate::{Status, Task};

/// The status of a completed operation, and its error if it failed.
pub(crate) type Outcome = (process::Status, Option<process::Error>);

pub(crate) fn told((status, error): Outcome) -> Result<process::Status> {
    match error {
        None => Ok(status),
        Some(error) => Err(Error::of(error)),
    }
}

#[inline(always)]
pub(crate) fn send(from: Gives<'_>, to: i32, tag: i32, group: GroupId, mode: Mode) -> Result<()> {
    outside()?;
    if mode == Mode::Standard && process::try_send(&from.views, to, tag, group) {
        return Ok(());
    }
    ours(process::send(from.views, to, tag, group, mode))
}

#[inline(always)]
pub(crate) fn receive(
    into: Takes<'_>,
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<Status> {
    outside()?;
    if let Some((from, tag, length)) = receive_now(&into, from, tag, group) {
        return Ok(Status {
            source: Some(from as usize),
            tag: tag as u32,
            length,
        });
    }
    let status = told(ours(process::receive(into.views, from, tag, group))?)?;
    Ok(Status::of(&status))
}

/// Receives a small message that has arrived or arrives soon. Returns its source, tag and length.
#[inline(always)]
fn receive_now(
    into: &Takes<'_>,
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Option<(i32, i32, usize)> {
    let tag = match tag {
        TagSelect::Exactly(tag) => tag,
        TagSelect::Any => process::ANY,
        TagSelect::Masked { .. } => return None,
    };
    if from == process::ANY || tag == process::ANY {
        return process::try_receive_any_as_owner(&into.views, from, tag, group, true);
    }
    let length = process::try_receive_as_owner(&into.views, from, tag, group)?;
    Some((from, tag, length))
}

/// Receives a message of any length. Fails if the length is not a multiple of the element size.
pub(crate) fn receive_vec<T: Data>(
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<(Vec<T>, Status)> {
    let width = const {
        assert!(size_of::<T>() > 0, "elements have a size");
        size_of::<T>()
    };
    outside()?;
    let mut elements = Vec::new();
    let room = |length: usize| {
        if !length.is_multiple_of(width) {
            return Err(process::Error::Argument(format!(
                "a message of {length} bytes is not a whole number of elements of {width} bytes"
            )));
        }
        let reserved = elements.try_reserve_exact(length / width);
        reserved.map_err(|_| process::Refused(length))?;
        elements.resize(length / width, T::zeroed());
        Ok(Takes::slice(&mut elements).views)
    };
    let status = told(ours(process::receive_sized(from, tag, group, room))?)?;
    Ok((elements, Status::of(&status)))
}

pub(crate) fn lend(_task: &Task, len: usize) -> Result<Block<'_>> {
    outside()?;
    Ok(Block::of(&ours(process::lend(len))?, PhantomData))
}

/// Sends a block, which then belongs to the receiver. After an error it has been given back.
pub(crate) fn send_block(block: Block<'_>, to: i32, tag: i32, group: GroupId) -> Result<()> {
    outside()?;
    let (address, len) = (block.address(), block.len);
    ours(process::send_loan(address, len, to, tag, group))?;
    std::mem::forget(block);
    Ok(())
}

pub(crate) fn receive_block<'t>(
    joined: PhantomData<&'t Task>,
    from: i32,
    tag: TagSelect,
    group: GroupId,
) -> Result<(Block<'t>, Status)> {
    outside()?;
    let (views, status) = ours(process::receive_loan(from, tag, group))?;
    Ok((Block::of(&views, joined), Status::of(&status)))
}

/// Runs a collective with this task's input and output; `rest` has all other fields of the operation.
#[inline(always)]
pub(crate) fn collective(
    group: GroupId,
    input: Option<Gives<'_>>,
    output: Option<Takes<'_>>,
    rest: Operation,
) -> Result<()> {
    outside()?;
    ours(process::run(
        group,
        Operation {
            input: input.map(|gives| gives.views),
            output: output.map(|takes| takes.views),
            ..rest
        },
    ))
}
