//! An agent whose launcher's host is lost: it says so, and tells the next launcher what that may not know, or becomes it.

use std::time::{Duration, Instant};

use regatta_job::failover::{Follower, PIECE};
use regatta_wire::Malformed;

use super::Agent;
use crate::agent_join_socket::AgentJoinSocket;
use crate::channel::messages::{Report, State};
use crate::remote::BEAT;
use crate::rsh;
use crate::succession;
use crate::succession::lead::AgentResources;

impl Agent {
    /// Looks into what becomes of the launcher's host.
    pub(super) fn follow_news(&mut self) {
        let Some(following) = &mut self.following else {
            return;
        };
        following.look(self.heard.elapsed(), &self.signals);
        if self.begun && following.has_lost_owner() {
            // The caller is gone as well, perhaps before it could ask for anything.
            self.called = false;
            self.link.forget();
            self.report_owner_lost();
            self.room.set(0);
        }
    }

    fn report_owner_lost(&mut self) {
        let successors = self.follower().into_iter().flat_map(Follower::successors);
        let line = succession::owner_lost(successors);
        self.link.send_raw(line.as_bytes());
    }

    /// Says that this agent is there; one whose owner is lost says that, for the daemon that holds the other end: a launcher
    /// that was given the channel may have lost it before a word has come here.
    pub(super) fn beat(&mut self) {
        match self.is_without_owner() && !self.called {
            true => {
                self.spoken = Instant::now();
                self.report_owner_lost();
            }
            false => self.send_report(&Report::Beat {}),
        }
    }

    /// Whether requests to join are taken now: a launcher is there for whom this agent has begun.
    pub(super) fn handles_join_socket(&self) -> bool {
        self.begun && !self.is_without_owner()
    }

    /// Until something is due although nothing arrives. A join socket that is not handled makes nothing due: it would stay so.
    pub(super) fn until_turn(&self) -> Duration {
        let join_socket = self
            .join_socket
            .as_ref()
            .filter(|_| self.handles_join_socket());
        let beat = BEAT.saturating_sub(self.spoken.elapsed());
        let open = join_socket.and_then(AgentJoinSocket::until_open);
        open.map_or(beat, |open| open.min(beat))
    }

    pub(super) fn is_without_owner(&self) -> bool {
        self.follower().is_some_and(Follower::is_without_owner)
    }

    pub(super) fn into_resources(self) -> Option<AgentResources> {
        Some(AgentResources {
            link: self.link,
            signals: self.signals,
            owner: self.owner,
            tasks: self.tasks?,
            join_socket: self.join_socket,
            streams: self.streams,
            template: self.template?,
            following: self.following?,
        })
    }

    /// Reads the words of hosts that would lead, until one does.
    pub(super) fn handle_words(&mut self) -> Result<(), Malformed> {
        let leads = format!("{} {}", succession::LEAD, rsh::identity());
        while !self.called {
            let Some(line) = self.link.line("regatta-")? else {
                break;
            };
            if let Some(run) = line.strip_prefix(&leads) {
                self.be_called(run.trim());
            } else if let Some(run) = line.strip_prefix(succession::GAVE_UP) {
                let following = self.following.iter_mut();
                following.for_each(|following| following.pass_over(run.trim()));
            }
        }
        Ok(())
    }

    /// Another launcher, on a host of this run, is at the other end of the channel. Until it has asked for the state, nothing
    /// else is reported.
    pub(super) fn be_called(&mut self, run: &str) {
        self.called = true;
        if let Some(follower) = self.follower_mut() {
            follower.follow(run);
        }
        self.link
            .send_raw(format!("\n{} {}\n", rsh::READY, rsh::identity()).as_bytes());
        (self.heard, self.spoken) = (Instant::now(), Instant::now());
        // Nobody reads the terminal for task 0 any more.
        self.feed.iter_mut().for_each(|feed| feed.push(&[]));
        self.settled = true;
    }

    /// Says what the new launcher may not know; it knows of so many tasks, and of so many changes of the registry.
    pub(super) fn report_state(&mut self, known: u32, changes: u64) {
        if let Some(follower) = self.follower_mut() {
            follower.adopt();
        }
        self.called = false;
        let (Some(tasks), Some(hello), Some(following)) =
            (&mut self.tasks, &self.hello, &self.following)
        else {
            return;
        };
        if let Some(template) = &self.template {
            self.room.set(template.window as usize);
        }
        let mut handover = succession::handover(tasks, &following.follower.local);
        handover.worlds.retain(|world| world.first >= known);
        let requests = std::mem::take(&mut handover.requests);
        let state = State {
            hello: hello.clone(),
            starts: self.starts,
            handover,
        };
        let replica = &following.follower.replica;
        let later = replica.later_snapshot(changes).unwrap_or_default();
        for piece in later.chunks(PIECE) {
            let bytes = piece.to_vec();
            self.send_report(&Report::Copy { bytes });
        }
        let asked = requests.len() as u32;
        self.send_report(&Report::State { state, asked });
        for (task, bytes) in requests {
            self.send_report(&Report::Asked { task, bytes });
        }
        let waiting = self.join_socket.as_ref().map(AgentJoinSocket::waiting);
        let waiting = waiting.unwrap_or_default();
        waiting.iter().for_each(|report| self.send_report(report));
        (self.settled, self.told_strays) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::channel::Link;
    use crate::owner::Owner;
    use crate::signals::Signals;

    #[test]
    fn a_join_socket_that_is_due_to_open_and_not_heeded_keeps_no_agent_awake() {
        let nothing = || File::open("/dev/null").expect("a file").into();
        let link = Link::new(nothing(), nothing()).expect("a link");
        let owner = Owner {
            leash: None,
            group: crate::sys::process_group(),
        };
        let signals = Signals::catch().expect("signals");
        let mut agent = Agent::new(link, signals, owner).expect("an agent");
        agent.join_socket = Some(AgentJoinSocket::about_to_open("agent"));
        agent.begun = true;
        assert_eq!(agent.until_turn(), Duration::ZERO);
        agent.begun = false;
        assert!(agent.until_turn() > Duration::ZERO);
    }
}
