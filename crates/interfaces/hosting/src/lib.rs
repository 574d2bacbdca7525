//! Starts the hosts that PVM programs request: the launcher's [`HostStarter`].
//!
//! ```text
//!                   a task that starts hosts reports            the agent is called
//!  start ──┬─▶ Asked ───────────────────────────┬─▶ Calling ──────────────────────▶ Started
//!          └─▶ ByHand ──────────────────────────┘      │
//!                   a person types a line               └ at none of its addresses: Failed
//! ```
//!
//! A host may stay in its first step for any time; other hosts are started meanwhile. An agent that was started by a
//! task or a person prints a contact line (`contact_line.rs`), which contains its addresses. All other hosts are
//! reached by the launcher's own shell command. Guarantee: each host is reported once, as started, failed or unwanted.

#![forbid(unsafe_code)]

mod agent_call;
pub mod called_agent;
mod contact_line;
mod hosters;
mod lines;
mod persons;
#[cfg(test)]
mod tests;

use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use regatta_hostfile::File;
use regatta_launch::host_starter::{
    HostChange, HostStarter, Reached, Refused, Requester, StartOutcome, WantedHost,
};
use regatta_wire::control::{HostStart, HostStarted, RequestError, Tell};
use rustix::event::PollFd;

use agent_call::{Called, Calling};
use contact_line::ContactLine;
use hosters::Hosters;
use persons::{Answer, Person};

/// The variable with the command by which PVM's users reach other hosts, if it is not ssh.
const SHELL: &str = "PVM_RSH";

/// Returns the words of the command that reaches a host, if it is not ssh.
pub fn shell() -> Option<Vec<String>> {
    let shell = std::env::var(SHELL).ok().filter(|shell| !shell.is_empty());
    shell.map(|shell| vec![shell, "{host}".to_owned()])
}

/// Makes the host starter of a job.
pub fn starter(reached: Reached) -> Box<dyn HostStarter> {
    Box::new(Starter {
        reached,
        file: File::default(),
        hosters: Hosters::default(),
        person: None,
        hosts: Vec::new(),
        outcomes: Vec::new(),
    })
}

/// The hosts that are being started.
struct Starter {
    reached: Reached,
    /// Options of hosts that may be requested, from host files.
    file: File,
    hosters: Hosters,
    /// The person who is being asked at a terminal, if any.
    person: Option<Person>,
    hosts: Vec<Starting>,
    /// Outcomes that have not been reported to the launcher.
    outcomes: Vec<StartOutcome>,
}

/// A host that is being started.
struct Starting {
    number: u32,
    host: WantedHost,
    /// The task that has requested it.
    by: u32,
    step: Step,
}

enum Step {
    /// A hoster has been asked to start its agent, with the request of this number.
    Asked(u32),
    /// A person at this terminal has to start its agent.
    ByHand(String),
    /// The agent runs, and is being called.
    Calling(Box<Calling>),
}

impl Starting {
    /// Begins to call the agent with this contact line.
    fn call(&mut self, line: &ContactLine) {
        let named = (self.host.target(), 0).to_socket_addrs();
        let named = named.into_iter().flatten().map(|address| address.ip());
        self.step = Step::Calling(Box::new(Calling::begin(line, named)));
    }

    fn command(&self) -> String {
        let own = regatta_trust::own_command();
        called_agent::command(&own, self.host.program.as_deref())
    }

    fn failed(self, why: RequestError, sentence: String) -> StartOutcome {
        StartOutcome::Failed {
            host: self.number,
            refused: (why, sentence),
        }
    }
}

impl HostStarter for Starter {
    fn read(
        &mut self,
        requester: &Requester,
        change: HostChange,
    ) -> Result<Vec<Result<WantedHost, Refused>>, Refused> {
        let by_hoster = self.is_started_by_task();
        let way = |host: &_| lines::way(host, by_hoster, self.reached, requester);
        lines::read(&mut self.file, change, way)
    }

    fn start(
        &mut self,
        requester: &Requester,
        hosts: Vec<(u32, WantedHost)>,
    ) -> Option<(u32, Tell)> {
        let mut starting: Vec<Starting> = hosts
            .into_iter()
            .map(|(number, host)| Starting {
                number,
                host,
                by: requester.by,
                step: Step::ByHand(requester.terminal.clone().unwrap_or_default()),
            })
            .collect();
        let by_task = self.is_started_by_task();
        let asked = by_task.then(|| starting.iter().map(host_start).collect());
        let asked = asked.and_then(|asked| self.hosters.begin(asked));
        if let Some((request, ..)) = &asked {
            for one in &mut starting {
                one.step = Step::Asked(*request);
            }
        }
        self.hosts.extend(starting);
        asked.map(|(_, task, told)| (task, told))
    }

    fn register(&mut self, task: u32, watch: Option<u32>) -> Result<(), Refused> {
        self.hosters.register(task, watch)
    }

    fn report(
        &mut self,
        task: u32,
        request: u32,
        reports: Vec<HostStarted>,
    ) -> Result<(), Refused> {
        self.hosters.close(request, task)?;
        let hosts = self.take(|one| matches!(one.step, Step::Asked(of) if of == request));
        let numbers: Vec<u32> = hosts.iter().map(|one| one.number).collect();
        if !hosters::is_about(&numbers, &reports) {
            let sentence = format!(
                "task {task}, which starts hosts, has not answered for the requested hosts, or has answered for others"
            );
            self.fail_request(hosts, sentence);
            return Ok(());
        }
        for mut one in hosts {
            let report = reports.iter().find(|report| report.host == one.number);
            match hosters::outcome(task, &one.host.name, report) {
                Ok(line) => {
                    one.call(&line);
                    self.hosts.push(one);
                }
                Err((why, sentence)) => self.outcomes.push(one.failed(why, sentence)),
            }
        }
        Ok(())
    }

    fn poll(&mut self, is_alive: &dyn Fn(u32) -> bool) -> Vec<StartOutcome> {
        for (request, task) in self.hosters.forget_ended(is_alive) {
            let hosts = self.take(|one| matches!(one.step, Step::Asked(of) if of == request));
            let sentence = format!("task {task}, which was to start hosts, has ended");
            self.fail_request(hosts, sentence);
        }
        let unwanted = self.take(|one| matches!(one.step, Step::ByHand(_)) && !is_alive(one.by));
        let unwanted = unwanted.into_iter();
        self.outcomes
            .extend(unwanted.map(|one| StartOutcome::Unwanted { host: one.number }));
        self.hear_persons();
        self.advance_calls();
        std::mem::take(&mut self.outcomes)
    }

    fn polls(&self) -> Vec<PollFd<'_>> {
        let calling = self.hosts.iter().filter_map(|one| match &one.step {
            Step::Calling(calling) => calling.poll(),
            _ => None,
        });
        let person = self.person.iter().map(Person::poll);
        calling.chain(person).collect()
    }

    fn until(&self) -> Option<Duration> {
        let until = |one: &Starting| match &one.step {
            Step::Asked(_) => None,
            // Another terminal dialogue is in progress: check again later.
            Step::ByHand(_) => self
                .person
                .is_none()
                .then_some(persons::TERMINAL_CHECK_INTERVAL),
            Step::Calling(calling) => {
                Some(calling.until().saturating_duration_since(Instant::now()))
            }
        };
        self.hosts.iter().filter_map(until).min()
    }

    fn abandon(&mut self) {
        self.hosts.clear();
        self.outcomes.clear();
        self.person = None;
    }
}

/// Returns the request to a hoster for this host.
fn host_start(one: &Starting) -> HostStart {
    let target = one.host.target();
    let login = one.host.login.as_ref();
    HostStart {
        host: one.number,
        manner: one.host.manner.clone(),
        login: login.map_or(target.to_owned(), |login| format!("{login}@{target}")),
        command: one.command(),
    }
}

impl Starter {
    /// Returns whether a task starts hosts in the launcher's place. In a virtual machine its daemons reach its hosts.
    fn is_started_by_task(&self) -> bool {
        !self.reached.in_machine && self.hosters.is_registered()
    }

    fn take(&mut self, is_it: impl Fn(&Starting) -> bool) -> Vec<Starting> {
        self.hosts.extract_if(.., |one| is_it(one)).collect()
    }

    /// Fails a request: all hosts that were requested together.
    fn fail_request(&mut self, hosts: Vec<Starting>, sentence: String) {
        let hosts = hosts.iter().map(|one| one.number).collect();
        self.outcomes
            .push(StartOutcome::RequestFailed { hosts, sentence });
    }

    /// Reads what persons have typed, and asks the next person.
    fn hear_persons(&mut self) {
        while let Some((at, answer)) = self.read_answer() {
            match answer {
                Ok(line) => self.hosts[at].call(&line),
                Err(why) => {
                    let one = self.hosts.remove(at);
                    let name = &one.host.name;
                    let sentence = format!("the manual start of the host {name} failed: {why}");
                    self.outcomes
                        .push(one.failed(RequestError::System, sentence));
                }
            }
        }
    }

    /// Returns the index of the next host whose person has answered or cannot be asked, with the answer.
    fn read_answer(&mut self) -> Option<(usize, Answer)> {
        loop {
            let asked = self.person.as_ref().map(Person::host);
            let mut hosts = self.hosts.iter().enumerate();
            let next = hosts.find_map(|(at, one)| match &one.step {
                Step::ByHand(terminal) if asked.is_none_or(|asked| asked == one.number) => {
                    Some((at, one, terminal))
                }
                _ => None,
            });
            let Some((at, one, terminal)) = next else {
                // The host for which a person was asked is no longer wanted. Continue with the others.
                self.person.take()?;
                continue;
            };
            let Some(person) = &mut self.person else {
                match Person::ask(one.number, &one.host.name, terminal, &one.command()) {
                    Ok(None) => return None,
                    Ok(person) => self.person = person,
                    Err(why) => return Some((at, Err(why))),
                }
                continue;
            };
            let answer = person.answer()?;
            self.person = None;
            return Some((at, answer));
        }
    }

    fn advance_calls(&mut self) {
        for mut one in std::mem::take(&mut self.hosts) {
            let Step::Calling(calling) = &mut one.step else {
                self.hosts.push(one);
                continue;
            };
            match calling.advance() {
                Called::Under => self.hosts.push(one),
                Called::Met(agent) => self.outcomes.push(StartOutcome::Started {
                    host: one.number,
                    agent,
                }),
                Called::Nobody(missing) => {
                    let name = &one.host.name;
                    let sentence = match missing {
                        Some(missing) => format!(
                            "the agent that was started on the host {name} cannot be called, because {missing}"
                        ),
                        None => format!(
                            "the agent that was started on the host {name} does not answer at any of its addresses; it may have ended, or a firewall may block connections to it"
                        ),
                    };
                    self.outcomes
                        .push(one.failed(RequestError::System, sentence));
                }
            }
        }
    }
}
