//! The listener: the socket at which others call this task, and the callers that have not yet proved who they are.
//!
//! There are only so many of them and only for so long; to make room the oldest goes. Callers whose greeting held are counted
//! apart, so strangers do not drive out a task of the job.
//!
//! Where no descriptor is to be had, callers wait in the kernel's queue, and are let in once there is one. A listener with a
//! *reserve* holds one descriptor back. After [`SHORTAGE_TIMEOUT`] it lets one caller in by that, to learn who calls:
//! somebody has to be told.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{SocketFlags, accept_with};

use crate::channel::Channel;
use crate::dial::set_up;
use crate::handshake::{Handshake, Identity, Outcome};
use crate::ready::poll;

/// Tokens of guests are above this number.
pub const FIRST_GUEST_TOKEN: u64 = 1 << 32;
/// Maximum number of guests whose greeting held, and of the others.
const MAX_GUESTS: usize = 64;
/// Number of connections accepted at a time.
const MAX_BATCH: usize = 16;
/// Pause before the next accept after no descriptor was to be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long this process may have no descriptor for connections before those that need one are told, and have an error.
pub const SHORTAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The socket at which others call, and the callers that have proved nothing yet.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Oldest first.
    guests: Vec<(u64, Handshake)>,
    next: u64,
    paused: Option<Instant>,
    /// A descriptor for hard times, where one is kept.
    reserve: Option<OwnedFd>,
    keeps_reserve: bool,
    /// The guest that was let in by it.
    by_reserve: Option<u64>,
    /// Since when nobody could be let in, and why.
    short: Option<(Instant, Errno)>,
}

impl Listener {
    /// At a socket that listens.
    pub fn new(socket: OwnedFd) -> io::Result<Listener> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener {
            socket,
            guests: Vec::new(),
            next: FIRST_GUEST_TOKEN,
            paused: None,
            reserve: None,
            keeps_reserve: false,
            by_reserve: None,
            short: None,
        })
    }

    /// From now on holds a descriptor back.
    pub fn keep_reserve(&mut self) {
        self.keeps_reserve = true;
        self.fill_reserve();
    }

    fn fill_reserve(&mut self) -> bool {
        if self.keeps_reserve && self.reserve.is_none() && self.by_reserve.is_none() {
            self.reserve = fcntl_dupfd_cloexec(&self.socket, 3).ok();
            if self.reserve.is_some() {
                self.short = None;
            }
        }
        self.reserve.is_some()
    }

    /// Takes note that a guest is to be admitted. An error: it was let in by the reserve, and there is still no other descriptor.
    pub fn return_reserve(&mut self, token: u64) -> Result<(), Errno> {
        if self.by_reserve != Some(token) {
            return Ok(());
        }
        self.by_reserve = None;
        let short = self.short;
        match (self.fill_reserve(), short) {
            (false, Some((_, errno))) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Accepts the next connection, by the reserve if nothing else is to be had for long. An error: nobody calls, or nobody can be
    /// let in; the second pauses.
    fn accept_next(&mut self) -> Result<(OwnedFd, bool), ()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accept = |socket: &OwnedFd| accept_with(socket, flags);
        let errno = match accept(&self.socket) {
            Ok(socket) => {
                self.short = None;
                self.fill_reserve();
                return Ok((socket, false));
            }
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => errno,
            Err(Errno::AGAIN) => {
                self.short = None;
                return Err(());
            }
            Err(_) => return Err(()),
        };
        let guest = self.by_reserve;
        if guest.is_some_and(|guest| self.find(guest).is_none()) {
            self.by_reserve = None;
        }
        if !self.has_caller() {
            // The guest that was let in by the reserve is still to be told.
            if self.by_reserve.is_none() {
                self.short = None;
            }
            return Err(());
        }
        let (since, _) = *self.short.get_or_insert((Instant::now(), errno));
        self.fill_reserve();
        if since.elapsed() >= SHORTAGE_TIMEOUT && self.reserve.take().is_some() {
            if let Ok(socket) = accept(&self.socket) {
                return Ok((socket, true));
            }
            self.fill_reserve();
        }
        self.pause();
        Err(())
    }

    /// Returns whether a caller waits to be accepted. Without a free descriptor, accept4 fails before the kernel looks for a caller.
    fn has_caller(&self) -> bool {
        let mut caller = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut caller, Some(&Timespec::default())) != Ok(0)
    }

    /// Lets nobody in for a moment.
    pub fn pause(&mut self) {
        self.paused = Some(Instant::now() + ACCEPT_PAUSE);
    }

    /// Lets callers in again.
    pub fn resume(&mut self) {
        self.paused = None;
    }

    /// Somebody calls, and this process has no descriptor for a further connection.
    pub fn is_short(&self) -> bool {
        self.is_paused() && self.short.is_some()
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
        for _ in 0..MAX_BATCH {
            let Ok((socket, by_reserve)) = self.accept_next() else {
                break;
            };
            if set_up(&socket).is_err() {
                continue;
            }
            if self.guests.len() - self.welcomed() == MAX_GUESTS {
                self.make_room(false);
            }
            self.next += 1;
            self.guests.push((self.next, Handshake::listener(socket)));
            tokens.push(self.next);
            if by_reserve {
                self.by_reserve = Some(self.next);
            }
        }
        tokens
    }

    /// How many guests owe their proof alone: their greetings held.
    pub fn welcomed(&self) -> usize {
        let welcomed = self.guests.iter().filter(|(_, one)| one.has_sent_welcome());
        welcomed.count()
    }

    /// The oldest guest goes of those that have, or have not, been welcomed.
    fn make_room(&mut self, welcomed: bool) {
        let mut guests = self.guests.iter();
        if let Some(at) = guests.position(|(_, one)| one.has_sent_welcome() == welcomed) {
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
    pub fn advance(&mut self, token: u64, own: &Identity) -> Option<Outcome> {
        let at = self.find(token)?;
        let end = self.guests[at].1.advance(own);
        if self.welcomed() > MAX_GUESTS {
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
        if self.by_reserve == Some(token) {
            self.by_reserve = None;
            self.fill_reserve();
        }
    }

    /// Drops the callers whose time is over. True: there are others.
    pub fn tidy(&mut self, now: Instant) -> bool {
        self.guests.retain(|(_, shake)| now <= shake.until);
        self.paused = self.paused.filter(|until| now < *until);
        self.fill_reserve();
        !self.guests.is_empty() || self.paused.is_some()
    }
}
