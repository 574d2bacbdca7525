//! The listener: the socket at which others call this task, and the callers that have not yet proved who they are.
//!
//! There are only so many of them and only for so long; to make room the oldest goes. Callers whose greeting held are counted
//! apart, so strangers do not drive out a task of the job.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::net::{SocketFlags, accept_with};

use crate::channel::Channel;
use crate::dial::set_up;
use crate::handshake::{End, Own, Shake};

/// Tokens of guests come after this number.
pub const GUESTS: u64 = 1 << 32;
/// At a time, of those whose greeting held and of the others.
const MOST: usize = 64;
/// Looks at the listening socket at a time.
const TURN: usize = 16;
/// How long nobody is let in when no more sockets are to be had.
const PAUSE: Duration = Duration::from_millis(50);

/// The socket at which others call, and the callers that have proved nothing yet.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Oldest first.
    guests: Vec<(u64, Shake)>,
    next: u64,
    paused: Option<Instant>,
}

impl Listener {
    /// At a socket that listens.
    pub fn new(socket: OwnedFd) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener {
            socket,
            guests: Vec::new(),
            next: GUESTS,
            paused: None,
        })
    }

    /// Lets nobody in for a moment.
    pub fn pause(&mut self) {
        self.paused = Some(Instant::now() + PAUSE);
    }

    /// Nobody can be let in for a moment.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The listening socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Accepts the connections that wait, and returns their tokens.
    pub fn accept(&mut self) -> Vec<u64> {
        let mut tokens = vec![];
        if self.paused.is_some() {
            return tokens;
        }
        for _ in 0..TURN {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match accept_with(&self.socket, flags) {
                Ok(socket) => socket,
                Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                    self.pause();
                    break;
                }
                Err(_) => break,
            };
            if set_up(&socket).is_err() {
                continue;
            }
            if self.guests.len() - self.welcomed() == MOST {
                self.make_room(false);
            }
            self.next += 1;
            self.guests.push((self.next, Shake::listener(socket)));
            tokens.push(self.next);
        }
        tokens
    }

    /// How many guests owe their proof alone: their greetings held.
    pub fn welcomed(&self) -> usize {
        let welcomed = self.guests.iter().filter(|(_, one)| one.is_welcomed());
        welcomed.count()
    }

    /// The oldest guest goes of those that have, or have not, been welcomed.
    fn make_room(&mut self, welcomed: bool) {
        let mut guests = self.guests.iter();
        if let Some(at) = guests.position(|(_, one)| one.is_welcomed() == welcomed) {
            self.guests.remove(at);
        }
    }

    fn find(&self, token: u64) -> Option<usize> {
        self.guests.iter().position(|(number, _)| *number == token)
    }

    /// The socket of a guest that is there.
    pub fn guest(&self, token: u64) -> Option<BorrowedFd<'_>> {
        Some(self.guests[self.find(token)?].1.fd())
    }

    /// Let `epoll` report, under this token, when a guest says something. False: the guest has gone, or the kernel refuses.
    pub fn watch(&mut self, token: u64, epoll: &Arc<OwnedFd>) -> bool {
        let found = self.find(token);
        found.is_some_and(|at| {
            let shake = &mut self.guests[at].1;
            shake.watch(epoll, token, EventFlags::IN).is_ok()
        })
    }

    /// Hear what a guest has to say.
    pub fn advance(&mut self, token: u64, own: &Own) -> Option<End> {
        let at = self.find(token)?;
        let end = self.guests[at].1.advance(own);
        if self.welcomed() > MOST {
            self.make_room(true);
        }
        end
    }

    /// A guest is known now.
    pub fn admit(&mut self, token: u64) -> Option<Channel> {
        let at = self.find(token)?;
        Some(self.guests.remove(at).1.into_channel())
    }

    /// A guest goes, and is told nothing.
    pub fn dismiss(&mut self, token: u64) {
        self.guests.retain(|(number, _)| *number != token);
    }

    /// Drops the callers whose time is over. True: there are others.
    pub fn tidy(&mut self, now: Instant) -> bool {
        self.guests.retain(|(_, shake)| now <= shake.until);
        self.paused = self.paused.filter(|until| now < *until);
        !self.guests.is_empty() || self.paused.is_some()
    }
}
