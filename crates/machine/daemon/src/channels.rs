//! The channels of jobs through this daemon: from launchers of this host, and to agents of this host.
//!
//! Each is served by a thread; what all others need of it is here: whose it is, and a way to cut it with a word of why.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use regatta_membership::HostId;
use regatta_wire::session::ChannelEnd;
use rustix::event::EventfdFlags;
use rustix::process::Pid;

use crate::detached_session::DetachedSession;

/// Which end of a job is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The process that asked for a shell elsewhere.
    Launcher(Pid),
    /// A shell, in which an agent runs.
    Agent(Pid),
}

/// A channel, as all others know it.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    /// The job's name.
    pub job: String,
    pub end: End,
    /// The process of this host that has asked for it; none if that is on another host.
    pub caller: Option<Pid>,
    /// The host at its other end.
    pub peer: HostId,
    pub cut: Arc<Cut>,
    /// Of an agent whose shell outlives its launcher's host.
    pub session: Option<Arc<DetachedSession>>,
}

/// Ends a channel from outside its thread.
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

    /// Ends it; the first reason counts.
    pub(crate) fn cut(&self, why: &ChannelEnd) {
        let mut place = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert_with(|| why.clone());
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Why it has to end, if it has.
    pub(crate) fn why(&self) -> Option<ChannelEnd> {
        let place = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }
}

/// Can be read from when it has to end.
impl AsFd for Cut {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    all: BTreeMap<u64, Channel>,
    next: u64,
}

impl Channels {
    /// A number for a channel that is to be entered.
    pub(crate) fn new_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn add(&mut self, number: u64, channel: Channel) {
        self.all.insert(number, channel);
    }

    /// The shell of this number, with its session if it has one.
    pub(crate) fn session(&self, number: u64) -> Option<(Pid, Arc<DetachedSession>)> {
        let channel = self.all.get(&number)?;
        match channel.end {
            End::Agent(shell) => Some((shell, channel.session.clone()?)),
            End::Launcher(_) => None,
        }
    }

    /// The host at the other end of the channel of this number.
    pub(crate) fn peer(&self, number: u64) -> Option<HostId> {
        self.all.get(&number).map(|channel| channel.peer)
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Channel> {
        self.all.values()
    }

    /// Cuts all.
    pub(crate) fn cut(&self, why: &ChannelEnd) {
        self.all().for_each(|channel| channel.cut.cut(why));
    }

    /// Cuts all because the daemon lets go of them, which this sentence explains.
    pub(crate) fn let_go(&self, sentence: &str) {
        let sentence = sentence.to_owned();
        self.cut(&ChannelEnd::Cut { sentence });
    }

    /// Cuts those that a host is at the other end of, which has left. A shell that waits for another launcher waits on: the host had claimed
    /// it, and taken that back.
    pub(crate) fn part(&self, peer: HostId, why: &ChannelEnd) {
        let waits = |channel: &Channel| {
            let session = channel.session.as_ref();
            session.is_some_and(|session| session.has_lost_owner())
        };
        let theirs = self.all().filter(|channel| channel.peer == peer);
        let theirs = theirs.filter(|channel| !waits(channel));
        theirs.for_each(|channel| channel.cut.cut(why));
    }

    /// Cuts the channels of a host that is lost; shells that outlive it wait for another launcher.
    pub(crate) fn lose(&self, peer: HostId, why: &ChannelEnd) {
        for channel in self.all().filter(|channel| channel.peer == peer) {
            match &channel.session {
                Some(session) => session.owner_is_lost(),
                None => channel.cut.cut(why),
            }
        }
    }

    /// The shell of a job that waits for another launcher, with the hosts that its agent names; from now on the launcher is on this host.
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
