//! Hosts that become hosts of the job while it runs.
//!
//! A command tells of hosts ([`News`]). To one that is new a channel is opened as to those that were there from the first;
//! it goes through the same steps (an agent that says what it is, a table of its own), but while the loop goes on. When its
//! agent is ready it is told at once all that the others have heard since the start: which tasks were added, and which are
//! no more. What happens from then on it hears as they do, so nothing has to wait for a host that arrives.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use regatta_transport::job::Cause;
use regatta_transport::world::World;

use super::Supervisor;
use crate::channel::messages::{Hello, Order, Preparation, Report};
use crate::desk::Host;
use crate::fleet::{Ground, PER_CHANNEL};
use crate::news::{Listed, News};
use crate::plan::Across;
use crate::refusal::Refusal;
use crate::remote::{self, Remote};
use crate::rsh::Role;
use crate::signals::Signals;
use crate::{gather, limits, reach};

/// A host that the machine has just taken in may not know us yet, and then gives no shell: for so long it is asked again.
const ACQUAINTANCE: Duration = Duration::from_secs(3);
/// And so often.
const AGAIN: Duration = Duration::from_millis(100);

/// What a job needs to take in hosts.
pub(super) struct Growing<'p> {
    across: &'p Across,
    ground: Ground,
    news: News,
    listed: Vec<Listed>,
    /// The runs of hosts that are of the job, were, or could not be.
    known: HashSet<String>,
    arriving: Vec<Arriving>,
    /// Channels that have been given up, until their commands have ended.
    parted: Vec<Remote>,
    /// What every host has heard since the start.
    worlds: Vec<World>,
    gone: Vec<(u32, Option<Cause>)>,
    /// The number of the next host.
    next: u32,
}

/// A host that is not of the job yet.
struct Arriving {
    host: Listed,
    since: Instant,
    step: Step,
}

enum Step {
    /// Nothing leads there; tried again then.
    Waiting(Instant),
    /// A shell is to become an agent; whether it has.
    Greeting(Remote, bool),
    /// The agent makes the job's table.
    Preparing(Remote),
}

impl<'p> Growing<'p> {
    /// Begins to listen, if the job is one that can take in hosts.
    pub(super) fn begin(
        across: Option<&'p Across>,
        ground: Option<Ground>,
        signals: &Signals,
    ) -> Result<Option<Self>, Refusal> {
        let (Some(across), Some(ground)) = (across, ground) else {
            return Ok(None);
        };
        let Some(growth) = &across.growth else {
            return Ok(None);
        };
        Ok(Some(Self {
            across,
            ground,
            news: News::open(&growth.command, signals)?,
            listed: Vec::new(),
            known: growth.known.iter().cloned().collect(),
            arriving: Vec::new(),
            parted: Vec::new(),
            worlds: Vec::new(),
            gone: Vec::new(),
            next: across.hosts.len() as u32,
        }))
    }

    /// Every host has entered these tasks into its table.
    pub(super) fn note_world(&mut self, world: &World) {
        self.worlds.push(world.clone());
    }

    /// Every host has heard that a task is no more.
    pub(super) fn note_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.gone.push((rank, cause));
    }

    /// The processes that carry channels, and the one that tells: no signal of the job is theirs.
    pub(super) fn helpers(&self) -> impl Iterator<Item = Pid> {
        let remotes = self.remotes().filter_map(Remote::command);
        remotes.chain(self.news.teller())
    }

    fn remotes(&self) -> impl Iterator<Item = &Remote> {
        let arriving = self.arriving.iter().filter_map(Arriving::remote);
        arriving.chain(&self.parted)
    }

    pub(super) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        self.news.reaped(pid);
        let arriving = self.arriving.iter_mut().filter_map(Arriving::remote_mut);
        arriving
            .chain(&mut self.parted)
            .for_each(|remote| remote.reaped(pid, status));
    }

    pub(super) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let arriving = self.arriving.iter().filter_map(Arriving::remote);
        self.news.polls().chain(arriving.flat_map(Remote::polls))
    }

    /// Until something has to be done for a host that arrives.
    pub(super) fn until_step(&self) -> Option<Duration> {
        let until = |arriving: &Arriving| match &arriving.step {
            Step::Waiting(at) => at.saturating_duration_since(Instant::now()),
            Step::Greeting(remote, _) => self.across.connect.saturating_sub(remote.heard.elapsed()),
            Step::Preparing(remote) => remote
                .until_beat()
                .min(self.across.connect.saturating_sub(remote.heard.elapsed())),
        };
        self.arriving.iter().map(until).min()
    }

    /// Nobody is taken in any more.
    pub(super) fn end(&mut self) {
        self.news.close();
        for arriving in std::mem::take(&mut self.arriving) {
            self.part(arriving.step);
        }
    }

    /// At the end of the job: what was begun is ended.
    pub(super) fn close(&mut self) {
        self.end();
        remote::part(&mut self.parted);
    }

    fn part(&mut self, step: Step) {
        if let Step::Greeting(mut remote, _) | Step::Preparing(mut remote) = step {
            remote.lose();
            self.parted.push(remote);
        }
    }

    /// Takes note of hosts that nobody knew. `members` are the names of those that live.
    fn look(&mut self, members: &[&str]) {
        if let Some(listed) = self.news.next() {
            self.listed = listed;
        }
        for host in &self.listed {
            // While one of that name is still taken for alive the new one waits.
            if self.known.contains(&host.run) || members.contains(&host.name.as_str()) {
                continue;
            }
            self.known.insert(host.run.clone());
            let now = Instant::now();
            self.arriving.push(Arriving {
                host: host.clone(),
                since: now,
                step: Step::Waiting(now),
            });
        }
    }

    /// Takes a host as far as it goes now. `others` are what the living ones are, with their names.
    fn advance(
        &mut self,
        arriving: &mut Arriving,
        signals: &Signals,
        others: &[(String, String)],
        notes: &mut Vec<String>,
    ) -> Result<bool, Refusal> {
        let across = self.across;
        loop {
            match std::mem::replace(&mut arriving.step, Step::Waiting(Instant::now() + AGAIN)) {
                Step::Waiting(at) if at > Instant::now() => {
                    arriving.step = Step::Waiting(at);
                    return Ok(false);
                }
                Step::Waiting(_) => {
                    let remote = self.open(&arriving.host, signals)?;
                    arriving.step = Step::Greeting(remote, false);
                }
                Step::Greeting(mut remote, mut ready) => {
                    attend(&mut remote, notes);
                    let young = arriving.since.elapsed() < ACQUAINTANCE;
                    let heard = gather::greeting(&mut remote, &mut ready, notes);
                    if young && remote.link.is_ended() && matches!(heard, Ok(None)) {
                        self.part(Step::Greeting(remote, ready));
                        return Ok(false);
                    }
                    let heard = heard
                        .and_then(|heard| gather::or_failed(across, &mut remote, heard))
                        .and_then(|heard| match heard {
                            Some(hello) => self.prepare(&mut remote, hello, &arriving.host, others),
                            None => Ok(false),
                        });
                    match heard {
                        Ok(true) => arriving.step = Step::Preparing(remote),
                        Ok(false) => {
                            arriving.step = Step::Greeting(remote, ready);
                            return Ok(false);
                        }
                        Err(refusal) => {
                            self.part(Step::Greeting(remote, ready));
                            return Err(refusal);
                        }
                    }
                }
                Step::Preparing(mut remote) => {
                    attend(&mut remote, notes);
                    remote.beat();
                    let ready = prepared(&mut remote)
                        .and_then(|ready| gather::or_failed(across, &mut remote, ready));
                    arriving.step = Step::Preparing(remote);
                    return ready.map(|ready| ready.is_some());
                }
            }
        }
    }

    fn open(&self, host: &Listed, signals: &Signals) -> Result<Remote, Refusal> {
        let channels = self.next + self.arriving.len() as u32;
        // Should there be no room the opening says so.
        let _ = limits::make_room(channels, PER_CHANNEL);
        let mut remote = Remote::open(self.across, u32::MAX, &host.name, signals)?;
        let script = gather::script(self.across, Role::Agent)?;
        remote.link.send_raw(script.as_bytes());
        Ok(remote)
    }

    /// Has a host make everything ready for tasks that will be started there.
    fn prepare(
        &mut self,
        remote: &mut Remote,
        hello: Hello,
        host: &Listed,
        others: &[(String, String)],
    ) -> Result<bool, Refusal> {
        let name = &remote.name;
        if let Some((_, other)) = others.iter().find(|(identity, _)| *identity == hello.host) {
            return Err(Refusal::of_regatta(format!(
                "the host {name} is {other} under another name"
            )));
        }
        let address = self.address_of(&hello, host)?;
        remote.number = self.next;
        self.next += 1;
        remote.greeted(hello);
        let job = Preparation {
            here: remote.number,
            address,
            ..self.ground.template.clone()
        };
        remote.send(&Order::Prepare { job })?;
        Ok(true)
    }

    /// Where tasks of that host will listen: where the machine reaches it, unless the user has chosen another network.
    fn address_of(&self, hello: &Hello, host: &Listed) -> Result<IpAddr, Refusal> {
        let choice = self.across.interface.as_ref();
        let (ip, name) = (host.address.ip(), &host.name);
        let allowed = reach::chosen(&hello.candidates, choice);
        match (allowed.contains(&ip), choice) {
            (true, _) => Ok(ip),
            (false, None) => Err(Refusal::of_regatta(format!(
                "the host {name} has no address {ip}, at which the virtual machine reaches it: does something between them translate addresses?"
            ))),
            (false, Some(choice)) => allowed.first().copied().ok_or_else(|| {
                Refusal::of_regatta(format!(
                    "the host {name} has no address that --interface {choice} allows"
                ))
            }),
        }
    }
}

impl Arriving {
    fn remote(&self) -> Option<&Remote> {
        match &self.step {
            Step::Waiting(_) => None,
            Step::Greeting(remote, _) | Step::Preparing(remote) => Some(remote),
        }
    }

    fn remote_mut(&mut self) -> Option<&mut Remote> {
        match &mut self.step {
            Step::Waiting(_) => None,
            Step::Greeting(remote, _) | Step::Preparing(remote) => Some(remote),
        }
    }
}

/// Moves what there is to be moved; what is said on the way to an agent is of interest only when none comes.
fn attend(remote: &mut Remote, notes: &mut Vec<String>) {
    if remote.link.flush() > 0 {
        // A program that is being sent keeps the host busy.
        remote.heard = Instant::now();
    }
    remote.read();
    let lines = remote.errors();
    notes.extend(lines.iter().map(|line| format!("{}: {line}", remote.name)));
}

/// Whether a host has made everything ready.
fn prepared(remote: &mut Remote) -> Result<Option<()>, Refusal> {
    match gather::answer(remote)? {
        Some(Report::Prepared { addresses }) if addresses.is_empty() => Ok(Some(())),
        Some(_) => Err(gather::strange(remote)),
        None => Ok(None),
    }
}

impl Supervisor<'_> {
    /// Takes in hosts that the machine has, and the job has not. For so long the loop did not run.
    pub(super) fn grow(&mut self, away: Duration) {
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        growing.parted.retain(|remote| remote.command().is_some());
        if self.course.is_over() || self.course.is_ending() {
            growing.end();
        } else {
            let living = self.remotes.iter().filter(|remote| !remote.lost);
            let here = self.here.iter().map(String::as_str);
            let members = living.map(|remote| remote.name.as_str()).chain(here);
            growing.look(&members.collect::<Vec<_>>());
            for arriving in std::mem::take(&mut growing.arriving) {
                self.take_along(&mut growing, arriving, away);
            }
        }
        self.growing = Some(growing);
    }

    fn take_along(&mut self, growing: &mut Growing, mut arriving: Arriving, away: Duration) {
        if let Some(remote) = arriving.remote_mut() {
            remote.heard += away;
        }
        let living = self.remotes.iter().filter(|remote| !remote.lost);
        let identity =
            |remote: &Remote| Some((remote.hello.as_ref()?.host.clone(), remote.name.clone()));
        let others: Vec<_> = living.filter_map(identity).collect();
        let mut notes = Vec::new();
        let arrived = growing.advance(&mut arriving, &self.signals, &others, &mut notes);
        notes.iter().for_each(|note| self.output.say(note));
        match (arrived, arriving.step) {
            (Ok(true), Step::Preparing(remote)) => self.admit(growing, remote),
            (Ok(_), step) => growing.arriving.push(Arriving { step, ..arriving }),
            (Err(refusal), step) => {
                growing.part(step);
                let sentence = format!("{}; the job goes on without that host", refusal.sentence);
                self.output.say(&sentence);
            }
        }
    }

    /// Makes a host one of the job's.
    fn admit(&mut self, growing: &Growing, mut remote: Remote) {
        let Some(hello) = remote.hello.clone() else {
            return;
        };
        let addresses: Vec<SocketAddr> = growing.ground.addresses.clone();
        // What is said while a job runs fits every frame.
        let _ = remote.send(&Order::Start { addresses });
        for world in growing.worlds.iter().cloned() {
            let _ = remote.send(&Order::Enter { world });
        }
        for &(rank, cause) in &growing.gone {
            let _ = remote.send(&Order::Gone { rank, cause });
        }
        if growing.across.verbose {
            let sentence = format!("the host {} is a host of the job from now on", remote.name);
            self.output.say(&sentence);
        }
        self.course.add_host(remote.number, &remote.name);
        self.desk.host_added(Host {
            number: remote.number,
            name: remote.name.clone(),
            architecture: hello.architecture,
            cores: hello.cores,
            lives: true,
        });
        remote.heard = Instant::now();
        self.remotes.push(remote);
    }
}
