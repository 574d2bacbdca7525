//! Tasks that make random requests, and record everything that they receive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::{End, Ended};
use regatta_wire::control::{
    Ask, Ending, Event, Output, OutputFormat, Place, Spawn, Tell, WatchKind as Watched, flags,
};
use regatta_wire::fields::Message;
use regatta_wire::life::TaskState;

use super::{Sim, What};

/// The group that all tasks join and leave.
pub const GROUP: &str = "crew";
/// The name under which entries are put to be taken.
pub const BOX: &str = "box";

pub struct Task {
    pub host: u32,
    /// The request that has spawned it, if any.
    pub request: Option<(u32, u32)>,
    /// Whether its process runs, or has run.
    pub started: bool,
    /// `None` if it runs, or is to be started.
    pub end: Option<End>,
    pub ended_at: Option<Duration>,
    pub asked: BTreeMap<u32, Ask>,
    /// All answers, by the number of the request.
    pub answers: BTreeMap<u32, Vec<Tell>>,
    /// All events, with the number of the watch.
    pub events: Vec<(u32, Event)>,
    /// Watches that it has requested to forget.
    pub unwatched: BTreeSet<u32>,
    /// The time of the first answer to each request.
    pub answered_at: BTreeMap<u32, Duration>,
}

impl Task {
    /// Returns a task that runs or, if it was spawned by a request, is to be started.
    pub fn new(host: u32, request: Option<(u32, u32)>) -> Task {
        Task {
            host,
            request,
            started: request.is_none(),
            end: None,
            ended_at: None,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            events: Vec::new(),
            unwatched: BTreeSet::new(),
            answered_at: BTreeMap::new(),
        }
    }

    /// Records the end of a task, if it had not ended before.
    pub fn end_now(&mut self, now: Duration, end: End) {
        if self.end.is_none() {
            (self.end, self.ended_at) = (Some(end), Some(now));
        }
    }

    pub fn runs(&self) -> bool {
        self.started && self.end.is_none()
    }

    /// Returns the watches that were answered and not forgotten.
    pub fn watches(&self) -> impl Iterator<Item = (u32, Watched, u32)> {
        let kept = self.asked.values().filter_map(|ask| match ask {
            Ask::Watch { id, what, subject } => Some((*id, *what, *subject)),
            _ => None,
        });
        kept.filter(|(id, ..)| !self.unwatched.contains(id))
    }
}

/// Returns the value of an entry: the task that puts it, and the number of its request.
pub fn value_of(task: u32, id: u32) -> Vec<u8> {
    [task.to_le_bytes(), id.to_le_bytes()].concat()
}

/// Returns the task that has put an entry with this value, and its request.
pub fn put_by(value: &[u8]) -> Option<(u32, u32)> {
    let (task, id) = value.split_first_chunk()?;
    let id = id.try_into().ok()?;
    Some((u32::from_le_bytes(*task), u32::from_le_bytes(id)))
}

/// Returns the name of an entry that no other task puts.
pub fn own_name(task: u32, id: u32) -> String {
    format!("of-{task}-{id}")
}

impl Sim {
    /// Returns a random running task, if there is one.
    fn some_task(&mut self) -> Option<u32> {
        let running: Vec<u32> = (0..self.tasks.len() as u32)
            .filter(|task| self.tasks[*task as usize].runs())
            .filter(|task| self.hosts[self.tasks[*task as usize].host as usize].frozen <= self.now)
            .collect();
        let drawn = self.random(running.len() as u64) as usize;
        running.get(drawn).copied()
    }

    /// Lets a random task make a random request.
    pub fn act(&mut self) {
        let Some(task) = self.some_task() else { return };
        let id = self.tasks[task as usize].asked.len() as u32;
        let (hosts, tasks) = (self.hosts.len() as u64, self.tasks.len() as u64);
        let group = GROUP.to_owned();
        let put = |name: String, index, flags| Ask::Put {
            id,
            name,
            index,
            flags,
            value: value_of(task, id),
        };
        let request = match self.random(30) {
            23.. => return self.write(task),
            22 => Ask::Clock {
                id,
                host: self.random(hosts) as u32,
            },
            20.. => Ask::Spawn {
                id,
                order: self.some_order(task),
            },
            0..4 => Ask::Watch {
                id,
                what: Watched::TaskEnds,
                subject: self.random(tasks) as u32,
            },
            4..6 => Ask::Watch {
                id,
                what: Watched::HostLost,
                subject: self.random(hosts) as u32,
            },
            6 => {
                let watch = self.random(u64::from(id)) as u32;
                self.tasks[task as usize].unwatched.insert(watch);
                Ask::Unwatch { id, watch }
            }
            7..10 => put(own_name(task, id), None, flags::PERSISTENT),
            10..12 => {
                let kind = flags::SEVERAL | flags::OVERWRITABLE | flags::PERSISTENT;
                put(BOX.to_owned(), None, kind)
            }
            12..15 => Ask::Get {
                id,
                name: BOX.to_owned(),
                index: 0,
                flags: flags::FIRST | flags::DELETE | (flags::WAIT * self.random(2) as u32),
            },
            15 => Ask::Join { id, group },
            16 => Ask::Leave { id, group },
            17 => Ask::Members { id, group },
            18 => Ask::Meet {
                id,
                group,
                count: 2,
            },
            _ => Ask::Tasks { id },
        };
        self.ask(task, request);
    }

    /// Returns a random order for tasks, perhaps on behalf of another task.
    fn some_order(&mut self, task: u32) -> Spawn {
        let place = match self.random(4) {
            0 => Place::Here,
            1 => Place::Host(format!("h{}", self.random(self.hosts.len() as u64))),
            _ => Place::Any,
        };
        let tasks = self.tasks.len() as u64;
        let other = (self.random(4) == 0).then(|| self.random(tasks) as u32);
        let manner = OutputFormat {
            context: 0,
            tag: 0,
            lines: false,
            births: self.random(2) == 0,
        };
        Spawn {
            program: format!("of-{task}").into_bytes(),
            arguments: Vec::new(),
            count: 1 + self.random(3) as u32,
            place,
            search: None,
            directory: None,
            environment: Vec::new(),
            output: match self.random(3) {
                0 => Output::Job,
                1 => Output::AsMine,
                _ => Output::Me(manner),
            },
            orphans: self.random(8) == 0,
            through: None,
            on_behalf: other,
        }
    }

    pub fn ask(&mut self, task: u32, request: Ask) {
        if let Some(id) = request.id() {
            let asked = &mut self.tasks[task as usize].asked;
            asked.insert(id, request.clone());
        }
        self.request(task, &request);
    }

    /// Ends a random task: it leaves, or it is killed.
    pub fn end_some(&mut self) {
        let Some(rank) = self.some_task() else { return };
        let (end, state) = match self.random(2) {
            0 => (End::Exited(0), TaskState::Left),
            _ => {
                let (signal, core) = (9, false);
                (End::Signalled { signal, core }, TaskState::Joined)
            }
        };
        self.end_task(rank, end, state);
    }

    pub fn end_task(&mut self, rank: u32, end: End, state: TaskState) {
        let pid = 100 + rank;
        self.end(Ended {
            rank,
            pid,
            end,
            state,
        });
    }

    /// Delivers a message to a task. A task that has ended reads nothing.
    pub fn receive(&mut self, task: u32, bytes: &[u8]) {
        let (now, message) = (self.now, Tell::decode(bytes).expect("a message"));
        if self.tasks[task as usize].end.is_some() {
            return;
        }
        if let Tell::Output {
            task: by, bytes, ..
        } = &message
            && !bytes.is_empty()
        {
            let (by, bytes) = (*by, bytes.len() as u32);
            let at = self.after(0, 50);
            let (by, task) = (task, by);
            self.at(at, What::Read { by, task, bytes });
        }
        if let Tell::Event { watch, event } = message {
            self.note_told_twice(task, watch, &event);

            if !self.has_happened(&event) {
                let early = format!("task {task} hears too early: {event:?}");
                self.wrong.get_or_insert(early);
            }
            self.tasks[task as usize].events.push((watch, event));
        } else if let Some(id) = message.id() {
            let of = &mut self.tasks[task as usize];
            of.answers.entry(id).or_default().push(message);
            let twice = of.answers[&id].len() > 1;
            self.note_wrong(twice, || {
                format!("request {id} of task {task} is answered twice")
            });
            let task = &mut self.tasks[task as usize];
            task.answered_at.entry(id).or_insert(now);
        }
    }

    /// Checks that an end is notified exactly once.
    fn note_told_twice(&mut self, task: u32, watch: u32, event: &Event) {
        let is_end =
            |event: &Event| matches!(event, Event::TaskEnded { .. } | Event::HostLost { .. });
        let mut before = self.tasks[task as usize].events.iter();
        let twice = is_end(event) && before.any(|(of, event)| *of == watch && is_end(event));
        self.note_wrong(twice, || format!("task {task} hears twice: {event:?}"));
    }

    fn has_happened(&self, event: &Event) -> bool {
        match event {
            // There is no known task with this number.
            Event::TaskEnded {
                ending: Ending::Unknown,
                ..
            } => true,
            Event::TaskEnded { task, .. } => {
                let task = &self.tasks[*task as usize];
                task.end.is_some() || self.has_left(task.host)
            }
            // The job has no host with this number.
            Event::HostLost { name, .. } if name.is_empty() => true,
            Event::HostLost { host, .. } => self.has_left(*host),
            _ => true,
        }
    }
}
