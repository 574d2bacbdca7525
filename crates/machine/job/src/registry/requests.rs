//! Requests of tasks. Each is answered here, or passed to the launcher as an [`Effect`].

use regatta_wire::control::{Ask, HostInfo, RequestError, TaskInfo, Tell};

use super::{Effect, HostChange, Refused, Registry, Requester, TaskRecord};

/// Highest number of a signal with a name. Real-time signals are not sent for tasks.
const LAST_SIGNAL: i32 = 31;

impl Registry {
    /// Handles a request of a task. Returns what the launcher must do for it, if anything. A task that has ended gets
    /// no answer.
    pub fn handle_request(&mut self, by: u32, request: Ask) -> Option<Effect> {
        if !self.is_alive(by) {
            return None;
        }
        match request {
            Ask::Signal {
                id,
                task,
                signal,
                end,
            } => return self.signal(by, id, (task, signal), end),
            Ask::Halt { id } => {
                self.reply(by, id, Ok(0));
                return Some(Effect::Halt);
            }
            Ask::Abort { id, status } => {
                self.reply(by, id, Ok(0));
                // Keep the low eight bits, as exit does.
                let status = status as u8;
                return Some(Effect::Abort { by, status });
            }
            Ask::Clock { id, host } => return self.read_clock(by, id, host),
            Ask::Tasks { id } => {
                let tasks = self.task_infos();
                self.send(by, Tell::Tasks { id, tasks });
            }
            Ask::Hosts { id } => {
                let hosts = self.host_infos();
                self.send(by, Tell::Hosts { id, hosts });
            }
            Ask::Watch { id, what, subject } => return self.watch(by, id, what, subject),
            Ask::Unwatch { id, watch } => {
                let forgotten = self.watches.forget(by, watch);
                self.reply(by, id, Ok(u64::from(forgotten)));
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
                self.reply(by, id, put.map(u64::from));
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
                    self.send_entry(by, id, outcome);
                }
            }
            Ask::Delete { id, name, index } => {
                let deleted = self.names.delete(by, &name, index);
                self.reply(by, id, deleted.map(|()| 0));
            }
            Ask::Add {
                id,
                name,
                index,
                amount,
            } => {
                let before = self.names.add(by, &name, index, amount);
                self.reply(by, id, before);
            }
            Ask::Names { id, pattern } => {
                let names = self.names.matching(&pattern);
                self.send(by, Tell::Names { id, names });
            }
            Ask::Join { id, group } => {
                let joined = self.groups.join(by, group);
                self.reply(by, id, joined.map(u64::from));
            }
            Ask::Leave { id, group } => {
                self.leave(by, id, &group);
            }
            Ask::Members { id, group } => {
                let tasks = self.groups.members(&group);
                self.send(by, Tell::Members { id, tasks });
            }
            Ask::Groups { id } => {
                let groups = self.groups.infos();
                self.send(by, Tell::Groups { id, groups });
            }
            Ask::Meet { id, group, count } => return self.meet(by, id, group, count),
            request @ (Ask::Spawn { .. }
            | Ask::AddHosts { .. }
            | Ask::RemoveHosts { .. }
            | Ask::HostFile { .. }
            | Ask::Starter { .. }
            | Ask::Hoster { .. }
            | Ask::HostsStarted { .. }
            | Ask::Ended { .. }
            | Ask::Taken { .. }
            | Ask::Reach { .. }) => return effect_of(by, request),
        }
        None
    }

    /// Requests a signal to a task. Signal 0 only tests whether the task exists. With `end` its death will be no
    /// failure.
    fn signal(
        &mut self,
        by: u32,
        id: u32,
        (task, signal): (u32, i32),
        end: bool,
    ) -> Option<Effect> {
        let allowed = self.may_signal(task, signal);
        let is_allowed = allowed.is_ok();
        if let (true, true, Some(known)) = (is_allowed, end, self.tasks.get_mut(task as usize)) {
            known.kill_requested = signal;
        }
        self.reply(by, id, allowed.map(|()| 0));
        (is_allowed && signal != 0).then_some(Effect::Signal { task, signal })
    }

    fn may_signal(&self, task: u32, signal: i32) -> Result<(), Refused> {
        if !(0..=LAST_SIGNAL).contains(&signal) {
            let sentence = format!("{signal} is not the number of a signal");
            return Err((RequestError::Argument, sentence));
        }
        match self.tasks.get(task as usize) {
            None => Err((RequestError::Task, format!("the job has no task {task}"))),
            Some(TaskRecord { ended: Some(_), .. }) => {
                Err((RequestError::Task, format!("task {task} has already ended")))
            }
            Some(_) => Ok(()),
        }
    }

    fn read_clock(&mut self, by: u32, id: u32, host: u32) -> Option<Effect> {
        let mut hosts = self.hosts.iter();
        if hosts.any(|known| known.number == host && known.alive) {
            return Some(Effect::ReadClock { by, id, host });
        }
        let sentence = format!("the job has no host with the number {host}");
        self.reply(by, id, Err((RequestError::Host, sentence)));
        None
    }

    /// Removes a member from a group, and its waiting requests from the group's barrier.
    fn leave(&mut self, by: u32, id: u32, group: &str) {
        let left = self.groups.leave(by, group);
        for waiting in left.iter().flatten() {
            let sentence = format!("task {by} has left the group {group:?}");
            self.reply(by, *waiting, Err((RequestError::State, sentence)));
        }
        self.reply(by, id, left.map(|_| 0));
    }

    /// Adds a member of a group to its barrier.
    fn meet(&mut self, by: u32, id: u32, group: String, count: u32) -> Option<Effect> {
        match self.groups.meet(by, id, &group, count) {
            Ok((met, None)) => {
                for (task, id) in met {
                    self.reply(task, id, Ok(0));
                }
            }
            Ok((met, Some(all))) => {
                for (task, id) in met {
                    let (tasks, barrier) = (all.clone(), 0);
                    self.send(task, Tell::Met { id, tasks, barrier });
                }
                let members = all.into_iter().flatten().collect();
                return Some(Effect::ShareBarrier { group, members });
            }
            Err(refused) => self.reply(by, id, Err(refused)),
        }
        None
    }

    /// Adds a shared barrier to the replies to these members that have not been taken yet. Copies of the registry do
    /// not record it, so a member that receives its reply from another launcher gets no shared barrier.
    pub fn share_barrier(&mut self, members: &[u32], barrier: u64) {
        for (task, message) in &mut self.outgoing {
            if let Tell::Met {
                barrier: lent,
                tasks,
                ..
            } = message
                && members.contains(task)
                && tasks.iter().flatten().eq(members)
            {
                *lent = barrier;
            }
        }
    }

    /// Returns whether a request waits for an event that has not happened yet, and that will answer it.
    pub fn is_pending(&self, by: u32, id: u32) -> bool {
        self.names.is_waiting(by, id) || self.groups.is_waiting(by, id)
    }

    pub(super) fn task_infos(&self) -> Vec<TaskInfo> {
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

    pub(super) fn host_infos(&self) -> Vec<HostInfo> {
        let infos = self.hosts.iter().map(|host| HostInfo {
            host: host.number,
            name: host.name.clone(),
            architecture: host.architecture.clone(),
            cores: host.cores,
            tasks: self.tasks_on(host.number),
            speed: host.speed,
            lives: host.alive,
        });
        infos.collect()
    }

    /// Answers tasks that wait for an entry of this name, which exists now.
    fn serve(&mut self, name: &str) {
        for (task, id, outcome) in self.names.serve(name) {
            self.send_entry(task, id, outcome);
        }
    }

    fn send_entry(&mut self, to: u32, id: u32, outcome: Result<(u32, Vec<u8>), Refused>) {
        match outcome {
            Ok((index, value)) => self.send(to, Tell::Entry { id, index, value }),
            Err(refused) => self.reply(to, id, Err(refused)),
        }
    }
}

/// Returns the effect of a request that the registry does not handle itself.
fn effect_of(by: u32, request: Ask) -> Option<Effect> {
    let hosts = |id, terminal, change| {
        let requester = Requester { by, id, terminal };
        Effect::Hosts { requester, change }
    };
    Some(match request {
        Ask::Spawn { id, order } => Effect::Spawn { by, id, order },
        Ask::AddHosts {
            id,
            hosts: lines,
            terminal,
        } => hosts(id, terminal, HostChange::Add(lines)),
        Ask::RemoveHosts { id, hosts: names } => hosts(id, None, HostChange::Remove(names)),
        Ask::HostFile { id, text, terminal } => hosts(id, terminal, HostChange::File(text)),
        Ask::Starter { id } => Effect::Starter { by, id },
        Ask::Hoster { id, on } => Effect::Hoster { by, id, on },
        Ask::HostsStarted { id, request, hosts } => Effect::HostsStarted {
            by,
            id,
            request,
            hosts,
        },
        Ask::Ended { id, task, status } => Effect::StartedTaskEnded {
            by,
            id,
            task,
            status,
        },
        Ask::Taken { task, bytes } => Effect::OutputReceived { by, task, bytes },
        Ask::Reach {
            task,
            address,
            silent,
        } => Effect::Reachability {
            by,
            task,
            address,
            silent,
        },
        _ => return None,
    })
}
