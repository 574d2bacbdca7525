//! A task that starts the agents of hosts in our place.
//!
//! ```text
//! task                                   launcher
//! Hoster        I start hosts        >                    PVM's hoster registers
//!                                    <   StartHosts       when somebody asks for hosts: their numbers, a command for each
//! HostsStarted  what they printed    >                    for each a contact line (`contact_line.rs`), or why not
//!                                        calls each agent, which then is one like any other (`called_agent.rs`)
//! ```
//!
//! A host waits in the step `Asked` from `StartHosts` on, however long the task takes: other hosts arrive meanwhile, and other
//! questions are put to the task. It leaves that step when the task answers, or ends: with neither a line nor a reason
//! it has not been started. A task that starts no more hosts still answers for those it has been told of. An answer to
//! nothing that was asked is refused, and changes nothing.

use regatta_hostfile::{Host, Start};
use regatta_job::registry::Refused;
use regatta_wire::control::{HostStart, HostStarted, Tell, Why};

use super::arriving::{Arriving, Step};
use super::{Growing, Supervisor};
use crate::agent_call::Calling;
use crate::called_agent;
use crate::contact_line::ContactLine;
use crate::gather::Program;

/// The requests to such a task, sent and not sent yet.
#[derive(Default)]
pub(super) struct Hosters {
    /// The task, and the number of its question for the answers.
    registered: Option<(u32, u32)>,
    /// The requests that have not been answered, and to whom they were put.
    open: Vec<(u32, u32)>,
    requests: u32,
}

/// Hosts that are to be asked for at once.
pub(super) struct Request {
    task: u32,
    watch: u32,
    pub(super) number: u32,
    hosts: Vec<HostStart>,
}

impl Hosters {
    /// This task starts hosts, which it is told by that question of its; or no more.
    fn register(&mut self, task: u32, watch: Option<u32>) -> Result<(), (Why, &'static str)> {
        let other = self.registered.is_some_and(|(other, _)| other != task);
        match watch {
            Some(_) if other => return Err((Why::Exists, "another task starts hosts already")),
            None if other || self.registered.is_none() => {
                return Err((Why::Task, "this task does not start hosts"));
            }
            _ => self.registered = watch.map(|watch| (task, watch)),
        }
        Ok(())
    }

    /// Begins a request, if there is who can be asked.
    pub(super) fn begin(&mut self) -> Option<Request> {
        let (task, watch) = self.registered?;
        let number = self.requests;
        self.requests = self.requests.wrapping_add(1);
        let hosts = Vec::new();
        Some(Request {
            task,
            watch,
            number,
            hosts,
        })
    }

    /// The message to send, and its receiver. None, if no host is left to be asked for.
    pub(super) fn put(&mut self, request: Request) -> Option<(u32, Tell)> {
        if request.hosts.is_empty() {
            return None;
        }
        self.open.push((request.number, request.task));
        let told = Tell::StartHosts {
            watch: request.watch,
            request: request.number,
            hosts: request.hosts,
        };
        Some((request.task, told))
    }

    /// Whether this task has been asked that, which is then answered.
    fn close(&mut self, request: u32, by: u32) -> bool {
        let place = self.open.iter().position(|&open| open == (request, by));
        place.map(|place| self.open.remove(place)).is_some()
    }
}

impl Request {
    /// One more host.
    pub(super) fn add(&mut self, number: u32, host: &Host) -> Result<(), Refused> {
        let own = Program::own().map_err(|refusal| (Why::System, refusal.sentence))?;
        let options = &host.options;
        let target = options.address.as_ref().unwrap_or(&host.name);
        let login = options.login.as_ref();
        self.hosts.push(HostStart {
            host: number,
            manner: match options.start {
                None => "",
                Some(Start::Password) => "pw",
                Some(Start::Manual) => "ms",
            }
            .to_owned(),
            login: login.map_or(target.clone(), |login| format!("{login}@{target}")),
            command: called_agent::command(&own.path, options.daemon.as_deref()),
        });
        Ok(())
    }
}

impl Supervisor<'_> {
    /// From now on this task starts the agents of hosts, or does so no more.
    pub(in crate::supervise) fn set_hoster(&mut self, by: u32, id: u32, on: bool) {
        let host = self.registry.host_of(by);
        let elsewhere = host.is_some_and(|host| self.remote(host).is_some());
        let outcome = match &mut self.growing {
            _ if elsewhere => Err((
                Why::Host,
                "only a task on the launcher's host can start hosts in the launcher's place",
            )),
            // Nobody will ever ask for a host.
            None => Ok(()),
            Some(growing) => growing.hosters.register(by, on.then_some(id)),
        };
        let outcome = outcome.map(|()| 0);
        let outcome = outcome.map_err(|(why, sentence)| (why, sentence.to_owned()));
        self.registry.reply(by, id, outcome);
    }

    /// Handles the result for the hosts that a task was asked to start.
    pub(in crate::supervise) fn hosts_started(
        &mut self,
        by: u32,
        id: u32,
        request: u32,
        hosts: Vec<HostStarted>,
    ) {
        let growing = self.growing.as_mut();
        if !growing.is_some_and(|growing| growing.hosters.close(request, by)) {
            let sentence = "nothing was asked under this number, or it has been answered";
            let refused = Err((Why::Argument, sentence.to_owned()));
            return self.registry.reply(by, id, refused);
        }
        self.registry.reply(by, id, Ok(0));
        if !self.is_about(request, &hosts) {
            let sentence = format!(
                "task {by}, which starts hosts, has not answered of those it was asked for, or of others"
            );
            return self.refuse_request(request, &sentence);
        }
        self.handle_answer(request, |arriving| {
            let said = hosts
                .iter()
                .find(|said| Some(said.host) == arriving.number);
            let name = &arriving.host.name;
            match said {
                Some(HostStarted {
                    refused: Some(why), ..
                }) => {
                    let sentence = format!("task {by}, which starts hosts, cannot start {name}");
                    Err((*why, sentence))
                }
                said => {
                    let line = said.map_or("", |said| &said.line);
                    ContactLine::read(line).ok_or_else(|| {
                        // A line that may hold a key is for nobody's log.
                        let line: String = line.chars().take(40).collect();
                        let sentence = format!(
                            "the host {name} was not started: task {by}, which starts hosts, got this answer there: {line}"
                        );
                        (Why::System, sentence)
                    })
                }
            }
        });
    }

    /// Waits no longer for tasks that have ended.
    pub(in crate::supervise) fn handle_hosters(&mut self) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        let (registry, hosters) = (&self.registry, &mut growing.hosters);
        hosters
            .registered
            .take_if(|(task, _)| !registry.is_alive(*task));
        let (open, lost) = hosters
            .open
            .drain(..)
            .partition(|(_, task)| registry.is_alive(*task));
        hosters.open = open;
        let lost: Vec<(u32, u32)> = lost;
        for (request, task) in lost {
            let sentence = format!("task {task}, which was to start hosts, has ended");
            self.refuse_request(request, &sentence);
        }
    }

    /// Whether an answer is about all hosts of a request, and about no others.
    fn is_about(&self, request: u32, hosts: &[HostStarted]) -> bool {
        let arriving = self.growing.iter().flat_map(|growing| &growing.arriving);
        let asked: Vec<u32> = arriving
            .filter(|arriving| arriving.waits_for(request))
            .filter_map(|arriving| arriving.number)
            .collect();
        let answered = |number: &u32| hosts.iter().any(|said| said.host == *number);
        asked.iter().all(answered) && hosts.iter().all(|said| asked.contains(&said.host))
    }

    /// Nothing comes of a request: nor of all that was asked for together with its hosts.
    fn refuse_request(&mut self, request: u32, sentence: &str) {
        self.output.report(sentence);
        let Some(growing) = &mut self.growing else {
            return;
        };
        let (gone, others) = std::mem::take(&mut growing.arriving)
            .into_iter()
            .partition(|arriving| arriving.waits_for(request));
        growing.arriving = others;
        let gone: Vec<Arriving> = gone;
        for wish in gone.into_iter().filter_map(|arriving| arriving.wish) {
            if let Some((by, id)) = growing.wishes.withdraw(&wish) {
                let refused = Err((Why::State, sentence.to_owned()));
                self.registry.reply(by, id, refused);
            }
        }
    }

    /// Takes the hosts of a request on from where they wait.
    fn handle_answer(
        &mut self,
        request: u32,
        heard: impl Fn(&Arriving) -> Result<ContactLine, Refused>,
    ) {
        let Some(mut growing) = self.growing.take() else {
            return;
        };
        let all = std::mem::take(&mut growing.arriving);
        for mut arriving in all {
            if !arriving.waits_for(request) {
                growing.arriving.push(arriving);
                continue;
            }
            match heard(&arriving) {
                Ok(contact_line) => {
                    let named = arriving.wish.iter().flat_map(|wish| wish.addresses());
                    arriving.step = Step::Calling(Calling::begin(&contact_line, named));
                    growing.arriving.push(arriving);
                }
                Err((why, sentence)) => {
                    self.output.report(&sentence);
                    self.fulfil(&mut growing, arriving.wish, Err((why, sentence)));
                }
            }
        }
        self.growing = Some(growing);
    }
}

impl Growing<'_> {
    /// The number of a host that is to come.
    pub(super) fn new_number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }
}
