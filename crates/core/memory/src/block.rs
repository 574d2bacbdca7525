//! The tag of a block of shared memory: its size, its owner, and the tasks that read it.
//!
//! A task is named by its number plus 1, so that zeros name nobody. One word says whose the block is:
//!
//! ```text
//! owner (low half) | sender (high half)
//! ```
//!
//! * *Owned:* the owner's number and no sender. Only the owner changes the word, and only the owner touches the memory.
//! * *Under way:* the receiver is the owner, and the sender stands beside it. The sender wrote the word before its message
//!   went out. The receiver strikes the sender out when the message has arrived ([`Block::arrive`]). If the message cannot
//!   go out, the sender takes the block back ([`Block::take_back`]). Both swap the same word, so one of them gets it.
//! * *Kept:* the owner's number, with a mark in the sender's half. Nobody uses or reads the block, and its memory is there.
//!   The owner keeps it for its next loan ([`Block::reuse`]), unless another task claims it first.
//! * *Free:* nobody owns the block, and its memory may be missing.
//!
//! A block that is kept, or whose owner is gone, belongs to the task that claims it first ([`Block::claim`]). That is one swap from the word that
//! the claimer has read, and numbers of tasks are never used twice, so two claimers never both succeed. It is right at
//! whichever instruction the owner ended:
//!
//! * *The owner died while it gave the memory back to the system.* The word still names it, so the block is claimed, and
//!   the claimer asks for the memory anew.
//! * *The sender died between the word and the message.* The receiver finds the sender's name on the block when it
//!   has taken in all that the sender ever sent, and keeps the block.
//! * *The receiver died before it took the message.* The block has an owner that is gone.
//!
//! A task that leaves in good order lets go of its blocks before anybody can learn that it is gone. After that it must not
//! touch any.

use crate::list::Link;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Tasks that can read a block at a time, besides its owner.
#[cfg(not(loom))]
pub const READERS: usize = 9;
/// The model checker would go through each of them in every order.
#[cfg(loom)]
pub const READERS: usize = 1;

const FREE: u64 = u32::MAX as u64;
/// In the half of the sender: no task has this number.
const KEPT: u64 = FREE << 32;
const LENT: u32 = u32::from_le_bytes(*b"lent");
const HERE: u32 = u32::from_le_bytes(*b"here");

/// A claim that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The block's memory is there.
    Whole,
    /// Its memory may be missing: ask for it.
    Bare,
}

/// The tag in front of a block. Zeros are a valid start: nobody owns it.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Block {
    /// Bytes behind the tag.
    pub size: AtomicU64,
    /// The block that was made before this one.
    pub before: Link,
    /// The tag of one block, as the module describes.
    owner: AtomicU64,
    /// Is it in the hands of user code?
    state: AtomicU32,
    /// Numbers of tasks + 1, or 0.
    readers: [AtomicU32; READERS],
}

/// For the test that holds it to the version.
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
    /// Maker, before others know of the block.
    pub fn begin(&self, size: usize, me: u32) {
        self.size.store(size as u64, Ordering::Relaxed);
        self.owner.store(owned_by(me), Ordering::Relaxed);
    }

    /// Owner: user code has it from now on.
    pub fn lend(&self) {
        self.state.store(LENT, Ordering::Release);
    }

    /// User code gives it back. False: it did not have it.
    pub fn end_loan(&self) -> bool {
        let swapped = self
            .state
            .compare_exchange(LENT, HERE, Ordering::AcqRel, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Does user code of this task have it?
    pub fn is_lent_to(&self, me: u32) -> bool {
        self.is_owned_by(me) && self.state.load(Ordering::Relaxed) == LENT
    }

    /// Is it this task's own, and not under way?
    pub fn is_owned_by(&self, me: u32) -> bool {
        self.owner.load(Ordering::Relaxed) == owned_by(me)
    }

    /// Does nobody own it?
    pub fn is_free(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == FREE
    }

    /// Does it belong to a task that is gone?
    pub fn is_abandoned(&self, gone: impl Fn(u32) -> bool) -> bool {
        is_of_gone(self.owner.load(Ordering::Acquire), gone)
    }

    fn pass(&self, from: u64, to: u64) -> bool {
        let swapped = self
            .owner
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Owner, before the message goes out: it is under way to that task. False: it was not the owner.
    pub fn send(&self, me: u32, to: u32) -> bool {
        self.pass(owned_by(me), under_way(me, to))
    }

    /// Sender: the message did not go out. False: the receiver is gone, and the block is somebody else's.
    pub fn take_back(&self, me: u32, to: u32) -> bool {
        self.pass(under_way(me, to), owned_by(me))
    }

    /// Receiver: it has arrived from that task, or never will because the task is gone. False: it is not under way from there.
    pub fn arrive(&self, me: u32, from: u32) -> bool {
        self.pass(under_way(from, me), owned_by(me))
    }

    /// Owner, of a block that nobody reads: it keeps the block for its next loan, and until then others can have it.
    /// False: it was not the owner.
    pub fn keep(&self, me: u32) -> bool {
        self.pass(owned_by(me), kept_by(me))
    }

    /// The task that keeps the block uses it again. False: another one has claimed it.
    pub fn reuse(&self, me: u32) -> bool {
        self.pass(kept_by(me), owned_by(me))
    }

    /// Make the block this task's own if nobody owns it, or it is only kept, or its owner is gone; and nobody reads it.
    /// It succeeds for one task.
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

    /// Owner: anybody may have it. `release` gives the memory to the system before others can know.
    pub fn let_go(&self, me: u32, release: impl FnOnce()) {
        if self.is_owned_by(me) {
            release();
            // Partner: `claim`.
            self.pass(owned_by(me), FREE);
        }
    }

    /// The number of the task that reads it in this place, plus 1; 0: none. `None`: there is no such place.
    pub fn reader(&self, at: usize) -> Option<u32> {
        Some(self.readers.get(at)?.load(Ordering::Acquire))
    }

    /// Owner: that task may read it, in this place.
    pub fn admit(&self, at: usize, reader: u32) {
        if let Some(place) = self.readers.get(at) {
            place.store(reader + 1, Ordering::Release);
        }
    }

    /// The reader in this place is done; said by itself, or by the owner for it.
    pub fn dismiss(&self, at: usize) {
        if let Some(place) = self.readers.get(at) {
            place.store(0, Ordering::Release);
        }
    }
}

/// Does this word name an owner that is gone? Blocks that nobody owns are not such.
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
