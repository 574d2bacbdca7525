//! A request to be woken, by a task that waits for several others one after the other.
//!
//! The task checks the others in turn and sleeps until the first one that it finds missing has published something. It
//! writes that one's number into a word, and only that member wakes it. If each of `n` tasks that arrive one by one
//! woke all sleepers, that would be `n` times `n` wakes.
//!
//! * *Sleeper:* it names a member, passes the barrier of [`Bell::sleep`](crate::bell::Bell::sleep), and checks. The
//!   check can find that the named member has published and that the next one has not. If the next one publishes at that
//!   moment, it reads the old name and wakes no task. So after the check the sleeper names the member for which it waits
//!   by then, and if that changes the word ([`WakeRequest::name`] returns that) it passes the barrier and checks again
//!   before it sleeps.
//! * *Publisher:* it publishes, passes [`Fencing::before_look`](crate::bell::Fencing::before_look), and reads the word.

use crate::sync::{AtomicU32, Ordering};

/// The member that a sleeper has asked to wake it, in shared memory; zero means none.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct WakeRequest(AtomicU32);

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("wake request", WakeRequest { 0 });

impl WakeRequest {
    /// Sleeper: asks this member, or none, to wake it. Returns `false` if the word has changed, so that the sleeper
    /// must check again before it sleeps.
    pub fn name(&self, member: Option<u32>) -> bool {
        let word = member.map_or(0, |member| member + 1);
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(word, Ordering::Relaxed);
        before == word
    }

    /// Publisher, after its barrier: returns whether this member has to wake the sleeper.
    #[inline(always)]
    pub fn names(&self, member: u32) -> bool {
        self.0.load(Ordering::Relaxed) == member + 1
    }
}
