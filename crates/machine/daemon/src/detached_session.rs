//! A session whose launcher's host is lost: its shell is kept, until another launcher takes it over.
//!
//! A launcher that ends says so, or the daemon of its host does: then the shell's input ends, and everything that runs
//! in it. A host that is lost sends nothing. Its shells on other hosts keep their input if they were requested as
//! detachable. The agent in such a shell is notified of the loss through the membership, and reports it to this daemon
//! on a separate connection, with the hosts that may take it over. A launcher claims the shell and gets this list. If
//! it leads, the agent gets a socket that leads to it, and what the old launcher had sent is discarded.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use regatta_launch::hand;
use regatta_wire::framing;
use regatta_wire::session::FromDaemon;
use rustix::event::EventfdFlags;

use crate::talk::Wire;

/// A connection to a launcher, and the bytes that were received on it.
pub(crate) type LauncherLink = (Wire, Vec<u8>);

/// An agent that has reported that its owner is lost.
#[derive(Debug)]
struct Agent {
    successors: Vec<String>,
    /// The connection on which it is told who leads, while it listens.
    listens: Option<UnixStream>,
    /// The number of the agent's connection.
    number: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the launcher's host is lost.
    owner_lost: bool,
    /// Whether another launcher has claimed the session.
    claimed: bool,
    /// Whether the host of that launcher is lost.
    claimer_lost: bool,
    /// The agent, once it has reported the loss.
    agent: Option<Agent>,
    next: Option<LauncherLink>,
    connections: u64,
}

/// The state that the channel's thread shares with the rest of the daemon.
#[derive(Debug)]
pub(crate) struct DetachedSession {
    state: Mutex<State>,
    bell: OwnedFd,
    /// How long a shell whose channel has broken waits for a verdict about its launcher's host.
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

    /// Resets the bell.
    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// Records that the host of the launcher that has the session, or has claimed it, is lost.
    pub(crate) fn owner_is_lost(&self) {
        let mut state = self.lock();
        state.claimer_lost = state.claimed;
        state.owner_lost = true;
        drop(state);
        self.ring();
    }

    pub(crate) fn has_lost_owner(&self) -> bool {
        self.lock().owner_lost
    }

    pub(crate) fn is_claimer_lost(&self) -> bool {
        self.lock().claimer_lost
    }

    /// Records that the agent knows of the loss, which hosts may take it over, and where it listens. Returns the number
    /// of this connection.
    pub(crate) fn agent_knows(&self, successors: Vec<String>, listens: UnixStream) -> u64 {
        let mut state = self.lock();
        state.connections += 1;
        let number = state.connections;
        state.agent = Some(Agent {
            successors,
            listens: Some(listens),
            number,
        });
        number
    }

    /// Records a new list of hosts that may take the agent over.
    pub(crate) fn successors_are(&self, number: u64, successors: Vec<String>) {
        let mut state = self.lock();
        if let Some(agent) = state.agent.as_mut().filter(|agent| agent.number == number) {
            agent.successors = successors;
        }
    }

    /// Records that the agent listens no more. Its last list of successors remains valid: an agent that leads names
    /// those that may lead after it.
    pub(crate) fn agent_is_gone(&self, number: u64) {
        let mut state = self.lock();
        if let Some(agent) = state.agent.as_mut().filter(|agent| agent.number == number) {
            agent.listens = None;
        }
    }

    /// Claims the session if its shell waits for another launcher. Returns the hosts that its agent names. Only one
    /// launcher can claim it, until it withdraws.
    pub(crate) fn claim(&self) -> Option<Vec<String>> {
        let mut state = self.lock();
        if !state.owner_lost || state.claimed {
            return None;
        }
        let successors = state.agent.as_ref()?.successors.clone();
        (state.claimed, state.claimer_lost) = (true, false);
        Some(successors)
    }

    /// Gives the session the connection to the launcher that has claimed it.
    pub(crate) fn give(&self, link: LauncherLink) {
        self.lock().next = Some(link);
        self.ring();
    }

    /// Returns the connection to the launcher that has claimed the session, if there is a new one.
    pub(crate) fn next(&self) -> Option<LauncherLink> {
        self.lock().next.take()
    }

    /// Ends the claim.
    pub(crate) fn withdraw(&self) {
        let mut state = self.lock();
        (state.claimed, state.claimer_lost) = (false, false);
    }

    /// Ends the claim of a launcher that will not lead, and tells the agent.
    pub(crate) fn give_up(&self, run: &str) {
        let run = run.to_owned();
        let mut bytes = Vec::new();
        if framing::put(&FromDaemon::GivenUp { run }, &mut bytes).is_ok()
            && let Some(agent) = &self.lock().agent
            && let Some(mut listens) = agent.listens.as_ref()
        {
            // An agent that does not listen finds out by itself.
            let _ = std::io::Write::write(&mut listens, &bytes);
        }
        self.withdraw();
    }

    /// Lets the launcher that has claimed the session lead. Returns the daemon's end of a new socket to the agent, if
    /// the agent could be told. Then the session is as before the loss.
    pub(crate) fn lead(&self, run: &str) -> Option<OwnedFd> {
        let mut state = self.lock();
        let led = FromDaemon::Led {
            run: run.to_owned(),
        };
        let heard = || {
            let (ours, theirs) = UnixStream::pair().ok()?;
            let listens = state.agent.as_ref()?.listens.as_ref()?;
            (!state.claimer_lost && hand(listens, &led, theirs.as_fd())).then_some(ours)
        };
        let ours = heard();
        match &ours {
            Some(_) => {
                let connections = state.connections;
                *state = State {
                    connections,
                    ..State::default()
                };
            }
            None => (state.claimed, state.claimer_lost) = (false, false),
        }
        ours.map(OwnedFd::from)
    }
}

/// A descriptor that is readable when something has happened.
impl AsFd for DetachedSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> DetachedSession {
        let session = DetachedSession::new(Duration::ZERO).expect("a detached session");
        Arc::into_inner(session).expect("ours alone")
    }

    fn way() -> LauncherLink {
        let (ours, _) = UnixStream::pair().expect("sockets");
        (Wire::local(ours).expect("a wire"), Vec::new())
    }

    /// Lets the agent of a session report that it is lost to r1. Returns its end of the connection.
    fn know(session: &DetachedSession) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        session.agent_knows(vec!["r1".to_owned()], ours);
        theirs
    }

    #[test]
    fn the_loss_of_the_next_launcher_before_it_leads_is_not_forgotten() {
        let session = session();
        session.owner_is_lost();
        let _agent = know(&session);
        assert!(session.claim().is_some());
        session.give(way());
        session.owner_is_lost();
        assert!(session.next().is_some() && session.is_claimer_lost());
        assert!(session.lead("r1").is_none());
        assert!(session.has_lost_owner() && session.claim().is_some());
    }

    #[test]
    fn only_an_agent_whose_owner_is_lost_is_taken_over_and_by_one_only() {
        let session = session();
        let agent = know(&session);
        assert_eq!(session.claim(), None, "its launcher's host lives");
        session.owner_is_lost();
        assert_eq!(session.claim(), Some(vec!["r1".to_owned()]));
        assert_eq!(session.claim(), None, "it was promised to another");
        assert!(session.next().is_none());
        session.give(way());
        assert!(session.next().is_some());
        assert!(session.lead("r1").is_some());
        // The same again, when the next owner is lost.
        assert!(!session.has_lost_owner() && session.claim().is_none());
        session.owner_is_lost();
        assert_eq!(session.claim(), None, "the agent does not know yet");
        drop(agent);
        let _agent = know(&session);
        assert!(session.claim().is_some());
    }

    #[test]
    fn a_claim_that_is_given_back_is_for_another_launcher_and_the_agent_hears_who_will_not_lead() {
        let session = session();
        session.owner_is_lost();
        let mut agent = know(&session);
        assert!(session.claim().is_some());
        session.give_up("r1");
        let mut frames = framing::FrameReader::default();
        let mut piece = [0; 64];
        let count = std::io::Read::read(&mut agent, &mut piece).expect("a word");
        frames.push(&piece[..count]);
        let run = "r1".to_owned();
        assert_eq!(frames.next_message(), Ok(Some(FromDaemon::GivenUp { run })));
        assert!(session.claim().is_some());
        session.withdraw();
        assert!(session.claim().is_some());
    }

    #[test]
    fn an_agent_that_listens_no_more_is_known_by_its_last_word_and_follows_nobody() {
        let session = session();
        session.owner_is_lost();
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let number = session.agent_knows(vec!["r1".to_owned()], ours);
        session.successors_are(number, vec!["r2".to_owned()]);
        session.agent_is_gone(number);
        assert_eq!(session.claim(), Some(vec!["r2".to_owned()]));
        assert!(session.lead("r2").is_none());
        assert!(session.has_lost_owner() && session.claim().is_some());
    }
}
