//! The state that the threads of a daemon share: the membership with its clock and sockets, and the channels of jobs.
//!
//! One thread drives it (`drive`); each conversation has a thread of its own. Everything is behind one lock, which is
//! held while the membership computes and datagrams are given to the kernel, and never while a thread waits.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use regatta_connection::calls::Keys;
use regatta_launch::{Refusal, cores};
use regatta_membership::{Event, Facts, HostId, Input, Membership, Output, Settings, Standing};
use regatta_wire::session::{ChannelEnd, MachineHost, Membership as Snapshot};
use rustix::event::EventfdFlags;

use crate::ask::{Charge, Host, JoinConfig, Report};
use crate::channels::Channels;
use crate::journal::{self, Journal};
use crate::seal::{self, Sealer};
use crate::sockets::Sockets;
use crate::talk::Talk;
use crate::unreached::Remarks;
use crate::witness;

/// State that the threads of a daemon share.
pub(crate) struct Daemon {
    pub charge: Charge,
    /// The keys that authenticate and encrypt connections between daemons.
    pub keys: Keys,
    started: Instant,
    state: Mutex<DaemonState>,
    changed: Condvar,
    /// Held by the thread that relays the launchers' reports.
    pub passing: Mutex<()>,
    /// Wakes the driver thread.
    pub bell: OwnedFd,
}

/// The state behind the lock.
pub(crate) struct DaemonState {
    pub membership: Membership,
    pub journal: Journal,
    pub channels: Channels,
    pub remarks: Remarks,
    sealer: Sealer,
    datagrams: Arc<UdpSocket>,
    /// The roll's epoch when the membership was last checked.
    epoch: u32,
    /// Sockets at a new address, for the driver.
    pub moved: Option<Sockets>,
    /// Whether the others know that this host has left.
    pub departed: bool,
    /// Whether the daemon ends as soon as all requests are answered.
    pub over: bool,
    pub answers_due: u32,
    /// Number of commands that watch and must get the last report.
    pub watchers: u32,
    /// Commands that wait for the end of this process, which closes their connections.
    pub exit_waiters: Vec<Talk>,
}

impl Daemon {
    /// Creates a daemon that belongs to no machine yet.
    pub(crate) fn new(charge: Charge, sockets: &Sockets) -> Result<Arc<Daemon>, Refusal> {
        let failed = |error: std::io::Error| {
            Refusal::of_regatta(format!("the daemon cannot be set up: {error}"))
        };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let state = DaemonState {
            membership: membership(&charge, sockets.address, Duration::ZERO).map_err(failed)?,
            journal: Journal::default(),
            channels: Channels::default(),
            remarks: Remarks::default(),
            sealer: Sealer::new(&charge.key).map_err(failed)?,
            datagrams: sockets.datagrams.clone(),
            epoch: 0,
            moved: None,
            departed: false,
            over: false,
            answers_due: 0,
            watchers: 0,
            exit_waiters: Vec::new(),
        };
        Ok(Arc::new(Daemon {
            keys: Keys::new(&seal::derive(&charge.key, "regatta daemons", &[])),
            charge,
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            passing: Mutex::new(()),
            bell: rustix::event::eventfd(0, flags).map_err(|errno| failed(errno.into()))?,
        }))
    }

    /// Returns the monotonic time that the membership uses, independent of the system clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DaemonState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change. Returns `None` after `until`.
    pub(crate) fn await_change<'a>(
        &self,
        state: MutexGuard<'a, DaemonState>,
        until: Instant,
    ) -> Option<MutexGuard<'a, DaemonState>> {
        let left = until.checked_duration_since(Instant::now())?;
        let waited = self.changed.wait_timeout(state, left);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then_some(state)
    }

    /// Wakes all threads that wait for a change, and the driver.
    pub(crate) fn announce(&self) {
        self.changed.notify_all();
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Passes an input to the membership, and carries out the results.
    pub(crate) fn input(self: &Arc<Self>, input: Input<'_>) {
        let mut state = self.lock();
        let now = self.now();
        state.membership.handle(now, input);
        self.settle(&mut state, now);
    }

    /// Passes an input to the membership from a thread other than the driver, and wakes the driver, as the deadline may
    /// have changed.
    pub(crate) fn notify(self: &Arc<Self>, input: Input<'_>) {
        self.input(input);
        self.announce();
    }

    fn settle(self: &Arc<Self>, state: &mut DaemonState, now: Duration) {
        // The roll changes without an event, but commands that watch must see it.
        let epoch = state.membership.roll().epoch();
        let mut happened = std::mem::replace(&mut state.epoch, epoch) != epoch;
        while let Some(output) = state.membership.poll() {
            match output {
                Output::Send { to, bytes } => {
                    let sealed = state.sealer.seal(to, &bytes);
                    // A datagram that the kernel refuses is lost, as any datagram may be.
                    let _ = state.datagrams.send_to(&sealed, to);
                }
                Output::Event(event) => {
                    happened = true;
                    self.handle_event(state, now, &event);
                }
            }
        }
        if happened {
            self.changed.notify_all();
        }
    }

    fn handle_event(self: &Arc<Self>, state: &mut DaemonState, now: Duration, event: &Event) {
        state.journal.take(now, event);
        match event {
            Event::Examine(host) => witness::examine(self, *host),
            Event::Dead(host, _) => {
                let why = state.journal.channel_end(host);
                state.channels.lose(*host, &why);
                state.remarks.lose(host);
            }
            Event::Left(host) => {
                let why = state.journal.channel_end(host);
                state.channels.part(*host, &why);
                state.remarks.lose(host);
            }
            Event::Renewed { why, .. } => {
                let why = journal::renewal(*why).to_owned();
                state.channels.cut(&ChannelEnd::Renewed { why });
            }
            Event::Ended => {
                state.channels.let_go(journal::ENDED);
                state.over = true;
            }
            Event::Departed => state.departed = true,
            _ => {}
        }
    }

    /// Creates a machine that consists of this host.
    pub(crate) fn found(self: &Arc<Self>) {
        self.notify(Input::CreateMachine);
    }

    /// Changes to another address. Fails unless this host is alone.
    pub(crate) fn move_to(self: &Arc<Self>, address: IpAddr) -> Result<(), Refusal> {
        let sockets = Sockets::open(address)?;
        let mut state = self.lock();
        if !state.is_alone() {
            return Err(Refusal::of_regatta(
                "this host is known to other hosts by its address",
            ));
        }
        let now = self.now();
        state.membership = membership(&self.charge, sockets.address, now)
            .map_err(|error| Refusal::of_regatta(error.to_string()))?;
        state.datagrams = sockets.datagrams.clone();
        state.moved = Some(sockets);
        drop(state);
        self.found();
        Ok(())
    }

    /// Returns what a new host needs to know.
    pub(crate) fn join_config(&self) -> JoinConfig {
        let state = self.lock();
        let own = (self.charge.name.clone(), state.membership.own().address());
        let others = state.membership.hosts();
        let others = others.map(|(host, _)| (state.journal.name(&host), host.address()));
        JoinConfig {
            key: self.charge.key.clone(),
            silence_ms: self.charge.silence_ms,
            name: own.0.clone(),
            address: own.1,
            alone: state.is_alone(),
            hosts: std::iter::once(own).chain(others).collect(),
            hindrance: state.hindrance(),
        }
    }

    /// Returns the machine, as this host sees it.
    pub(crate) fn report(&self) -> Report {
        let mut state = self.lock();
        state.remarks.expire(Instant::now());
        let now = self.now();
        let (seen, known) = state.counts();
        let standing = match state.membership.standing() {
            Standing::Majority => "majority",
            Standing::Minority => "minority",
            Standing::Outside => "outside",
        };
        let own = self.facts();
        let mut hosts = vec![Host {
            name: own.name,
            address: state.membership.own().address(),
            run: journal::run(&state.membership.own()),
            cores: Some(own.cores),
            architecture: Some(own.architecture),
            state: "here".to_owned(),
            cause: None,
            since_ms: journal::milliseconds(now),
        }];
        let mut others: Vec<Host> = state
            .membership
            .hosts()
            .map(|(host, suspected)| state.host(now, host, suspected))
            .collect();
        others.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
        hosts.append(&mut others);
        hosts.extend(state.journal.gone(now));
        Report {
            machine: self.charge.machine.clone(),
            here: self.charge.name.clone(),
            standing: standing.to_owned(),
            ending: state.over,
            reason: state.hindrance(),
            seen,
            known,
            host_timeout_ms: self.charge.silence_ms,
            hosts,
            unreached: state.remarks.all(),
            events: state.journal.happenings(now),
        }
    }

    /// Returns the membership, for jobs.
    pub(crate) fn snapshot(&self, state: &DaemonState) -> Snapshot {
        let own = state.membership.own();
        let here = MachineHost {
            name: self.charge.name.clone(),
            run: journal::run(&own),
            address: own.address(),
            described: true,
            suspected: false,
        };
        let host = |(host, suspected): (HostId, bool)| MachineHost {
            name: state.journal.name(&host),
            run: journal::run(&host),
            address: host.address(),
            described: state.journal.facts(&host).is_some(),
            suspected,
        };
        let others = state.membership.hosts().map(host);
        Snapshot {
            own: here.run.clone(),
            hosts: std::iter::once(here).chain(others).collect(),
            gone: state.journal.causes(),
            hindrance: state.hindrance(),
            ending: state.over,
        }
    }

    fn facts(&self) -> Facts {
        facts(&self.charge)
    }
}

/// A value that changes whenever there is something new to report.
pub(crate) type Moment = (u64, u64, u32, Standing);

impl DaemonState {
    pub(crate) fn is_alone(&self) -> bool {
        self.membership.hosts().next().is_none() && self.membership.roll().len() <= 1
    }

    /// Returns the number of hosts that answer, and of hosts that were agreed on last.
    fn counts(&self) -> (usize, usize) {
        let roll = self.membership.roll();
        let answering = self
            .membership
            .hosts()
            .filter(|(host, suspected)| !suspected && roll.contains(host));
        let own = usize::from(roll.contains(&self.membership.own()));
        (answering.count() + own, roll.len())
    }

    /// Returns a value that changes whenever there is something new to report.
    pub(crate) fn moment(&self) -> Moment {
        let standing = self.membership.standing();
        let said = self.remarks.changes();
        (self.journal.count(), said, self.epoch, standing)
    }

    /// Returns the reason why this host accepts no work, if there is one.
    pub(crate) fn hindrance(&self) -> Option<String> {
        let (seen, known) = self.counts();
        match self.membership.standing() {
            Standing::Majority => None,
            Standing::Minority => Some(match self.journal.deadlock() {
                Some(deadlock) => deadlock.to_owned(),
                None => journal::minority(seen, known),
            }),
            Standing::Outside => Some(journal::OUTSIDE.to_owned()),
        }
    }

    /// Returns the names of the hosts that were agreed on last and do not answer.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        let own = self.membership.own();
        let answering: Vec<HostId> = self
            .membership
            .hosts()
            .filter(|(_, suspected)| !suspected)
            .map(|(host, _)| host)
            .collect();
        let roll = self.membership.roll().hosts();
        let away = roll.filter(|host| !host.same_place(&own) && !answering.contains(host));
        away.map(|host| self.journal.known_name(host)).collect()
    }

    /// Finds the host with this name or address, except this one. Fails if there is none, or several.
    pub(crate) fn find(&self, name: &str) -> Result<HostId, String> {
        let is_it = |host: &HostId| {
            self.journal.name(host) == name
                || host.address().to_string() == name
                || host.address().ip().to_string() == name
        };
        let found: Vec<HostId> = self
            .membership
            .hosts()
            .map(|(host, _)| host)
            .filter(is_it)
            .collect();
        match found[..] {
            [host] => Ok(host),
            [] => Err(format!(
                "the host {name} is not in the machine{}: `regatta hosts` lists those that are",
                self.journal.epitaph(name)
            )),
            _ => Err(format!(
                "several hosts are called {name}: use the address of the one you mean, as shown by `regatta hosts`"
            )),
        }
    }

    fn host(&self, now: Duration, host: HostId, suspected: bool) -> Host {
        let facts = self.journal.facts(&host);
        let (state, since) = self.journal.state(&host, suspected);
        Host {
            name: self.journal.name(&host),
            address: host.address(),
            run: journal::run(&host),
            cores: facts.map(|facts| facts.cores),
            architecture: facts.map(|facts| facts.architecture.clone()),
            state: state.to_owned(),
            cause: suspected.then(|| {
                "it does not answer; it will be declared dead unless it answers soon".to_owned()
            }),
            since_ms: journal::milliseconds(now.saturating_sub(since)),
        }
    }
}

fn facts(charge: &Charge) -> Facts {
    let cores = charge.cores.unwrap_or_else(|| cores::usable() as u32);
    Facts {
        name: charge.name.clone(),
        cores: u16::try_from(cores).unwrap_or(u16::MAX),
        architecture: std::env::consts::ARCH.to_owned(),
    }
}

fn membership(charge: &Charge, address: SocketAddr, now: Duration) -> std::io::Result<Membership> {
    let mut random = [0; 10];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let [seed @ .., low, high] = random;
    // Read the system clock once, for a number that increases from run to run. If it has not increased, the other hosts
    // say so, and the membership takes a number greater than theirs.
    let session = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_secs() as u32);
    let own = HostId::new(address, session, u16::from_le_bytes([low, high]));
    let number = seal::derive(&charge.key, "regatta machine", &[]);
    let settings = Settings {
        silence: Duration::from_millis(charge.silence_ms),
        machine: u32::from_le_bytes([number[0], number[1], number[2], number[3]]),
        ..Settings::default()
    };
    let seed = u64::from_le_bytes(seed);
    Ok(Membership::new(own, facts(charge), settings, seed, now))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv4Addr;

    use regatta_segment::place::Key;

    use super::*;

    /// Returns a daemon of a machine that has not begun, without a driver.
    pub(crate) fn daemon() -> Arc<Daemon> {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        let charge = Charge {
            machine: "nowhere".to_owned(),
            key: Key::taken(&mut [7; 32]),
            silence_ms: 1000,
            name: "alpha".to_owned(),
            cores: Some(1),
            address,
            contacts: Vec::new(),
            tied: false,
        };
        let sockets = Sockets::open(address).expect("ports");
        Daemon::new(charge, &sockets).expect("a daemon")
    }
}
