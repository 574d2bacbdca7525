//! An agent whose launcher's host is lost. It reports that, hands its state over to the next launcher, or becomes the
//! launcher.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use regatta_job::credits::SendWindow;
use regatta_job::failover::{Follower, PIECE_BYTES};
use regatta_program::Refusal;

use super::Agent;
use crate::channel::Link;
use crate::channel::messages::{AgentState, Report};
use crate::channel::remote::BEAT_INTERVAL;
use crate::succession;
use crate::succession::following::{Following, Word};
use crate::succession::lead::AgentResources;
use crate::tasks::worker::Worker;

impl Agent {
    /// Checks whether the launcher's host is lost, and handles announcements of the next leader.
    pub(super) fn follow_news(&mut self) -> Result<(), Refusal> {
        let Some(following) = &mut self.following else {
            return Ok(());
        };
        following.look(self.heard.elapsed());
        if self.worker.begun && following.has_lost_owner() {
            // A launcher that had connected is gone as well, perhaps before it requested anything.
            self.called = false;
            self.link.forget();
            self.window.take();
        }
        while self.is_without_owner() && !self.called {
            let following = self.following.as_mut();
            match following.and_then(Following::await_leader) {
                Some(Word::Leads(run, way)) => self.be_called(&run, way)?,
                Some(Word::GivesUp(run)) => {
                    let following = self.following.iter_mut();
                    following.for_each(|following| following.pass_over(&run));
                }
                None => {
                    // Discard what the lost launcher sent.
                    self.link.forget();
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns whether this agent has started its job and has an owner.
    pub(super) fn has_begun_for_owner(&self) -> bool {
        self.worker.begun && !self.is_without_owner()
    }

    /// Returns the time until something is due even if nothing arrives. Only descriptors that are handled in this state
    /// count. Otherwise one that stays due would wake the agent forever.
    pub(super) fn until_turn(&self) -> Duration {
        let beat = BEAT_INTERVAL.saturating_sub(self.spoken.elapsed());
        let worker = Some(&self.worker).filter(|_| self.has_begun_for_owner());
        let due = worker.and_then(Worker::until_due);
        due.map_or(beat, |due| due.min(beat))
    }

    pub(super) fn is_without_owner(&self) -> bool {
        self.follower().is_some_and(Follower::is_without_owner)
    }

    pub(super) fn into_resources(mut self) -> Option<AgentResources> {
        Some(AgentResources {
            tasks: self.worker.tasks.take()?,
            worker: self.worker,
            link: self.link,
            signals: self.signals,
            owner: self.owner,
            template: self.template?,
            following: self.following?,
        })
    }

    /// Makes the other end of `way` the launcher. It is on a host of this run. Until it has requested the state,
    /// nothing else is reported.
    fn be_called(&mut self, run: &str, way: OwnedFd) -> Result<(), Refusal> {
        let failed = |error: std::io::Error| {
            Refusal::of_regatta(format!("the channel to the next launcher is lost: {error}"))
        };
        let input = way.try_clone().map_err(failed)?;
        self.link = Link::new(input, way).map_err(|errno| failed(errno.into()))?;
        self.called = true;
        if let Some(follower) = self.follower_mut() {
            follower.follow(run);
        }
        (self.heard, self.spoken) = (Instant::now(), Instant::now());
        // Task 0 gets no more input: the terminal was read on the lost host.
        self.feed.iter_mut().for_each(|feed| feed.push(&[]));
        self.settled = true;
        Ok(())
    }

    /// Sends the new launcher what it may not know. It knows of `known` tasks and `changes` changes of the registry.
    pub(super) fn report_state(&mut self, known: u32, changes: u64) {
        if let Some(follower) = self.follower_mut() {
            follower.adopt();
        }
        self.called = false;
        let (Some(tasks), Some(hello), Some(following)) =
            (&mut self.worker.tasks, &self.hello, &self.following)
        else {
            return;
        };
        if let Some(template) = &self.template {
            *self.window.borrow_mut() = SendWindow::open(template.window as usize);
        }
        let mut handover = succession::handover(tasks, &following.follower.local);
        handover.worlds.retain(|world| world.first >= known);
        let requests = std::mem::take(&mut handover.requests);
        let state = AgentState {
            hello: hello.clone(),
            starts: self.starts,
            handover,
        };
        let replica = &following.follower.replica;
        let later = replica.later_snapshot(changes).unwrap_or_default();
        for piece in later.chunks(PIECE_BYTES) {
            let bytes = piece.to_vec();
            self.send_report(&Report::Copy { bytes });
        }
        let asked = requests.len() as u32;
        self.send_report(&Report::State { state, asked });
        for (task, bytes) in requests {
            self.send_report(&Report::Asked { task, bytes });
        }
        self.worker.report_waiting();
        self.pass_on_reports();
        (self.settled, self.told_strays) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::resident::join_socket::JoinSocket;
    use crate::resident::place::MachinePlace;
    use crate::supervise::owner::Owner;
    use crate::system::signals::Signals;

    #[test]
    fn a_join_socket_that_is_due_to_open_and_not_looked_at_keeps_no_agent_awake() {
        let nothing = || File::open("/dev/null").expect("a file").into();
        let link = Link::new(nothing(), nothing()).expect("a link");
        let owner = Owner {
            leash: None,
            group: crate::sys::process_group(),
        };
        let signals = Signals::catch().expect("signals");
        let mut agent = Agent::new(link, signals, owner).expect("an agent");
        let claimed = MachinePlace::scratch("agent").claim().expect("a place");
        let mut join_socket = JoinSocket::new(claimed).expect("a join socket");
        join_socket.pause_for(Duration::ZERO);
        agent.worker.join_socket = Some(join_socket);
        agent.worker.begun = true;
        assert_eq!(agent.until_turn(), Duration::ZERO);
        agent.worker.begun = false;
        assert!(agent.until_turn() > Duration::ZERO);
    }
}
