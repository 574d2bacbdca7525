//! A request to be woken, by a task that waits for several others one after the other.
//!
//! The task looks at the others in turn and sleeps until the first one that it finds missing has published something. It
//! names that one in a word, and only the one named wakes it. If each of `n` tasks that arrive one by one woke all who sleep,
//! that would be `n` times `n` wakes.
//!
//! * *Sleeper:* it names a member, passes the barrier of [`Bell::sleep`](crate::bell::Bell::sleep), and looks. The look can
//!   find that the member named has published and that the next one has not. If the next one publishes at that moment it
//!   reads the old name, and wakes nobody. So after the look the sleeper names whom it waits for by then, and if that changes
//!   the word ([`WakeRequest::name`] says so) it passes the barrier and looks again before it sleeps.
//! * *Publisher:* it publishes, passes [`Fencing::before_look`](crate::bell::Fencing::before_look), and reads the word.

use crate::sync::{AtomicU32, Ordering};

/// The member that a sleeper has asked to wake it, in shared memory; zero names nobody.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct WakeRequest(AtomicU32);

/// For the test that holds it to the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("wake request", WakeRequest { 0 });

impl WakeRequest {
    /// Sleeper: this member, or nobody, is to wake it. False: the word named another one, so a look must come before the sleep.
    pub fn name(&self, member: Option<u32>) -> bool {
        let word = member.map_or(0, |member| member + 1);
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(word, Ordering::Relaxed);
        before == word
    }

    /// Publisher, after its barrier: is this member to wake the sleeper?
    #[inline(always)]
    pub fn names(&self, member: u32) -> bool {
        self.0.load(Ordering::Relaxed) == member + 1
    }
}
