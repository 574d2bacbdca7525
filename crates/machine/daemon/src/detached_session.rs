//! A session whose launcher's host is lost: its shell goes on, until another launcher takes it over.
//!
//! A launcher that ends says so, or the daemon of its host does: then the shell's input ends, and all that runs in it. A
//! host that is lost says nothing. Its shells on other hosts, if they were asked for as [`Tenure::Lasting`], keep their
//! input; the agent in one hears of the loss as everybody does, says so, and looks for the word of the
//! next launcher among whatever else comes. That one asks for the shell ([`Tenure::Inherited`]), and gets its two ends.
//!
//! [`Tenure::Lasting`]: crate::ask::Tenure::Lasting
//! [`Tenure::Inherited`]: crate::ask::Tenure::Inherited

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::EventfdFlags;

use crate::talk::Wire;

/// The way to a launcher, and what has come over it.
pub(crate) type Way = (Wire, Vec<u8>);

#[derive(Debug, Default)]
struct State {
    /// The host of the launcher is lost.
    owner_lost: bool,
    /// Another launcher has claimed the session, and its host has been lost since.
    next_lost: bool,
    /// Another launcher has claimed the session.
    claimed: bool,
    /// The agent knows it, and looks for another launcher.
    agent_knows: bool,
    next: Option<Way>,
}

/// The state that the channel's thread and the rest of the daemon share.
#[derive(Debug)]
pub(crate) struct DetachedSession {
    state: Mutex<State>,
    bell: OwnedFd,
    /// How long a shell whose channel has broken waits for word of its launcher's host.
    pub patience: Duration,
}

impl DetachedSession {
    pub(crate) fn new(patience: Duration) -> std::io::Result<Arc<DetachedSession>> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Arc::new(DetachedSession {
            state: Mutex::default(),
            bell: rustix::event::eventfd(0, flags)?,
            patience,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// The bell has been heard.
    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// The host of the launcher is lost.
    pub(crate) fn owner_is_lost(&self) {
        let mut state = self.lock();
        state.owner_lost = true;
        state.next_lost = state.claimed;
        drop(state);
        self.ring();
    }

    pub(crate) fn has_lost_owner(&self) -> bool {
        self.lock().owner_lost
    }

    /// The agent has said that it knows of the loss.
    pub(crate) fn agent_knows(&self) {
        self.lock().agent_knows = true;
    }

    /// Whether the shell waits for another launcher; said to one only.
    pub(crate) fn claim(&self) -> bool {
        let mut state = self.lock();
        let free = state.owner_lost && state.agent_knows;
        if free {
            (state.agent_knows, state.claimed, state.next_lost) = (false, true, false);
        }
        free
    }

    /// Gives it another launcher, which has claimed it.
    pub(crate) fn give(&self, way: Way) {
        self.lock().next = Some(way);
        self.ring();
    }

    /// The other launcher, if there is one; from then on all is as before the loss, unless that one's host is lost by now.
    pub(crate) fn next(&self) -> Option<Way> {
        let mut state = self.lock();
        let next = state.next.take()?;
        *state = State {
            owner_lost: state.next_lost,
            ..State::default()
        };
        Some(next)
    }
}

/// Can be read from when something has happened.
impl AsFd for DetachedSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn way() -> Way {
        let (ours, _) = UnixStream::pair().expect("sockets");
        (Wire::local(ours).expect("a wire"), Vec::new())
    }

    #[test]
    fn the_loss_of_the_next_launcher_before_it_is_served_is_not_forgotten() {
        let session = DetachedSession::new(Duration::ZERO).expect("a detached session");
        session.owner_is_lost();
        session.agent_knows();
        assert!(session.claim());
        session.give(way());
        session.owner_is_lost();
        assert!(session.next().is_some());
        assert!(session.has_lost_owner());
        session.agent_knows();
        assert!(session.claim());
    }

    #[test]
    fn only_an_agent_whose_owner_is_lost_is_taken_over_and_by_one_only() {
        let session = DetachedSession::new(Duration::ZERO).expect("a detached session");
        session.agent_knows();
        assert!(!session.claim(), "its launcher's host lives");
        session.owner_is_lost();
        assert!(session.claim());
        assert!(!session.claim(), "it was promised to another");
        assert!(session.next().is_none());
        session.give(way());
        assert!(session.next().is_some());
        // And once more, when the next one is lost.
        assert!(!session.has_lost_owner() && !session.claim());
        session.owner_is_lost();
        assert!(!session.claim(), "the agent does not know yet");
        session.agent_knows();
        assert!(session.claim());
    }
}
