//! The listener: the socket at which other tasks call this one, and the guests, which are callers that have not yet
//! proved who they are.
//!
//! The number of guests and their time are limited; when there are too many, the oldest is dropped. Guests whose
//! greeting was valid are counted separately, so strangers cannot drive out a task of the job.
//!
//! If there is no free descriptor, callers wait in the kernel's queue and are accepted once there is one. A listener
//! with a *reserve* keeps one descriptor free. After [`SHORTAGE_TIMEOUT`] it uses that to accept one caller, to learn
//! who calls and tell that caller about the shortage.

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

/// Tokens of guests are greater than this number.
pub const FIRST_GUEST_TOKEN: u64 = 1 << 32;
/// Maximum number of guests whose greeting was valid, and of all other guests.
const MAX_GUESTS: usize = 64;
/// Maximum number of connections accepted in one call.
const MAX_BATCH: usize = 16;
/// Pause before the next accept after there was no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long this process may be without a descriptor for connections before operations that need one fail.
pub const SHORTAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The listening socket, and the guests that have not proved anything yet.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Oldest guest first.
    guests: Vec<(u64, Handshake)>,
    next: u64,
    paused: Option<Instant>,
    /// The reserve descriptor, if one is kept and not in use.
    reserve: Option<OwnedFd>,
    keeps_reserve: bool,
    /// The guest that was accepted with the reserve.
    by_reserve: Option<u64>,
    /// Since when no caller could be accepted, and the reason.
    short: Option<(Instant, Errno)>,
}

impl Listener {
    /// Takes a socket that is already listening.
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

    /// Keeps a descriptor in reserve from now on.
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

    /// Must be called before a guest is admitted. Fails if the guest was accepted with the reserve and no other
    /// descriptor is free yet.
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

    /// Accepts the next connection. If there was no free descriptor for long, it uses the reserve; the `bool` says
    /// whether it did. Fails if there is no caller or none can be accepted; in the second case accepting is paused.
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
            // The guest that was accepted with the reserve has not been answered yet.
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

    /// Returns whether a caller waits to be accepted. Without a free descriptor, accept4 fails before the kernel looks
    /// for a caller.
    fn has_caller(&self) -> bool {
        let mut caller = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut caller, Some(&Timespec::default())) != Ok(0)
    }

    /// Pauses accepting for [`ACCEPT_PAUSE`].
    pub fn pause(&mut self) {
        self.paused = Some(Instant::now() + ACCEPT_PAUSE);
    }

    /// Ends the pause.
    pub fn resume(&mut self) {
        self.paused = None;
    }

    /// Returns whether a caller waits and this process has no descriptor for a further connection.
    pub fn is_short(&self) -> bool {
        self.is_paused() && self.short.is_some()
    }

    /// Returns whether accepting is paused.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the listening socket.
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

    /// Returns the number of guests whose greeting was valid and who only owe their proof.
    pub fn welcomed(&self) -> usize {
        let welcomed = self.guests.iter().filter(|(_, one)| one.has_sent_welcome());
        welcomed.count()
    }

    /// Drops the oldest guest among those that have, or have not, been welcomed.
    fn make_room(&mut self, welcomed: bool) {
        let mut guests = self.guests.iter();
        if let Some(at) = guests.position(|(_, one)| one.has_sent_welcome() == welcomed) {
            self.guests.remove(at);
        }
    }

    fn find(&self, token: u64) -> Option<usize> {
        self.guests.iter().position(|(number, _)| *number == token)
    }

    /// Returns the socket of a guest, or `None` if there is no such guest.
    pub fn guest(&self, token: u64) -> Option<BorrowedFd<'_>> {
        Some(self.guests[self.find(token)?].1.fd())
    }

    /// Registers a guest with `epoll` for reading, under its token. Returns `false` if there is no such guest or the
    /// kernel refuses.
    pub fn watch(&mut self, token: u64, epoll: &Arc<OwnedFd>) -> bool {
        let found = self.find(token);
        found.is_some_and(|at| {
            let shake = &mut self.guests[at].1;
            shake.watch(epoll, token, EventFlags::IN).is_ok()
        })
    }

    /// Continues the handshake of a guest. Returns its outcome, or `None` while it is not complete.
    pub fn advance(&mut self, token: u64, own: &Identity) -> Option<Outcome> {
        let at = self.find(token)?;
        let end = self.guests[at].1.advance(own);
        if self.welcomed() > MAX_GUESTS {
            self.make_room(true);
        }
        end
    }

    /// Removes an authenticated guest from the list, and returns its connection.
    pub fn admit(&mut self, token: u64) -> Option<Channel> {
        let at = self.find(token)?;
        Some(self.guests.remove(at).1.into_channel())
    }

    /// Drops a guest without an answer.
    pub fn dismiss(&mut self, token: u64) {
        self.guests.retain(|(number, _)| *number != token);
        if self.by_reserve == Some(token) {
            self.by_reserve = None;
            self.fill_reserve();
        }
    }

    /// Drops guests whose time is over, and ends a pause that is over. Returns whether guests are left or accepting is
    /// paused.
    pub fn tidy(&mut self, now: Instant) -> bool {
        self.guests.retain(|(_, shake)| now <= shake.until);
        self.paused = self.paused.filter(|until| now < *until);
        self.fill_reserve();
        !self.guests.is_empty() || self.paused.is_some()
    }
}
