//! The header of a block of shared memory: its size, its owner, and the tasks that read it.
//!
//! A task is identified by its number plus 1, so that zero means no task. One word has the owner of the block:
//!
//! ```text
//! owner (low half) | sender (high half)
//! ```
//!
//! * *Owned:* the owner's number and no sender. Only the owner changes the word, and only the owner touches the memory.
//! * *In flight:* the receiver is the owner, and the sender stands beside it. The sender wrote the word before it sent
//!   its message. The receiver clears the sender when the message has been received ([`Block::arrive`]). If the message
//!   cannot be sent, the sender takes the block back ([`Block::take_back`]). Both change the same word with a
//!   compare-and-swap, so only one of them gets the block.
//! * *Kept:* the owner's number, with a mark in the sender's half. The block is neither used nor read, and its memory
//!   is allocated. The owner keeps it for its next loan ([`Block::reuse`]), unless another task claims it first.
//! * *Free:* the block has no owner, and its memory may have been released.
//!
//! A block that is kept, or whose owner is gone, belongs to the task that claims it first ([`Block::claim`]). A claim
//! is one compare-and-swap from the word that the claimer has read, and task numbers are never reused, so two claimers
//! never both succeed. It is correct at whichever instruction the owner ended:
//!
//! * *The owner died while it released the memory to the system.* The word still has its number, so the block is
//!   claimed, and the claimer allocates the memory again.
//! * *The sender died between writing the word and sending the message.* The receiver finds the sender's number on the
//!   block when it has received everything that the sender ever sent, and keeps the block.
//! * *The receiver died before it received the message.* The block has an owner that is gone.
//!
//! A task that leaves in good order gives up its blocks before others can learn that it is gone. After that it must not
//! touch any of them.

use crate::list::Link;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of tasks that can read a block at the same time, besides its owner.
#[cfg(not(loom))]
pub const READERS: usize = 9;
/// The model checker would go through all readers in every order.
#[cfg(loom)]
pub const READERS: usize = 1;

const FREE: u64 = u32::MAX as u64;
/// Mark in the sender's half: no task has this number.
const KEPT: u64 = FREE << 32;
const LENT: u32 = u32::from_le_bytes(*b"lent");
const HERE: u32 = u32::from_le_bytes(*b"here");

/// A successful claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The block's memory is allocated.
    Whole,
    /// The block's memory may have been released: allocate it.
    Bare,
}

/// The header in front of a block. Zeros are a valid initial state: no owner.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Block {
    /// Bytes that follow the header.
    pub size: AtomicU64,
    /// Link to the block that was made before this one.
    pub before: Link,
    /// Owner and sender, as the module describes.
    owner: AtomicU64,
    /// `LENT` while user code has the block.
    state: AtomicU32,
    /// Task numbers + 1, or 0.
    readers: [AtomicU32; READERS],
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("block", Block { size, before, owner, state, readers } FREE KEPT LENT HERE);

fn owned_by(task: u32) -> u64 {
    task as u64 + 1
}

fn kept_by(task: u32) -> u64 {
    KEPT | owned_by(task)
}

fn under_way(from: u32, to: u32) -> u64 {
    (from as u64 + 1) << 32 | owned_by(to)
}

impl Block {
    /// Initializes the header, for its maker, before others know of the block.
    pub fn begin(&self, size: usize, me: u32) {
        self.size.store(size as u64, Ordering::Relaxed);
        self.owner.store(owned_by(me), Ordering::Relaxed);
    }

    /// Lends the block to user code; for the owner.
    pub fn lend(&self) {
        self.state.store(LENT, Ordering::Release);
    }

    /// Takes the block back from user code. Returns `false` if user code did not have it.
    pub fn end_loan(&self) -> bool {
        let swapped = self
            .state
            .compare_exchange(LENT, HERE, Ordering::AcqRel, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Returns whether user code of this task has the block.
    pub fn is_lent_to(&self, me: u32) -> bool {
        self.is_owned_by(me) && self.state.load(Ordering::Relaxed) == LENT
    }

    /// Returns whether the block is owned by this task, and neither in flight nor kept.
    pub fn is_owned_by(&self, me: u32) -> bool {
        self.owner.load(Ordering::Relaxed) == owned_by(me)
    }

    /// Returns whether the block has no owner.
    pub fn is_free(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == FREE
    }

    /// Returns whether the block belongs to a task that is gone.
    pub fn is_abandoned(&self, gone: impl Fn(u32) -> bool) -> bool {
        is_of_gone(self.owner.load(Ordering::Acquire), gone)
    }

    fn pass(&self, from: u64, to: u64) -> bool {
        let swapped = self
            .owner
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Marks the block as in flight to task `to`; for the owner, before it sends the message. Returns `false` if it was
    /// not the owner.
    pub fn send(&self, me: u32, to: u32) -> bool {
        self.pass(owned_by(me), under_way(me, to))
    }

    /// Takes the block back because the message was not sent; for the sender. Returns `false` if the receiver is gone
    /// and another task has the block.
    pub fn take_back(&self, me: u32, to: u32) -> bool {
        self.pass(under_way(me, to), owned_by(me))
    }

    /// Makes the receiver the owner, after the message from task `from` has been received, or can no longer be received
    /// because that task is gone. Returns `false` if the block is not in flight from there.
    pub fn arrive(&self, me: u32, from: u32) -> bool {
        self.pass(under_way(from, me), owned_by(me))
    }

    /// Keeps the block for the owner's next loan, and lets other tasks claim it until then; for the owner, when no task
    /// reads it. Returns `false` if it was not the owner.
    pub fn keep(&self, me: u32) -> bool {
        self.pass(owned_by(me), kept_by(me))
    }

    /// Uses a kept block again. Returns `false` if another task has claimed it.
    pub fn reuse(&self, me: u32) -> bool {
        self.pass(kept_by(me), owned_by(me))
    }

    /// Makes this task the owner if the block is free, only kept, or its owner is gone, and no living task reads it.
    /// Succeeds for one task only; otherwise returns `None`.
    pub fn claim(&self, me: u32, gone: impl Fn(u32) -> bool) -> Option<Claimed> {
        let owner = self.owner.load(Ordering::Acquire);
        let unread = |reader: &AtomicU32| match reader.load(Ordering::Acquire) {
            0 => true,
            reader => gone(reader - 1),
        };
        let kept = owner & KEPT == KEPT;
        let claimed = (owner == FREE || kept || is_of_gone(owner, &gone))
            && self.readers.iter().all(unread)
            && self.pass(owner, owned_by(me));
        if !claimed {
            return None;
        }
        let clear = |reader: &AtomicU32| reader.store(0, Ordering::Relaxed);
        self.readers.iter().for_each(clear);
        Some(if kept { Claimed::Whole } else { Claimed::Bare })
    }

    /// Frees the block; for the owner. `release` gives the memory back to the system before others can see that the
    /// block is free.
    pub fn let_go(&self, me: u32, release: impl FnOnce()) {
        if self.is_owned_by(me) {
            release();
            // Partner: `claim`.
            self.pass(owned_by(me), FREE);
        }
    }

    /// Returns the number of the task in reader slot `at`, plus 1, or 0 if the slot is empty. Returns `None` if there
    /// is no such slot.
    pub fn reader(&self, at: usize) -> Option<u32> {
        Some(self.readers.get(at)?.load(Ordering::Acquire))
    }

    /// Lets that task read the block, in reader slot `at`; for the owner.
    pub fn admit(&self, at: usize, reader: u32) {
        if let Some(place) = self.readers.get(at) {
            place.store(reader + 1, Ordering::Release);
        }
    }

    /// Empties a reader slot; for the reader, or for the owner on its behalf.
    pub fn dismiss(&self, at: usize) {
        if let Some(place) = self.readers.get(at) {
            place.store(0, Ordering::Release);
        }
    }
}

/// Returns whether the owner in this word is gone. Free blocks have no owner.
fn is_of_gone(owner: u64, gone: impl Fn(u32) -> bool) -> bool {
    let task = owner as u32;
    task != 0 && task != FREE as u32 && gone(task - 1)
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Block>() == crate::LINE);

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: u32) -> bool {
        false
    }

    fn owned(me: u32) -> Block {
        let block = Block::default();
        block.begin(4032, me);
        block
    }

    #[test]
    fn a_block_under_way_is_its_receivers_once_it_arrives() {
        let block = owned(0);
        block.lend();
        assert!(block.send(0, 1));
        assert!(!block.is_lent_to(0) && !block.is_lent_to(1), "under way");
        assert_eq!(block.claim(2, none), None);
        assert!(!block.arrive(1, 2), "not from that task");
        assert!(block.arrive(1, 0));
        assert!(block.is_lent_to(1));
        assert!(!block.take_back(0, 1), "too late");
    }

    #[test]
    fn a_block_that_did_not_go_out_is_its_senders_again() {
        let block = owned(0);
        assert!(block.send(0, 1));
        assert!(block.take_back(0, 1));
        assert!(!block.arrive(1, 0));
        assert!(block.is_owned_by(0));
    }

    #[test]
    fn a_block_under_way_to_the_dead_is_claimed_once() {
        let block = owned(0);
        assert!(block.send(0, 1));
        let gone = |task| task == 1;
        assert_eq!(block.claim(2, gone), Some(Claimed::Bare));
        assert_eq!(block.claim(3, gone), None);
        assert!(!block.take_back(0, 1));
    }

    #[test]
    fn the_sender_being_gone_leaves_the_block_to_its_receiver() {
        let block = owned(0);
        assert!(block.send(0, 1));
        assert_eq!(block.claim(2, |task| task == 0), None);
        assert!(block.arrive(1, 0));
    }

    #[test]
    fn what_has_been_claimed_is_not_released_by_its_former_owner() {
        let block = owned(0);
        assert!(block.claim(1, |task| task == 0).is_some());
        block.let_go(0, || panic!("it is somebody else's"));
        assert!(block.is_owned_by(1));
    }
    #[test]
    fn a_block_that_is_kept_is_its_keepers_until_another_claims_it() {
        let block = owned(0);
        assert!(block.keep(0) && !block.keep(0));
        assert!(block.reuse(0) && !block.reuse(0));
        assert_eq!(block.claim(1, none), None, "in use");
        assert!(block.keep(0));
        assert!(!block.send(0, 1) && !block.is_owned_by(0));
        assert_eq!(block.claim(1, none), Some(Claimed::Whole));
        assert!(!block.reuse(0) && block.is_owned_by(1));
    }

    #[test]
    fn a_block_that_one_who_is_gone_kept_is_abandoned() {
        let block = owned(0);
        assert!(block.keep(0));
        assert!(!block.is_abandoned(none));
        assert!(block.is_abandoned(|task| task == 0));
    }
}
