//! Partitioned messages: buffers of which parts are sent as the program says that they are ready.
//!
//! The sends and the receives of two processes with the same tag in a communicator match in the order in which they are
//! made. So MPI_Psend_init sends a [`Plan`] in the hidden group, and MPI_Precv_init posts the receive of it. Each partition
//! of the sender's is then a message with a tag of its own, in every round the same one. The receiver learns from the plan
//! how long they are; its own partitions may be others.

pub mod receive;
pub mod send;

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::*;
use crate::error::{Error, Result};

/// Tags of plans in the hidden group; collectives have those below, partitions those from `PARTS` on.
const PLANS: c_int = 0x4000_0000;
const PARTS: c_int = 0x6000_0000;
/// How many tags there are for partitions; those that make communicators have the next.
const MOST: u32 = 0x1000_0000;

/// The tag of a plan. Of two tags of the program's that lead to the same one, [`Plan::check`] tells.
fn plan_tag(tag: c_int) -> c_int {
    PLANS | (tag & (PARTS - PLANS - 1))
}

/// The tags of so many partitions: the first one. The tags of a process are used in turn.
fn take_tags(partitions: c_int) -> c_int {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let partitions = partitions as u32;
    let mut first = 0;
    let taken = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
        // The tags of one message do not wrap around.
        first = if next + partitions > MOST { 0 } else { next };
        Some(first + partitions)
    });
    debug_assert!(taken.is_ok());
    PARTS + first as c_int
}

/// The facts that a sender tells its receiver, once for all rounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Bytes of a partition.
    bytes: u64,
    partitions: c_int,
    /// The program's tag.
    tag: c_int,
    /// Of the messages: that of the first partition.
    first: c_int,
    padding: c_int,
}

impl Plan {
    /// Whether it was made for this tag.
    fn check(&self, tag: c_int) -> Result {
        if self.tag == tag {
            return Ok(());
        }
        let text = format!(
            "a partitioned send with the tag {} met a receive with the tag {tag}: tags of partitioned messages between two processes may not differ by a multiple of {}",
            self.tag,
            PARTS - PLANS
        );
        Err(Error::new(ERR_TAG, text))
    }
}

/// How many messages a call waits for at a time: those that are not among them go on too.
const AT_ONCE: usize = 32;

/// A number of partitions.
pub fn check_count(partitions: c_int) -> Result {
    match partitions {
        1.. if (partitions as u32) <= MOST => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("there are {partitions} partitions; there may be 1 to {MOST}"),
        )),
    }
}

/// A partition of so many.
pub fn check_index(partition: c_int, partitions: c_int) -> Result {
    match (0..partitions).contains(&partition) {
        true => Ok(()),
        false => Err(Error::new(
            ERR_ARG,
            format!(
                "the partition is {partition}; partitions here are 0 to {}",
                partitions - 1
            ),
        )),
    }
}
