//! Where tasks ask: what the launcher knows of tasks and hosts, and what it does when a task asks for something.
//!
//! A state machine without clock and processes, like [`crate::course`]. Questions go in, and what has happened; answers
//! and events come out ([`Desk::take_said`]). What needs processes (starting, signals) is returned to the caller as a
//! [`Deed`].

#[path = "registry/groups.rs"]
mod groups;
#[path = "registry/sent.rs"]
mod memory;
#[path = "registry/names.rs"]
mod names;
#[path = "registry/replicated.rs"]
pub(crate) mod original;
#[path = "registry/outputs.rs"]
mod outputs;
#[path = "registry/placing.rs"]
mod placing;
#[cfg(test)]
#[path = "registry/tests.rs"]
mod tests;
#[path = "registry/watches.rs"]
mod watches;
#[path = "registry/snapshot.rs"]
mod whole;

use std::net::SocketAddr;
use std::rc::Rc;

use regatta_wire::control::{
    Ask, Ending, Event, HostInfo, HostStarted, Route, Spawn, TaskInfo, Tell, Why,
};

use crate::course::End;
use groups::Groups;
use memory::Memory;
pub(crate) use memory::{BYTES, WORDS, is_kept};
use names::Names;
use outputs::Written;
use watches::Watches;

/// A host of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) architecture: String,
    pub(crate) cores: u32,
    /// Compared to others; see [`SPEED`].
    pub(crate) speed: u32,
    pub(crate) lives: bool,
}

/// The speed of a host of which nobody has said another.
pub(crate) const SPEED: u32 = 1000;

/// A task that there is, or was.
#[derive(Clone, Debug)]
struct Task {
    parent: Option<u32>,
    host: u32,
    /// 0: it has not been started yet.
    pid: u32,
    program: Rc<[u8]>,
    ended: Option<Ending>,
    /// Its death by a signal has been asked for.
    doomed: bool,
    written: Written,
}

/// Who asks for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) by: u32,
    /// The number of the question.
    pub(crate) id: u32,
    /// Where a person can be asked.
    pub(crate) terminal: Option<String>,
}

/// What the launcher is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Start tasks.
    Spawn { by: u32, id: u32, order: Spawn },
    /// Send a signal to a task.
    Signal { task: u32, signal: i32 },
    /// End the job.
    Halt,
    /// Take hosts in, or give them back.
    Hosts { asker: Asker, wish: Wish },
    /// All members of a group have met; they may be lent a gate (see [`Desk::lend`]).
    Lend { group: String, members: Vec<u32> },
    /// Have this task start the tasks of its host.
    Starter { by: u32, id: u32 },
    /// Have this task start the agents of hosts that are to come, or no more.
    Hoster { by: u32, id: u32, on: bool },
    /// It says what has become of those that it was to start.
    HostsStarted {
        by: u32,
        id: u32,
        request: u32,
        hosts: Vec<HostStarted>,
    },
    /// The task that starts tasks in our place says that one has ended, with this status of `wait`.
    Ended {
        by: u32,
        id: u32,
        task: u32,
        status: i32,
    },
    /// Ask a host what time it is.
    Clock { by: u32, id: u32, host: u32 },
    /// A task has received so much of what another one has written.
    Taken { by: u32, task: u32, bytes: u32 },
    /// A task cannot reach another one, or can again.
    Reach {
        by: u32,
        task: u32,
        address: Option<SocketAddr>,
        silent: Option<u32>,
    },
}

/// What a task wants of hosts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// These are to be taken in, each a line of a host file.
    Add(Vec<String>),
    /// These are to be given back.
    Remove(Vec<String>),
    /// Those of this host file are to be taken in.
    File(String),
}

/// Why something is not done: a kind and a sentence.
pub(crate) type Refused = (Why, String);

/// See the module.
#[derive(Debug)]
pub(crate) struct Desk {
    tasks: Vec<Task>,
    hosts: Vec<Host>,
    /// The runs of hosts that are or were of the job, or could not be: none of them is taken in again.
    known: Vec<String>,
    watches: Watches,
    names: Names,
    groups: Groups,
    /// None: nobody will have to hear again what was said.
    memory: Option<Memory>,
    /// How many changes have made it what it is: of two copies, the one with more of them knows all that the other does.
    changes: u64,
    said: Vec<(u32, Tell)>,
}

impl Desk {
    /// For a job that begins with tasks of `program` on these hosts.
    pub(crate) fn new(hosts: Vec<Host>, host_of: &[u32], program: &[u8]) -> Self {
        let mut desk = Self {
            tasks: Vec::new(),
            hosts,
            known: Vec::new(),
            watches: Watches::default(),
            names: Names::default(),
            groups: Groups::default(),
            memory: None,
            changes: 0,
            said: Vec::new(),
        };
        desk.add_tasks(None, host_of, program, None);
        desk
    }

    /// Gives numbers to tasks that are to be started on these hosts, and whose output goes there; the first of the
    /// numbers.
    pub(crate) fn add_tasks(
        &mut self,
        parent: Option<u32>,
        host_of: &[u32],
        program: &[u8],
        route: Option<Route>,
    ) -> u32 {
        let first = self.tasks.len() as u32;
        let program: Rc<[u8]> = program.into();
        self.tasks.extend(host_of.iter().map(|&host| Task {
            parent,
            host,
            pid: 0,
            program: program.clone(),
            ended: None,
            doomed: false,
            written: Written::to(route),
        }));
        first
    }

    /// Whoever has started the tasks from this number on does not want to be their parent: each is its own.
    pub(crate) fn orphan(&mut self, from: u32) {
        for (number, task) in (0..).zip(&mut self.tasks).skip(from as usize) {
            task.parent = Some(number);
        }
    }

    /// Which members named groups have now: another number after each change, and never 0.
    pub(crate) fn groups_version(&self) -> u64 {
        self.groups.changes() + 1
    }

    fn has_host(&self, number: u32) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|host| host.number == number && host.lives)
    }

    /// How many changes it has seen, here and under other launchers; counted where copies are kept.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many numbers have been given.
    pub(crate) fn count(&self) -> u32 {
        self.tasks.len() as u32
    }

    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The process of a task; 0: it has not been started yet.
    pub(crate) fn pid(&self, task: u32) -> u32 {
        self.tasks.get(task as usize).map_or(0, |task| task.pid)
    }

    pub(crate) fn host_of(&self, task: u32) -> Option<u32> {
        self.tasks.get(task as usize).map(|task| task.host)
    }

    /// Is there such a task, which has not ended?
    pub(crate) fn is_running(&self, task: u32) -> bool {
        let task = self.tasks.get(task as usize);
        task.is_some_and(|task| task.ended.is_none())
    }

    /// How those tasks ended that have.
    pub(crate) fn endings(&self) -> impl Iterator<Item = (u32, Ending)> {
        let tasks = (0..).zip(&self.tasks);
        tasks.filter_map(|(number, task)| Some((number, task.ended?)))
    }

    /// What is to be said to whom; asked once.
    pub(crate) fn take_said(&mut self) -> Vec<(u32, Tell)> {
        std::mem::take(&mut self.said)
    }

    pub(crate) fn say(&mut self, to: u32, what: Tell) {
        self.note_said(to, &what);
        self.said.push((to, what));
    }

    /// Answers a question with its outcome.
    pub(crate) fn answer(&mut self, to: u32, id: u32, outcome: Result<u64, Refused>) {
        self.say(to, answer(id, outcome));
    }

    /// Is a question known that cannot be answered yet?
    pub(crate) fn is_pending(&self, by: u32, id: u32) -> bool {
        self.names.is_waiting(by, id) || self.groups.is_waiting(by, id)
    }

    /// A task asks something. What has to be done about it, if that is not done here.
    pub(crate) fn asked(&mut self, by: u32, ask: Ask) -> Option<Deed> {
        if !self.lives(by) {
            return None;
        }
        match ask {
            Ask::Spawn { id, order } => return Some(Deed::Spawn { by, id, order }),
            Ask::Signal {
                id,
                task,
                signal,
                end,
            } => {
                let allowed = self.may_signal(task, signal);
                let deed = allowed.is_ok().then_some(Deed::Signal { task, signal });
                if let (Ok(_), true, Some(doomed)) =
                    (&allowed, end, self.tasks.get_mut(task as usize))
                {
                    doomed.doomed = true;
                }
                self.answer(by, id, allowed.map(|()| 0));
                return deed.filter(|_| signal != 0);
            }
            Ask::Halt { id } => {
                self.answer(by, id, Ok(0));
                return Some(Deed::Halt);
            }
            Ask::AddHosts {
                id,
                hosts,
                terminal,
            } => {
                let (wish, asker) = (Wish::Add(hosts), Asker { by, id, terminal });
                return Some(Deed::Hosts { asker, wish });
            }
            Ask::RemoveHosts { id, hosts } => {
                let wish = Wish::Remove(hosts);
                let terminal = None;
                let asker = Asker { by, id, terminal };
                return Some(Deed::Hosts { asker, wish });
            }
            Ask::HostFile { id, text, terminal } => {
                let (wish, asker) = (Wish::File(text), Asker { by, id, terminal });
                return Some(Deed::Hosts { asker, wish });
            }
            Ask::Starter { id } => return Some(Deed::Starter { by, id }),
            Ask::Hoster { id, on } => return Some(Deed::Hoster { by, id, on }),
            Ask::HostsStarted { id, request, hosts } => {
                return Some(Deed::HostsStarted {
                    by,
                    id,
                    request,
                    hosts,
                });
            }
            Ask::Ended { id, task, status } => {
                return Some(Deed::Ended {
                    by,
                    id,
                    task,
                    status,
                });
            }
            Ask::Tasks { id } => {
                let tasks = self.task_infos();
                self.say(by, Tell::Tasks { id, tasks });
            }
            Ask::Hosts { id } => {
                let hosts = self.host_infos();
                self.say(by, Tell::Hosts { id, hosts });
            }
            Ask::Clock { id, host } => {
                if self.has_host(host) {
                    return Some(Deed::Clock { by, id, host });
                }
                let sentence = format!("the job has no host with the number {host}");
                self.answer(by, id, Err((Why::Host, sentence)));
            }
            Ask::Watch { id, what, subject } => self.watch(by, id, what, subject),
            Ask::Unwatch { id, watch } => {
                let forgotten = self.watches.forget(by, watch);
                self.answer(by, id, Ok(u64::from(forgotten)));
            }
            Ask::Put {
                id,
                name,
                index,
                flags,
                value,
            } => {
                let put = self.names.put(by, name.clone(), index, flags, value);
                let done = put.is_ok();
                self.answer(by, id, put.map(u64::from));
                if done {
                    self.serve(&name);
                }
            }
            Ask::Get {
                id,
                name,
                index,
                flags,
            } => {
                if let Some(outcome) = self.names.get(by, id, name, index, flags) {
                    self.tell_entry(by, id, outcome);
                }
            }
            Ask::Delete { id, name, index } => {
                let deleted = self.names.delete(by, &name, index);
                self.answer(by, id, deleted.map(|()| 0));
            }
            Ask::Names { id, pattern } => {
                let names = self.names.matching(&pattern);
                self.say(by, Tell::Names { id, names });
            }
            Ask::Join { id, group } => {
                let joined = self.groups.join(by, group);
                self.answer(by, id, joined.map(u64::from));
            }
            Ask::Leave { id, group } => {
                let left = self.groups.leave(by, &group);
                self.answer(by, id, left.map(|()| 0));
            }
            Ask::Members { id, group } => {
                let tasks = self.groups.members(&group);
                self.say(by, Tell::Members { id, tasks });
            }
            Ask::Groups { id } => {
                let groups = self.groups.infos();
                self.say(by, Tell::Groups { id, groups });
            }
            Ask::Meet { id, group, count } => match self.groups.meet(by, id, &group, count) {
                Ok((met, None)) => met
                    .into_iter()
                    .for_each(|(task, id)| self.answer(task, id, Ok(0))),
                Ok((met, Some(all))) => {
                    self.met(&met, &all);
                    let members = all.into_iter().flatten().collect();
                    return Some(Deed::Lend { group, members });
                }
                Err(refused) => self.answer(by, id, Err(refused)),
            },
            Ask::Taken { task, bytes } => return Some(Deed::Taken { by, task, bytes }),
            Ask::Reach {
                task,
                address,
                silent,
            } => {
                return Some(Deed::Reach {
                    by,
                    task,
                    address,
                    silent,
                });
            }
        }
        None
    }

    /// All members have met, under these questions.
    fn met(&mut self, met: &[(u32, u32)], all: &[Option<u32>]) {
        for &(task, id) in met {
            let (tasks, gate) = (all.to_vec(), 0);
            self.say(task, Tell::Met { id, tasks, gate });
        }
    }

    /// Those to whom it is still to be said that they have met are told of a gate. Copies of the desk know nothing of it:
    /// whoever is told by another launcher does without.
    pub(crate) fn lend(&mut self, members: &[u32], lent: u64) {
        for (task, tell) in &mut self.said {
            if let Tell::Met { gate, tasks, .. } = tell
                && members.contains(task)
                && tasks.iter().flatten().eq(members)
            {
                *gate = lent;
            }
        }
    }

    /// Whether a task runs, or is to be started.
    pub(crate) fn lives(&self, task: u32) -> bool {
        self.tasks
            .get(task as usize)
            .is_some_and(|task| task.ended.is_none())
    }

    fn may_signal(&self, task: u32, signal: i32) -> Result<(), Refused> {
        if signal != 0 && rustix::process::Signal::from_named_raw(signal).is_none() {
            let sentence = format!("{signal} is not the number of a signal");
            return Err((Why::Argument, sentence));
        }
        match self.tasks.get(task as usize) {
            None => Err((Why::Task, format!("the job has no task {task}"))),
            Some(Task { ended: Some(_), .. }) => {
                Err((Why::Task, format!("task {task} has ended already")))
            }
            Some(_) => Ok(()),
        }
    }

    fn task_infos(&self) -> Vec<TaskInfo> {
        (0..)
            .zip(&self.tasks)
            .filter(|(_, task)| task.ended.is_none() && task.pid != 0)
            .map(|(number, task)| TaskInfo {
                task: number,
                parent: task.parent,
                host: task.host,
                pid: task.pid,
                program: task.program.to_vec(),
            })
            .collect()
    }

    fn host_infos(&self) -> Vec<HostInfo> {
        let infos = self.hosts.iter().map(|host| HostInfo {
            host: host.number,
            name: host.name.clone(),
            architecture: host.architecture.clone(),
            cores: host.cores,
            tasks: self.tasks_on(host.number),
            speed: host.speed,
            lives: host.lives,
        });
        infos.collect()
    }

    fn tasks_on(&self, host: u32) -> u32 {
        let here = |task: &&Task| task.host == host && task.ended.is_none();
        self.tasks.iter().filter(here).count() as u32
    }

    /// Answers tasks that wait for an entry of this name, which is there now.
    fn serve(&mut self, name: &str) {
        for (task, id, outcome) in self.names.serve(name) {
            self.tell_entry(task, id, outcome);
        }
    }

    fn tell_entry(&mut self, to: u32, id: u32, outcome: Result<(u32, Vec<u8>), Refused>) {
        match outcome {
            Ok((index, value)) => self.say(to, Tell::Entry { id, index, value }),
            Err(refused) => self.answer(to, id, Err(refused)),
        }
    }

    /// A task runs.
    pub(crate) fn started(&mut self, task: u32, pid: u32) {
        if let Some(task) = self.tasks.get_mut(task as usize) {
            task.pid = pid;
        }
    }

    /// Would the death of this task be nobody's surprise? It was asked for, or another task watches for it.
    pub(crate) fn is_excused(&self, task: u32) -> bool {
        let doomed = self
            .tasks
            .get(task as usize)
            .is_some_and(|task| task.doomed);
        doomed || self.watches.watches_end_of(task)
    }

    /// A task has ended, or will never be started.
    pub(crate) fn ended(&mut self, number: u32, end: End) {
        let Some(task) = self.tasks.get_mut(number as usize) else {
            return;
        };
        if task.ended.is_some() {
            return;
        }
        let ending = match end {
            End::Exited(status) => Ending::Exited(status),
            End::Signalled { signal, .. } => Ending::Signalled(signal),
            End::Lost => Ending::Lost,
        };
        task.ended = Some(ending);
        let event = Event::TaskEnded {
            task: number,
            host: task.host,
            ending,
        };
        self.watches.forget_all(number);
        let mut watchers = self.watches.task_ended(number);
        watchers.extend(self.watches.of_every_task());
        for (watcher, watch) in watchers {
            let event = event.clone();
            self.say(watcher, Tell::Event { watch, event });
        }
        self.names.owner_gone(number);
        self.groups.gone(number);
        if let Some(memory) = &mut self.memory {
            memory.forget(number);
        }
    }

    /// A host has come.
    pub(crate) fn host_added(&mut self, host: Host) {
        let event = Event::HostAdded {
            host: host.number,
            name: host.name.clone(),
        };
        self.hosts.push(host);
        for (watcher, watch) in self.watches.host_added().to_vec() {
            let event = event.clone();
            self.say(watcher, Tell::Event { watch, event });
        }
    }

    /// The runs of hosts that are not taken in, or not again.
    pub(crate) fn known(&self) -> &[String] {
        &self.known
    }

    /// A host of this run is of the job, or is not for it.
    pub(crate) fn note_known(&mut self, run: &str) {
        // One without a run was asked for by its name, and may be again.
        if !run.is_empty() && !self.known.iter().any(|known| known == run) {
            self.known.push(run.to_owned());
        }
    }

    /// A host is so fast, compared to others.
    pub(crate) fn set_speed(&mut self, number: u32, speed: u32) {
        if let Some(host) = self.hosts.iter_mut().find(|host| host.number == number) {
            host.speed = speed;
        }
    }

    /// A host is gone. (Its tasks have been said to have ended.)
    pub(crate) fn host_lost(&mut self, number: u32) {
        let Some(host) = self.hosts.iter_mut().find(|host| host.number == number) else {
            return;
        };
        host.lives = false;
        let event = Event::HostLost {
            host: number,
            name: host.name.clone(),
        };
        for (watcher, watch) in self.watches.host_lost(number) {
            let event = event.clone();
            self.say(watcher, Tell::Event { watch, event });
        }
    }
}

/// The answer to a question, with its outcome.
fn answer(id: u32, outcome: Result<u64, Refused>) -> Tell {
    match outcome {
        Ok(value) => Tell::Done { id, value },
        Err((why, sentence)) => Tell::Refused { id, why, sentence },
    }
}
