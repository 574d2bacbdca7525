//! The channels of arriving hosts. `crates/machine/job/src/hosts.rs` decides about these hosts. The decisions are
//! carried out here, for hosts that begin together (`gather.rs`) and for those that come later
//! (`supervise/growing.rs`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use regatta_job::hosts::{
    Admission, Answer, Arrivals, Effect, Expected, Input, MARK, Program, Question,
};
use regatta_program::Refusal;
use rustix::event::PollFd;
use rustix::process::{Pid, WaitStatus};

use crate::channel::messages::{Order, Report};
use crate::channel::remote::{self, Remote};
use crate::hosts::gather;
use crate::hosts::reach;
use crate::hosts::rsh;
use crate::plan::Across;

/// The arriving hosts, and the channels to them by their ids in [`Arrivals`].
pub(crate) struct Channels {
    pub arrivals: Arrivals,
    since: Instant,
    remotes: BTreeMap<u32, Remote>,
    /// Closed channels whose commands have not ended yet.
    parted: Vec<Remote>,
    /// Whether the command of a closed channel is ended at once. Otherwise it has until [`Self::part`] to end by
    /// itself.
    ends_commands: bool,
}

/// Returns the description of a host that is to arrive.
pub(crate) fn expected(across: &Across, name: &str, admission: Admission) -> Expected {
    Expected {
        name: name.to_owned(),
        command: rsh::command_words(across, name),
        number: None,
        is_called: false,
        admission,
    }
}

impl Channels {
    /// Returns the state without hosts. Hosts that arrive alone get numbers from `next` on.
    pub(crate) fn new(across: &Across, next: u32, ends_commands: bool) -> Self {
        let program = Program {
            identity: rsh::identity(),
            machine: format!("Linux {}", std::env::consts::ARCH),
        };
        Self {
            arrivals: Arrivals::new(program, across.interface.clone(), next),
            since: Instant::now(),
            remotes: BTreeMap::new(),
            parted: Vec::new(),
            ends_commands,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Records that a channel was opened to a host, or cannot be.
    pub(crate) fn opened(&mut self, id: u32, opened: Result<Remote, Refusal>) {
        let input = match opened {
            Ok(remote) => {
                self.remotes.insert(id, remote);
                Input::Opened
            }
            Err(refusal) => Input::Failed(refusal.sentence),
        };
        self.handle(id, input);
    }

    fn handle(&mut self, id: u32, input: Input) {
        self.arrivals.handle(self.since.elapsed(), id, input);
    }

    /// Sends an order to the agent of a host.
    pub(crate) fn send(&mut self, id: u32, order: &Order) {
        let sent = self.remotes.get_mut(&id).map(|remote| remote.send(order));
        if let Some(Err(refusal)) = sent {
            self.handle(id, Input::Failed(refusal.sentence));
        }
    }

    /// Reads the input of all hosts and handles it. `named` returns the addresses that a host's name resolves to.
    /// Returns lines from the standard error of those hosts' commands that have agents.
    pub(crate) fn hear(
        &mut self,
        across: &Across,
        named: impl Fn(u32) -> Vec<IpAddr>,
    ) -> Vec<String> {
        let (mut said, now) = (Vec::new(), self.since.elapsed());
        if self.ends_commands {
            self.parted.retain(|remote| remote.command().is_some());
        }
        for (&id, remote) in &mut self.remotes {
            // A host that is being sent the program counts as active, and so does one whose channel has ended, since
            // the reason is about to be known.
            let is_busy = remote.link.flush() > 0;
            if remote.read() || is_busy || remote.link.is_ended() {
                self.arrivals.handle(now, id, Input::Heard);
            }
            let lines = remote.errors();
            said.extend(lines.iter().map(|line| format!("{}: {line}", remote.name)));
            remote.beat_if_greeted();
            while let Some(has_agent) = self.arrivals.has_agent(id) {
                let input = next_input(remote, has_agent, across, || named(id));
                let Some(input) = input else { break };
                self.arrivals.handle(now, id, input);
            }
        }
        self.arrivals.tick(now);
        said
    }

    /// Carries out effects that need only a channel, and returns the next effect that needs more.
    pub(crate) fn poll(&mut self) -> Option<Effect> {
        loop {
            match self.arrivals.poll()? {
                Effect::SendProgram(id) => self.send_program(id),
                Effect::Ask(id, Question::Probe(targets)) if self.remotes.contains_key(&id) => {
                    self.send(id, &Order::Probe { targets });
                }
                // This host itself.
                Effect::Ask(id, Question::Probe(targets)) => {
                    let seen = reach::look_for(&targets);
                    self.handle(id, Input::Answer(Answer::Probed(seen)));
                }
                Effect::Ask(id, Question::Words(bytes)) => {
                    self.send(id, &Order::Charge { bytes });
                }
                Effect::Close(id) => {
                    let mut closed = self.remotes.remove(&id);
                    closed
                        .iter_mut()
                        .for_each(|remote| match self.ends_commands {
                            true => remote.lose(),
                            false => remote.link.close(),
                        });
                    self.parted.extend(closed);
                }
                effect => return Some(effect),
            }
        }
    }

    fn send_program(&mut self, id: u32) {
        let Some(remote) = self.remotes.get_mut(&id) else {
            return;
        };
        let read = gather::Program::own().and_then(|own| {
            std::fs::read(&own.path).map_err(|error| {
                Refusal::of_regatta(format!(
                    "this program cannot be read in order to send it to the host {}: {error}",
                    remote.name
                ))
            })
        });
        let input = match read {
            Ok(bytes) => {
                remote.link.send_raw(&bytes);
                Input::ProgramSent(bytes.len() as u64)
            }
            Err(refusal) => Input::Failed(refusal.sentence),
        };
        self.handle(id, input);
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.remotes.values().flat_map(Remote::polls)
    }

    /// Returns the commands that carry channels, or that have carried one and have not ended.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Pid> {
        let remotes = self.remotes.values().chain(&self.parted);
        remotes.filter_map(Remote::command)
    }

    /// Records the end of a child.
    pub(crate) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        let remotes = self.remotes.values_mut().chain(&mut self.parted);
        remotes.for_each(|remote| remote.reaped(pid, status));
    }

    /// Returns the time until something must be done for a host.
    pub(crate) fn until_step(&self) -> Option<Duration> {
        let now = self.since.elapsed();
        let due = self.arrivals.deadline();
        let due = due.map(|due| due.saturating_sub(now));
        let of_channel = |remote: &Remote| {
            let beat = remote.hello.as_ref().map(|_| remote.until_beat());
            beat.into_iter().chain(remote.until_concluded())
        };
        let channels = self.remotes.values().flat_map(of_channel);
        channels.chain(due).min()
    }

    /// Removes and returns the channel of a host.
    pub(crate) fn take_one(&mut self, id: u32) -> Option<Remote> {
        self.remotes.remove(&id)
    }

    /// Removes and returns all channels, in the order of their hosts.
    pub(crate) fn take(&mut self) -> Vec<Remote> {
        std::mem::take(&mut self.remotes).into_values().collect()
    }

    /// Closes all channels, and returns when their commands have ended.
    pub(crate) fn part(&mut self) {
        let mut all = self.take();
        all.append(&mut self.parted);
        remote::part(&mut all);
    }
}

/// Returns the next input from a host: a line of its shell, or a message of its agent, and finally the end of the
/// channel.
fn next_input(
    remote: &mut Remote,
    has_agent: bool,
    across: &Across,
    named: impl Fn() -> Vec<IpAddr>,
) -> Option<Input> {
    let heard = match has_agent {
        false => remote.link.line(MARK).map(|line| line.map(Input::Line)),
        true => remote.link.next().map(|report| {
            let report: Option<Report> = report;
            report.map(|report| input(remote, report, named))
        }),
    };
    match heard {
        Ok(Some(input)) => return Some(input),
        Ok(None) => {}
        Err(_) => return Some(Input::Nonsense),
    }
    let end = remote.end()?;
    Some(Input::Closed(end.refusal(across, &remote.name).sentence))
}

fn input(remote: &mut Remote, report: Report, named: impl Fn() -> Vec<IpAddr>) -> Input {
    match report {
        Report::Hello { hello } => {
            remote.greeted(hello.clone());
            Input::Greeting(Box::new(hello), named())
        }
        Report::Probed { seen } => Input::Answer(Answer::Probed(seen)),
        Report::Prepared { addresses } => Input::Answer(Answer::Prepared(addresses)),
        Report::Answer { bytes } => Input::Answer(Answer::Words(bytes)),
        Report::Refused { status, sentence } => Input::Refused(status as u8, sentence),
        Report::Beat {} => Input::Heard,
        _ => Input::Nonsense,
    }
}
