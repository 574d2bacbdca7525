//! `broadcast`: to all nodes of the cube, or of the part that some channels span.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::items::Items;
use regatta_nodes::place::{length, place};
use regatta_nodes::rg;

use crate::channels::{BROADCAST, mask, task_at};
use crate::cube;
use crate::life::{GROUP, all_channels, call};

/// Give the nodes that can be reached from `source` by these channels what it has; all of them call it. Returns the length, or -1.
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
            // SAFETY: the C contract.
            checked(unsafe { rg::rg_broadcast(buf, bytes, source, rg::WORLD) })?;
            return Ok(len);
        }
        // SAFETY: the C contract.
        unsafe { part(Items::block(buf, len)?, source as u32, mask(channels)?)? };
        Ok(len)
    })
}

/// Through the channels from the lowest one on.
///
/// # Safety
/// There is room for the block, or what it has is the source's.
unsafe fn part(block: Items, source: u32, channels: u32) -> Result<(), Fault> {
    if channels & !(all_channels() as u32) != 0 {
        return Err(Fault::says("the host program is no part of the cube"));
    }
    let node = place().node as u32;
    let Some((from, on)) = cube::steps(node, source, channels) else {
        return Err(Fault::says(format!(
            "these channels do not lead from node {source} to this one"
        )));
    };
    if let Some(channel) = from {
        // SAFETY: the caller's.
        unsafe { block.receive(task_at(channel)?, BROADCAST, GROUP) }.1?;
    }
    for channel in on {
        // SAFETY: the caller's.
        unsafe { block.send(task_at(channel)?, BROADCAST, GROUP)? };
    }
    Ok(())
}
