//! The way of a host into a running job: a shell, an agent that says what it is, a table of the job.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::event::PollFd;

use super::Growing;
use super::persons::Hand;
use super::wishes::Wish;
use crate::agent_call::{Called, Calling};
use crate::channel::Link;
use crate::channel::messages::{Hello, Order, Preparation, Report};
use crate::fleet::PER_CHANNEL;
use crate::membership_feed::Listed;
use crate::plan::Across;
use crate::refusal::Refusal;
use crate::remote::Remote;
use crate::rsh::Role;
use crate::signals::Signals;
use crate::{gather, limits, reach};

/// A host that the machine has just taken in may not know us yet, and then gives no shell: for so long it is asked again.
const ACQUAINTANCE: Duration = Duration::from_secs(3);
/// A person who is asked for a password has so much time.
const TYPING: Duration = Duration::from_secs(300);
/// And so often.
const AGAIN: Duration = Duration::from_millis(100);

/// A host that is not of the job yet.
pub(super) struct Arriving {
    pub(super) host: Listed,
    pub(super) since: Instant,
    pub(super) step: Step,
    /// The number that it was given before it came.
    pub(super) number: Option<u32>,
    /// The request for it; none: the machine named it.
    pub(super) wish: Option<Wish>,
}

pub(super) enum Step {
    /// Nothing leads there; tried again then.
    Waiting(Instant),
    /// A task is to start its agent, and has been asked under this number.
    Asked(u32),
    /// A person is to start its agent.
    ByHand(Hand),
    /// The agent runs, and is being called.
    Calling(Calling),
    /// A shell is to become an agent; whether it has.
    Greeting(Remote, bool),
    /// The agent makes the job's table.
    Preparing(Remote),
}

impl Growing<'_> {
    /// Takes a host as far as it goes now. `others` are what the living ones are, with their names.
    pub(super) fn advance(
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
                    let remote = self.open(arriving, signals)?;
                    arriving.step = Step::Greeting(remote, false);
                }
                step @ (Step::Asked(_) | Step::ByHand(_)) => {
                    arriving.step = step;
                    return Ok(false);
                }
                Step::Calling(mut calling) => match calling.advance() {
                    Called::Under => {
                        arriving.step = Step::Calling(calling);
                        return Ok(false);
                    }
                    Called::Met(conversation) => {
                        let link = Link::of_call(conversation);
                        let remote = Remote::without_command(&arriving.host.name, u32::MAX, link);
                        arriving.step = Step::Greeting(remote, false);
                    }
                    Called::Nobody => {
                        let name = &arriving.host.name;
                        return Err(Refusal::of_regatta(format!(
                            "the agent that was started on the host {name} does not answer at any address it may have: is it still there, and does a firewall let connections to it through?"
                        )));
                    }
                },
                Step::Greeting(remote, ready) => {
                    match self.greet((remote, ready), arriving, others, notes)? {
                        step @ Step::Preparing(_) => arriving.step = step,
                        step => {
                            arriving.step = step;
                            return Ok(false);
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

    /// Reads what a shell says that is to become an agent, and has the agent prepare the job.
    fn greet(
        &mut self,
        (mut remote, mut ready): (Remote, bool),
        arriving: &Arriving,
        others: &[(String, String)],
        notes: &mut Vec<String>,
    ) -> Result<Step, Refusal> {
        attend(&mut remote, notes);
        let young = arriving.wish.is_none() && arriving.since.elapsed() < ACQUAINTANCE;
        let heard = gather::greeting(&mut remote, &mut ready, notes);
        if young && remote.link.is_ended() && matches!(heard, Ok(None)) {
            self.part(Step::Greeting(remote, ready));
            return Ok(Step::Waiting(Instant::now() + AGAIN));
        }
        let patient = arriving.patient(self.across);
        let heard = heard
            .and_then(|heard| gather::or_failed(&patient, &mut remote, heard))
            .and_then(|heard| match heard {
                Some(hello) => self.prepare(&mut remote, hello, arriving, others),
                None => Ok(false),
            });
        match heard {
            Ok(true) => Ok(Step::Preparing(remote)),
            Ok(false) => Ok(Step::Greeting(remote, ready)),
            Err(refusal) => {
                self.part(Step::Greeting(remote, ready));
                Err(refusal)
            }
        }
    }

    fn open(&self, arriving: &Arriving, signals: &Signals) -> Result<Remote, Refusal> {
        let channels = self.next + self.arriving.len() as u32;
        // Should there be no room the opening says so.
        let _ = limits::make_room(limits::Files::Hosts(channels), PER_CHANNEL);
        let Arriving { host, wish, .. } = arriving;
        let Some(wish) = wish else {
            return self.open_by(self.across, &host.name, "", signals);
        };
        let (across, target) = wish.way(self.across);
        let mut remote = self.open_by(&across, &target, &wish.beginning(), signals)?;
        remote.name.clone_from(&host.name);
        Ok(remote)
    }

    /// Has the shell that a command leads to become an agent. `beginning` holds its first commands.
    fn open_by(
        &self,
        across: &Across,
        target: &str,
        beginning: &str,
        signals: &Signals,
    ) -> Result<Remote, Refusal> {
        let mut remote = Remote::open(across, u32::MAX, target, signals)?;
        let script = gather::script(across, Role::Agent)?;
        remote
            .link
            .send_raw(format!("{beginning}{script}").as_bytes());
        Ok(remote)
    }

    /// Has a host make everything ready for tasks that will be started there.
    fn prepare(
        &mut self,
        remote: &mut Remote,
        hello: Hello,
        arriving: &Arriving,
        others: &[(String, String)],
    ) -> Result<bool, Refusal> {
        let name = &remote.name;
        if let Some((_, other)) = others.iter().find(|(identity, _)| *identity == hello.host) {
            return Err(Refusal::of_regatta(format!(
                "the host {name} is {other} under another name"
            )));
        }
        let address = match &arriving.wish {
            Some(wish) => wish.address(&hello, self.across)?,
            None => self.address_of(&hello, &arriving.host)?,
        };
        remote.number = arriving.number.unwrap_or_else(|| self.new_number());
        remote.greeted(hello);
        let mut job = Preparation {
            here: remote.number,
            address,
            ..self.ground.template.clone()
        };
        if let Some(wish) = &arriving.wish {
            job.directory = wish.directory().into_bytes();
        }
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
    /// With the time that whoever has to type something may take.
    pub(super) fn patient<'a>(&self, across: &'a Across) -> Cow<'a, Across> {
        match self.wish.as_ref().and_then(|wish| wish.person.as_ref()) {
            None => Cow::Borrowed(across),
            Some(_) => Cow::Owned(Across {
                connect: TYPING,
                ..across.clone()
            }),
        }
    }

    /// Whether it is to be started by a task that has been asked under this number.
    pub(super) fn waits_for(&self, request: u32) -> bool {
        matches!(self.step, Step::Asked(of) if of == request)
    }

    pub(super) fn remote(&self) -> Option<&Remote> {
        match &self.step {
            Step::Greeting(remote, _) | Step::Preparing(remote) => Some(remote),
            _ => None,
        }
    }

    /// The descriptor to wait for while nothing leads there.
    pub(super) fn poll(&self) -> Option<PollFd<'_>> {
        match &self.step {
            Step::Calling(calling) => calling.poll(),
            _ => None,
        }
    }

    pub(super) fn remote_mut(&mut self) -> Option<&mut Remote> {
        match &mut self.step {
            Step::Greeting(remote, _) | Step::Preparing(remote) => Some(remote),
            _ => None,
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
