//! Partitioned messages: buffers of which parts are sent as the program says that they are ready.
//!
//! The sends and the receives of two processes with the same tag in a communicator match in the order in which they are
//! made. So MPI_Psend_init sends a [`Plan`] in the hidden group, and MPI_Precv_init posts the receive of it. Each partition
//! of the sender's is then a message with a tag of its own, in every round the same one. The receiver learns from the plan
//! how long they are; its own partitions may be others.

pub mod receive;
pub mod send;

use std::ffi::c_int;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::numbers::Numbers;

/// Tags of plans in the hidden group; collectives have those below, partitions those from `PARTS` on.
const PLANS: c_int = 0x4000_0000;
const PARTS: c_int = 0x6000_0000;
/// Partitions that the sends of a process may have together: each has a tag, and the tags after these make communicators.
const MAX_PARTITIONS: u32 = 0x1000_0000;

/// The tag of a plan. Of two tags of the program's that lead to the same one, [`Plan::check`] tells.
fn plan_tag(tag: c_int) -> c_int {
    PLANS | (tag & (PARTS - PLANS - 1))
}

/// The tags of the sends that this process has made and not freed.
static NUMBERS: Numbers = Numbers::below(MAX_PARTITIONS);

/// The tags of the partitions of a send, until it is dropped.
struct PartTags {
    first: u32,
}

impl PartTags {
    /// Takes tags for so many partitions.
    fn take(partitions: c_int) -> Result<PartTags> {
        // One without partitions has a tag, too, so that each has its own first one.
        let first = NUMBERS.take_run(partitions.max(1) as u32).ok_or_else(|| {
            let text = format!(
                "there are no tags for {partitions} partitions beside those of this process' other partitioned sends, which may have {MAX_PARTITIONS} together: free some of their requests"
            );
            Error::new(ERR_NO_MEM, text)
        })?;
        Ok(PartTags { first })
    }

    /// The tag of the first partition.
    fn first(&self) -> c_int {
        PARTS + self.first as c_int
    }
}

impl Drop for PartTags {
    fn drop(&mut self) {
        NUMBERS.give_back(self.first);
    }
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
    /// Whether it was made for this tag, and can be true: it comes from another process.
    fn check(&self, tag: c_int) -> Result {
        if self.tag == tag {
            return check_count(self.partitions);
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
        0.. if (partitions as u32) <= MAX_PARTITIONS => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("there are {partitions} partitions; there may be 0 to {MAX_PARTITIONS}"),
        )),
    }
}

/// A partition of so many.
pub fn check_index(partition: c_int, partitions: c_int) -> Result {
    let text = match partitions {
        _ if (0..partitions).contains(&partition) => return Ok(()),
        0 => format!("the partition is {partition}; there are none here"),
        _ => format!(
            "the partition is {partition}; partitions here are 0 to {}",
            partitions - 1
        ),
    };
    Err(Error::new(ERR_ARG, text))
}
