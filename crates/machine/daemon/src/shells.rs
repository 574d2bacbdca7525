//! Shells for jobs: started here or on other hosts, or claimed by launchers that follow others.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use regatta_launch::identity;
use regatta_membership::HostId;
use regatta_wire::session::{ChannelEnd, FromDaemon};
use rustix::process::Pid;

use crate::answer::{Rest, TALK_TIMEOUT};
use crate::ask::{Ask, Opening, Reply};
use crate::channels::{Channel, Cut, End};
use crate::daemon::Daemon;
use crate::dead_connection::DeathWatch;
use crate::detached_session::DetachedSession;
use crate::last_words::LastWords;
use crate::sessions::refuse;
use crate::shell::Shell;
use crate::talk::{self, Talk};
use crate::{relay, witness};

/// Minimum time for which a shell whose channel has broken waits for a verdict about its launcher's host.
const MIN_VERDICT_TIMEOUT: Duration = Duration::from_secs(30);

/// The shell that a launcher asks for.
pub(crate) enum Wanted {
    /// A new one. `detachable`: whether it is kept for another launcher if this host is lost.
    New { detachable: bool },
    /// The one that waits for another launcher.
    Waiting,
}

/// Opens a shell on a host, for a process here.
pub(crate) fn open(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    host: &str,
    (job, wanted): (String, Wanted),
    caller: Pid,
) -> Option<Rest> {
    let found = find(daemon, host).map_err(NotOpened::from);
    let opened = found.and_then(|(own, peer)| match wanted {
        Wanted::Waiting if peer == own => Err(waits_here(&job).into()),
        // A shell on the launcher's own host is lost with it, so it is not detachable.
        Wanted::New { .. } if peer == own => {
            let shell = Started::shell(daemon, (job, false), own, Some(caller))?;
            let _ = talk.send_message(&FromDaemon::Opened {
                successors: Vec::new(),
            });
            Ok(Opened::Here(shell))
        }
        wanted => {
            // Registered before the launcher is told that the channel is open: a channel that ended without a message
            // would look like the end of this daemon.
            let way = WayThere::begin(daemon, peer, (job, caller))?;
            let (far, successors) = way.open(daemon, host, wanted)?;
            let _ = talk.send_message(&FromDaemon::Opened { successors });
            Ok(Opened::There(way, far))
        }
    });
    match opened {
        Ok(Opened::Here(shell)) => Some(shell.serve(daemon, talk)),
        Ok(Opened::There(way, far)) => Some(way.carry(daemon, (talk, far), host)),
        Err(NotOpened::Refused(sentence)) => {
            refuse(&mut talk, sentence);
            None
        }
        Err(NotOpened::Ended(end)) => {
            let _ = talk.send_message(&FromDaemon::NotOpened { end });
            None
        }
    }
}

enum Opened {
    Here(Started),
    There(WayThere, Talk),
}

/// Reason why a channel was not opened.
#[derive(Debug, PartialEq, Eq)]
enum NotOpened {
    /// It cannot be opened, for the reason in the sentence.
    Refused(String),
    /// It was cut before it was open. The launcher treats that like the end of an open channel.
    Ended(ChannelEnd),
}

impl From<String> for NotOpened {
    fn from(sentence: String) -> NotOpened {
        NotOpened::Refused(sentence)
    }
}

fn waits_here(job: &str) -> String {
    format!("no agent of the job {job} waits on this host for another launcher")
}

/// Returns this host and the one with this name. The error is a sentence.
fn find(daemon: &Daemon, host: &str) -> Result<(HostId, HostId), String> {
    let state = daemon.lock();
    if let Some(hindrance) = state.hindrance() {
        return Err(hindrance);
    }
    let own = state.membership.own();
    let is_here = host == daemon.charge.name || host == own.address().to_string();
    let found = if is_here { own } else { state.find(host)? };
    Ok((own, found))
}

/// A channel to another host. It is registered before that host is asked for a shell: if the host is lost, or this
/// daemon ends, the request is cancelled.
struct WayThere {
    number: u64,
    job: String,
    peer: HostId,
    cut: Arc<Cut>,
}

impl WayThere {
    /// Registers the channel. The error is a sentence.
    fn begin(
        daemon: &Arc<Daemon>,
        peer: HostId,
        (job, caller): (String, Pid),
    ) -> Result<WayThere, String> {
        let cut = Cut::new().map_err(|error| format!("a channel cannot be opened: {error}"))?;
        let number = daemon.lock().channels.new_number();
        let channel = Channel {
            job: job.clone(),
            end: End::Launcher(caller),
            caller: Some(caller),
            peer,
            cut: cut.clone(),
            session: None,
        };
        register(daemon, number, channel);
        Ok(WayThere {
            number,
            job,
            peer,
            cut,
        })
    }

    /// Makes the other host start a shell, or hand over one that waits, with the hosts that its agent names. After an
    /// error the channel is removed.
    fn open(
        &self,
        daemon: &Daemon,
        host: &str,
        wanted: Wanted,
    ) -> Result<(Talk, Vec<String>), NotOpened> {
        let opened = self.far_shell(daemon, host, wanted);
        if opened.is_err() {
            self.end(daemon);
        }
        opened
    }

    fn far_shell(
        &self,
        daemon: &Daemon,
        host: &str,
        wanted: Wanted,
    ) -> Result<(Talk, Vec<String>), NotOpened> {
        let job = self.job.clone();
        let opening = Opening {
            identity: identity(),
            from: Some(daemon.lock().membership.own().into()),
            to: Some(self.peer.address()),
            ask: match wanted {
                Wanted::New { detachable } => Ask::ShellHere { job, detachable },
                Wanted::Waiting => Ask::ClaimHere { job },
            },
        };
        let (address, cut) = (self.peer.address(), self.cut.as_fd());
        let called = Talk::call_unless(address, &daemon.keys, TALK_TIMEOUT, Some(cut));
        let far = called.and_then(|mut far| {
            far.send_line(&opening)?;
            Ok((far.receive_unless::<Reply>(cut)?, far))
        });
        match far {
            Ok((Reply::Done, far)) => Ok((far, Vec::new())),
            Ok((Reply::Claimed { successors }, far)) => Ok((far, successors)),
            Ok((Reply::Refused(sentence), _)) => {
                Err(format!("on the host {host}: {sentence}").into())
            }
            Ok(_) => Err(format!("the host {host} sent an invalid message").into()),
            Err(error) => Err(match self.cut.why() {
                Some(why) => NotOpened::Ended(why),
                None => talk::explain(host, &error).sentence.into(),
            }),
        }
    }

    /// Carries the bytes of the shell.
    fn carry(self, daemon: &Arc<Daemon>, (near, far): (Talk, Talk), host: &str) -> Rest {
        let (daemon, host) = (daemon.clone(), host.to_owned());
        Box::new(move || {
            let ((near, first), (far, second)) = (near.into_parts(), far.into_parts());
            let last = relay::run(near, far, [first, second], (&host, self.peer), &self.cut);
            self.end(&daemon);
            last.into_iter().for_each(LastWords::deliver);
        })
    }

    fn end(&self, daemon: &Daemon) {
        daemon.lock().channels.remove(self.number);
        daemon.announce();
    }
}

/// A shell that runs on this host.
struct Started {
    number: u64,
    shell: Shell,
    cut: Arc<Cut>,
    session: Option<Arc<DetachedSession>>,
}

impl Started {
    /// Starts a shell for a launcher on the host `peer`; `caller` is the launcher's process if that is this host. The
    /// error is a sentence.
    fn shell(
        daemon: &Arc<Daemon>,
        (job, detachable): (String, bool),
        peer: HostId,
        caller: Option<Pid>,
    ) -> Result<Started, String> {
        let (own, hindrance, number) = {
            let mut state = daemon.lock();
            let number = state.channels.new_number();
            (state.membership.own(), state.hindrance(), number)
        };
        if let Some(hindrance) = hindrance {
            return Err(hindrance);
        }
        let failed = |error: std::io::Error| format!("the shell cannot be started: {error}");
        let cut = Cut::new().map_err(failed)?;
        let silence = Duration::from_millis(daemon.charge.silence_ms);
        let session = match detachable {
            true => {
                Some(DetachedSession::new(MIN_VERDICT_TIMEOUT.max(silence * 3)).map_err(failed)?)
            }
            false => None,
        };
        let connection = format!("{} 0 {} 0", peer.address().ip(), own.address().ip());
        let shell = Shell::start(&connection, number).map_err(|refusal| refusal.sentence)?;
        let channel = Channel {
            job,
            end: End::Agent(shell.pid()),
            caller,
            peer,
            cut: cut.clone(),
            session: session.clone(),
        };
        register(daemon, number, channel);
        Ok(Started {
            number,
            shell,
            cut,
            session,
        })
    }

    /// Carries the shell's bytes to its end.
    fn serve(self, daemon: &Arc<Daemon>, talk: Talk) -> Rest {
        let daemon = daemon.clone();
        Box::new(move || {
            let (machine, number) = (daemon.clone(), self.number);
            // Another launcher, on another host, may have taken the shell over meanwhile.
            let mut watch = DeathWatch::new(move || {
                let peer = machine.lock().channels.peer(number);
                peer.is_some_and(witness::answers)
            });
            let session = self.session.as_deref();
            let mut shell = self.shell;
            let last = shell.serve(talk.into_parts(), &self.cut, session, &mut watch);
            daemon.lock().channels.remove(self.number);
            drop(shell);
            daemon.announce();
            last.into_iter().for_each(LastWords::deliver);
        })
    }
}

/// Starts a shell for the daemon of the launcher's host, `peer`.
pub(crate) fn serve_daemon(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    (job, detachable): (String, bool),
    peer: HostId,
) -> Option<Rest> {
    match Started::shell(daemon, (job, detachable), peer, None) {
        Ok(shell) => {
            let _ = talk.send_line(&Reply::Done);
            Some(shell.serve(daemon, talk))
        }
        Err(sentence) => {
            let _ = talk.send_line(&Reply::Refused(sentence));
            None
        }
    }
}

/// Hands the shell of a job that has lost its launcher's host to a launcher on `peer`.
pub(crate) fn claim_here(daemon: &Arc<Daemon>, mut talk: Talk, job: &str, peer: HostId) {
    let found = {
        let mut state = daemon.lock();
        let known = state.membership.hosts().any(|(host, _)| host == peer);
        match state.hindrance() {
            Some(hindrance) => Err(hindrance),
            None if !known => Err("the requesting host is not in the machine".to_owned()),
            None => state
                .channels
                .claim(job, peer)
                .ok_or_else(|| waits_here(job)),
        }
    };
    match found {
        Err(sentence) => _ = talk.send_line(&Reply::Refused(sentence)),
        Ok((session, successors)) => {
            // If this fails, the shell notices when it reads.
            let _ = talk.send_line(&Reply::Claimed { successors });
            session.give(talk.into_parts());
        }
    }
}

/// Registers a channel, and cuts it at once if the host at its other end has just been lost or this daemon ends.
fn register(daemon: &Arc<Daemon>, number: u64, channel: Channel) {
    let mut state = daemon.lock();
    let (peer, cut) = (channel.peer, channel.cut.clone());
    state.channels.add(number, channel);
    let own = state.membership.own();
    if state.over {
        let sentence = "the daemon of this host is ending".to_owned();
        cut.cut(&ChannelEnd::Cut { sentence });
    } else if peer != own && !state.membership.hosts().any(|(host, _)| host == peer) {
        cut.cut(&state.journal.channel_end(&peer));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;
    use crate::daemon::tests::daemon;

    /// Returns a host of which only the kernel answers, and a registered channel on its way there.
    fn way_to_silence(daemon: &Arc<Daemon>) -> (TcpListener, WayThere) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = HostId::new(listener.local_addr().expect("its address"), 1, 1);
        let (job, cut) = ("alpha:1".to_owned(), Cut::new().expect("a cut"));
        let number = daemon.lock().channels.new_number();
        let channel = Channel {
            job: job.clone(),
            end: End::Launcher(rustix::process::getpid()),
            caller: Some(rustix::process::getpid()),
            peer,
            cut: cut.clone(),
            session: None,
        };
        daemon.lock().channels.add(number, channel);
        let way = WayThere {
            number,
            job,
            peer,
            cut,
        };
        (listener, way)
    }

    fn lost() -> ChannelEnd {
        let cause = "it has been silent".to_owned();
        ChannelEnd::HostLost { cause }
    }

    #[test]
    fn a_launcher_is_refused_at_once_when_a_host_is_lost_that_is_asked_for_a_shell() {
        for wanted in [Wanted::New { detachable: true }, Wanted::Waiting] {
            let daemon = daemon();
            let (listener, way) = way_to_silence(&daemon);
            let (machine, peer) = (daemon.clone(), way.peer);
            let verdict = std::thread::spawn(move || {
                let called = listener.accept().expect("a call");
                let why = lost();
                machine.lock().channels.lose(peer, &why);
                called
            });
            let began = Instant::now();
            let refused = way.open(&daemon, "beta", wanted).err();
            assert!(began.elapsed() < TALK_TIMEOUT / 2, "{:?}", began.elapsed());
            assert_eq!(refused, Some(NotOpened::Ended(lost())));
            assert_eq!(daemon.lock().channels.all().count(), 0);
            verdict.join().expect("a verdict");
        }
    }

    #[test]
    fn a_daemon_that_ends_waits_for_no_host_that_is_asked_for_a_shell() {
        let daemon = daemon();
        let (_listener, way) = way_to_silence(&daemon);
        daemon
            .lock()
            .channels
            .let_go("the virtual machine is ending");
        let began = Instant::now();
        let wanted = Wanted::New { detachable: true };
        let refused = way.open(&daemon, "beta", wanted).err();
        assert!(began.elapsed() < TALK_TIMEOUT / 2, "{:?}", began.elapsed());
        let sentence = "the virtual machine is ending".to_owned();
        let end = ChannelEnd::Cut { sentence };
        assert_eq!(refused, Some(NotOpened::Ended(end)));
    }

    #[test]
    fn a_channel_to_a_host_that_has_just_gone_is_cut_before_it_is_there() {
        let daemon = daemon();
        let peer = HostId::new("127.0.0.1:9".parse().expect("an address"), 1, 1);
        let launcher = ("alpha:1".to_owned(), rustix::process::getpid());
        let way = WayThere::begin(&daemon, peer, launcher).expect("a channel");
        let refused = way.open(&daemon, "beta", Wanted::Waiting).err();
        let sentence = "the host at 127.0.0.1:9 is gone".to_owned();
        let end = ChannelEnd::HostGone { sentence };
        assert_eq!(refused, Some(NotOpened::Ended(end)));
    }
}
