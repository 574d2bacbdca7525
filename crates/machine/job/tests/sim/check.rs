//! Properties that hold after every history, when nothing is in flight any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::failover::Follower;
use regatta_job::{End, Registry, ReplicatedRegistry};
use regatta_wire::control::{Ask, Ending, Event, Tell, WatchKind};
use regatta_wire::fields::Message;
use regatta_wire::life::TaskState;

use super::launcher::Launcher;
use super::tasks::{BOX, GROUP, Task, own_name, put_by};
use super::{Life, Owner, Sim, run_of};

/// A silence of a launcher, and the usual limit for it.
const LONG: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(10);

type Verdict = Result<(), String>;

impl Sim {
    /// Checks all properties. Asks for the state of the job first.
    pub fn check(&mut self) -> Verdict {
        self.fuse = None;
        match &self.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(()),
        }?;
        if self.is_lost() {
            return self.all_give_up();
        }
        let leader = self.one_leads()?;
        // Acknowledgements are changes, too, and are sent with the next message.
        self.speak(leader);
        self.settle();
        self.every_request_is_answered_once(leader)?;
        self.every_watch_is_notified_once()?;
        self.an_entry_is_taken_once()?;
        self.answers_name_the_spawned_tasks()?;
        self.answers_are_possible()?;
        self.tables_agree(leader)?;
        self.replicas_are_equal(leader)?;
        self.credit_is_whole(leader)?;
        self.events_come_in_one_order()?;
        self.every_host_that_runs_is_led(leader)?;
        self.every_channel_is_of_the_job(leader)?;
        self.promises_survive()?;
        self.the_job_ends_with_its_tasks(leader)
    }

    /// Returns the tasks that run.
    fn running(&self) -> impl Iterator<Item = (u32, &Task)> {
        let all = (0..).zip(&self.tasks);
        all.filter(|(_, task)| task.runs())
    }

    /// Returns whether the job is lost: no launcher works, for one of these reasons. The host whose turn it is has no
    /// replica, because the launcher was lost before it had arrived, or all hosts with one were lost. Or the agent of
    /// that host has ended, which the membership does not know, so the others wait for it.
    ///
    /// Or no host waits any more: the last one that claimed saw too few hosts that would follow, and left. For example,
    /// of two hosts that were left the agent of one had ended while there was no leader, since it was never told who
    /// leads next. Other checks make sure, when it happens, that this was so, and that no agent ends that has been told
    /// ([`Sim::note_enough`], [`Sim::silent`]).
    ///
    /// A host that the lost launcher had given up while it was alive may not have been told, and claims as well,
    /// perhaps after the other one. It is no host of the job any more: its replica ends before the loss, and the tables
    /// of the others record its tasks as lost. So it does not count for the majority, and must leave, whichever host
    /// leads or leaves. That it was given up is checked when it leaves ([`Sim::note_not_given_up`]).
    fn is_lost(&self) -> bool {
        if self.working_launcher().is_some() {
            return false;
        }
        let mut up = self.hosts.iter().filter(|host| host.life == Life::Up);
        let Some(first) = up.next() else {
            let mut of_job = self.launchers.iter().filter(|one| !one.was_given_up());
            return of_job.next_back().is_some_and(Launcher::has_seen_too_few);
        };
        let Some(follower) = &first.follower else {
            return false;
        };
        let has_ended = |run: &str| {
            let mut there = self.hosts.iter().filter(|host| run_of(host.machine) == run);
            there.all(|host| host.life == Life::Gone)
        };
        let is_left = |run: &&str| !first.dead.iter().any(|dead| run_of(*dead) == **run);
        let turn = follower.successors().find(is_left);
        follower.is_without_owner()
            && (!follower.replica.is_current() || turn.is_some_and(has_ended))
    }

    /// Checks that no host waits forever for a leader.
    fn all_give_up(&self) -> Verdict {
        let later = self.now + Duration::from_secs(31);
        let up = (0..)
            .zip(&self.hosts)
            .filter(|(_, host)| host.life == Life::Up);
        for (number, host) in up {
            let waits = |follower: &Follower| follower.is_patient(later, LONG, LIMIT);
            if host.follower.as_ref().is_some_and(waits) {
                return Err(format!("host {number} waits: {}", self.sketch()));
            }
        }
        Ok(())
    }

    /// Checks that one of the hosts that are left leads.
    fn one_leads(&self) -> Result<usize, String> {
        self.working_launcher()
            .ok_or_else(|| format!("nobody leads: {}", self.sketch()))
    }

    /// Checks that every request of a task that lives to the end is answered exactly once, or waits for an event that
    /// has not happened.
    fn every_request_is_answered_once(&self, leader: usize) -> Verdict {
        let registry = &self.launchers[leader].registry;
        for (number, task) in self.running() {
            for (id, asked) in &task.asked {
                let answers = task.answers.get(id).map_or(&[][..], Vec::as_slice);
                let is_right = match answers.len() {
                    0 => registry.is_pending(number, *id),
                    count => count == 1,
                };
                if !is_right {
                    return Err(format!(
                        "request {id} of task {number}, {asked:?}: {answers:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that each watch is notified of its end or loss exactly once.
    fn every_watch_is_notified_once(&self) -> Verdict {
        for (number, task) in self.running() {
            for (id, what, subject) in task.watches() {
                let refused = |answer: &Tell| matches!(answer, Tell::Refused { .. });
                if task.answers[&id].iter().any(refused) {
                    continue;
                }
                let happened = match what {
                    WatchKind::TaskEnds => {
                        let task = self.tasks.get(subject as usize);
                        // A number without a task.
                        task.is_none_or(|task| task.end.is_some())
                    }
                    _ => self.life(subject) == Life::Gone,
                };
                let events = task.events.iter().filter(|(watch, _)| *watch == id);
                let events: Vec<&Event> = events.map(|(_, event)| event).collect();
                let unknown = |event: &&Event| match event {
                    Event::TaskEnded { ending, .. } => *ending == Ending::Unknown,
                    Event::HostLost { name, .. } => name.is_empty(),
                    _ => false,
                };
                if events.len() == 1 && events.iter().any(unknown) {
                    continue;
                }
                if events.len() != usize::from(happened) {
                    return Err(format!(
                        "watch {id} of task {number}, {what:?} {subject}: {events:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that an entry that is deleted by the request that reads it is read by only one of the tasks that are
    /// left.
    fn an_entry_is_taken_once(&self) -> Verdict {
        let mut taken = BTreeMap::new();
        for (number, task) in self.running() {
            for answer in task.answers.values().flatten() {
                if let Tell::Entry { id, value, .. } = answer
                    && let Some(before) = taken.insert(value.clone(), (number, *id))
                {
                    return Err(format!(
                        "{before:?} and {:?} have taken {value:?}",
                        (number, id)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that every task that an answer names as started was started by that request. A spawned task that was
    /// started on a host that is left is named in the answer.
    fn answers_name_the_spawned_tasks(&self) -> Verdict {
        let mut named = BTreeSet::new();
        for (number, task) in self.running() {
            for answer in task.answers.values().flatten() {
                let Tell::Spawned { id, tasks, .. } = answer else {
                    continue;
                };
                for spawned in tasks.iter().flatten() {
                    let of = self.tasks.get(*spawned as usize);
                    let is_right = of.is_some_and(|of| of.request == Some((number, *id)));
                    if !is_right || !of.is_some_and(|of| of.started) || !named.insert(*spawned) {
                        return Err(format!(
                            "task {number} has not spawned {spawned}: {answer:?}"
                        ));
                    }
                }
            }
        }
        let started = (0..)
            .zip(&self.tasks)
            .filter(|(_, task)| task.started && self.life(task.host) == Life::Up);
        let requested = started.filter_map(|(number, task)| Some((number, task.request?)));
        for (number, (by, id)) in requested {
            if self.tasks[by as usize].runs() && !named.contains(&number) {
                return Err(format!(
                    "task {number} has started, and request {id} of {by} does not say so"
                ));
            }
        }
        Ok(())
    }

    /// Checks that every entry in an answer was put by some task, and every member that an answer names had requested
    /// to join.
    fn answers_are_possible(&self) -> Verdict {
        let has_asked = |task: u32, is_it: &dyn Fn(&u32, &Ask) -> bool| {
            let task = self.tasks.get(task as usize);
            task.is_some_and(|task| task.asked.iter().any(|(id, asked)| is_it(id, asked)))
        };
        for (number, task) in self.running() {
            for answer in task.answers.values().flatten() {
                let is_possible = match answer {
                    Tell::Entry { value, .. } => put_by(value).is_some_and(|(task, request)| {
                        has_asked(task, &|id, asked| {
                            *id == request && matches!(asked, Ask::Put { .. })
                        })
                    }),
                    Tell::Members { tasks, .. } | Tell::Met { tasks, .. } => {
                        let mut members = tasks.iter().flatten();
                        members.all(|member| {
                            has_asked(*member, &|_, asked| matches!(asked, Ask::Join { .. }))
                        })
                    }
                    _ => true,
                };
                if !is_possible {
                    return Err(format!("task {number} was answered {answer:?}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that all tables that are left record the same tasks as gone.
    fn tables_agree(&self, leader: usize) -> Verdict {
        // Numbers that only lost hosts knew do not count.
        let known = self.launchers[leader].registry.task_count() as usize;
        let ended = |(number, task): (u32, &Task)| task.end.map(|_| (number, task.host));
        let ended: Vec<(u32, u32)> = (0..).zip(&self.tasks[..known]).filter_map(ended).collect();
        for (number, host) in (0..).zip(&self.hosts) {
            if host.life != Life::Up {
                continue;
            }
            let elsewhere = ended.iter().filter(|(_, on)| *on != number);
            let expected: BTreeSet<u32> = elsewhere.map(|(task, _)| *task).collect();
            let own = |task: &&u32| self.tasks[**task as usize].host != number;
            let table: BTreeSet<u32> = host.table.keys().filter(own).copied().collect();
            if table != expected {
                return Err(format!(
                    "the table of host {number}: {table:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that every replica has applied as many changes as the leader has made, and is equal to its registry.
    fn replicas_are_equal(&self, leader: usize) -> Verdict {
        let leader = &self.launchers[leader];
        let snapshot = leader.registry.snapshot();
        for host in leader.remotes.keys() {
            let follower = self.hosts[*host as usize].follower.as_ref();
            let replica = &follower.expect("a follower").replica;
            if !leader.replication.holds(*host) {
                continue;
            }
            if replica.changes() != Some(leader.registry.changes()) {
                return Err(format!(
                    "host {host} has applied {:?} changes",
                    replica.changes()
                ));
            }
            let copy = match leader.registry.changes() {
                0 => None,
                changes => replica.later_snapshot(changes - 1),
            };
            if copy.is_some_and(|copy| copy != snapshot) {
                return Err(format!("the replica of host {host} is another one"));
            }
        }
        Ok(())
    }

    /// Checks that if a task has been told that it has put an entry, or joined or left a group, that is true under any
    /// later leader.
    fn promises_survive(&mut self) -> Verdict {
        let Some((witness, _)) = self.running().next() else {
            return Ok(());
        };
        let (names, members) = (u32::MAX, u32::MAX - 1);
        let pattern = "*".to_owned();
        let group = GROUP.to_owned();
        self.ask(witness, Ask::Names { id: names, pattern });
        self.ask(witness, Ask::Members { id: members, group });
        self.settle();
        let answers = &self.tasks[witness as usize].answers;
        let (Some([Tell::Names { names, .. }]), Some([Tell::Members { tasks, .. }])) = (
            answers.get(&names).map(Vec::as_slice),
            answers.get(&members).map(Vec::as_slice),
        ) else {
            return Err("the last questions are not answered".to_owned());
        };
        let names: BTreeSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
        match self.broken_promise(&names, tasks, |_| true) {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }

    /// Returns an entry or a membership that a task was told of and that does not exist. `is_meant` selects the tasks
    /// to check.
    fn broken_promise(
        &self,
        names: &BTreeSet<&str>,
        members: &[Option<u32>],
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<String> {
        for (number, task) in self.running().filter(|(number, _)| is_meant(*number)) {
            let (mut member, mut is_open) = (false, false);
            for (id, asked) in &task.asked {
                let done = task.answers.get(id).map(Vec::as_slice);
                let is_done = matches!(done, Some([Tell::Done { .. }]));
                match asked {
                    Ask::Put { name, .. }
                        if is_done
                            && name != BOX
                            && !names.contains(own_name(number, *id).as_str()) =>
                    {
                        return Some(format!("the entry {name} is lost"));
                    }
                    Ask::Join { .. } if is_done => member = true,
                    Ask::Leave { .. } if is_done => member = false,
                    Ask::Join { .. } | Ask::Leave { .. } => is_open |= done.is_none(),
                    _ => {}
                }
            }
            let is_member = members.contains(&Some(number));
            if member != is_member && !is_open {
                return Some(format!("task {number} is a member: {is_member}"));
            }
        }
        None
    }

    /// Checks that everything that was acknowledged survives a take-over: it is in the registry of the launcher that
    /// begins to lead.
    pub fn acknowledged_survives(&mut self, launcher: usize) {
        let registry = &self.launchers[launcher].registry;
        let copy = Registry::from_snapshot(&registry.snapshot()).expect("a snapshot");
        let is_alive = |task: u32| registry.is_alive(task);
        let mut copy = ReplicatedRegistry::new(copy, false);
        let Some((witness, _)) = self.running().find(|(task, _)| is_alive(*task)) else {
            return;
        };
        let (names, members) = (u32::MAX, u32::MAX - 1);
        let (pattern, group) = ("*".to_owned(), GROUP.to_owned());
        copy.take_messages();
        for question in [
            Ask::Names { id: names, pattern },
            Ask::Members { id: members, group },
        ] {
            let mut bytes = Vec::new();
            question.encode(&mut bytes);
            copy.handle_request(witness, &bytes);
        }
        let answers = copy.take_messages();
        let [
            (_, Tell::Names { names, .. }),
            (_, Tell::Members { tasks, .. }),
        ] = &answers[..]
        else {
            return self.note_wrong(true, || format!("{answers:?}"));
        };
        let names: BTreeSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
        let broken = self.broken_promise(&names, tasks, is_alive);
        self.note_wrong(broken.is_some(), || format!("after a take-over {broken:?}"));
    }

    /// Checks that two leaders never act at the same time.
    pub fn two_leaders_never_act(&mut self) {
        let acts = |one: &&Launcher| one.rejoin.is_none() && self.life(one.host) == Life::Up;
        let acting: Vec<u32> = self
            .launchers
            .iter()
            .filter(acts)
            .map(|one| one.host)
            .collect();
        self.note_wrong(acting.len() > 1, || format!("hosts {acting:?} lead"));
    }

    /// Checks that all tasks receive two events in the order in which the leader has decided them: all tasks that have
    /// watched for both before either happened have received them in one order.
    fn events_come_in_one_order(&self) -> Verdict {
        let mut orders = BTreeMap::new();
        for (number, task) in self.running() {
            let subjects = task.events.iter().filter_map(|(watch, _)| {
                let Some(Ask::Watch { what, subject, .. }) = task.asked.get(watch) else {
                    return None;
                };
                let answered = *task.answered_at.get(watch)?;
                let since = self.happened_at(*what, *subject)?;
                (answered < since).then_some((*what as u32, *subject, since, answered))
            });
            let subjects: Vec<_> = subjects.collect();
            for (at, first) in subjects.iter().enumerate() {
                for second in &subjects[at + 1..] {
                    let begin = first.2.min(second.2);
                    let both = (first.0, first.1) != (second.0, second.1);
                    if !both || first.3 >= begin || second.3 >= begin {
                        continue;
                    }
                    let (first, second) = ((first.0, first.1), (second.0, second.1));
                    let key = (first.min(second), first.max(second));
                    let (before, by) = *orders.entry(key).or_insert((first, number));
                    if before != first {
                        return Err(format!(
                            "tasks {by} and {number} receive {key:?} in different orders"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns when a task ended, or a host was lost with its tasks, or `None` if that is not known because the host
    /// was given up while it was alive.
    fn happened_at(&self, what: WatchKind, subject: u32) -> Option<Duration> {
        let ended = |task: &&Task| task.ended_at.is_some();
        let task = match what {
            WatchKind::TaskEnds => self.tasks.get(subject as usize).filter(ended),
            _ => self
                .tasks
                .iter()
                .filter(|task| task.host == subject)
                .find(ended),
        }?;
        let host = &self.hosts[task.host as usize];
        task.ended_at.filter(|_| !host.was_given_up)
    }

    /// Checks that no task runs on a host that has left the job, or was never taken over.
    fn every_host_that_runs_is_led(&self, leader: usize) -> Verdict {
        let leads = &self.launchers[leader];
        for (number, host) in (0..).zip(&self.hosts) {
            let is_led = host.owner == Owner::Leader(leader) && leads.remotes.contains_key(&number);
            if host.life == Life::Up && number != leads.host && !is_led {
                return Err(format!("nobody leads host {number}: {}", self.sketch()));
            }
        }
        Ok(())
    }

    /// Checks that every channel that was opened is closed, except those of the job, and those between lost hosts.
    fn every_channel_is_of_the_job(&self, leader: usize) -> Verdict {
        for (launcher, host) in self.channels.keys() {
            let ends = [*host, self.launchers[*launcher].host];
            let is_there = ends.iter().any(|end| self.life(*end) == Life::Up);
            let is_used = *launcher == leader && self.launchers[leader].remotes.contains_key(host);
            if is_there && !is_used {
                let launcher = ends[1];
                return Err(format!(
                    "the channel from {launcher} to {host} is open: {}",
                    self.sketch()
                ));
            }
        }
        Ok(())
    }

    /// Checks that a job ends when all of its tasks have ended, and not before.
    fn the_job_ends_with_its_tasks(&mut self, leader: usize) -> Verdict {
        loop {
            let lifecycle = &self.launchers[leader].lifecycle;
            let last = self.running().next().map(|(task, _)| task);
            match (lifecycle.is_over(), last) {
                (true, None) => return Ok(()),
                (false, Some(task)) => self.end_task(task, End::Exited(0), TaskState::Left),
                (is_over, _) => {
                    return Err(format!("the job is over: {is_over}, task {last:?} runs"));
                }
            }
            self.settle();
        }
    }
}
