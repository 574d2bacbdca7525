//! Partitioned communication: the partitions of a buffer are sent as the program marks them ready.
//!
//! Sends and receives of two processes with the same tag in a communicator match in the order in which they are
//! initialized. So MPI_Psend_init sends a [`Plan`] in the hidden group, and MPI_Precv_init posts its receive. Each of
//! the sender's partitions is then a message with a tag of its own, the same in every round. The plan tells the
//! receiver the number and length of the sender's partitions, which may differ from its own.

pub mod receive;
pub mod send;

use std::ffi::c_int;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::numbers::Numbers;

/// The lowest tag of plans in the hidden group. Collectives use the tags below, partitions those from `PARTS` on.
const PLANS: c_int = 0x4000_0000;
const PARTS: c_int = 0x6000_0000;
/// Maximum number of partitions of all partitioned sends of a process: each has a tag. The tags above these are used
/// for making communicators.
const MAX_PARTITIONS: u32 = 0x1000_0000;

/// Returns the tag of a plan. Different tags of the program may give the same one; [`Plan::check`] detects that.
fn plan_tag(tag: c_int) -> c_int {
    PLANS | (tag & (PARTS - PLANS - 1))
}

/// Tags of the partitioned sends that this process has made and not freed.
static NUMBERS: Numbers = Numbers::below(MAX_PARTITIONS);

/// The tags of the partitions of a send, until it is dropped.
struct PartTags {
    first: u32,
}

impl PartTags {
    /// Takes tags for this many partitions.
    fn take(partitions: c_int) -> Result<PartTags> {
        // A send without partitions takes a tag too, so that each send has a distinct first tag.
        let first = NUMBERS.take_run(partitions.max(1) as u32).ok_or_else(|| {
            let text = format!(
                "no tags are left for {partitions} partitions: the partitioned sends of this process may have {MAX_PARTITIONS} in total; free some of their requests"
            );
            Error::new(ERR_NO_MEM, text)
        })?;
        Ok(PartTags { first })
    }

    /// Returns the tag of the first partition.
    fn first(&self) -> c_int {
        PARTS + self.first as c_int
    }
}

impl Drop for PartTags {
    fn drop(&mut self) {
        NUMBERS.give_back(self.first);
    }
}

/// What a sender sends to its receiver, once for all rounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Length of a partition in bytes.
    bytes: u64,
    partitions: c_int,
    /// The program's tag.
    tag: c_int,
    /// The tag of the first partition's messages.
    first: c_int,
    padding: c_int,
}

impl Plan {
    /// Checks that it was sent for this tag, and that its contents are valid: they come from another process.
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

/// Maximum number of messages that a call waits for at a time. Other messages advance too.
const AT_ONCE: usize = 32;

/// Checks a number of partitions.
pub fn check_count(partitions: c_int) -> Result {
    match partitions {
        0.. if (partitions as u32) <= MAX_PARTITIONS => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the number of partitions is {partitions}; it must be 0 to {MAX_PARTITIONS}"),
        )),
    }
}

/// Checks the index of a partition.
pub fn check_index(partition: c_int, partitions: c_int) -> Result {
    let text = match partitions {
        _ if (0..partitions).contains(&partition) => return Ok(()),
        0 => format!("the partition is {partition}, but the request has no partitions"),
        _ => format!(
            "the partition is {partition}; partitions here are 0 to {}",
            partitions - 1
        ),
    };
    Err(Error::new(ERR_ARG, text))
}
