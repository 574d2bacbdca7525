//! `broadcast`: to all nodes of the cube, or of the subcube that some channels span.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::items::Items;
use regatta_nodes::place::{length, place};
use regatta_nodes::rg;

use crate::channels::{BROADCAST, mask, task_at};
use crate::cube;
use crate::life::{GROUP, all_channels, call};

/// Broadcasts what `source` has to the nodes that these channels reach from it; all of them call this. Returns the
/// length, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn broadcast(
    buf: *mut c_void,
    source: c_int,
    channels: c_int,
    len: c_int,
) -> c_int {
    call("broadcast", || {
        if !(0..place().nodes).contains(&source) {
            return Err(Fault::says(format!("there is no node {source}")));
        }
        if channels == all_channels() {
            let bytes = length(len)?;
            // SAFETY: by the C contract the arguments are valid.
            checked(unsafe { rg::rg_broadcast(buf, bytes, source, rg::WORLD) })?;
            return Ok(len);
        }
        // SAFETY: by the C contract the arguments are valid.
        unsafe { part(Items::block(buf, len)?, source as u32, mask(channels)?)? };
        Ok(len)
    })
}

/// Broadcasts in a subcube, along the channels in ascending order.
///
/// # Safety
/// There is room for the block; at the source it is readable.
unsafe fn part(block: Items, source: u32, channels: u32) -> Result<(), Fault> {
    if channels & !(all_channels() as u32) != 0 {
        return Err(Fault::says("the host program is not part of the cube"));
    }
    let node = place().node as u32;
    let Some((from, on)) = cube::steps(node, source, channels) else {
        return Err(Fault::says(format!(
            "these channels do not lead from node {source} to this one"
        )));
    };
    if let Some(channel) = from {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { block.receive(task_at(channel)?, BROADCAST, GROUP) }.1?;
    }
    for channel in on {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { block.send(task_at(channel)?, BROADCAST, GROUP)? };
    }
    Ok(())
}
