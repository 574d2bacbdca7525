//! Freeing the links of peers that are gone.
//!
//! A link has buffers of more than a megabyte, and every poll for frames goes through all links. In a long job most
//! peers that a task has known may be gone. So a link is freed when the engine has handled the peer's end, all that
//! the peer sent has been taken, and its connection has ended. From then on only the peer's number is kept. If the
//! peer is reached again (its host had been cut off), the new link is that of a peer that is gone, and is freed in
//! the same way.
//!
//! A message that the peer had offered may then still wait for its receive, with a stream of which no byte has been
//! received. The new link does not know how many streams there were. So it accepts any stream number, and never
//! receives anything through such a stream.
//!
//! A link is kept if it holds knowledge of the peer that the table lacks: the peer broke the protocol, or considers
//! this task dead.

use regatta_engine::Peer;

use super::Tcp;
use super::link::Link;

impl Link {
    /// Returns whether nothing is left to take from the link or to report about it.
    fn is_spent(&mut self) -> bool {
        let ended = self.state.is_gone() && self.state.is_unconnected();
        // Nothing more is received through a stream that is not wanted.
        let streams = self.streams.are_wanted() || !self.streams.outs().is_empty();
        ended && !streams && self.inbox.front().is_none()
    }

    fn must_stay(&self) -> bool {
        self.state.fault().is_some() || self.state.is_disowned()
    }
}

impl Tcp {
    /// Frees the links of peers that are gone for the engine, if nothing is left to take from them. Must not be
    /// called during a walk over the links.
    #[inline]
    pub(crate) fn free_parted(&mut self) {
        if !self.parted.is_empty() {
            self.free_spent();
        }
    }

    #[cold]
    fn free_spent(&mut self) {
        for at in (0..self.parted.len()).rev() {
            let peer = self.parted[at];
            let Some(link) = self.link(peer) else {
                self.parted.swap_remove(at);
                continue;
            };
            if link.must_stay() {
                self.parted.swap_remove(at);
            } else if link.is_spent() {
                self.parted.swap_remove(at);
                self.links[peer as usize] = None;
                self.known.retain(|&one| one != peer);
                self.freed.insert(peer);
            }
        }
    }

    /// Returns an initial link. For a peer whose link has been freed, it is the link of a peer that is gone.
    pub(super) fn new_link(&mut self, peer: Peer) -> Box<Link> {
        if self.freed.contains(&peer) {
            self.parted.push(peer);
            return Box::new(Link::forgotten());
        }
        Box::new(Link::new())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, TcpListener};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use regatta_engine::{Flow, Frames, Presence, Streams, Upkeep};
    use regatta_memory::views::Views;
    use regatta_wire::{Frame, Kind};

    use super::*;
    use crate::paths::Far;
    use crate::tcp::engine_streams::route;
    use regatta_segment::job::{Cause, Job, MAX_TASKS};
    use regatta_segment::place::{Key, Places};

    const AWAIT_TIMEOUT: Duration = Duration::from_secs(20);
    const PEERS: u32 = 20;
    const WORD: Frame = Frame {
        kind: Kind::Eager,
        context: 0,
        tag: 0,
    };

    /// Returns a task. Task 0 is alone on its host, all others are on another host.
    fn task(me: u32, listener: &TcpListener) -> Tcp {
        let mut host_of = vec![1; 1 + PEERS as usize];
        host_of[0] = 0;
        let places = Places {
            here: u32::from(me != 0),
            host_of,
            key: Key::taken(&mut [3; 32]),
            trusted: true,
            most: MAX_TASKS,
        };
        let job = Job::create_across(&places).unwrap();
        job.set_address(0, listener.local_addr().unwrap());
        let own = match me {
            0 => listener.try_clone().unwrap(),
            _ => TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap(),
        };
        Tcp::new(Arc::new(job), me, OwnedFd::from(own)).unwrap()
    }

    fn until(task: &mut Tcp, what: &str, mut is_so: impl FnMut(&mut Tcp) -> bool) {
        let start = Instant::now();
        while !is_so(task) {
            assert!(start.elapsed() < AWAIT_TIMEOUT, "not in time: {what}");
            task.poll();
        }
    }

    /// Lets a peer send two frames and end.
    fn comes_and_goes(task: &mut Tcp, peer: Peer, listener: &TcpListener) {
        let mut other = self::task(peer, listener);
        for _ in 0..2 {
            assert!(other.send(0, WORD, &Views::none()).unwrap());
        }
        until(task, "its words come", |task| {
            other.poll();
            task.front(peer).unwrap().is_some() && other.deliver(true)
        });
        drop(other);
        match peer % 2 {
            0 => task.job.mark_dead(peer, Cause::Exited(1)),
            _ => task.job.leave(peer),
        };
        until(task, "it is gone", |task| {
            task.link(peer).unwrap().state.is_gone()
        });
    }

    #[test]
    fn links_of_peers_that_are_gone_are_freed_when_all_that_they_sent_has_been_taken() {
        let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
        let mut task = task(0, &listener);
        for peer in 1..=PEERS {
            comes_and_goes(&mut task, peer, &listener);
            task.part(peer);
            for _ in 0..2 {
                task.free_parted();
                assert!(task.front(peer).unwrap().is_some(), "it may still be taken");
                task.accept_bytes(peer);
            }
            until(&mut task, "its link is freed", |task| {
                task.free_parted();
                task.link(peer).is_none()
            });
            assert!(task.known.is_empty() && task.parted.is_empty());
            assert_eq!(task.presence(peer, Presence::Left), Presence::Left);
        }
        // A peer that is reached again is still gone, and its link is freed again.
        task.link_to(1).unwrap();
        assert_eq!(task.presence(1, Presence::Left), Presence::Left);
        task.free_parted();
        assert!(task.link(1).is_none() && task.known.is_empty());
    }

    #[test]
    fn the_stream_of_a_message_that_was_offered_before_the_link_was_freed_gives_nothing_and_is_no_fault()
     {
        let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
        let mut task = task(0, &listener);
        comes_and_goes(&mut task, 1, &listener);
        task.part(1);
        (0..2).for_each(|_| _ = task.accept_bytes(1));
        until(&mut task, "its link is freed", |task| {
            task.free_parted();
            task.link(1).is_none()
        });
        // The stream is the peer's thousandth, as its offer says.
        let message = Views::none();
        let id = 2000;
        let mut stream = task.attach(1, &route(id)).unwrap();
        assert_eq!(task.drain(1, &mut stream, &message, 1), Ok(Flow::Still));
        task.abandon(stream);
        task.decline(1, &route(id + 2)).unwrap();
        task.free_parted();
        assert!(task.link(1).is_none() && task.known.is_empty());
    }
}
