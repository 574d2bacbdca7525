//! The channels of jobs through this daemon: those of launchers on this host, and those to agents on this host.
//!
//! Each channel is served by a thread. This module has what other threads need: the owner of a channel, and a way to
//! cut it with a reason.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use regatta_membership::HostId;
use regatta_wire::session::ChannelEnd;
use rustix::event::EventfdFlags;
use rustix::process::Pid;

use crate::detached_session::DetachedSession;

/// The end of a channel that is on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The process that asked for a shell on another host.
    Launcher(Pid),
    /// A shell, in which an agent runs.
    Agent(Pid),
}

/// A channel, as other threads see it.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    /// The name of the job.
    pub job: String,
    pub end: End,
    /// The process of this host that has asked for it; `None` if the launcher is on another host.
    pub caller: Option<Pid>,
    /// The host at its other end.
    pub peer: HostId,
    pub cut: Arc<Cut>,
    /// The session of an agent whose shell outlives its launcher's host.
    pub session: Option<Arc<DetachedSession>>,
}

/// Ends a channel from another thread.
#[derive(Debug)]
pub(crate) struct Cut {
    why: Mutex<Option<ChannelEnd>>,
    bell: OwnedFd,
}

impl Cut {
    pub(crate) fn new() -> std::io::Result<Arc<Cut>> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Arc::new(Cut {
            why: Mutex::default(),
            bell: rustix::event::eventfd(0, flags)?,
        }))
    }

    /// Ends the channel. The first reason counts.
    pub(crate) fn cut(&self, why: &ChannelEnd) {
        let mut place = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert_with(|| why.clone());
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Returns the reason why the channel has to end, if it has been cut.
    pub(crate) fn why(&self) -> Option<ChannelEnd> {
        let place = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }
}

/// A descriptor that is readable when the channel has to end.
impl AsFd for Cut {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// All channels of this daemon.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    all: BTreeMap<u64, Channel>,
    next: u64,
}

impl Channels {
    /// Returns a new number for a channel.
    pub(crate) fn new_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn add(&mut self, number: u64, channel: Channel) {
        self.all.insert(number, channel);
    }

    /// Returns the shell of the channel with this number, and its session, if it has one.
    pub(crate) fn session(&self, number: u64) -> Option<(Pid, Arc<DetachedSession>)> {
        let channel = self.all.get(&number)?;
        match channel.end {
            End::Agent(shell) => Some((shell, channel.session.clone()?)),
            End::Launcher(_) => None,
        }
    }

    /// Returns the host at the other end of the channel with this number.
    pub(crate) fn peer(&self, number: u64) -> Option<HostId> {
        self.all.get(&number).map(|channel| channel.peer)
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Channel> {
        self.all.values()
    }

    /// Cuts all channels.
    pub(crate) fn cut(&self, why: &ChannelEnd) {
        self.all().for_each(|channel| channel.cut.cut(why));
    }

    /// Cuts all channels because the daemon releases them, for the reason in `sentence`.
    pub(crate) fn let_go(&self, sentence: &str) {
        let sentence = sentence.to_owned();
        self.cut(&ChannelEnd::Cut { sentence });
    }

    /// Cuts the channels of a host that has left. A shell that waits for another launcher goes on waiting: the host had
    /// claimed it and withdrawn the claim.
    pub(crate) fn part(&self, peer: HostId, why: &ChannelEnd) {
        let waits = |channel: &Channel| {
            let session = channel.session.as_ref();
            session.is_some_and(|session| session.has_lost_owner())
        };
        let theirs = self.all().filter(|channel| channel.peer == peer);
        let theirs = theirs.filter(|channel| !waits(channel));
        theirs.for_each(|channel| channel.cut.cut(why));
    }

    /// Cuts the channels of a host that is lost. Shells that outlive it wait for another launcher.
    pub(crate) fn lose(&self, peer: HostId, why: &ChannelEnd) {
        for channel in self.all().filter(|channel| channel.peer == peer) {
            match &channel.session {
                Some(session) => session.owner_is_lost(),
                None => channel.cut.cut(why),
            }
        }
    }

    /// Claims the shell of a job that waits for another launcher, for a launcher on host `peer`. Returns its session,
    /// and the hosts that its agent names as successors; `None` if no such shell waits.
    pub(crate) fn claim(
        &mut self,
        job: &str,
        peer: HostId,
    ) -> Option<(Arc<DetachedSession>, Vec<String>)> {
        let mut ours = self.all.values_mut().filter(|channel| channel.job == job);
        ours.find_map(|channel| {
            let session = channel.session.clone()?;
            let successors = session.claim()?;
            channel.peer = peer;
            Some((session, successors))
        })
    }
}
