//! The numbers of a job, computed from the records of its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use regatta_record::{Call, CallRecord, Kind, Peer, Record, SIZES};

use crate::folder::Files;
use crate::unrecorded::Unrecorded;

/// The profile of a job. Times are in nanoseconds. Those of events count from the first moment of any task.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// Sorted by task number.
    pub tasks: Vec<Task>,
    /// The job's processes that never became tasks, if there is no task.
    pub never_joined: Vec<Record>,
    /// Sentences about what is missing.
    pub problems: Vec<String>,
    /// Upper limit of the job's duration, in nanoseconds.
    longest: u64,
}

/// What is known of a job without its records.
#[derive(Debug, Default)]
pub(crate) struct Began {
    /// Number of tasks that it began with, if given.
    pub tasks: Option<u32>,
    /// The status with which the job ended.
    pub status: u8,
    /// The folder of the records on each host.
    pub folder: PathBuf,
    /// Upper limit of the job's duration, in nanoseconds.
    pub longest: u64,
}

/// A task.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// Its number.
    pub number: u32,
    /// Its record.
    pub record: Record,
    /// Added to the record's times so that they count from the first moment of any task.
    shift: i128,
    /// Upper limit of the job's duration, in nanoseconds. No time is later.
    longest: u64,
    /// Life time of all its threads, minus the time in which nothing was recorded.
    pub time: u64,
    /// The part of `time` in calls, by kind.
    pub kinds: [u64; Kind::ALL.len()],
    /// The part of `time` without a processor, or `None` if it is not known.
    pub idle: Option<u64>,
    /// Its calls, summed over all threads.
    pub calls: Vec<CallRecord>,
    /// Its peers, summed over all threads.
    pub peers: Vec<Peer>,
    /// Number and bytes of the messages sent, by class of length.
    pub sent: Vec<(u64, u64)>,
    /// Number and bytes of the messages received, by class of length.
    pub received: Vec<(u64, u64)>,
}

impl Profile {
    /// Computes the profile from the records of a job.
    pub(crate) fn of(files: Files, began: &Began, mut problems: Vec<String>) -> Profile {
        let (files, unrecorded) = Unrecorded::split(files);
        let records = read(files, began.longest, &mut problems);
        problems.extend(unrecorded.problems(&began.folder));
        let (members, never_joined): (Vec<Record>, Vec<Record>) = records
            .into_iter()
            .partition(|record| record.head.task.is_some());
        let mut profile = Profile {
            never_joined: match members.is_empty() {
                true => never_joined,
                false => Vec::new(),
            },
            tasks: members
                .into_iter()
                .map(|record| Task::of(record, began.longest))
                .collect(),
            problems,
            longest: began.longest,
        };
        profile.tasks.sort_by_key(|task| task.number);
        profile.set_clocks();
        profile.say_what_is_missing(began, unrecorded.is_empty());
        profile
    }

    /// Makes all times count from one moment. Tasks on one host share a clock. Between hosts the times of day are used,
    /// unless a host's first time is later than the whole job has taken.
    fn set_clocks(&mut self) {
        let mut hosts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, task) in self.tasks.iter().enumerate() {
            hosts.entry(task.record.head.boot).or_default().push(place);
        }
        let mut begins = BTreeMap::new();
        for (boot, places) in &hosts {
            let day = self.day(places);
            let begin = places.iter().map(|&place| {
                let task = &mut self.tasks[place];
                task.shift = day;
                task.at_signed(task.record.head.began)
            });
            begins.insert(boot, begin.min().unwrap_or_default());
        }
        let first = begins.values().min().copied().unwrap_or_default();
        for (boot, places) in &hosts {
            let begin = begins[boot];
            let strange = begin - first > i128::from(self.longest);
            for &place in places {
                self.tasks[place].shift -= if strange { begin } else { first };
            }
            if strange {
                let host = &self.tasks[places[0]].record.head.host;
                self.problems.push(format!(
                    "the clock of {host} differs from those of other hosts by more than the duration of the job: its tasks are shown as if they had started with the first task"
                ));
            }
        }
    }

    /// Returns the difference between the time of day and the tasks' clock on a host: the median over its tasks, so
    /// that a damaged record has no effect.
    fn day(&self, places: &[usize]) -> i128 {
        let heads = places.iter().map(|&place| &self.tasks[place].record.head);
        let days = heads.map(|head| i128::from(head.began_real) - i128::from(head.began));
        let mut days: Vec<i128> = days.collect();
        days.sort_unstable();
        days[days.len() / 2]
    }

    fn say_what_is_missing(&mut self, began: &Began, all_could_record: bool) {
        if self.tasks.is_empty() {
            if all_could_record && !matches!(began.status, 125..=127) {
                self.problems.push(
                    "no task has a record, so there is no profile. Either no task called libregatta.so: link the program with the shared library (programs of the Rust interface, and those with libregatta.a, contain the library). Or no task could write a record; then the cause was printed to standard error"
                        .to_owned(),
                );
            }
            return;
        }
        let missing = self.missing(began.tasks.unwrap_or_default());
        if !missing.is_empty() {
            let shown = missing.iter().take(10).map(u32::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = if missing.len() > 10 {
                " and others"
            } else {
                ""
            };
            let room = match all_could_record {
                true => "",
                false => "it could not write one (see above), or ",
            };
            self.problems.push(format!(
                "there is no record of task {shown}{more}: {room}it never called libregatta.so, or its host is lost, or joined while the job ran (its records are in {} there)",
                began.folder.display()
            ));
        }
        for task in &self.tasks {
            self.problems.extend(task.problems());
        }
    }

    /// Returns tasks without a record, among those that the job began with and those that others have exchanged
    /// messages with.
    fn missing(&self, began: u32) -> BTreeSet<u32> {
        let peers = self.tasks.iter().flat_map(|task| &task.peers);
        let known = peers.filter_map(|peer| peer.task);
        let mut missing: BTreeSet<u32> = (0..began.min(1 << 16)).chain(known).collect();
        for task in &self.tasks {
            missing.remove(&task.number);
        }
        missing
    }

    /// Returns the time from the first moment of any task to the last.
    pub(crate) fn span(&self) -> u64 {
        let ends = self.tasks.iter().map(|task| task.at(task.record.head.last));
        ends.max().unwrap_or_default()
    }

    /// Returns the numbers of each call summed over all tasks, sorted by time, the largest first.
    pub(crate) fn calls(&self) -> Vec<CallRecord> {
        let all = self
            .tasks
            .iter()
            .flat_map(|task| task.calls.iter().copied());
        sum_of_calls(all)
    }

    /// Returns the messages sent and received, summed over all tasks, by class of length.
    pub(crate) fn sizes(&self) -> Vec<[(u64, u64); 2]> {
        let mut sums = vec![[(0u64, 0u64); 2]; SIZES];
        for task in &self.tasks {
            for (class, sum) in sums.iter_mut().enumerate() {
                for (sum, of_task) in sum.iter_mut().zip([&task.sent, &task.received]) {
                    let (count, bytes) = of_task.get(class).copied().unwrap_or_default();
                    *sum = (sum.0.saturating_add(count), sum.1.saturating_add(bytes));
                }
            }
        }
        sums
    }

    /// Returns the number and bytes of messages from one task to another, as counted by the sender, or by the receiver
    /// if the sender has not counted any.
    pub(crate) fn pairs(&self) -> BTreeMap<(u32, u32), (u64, u64)> {
        let mut pairs = BTreeMap::new();
        for task in &self.tasks {
            for peer in &task.peers {
                let Some(other) = peer.task else { continue };
                if peer.sent > 0 {
                    pairs.insert((task.number, other), (peer.sent, peer.sent_bytes));
                }
            }
        }
        for task in &self.tasks {
            for peer in &task.peers {
                let Some(other) = peer.task else { continue };
                if peer.received > 0 {
                    let received = (peer.received, peer.received_bytes);
                    pairs.entry((other, task.number)).or_insert(received);
                }
            }
        }
        pairs
    }

    /// Returns whether there are several hosts.
    pub(crate) fn several_hosts(&self) -> bool {
        let mut hosts = self.tasks.iter().map(|task| &task.record.head.host);
        let first = hosts.next();
        hosts.any(|host| Some(host) != first)
    }
}

/// Decodes these files. A malformed record is left out with a sentence in `problems`, and so is one with times longer
/// than the job.
fn read(files: Files, longest: u64, problems: &mut Vec<String>) -> Vec<Record> {
    let mut records = Vec::new();
    for (name, bytes) in files {
        match Record::read(&bytes) {
            Ok(record) if record.fits(longest) => records.push(record),
            Ok(_) => problems.push(format!(
                "the file {name} is ignored: it is damaged, because its times exceed the duration of the job"
            )),
            Err(fault) => problems.push(format!("the file {name} is ignored: {fault}")),
        }
    }
    records
}

impl Task {
    fn of(record: Record, longest: u64) -> Task {
        let calls = record.threads.iter().flat_map(|thread| thread.calls.iter());
        let calls = sum_of_calls(calls.copied());
        let mut kinds = [0u64; Kind::ALL.len()];
        for call in &calls {
            let kind = &mut kinds[call.call.kind() as usize];
            *kind = kind.saturating_add(call.time);
        }
        let threads = record.threads.iter();
        let lives = threads.map(|thread| thread.life.min(longest));
        let lives = lives.fold(0, u64::saturating_add);
        let time = lives.saturating_sub(record.head.off);
        let idle = (record.head.processor > 0)
            .then(|| lives.saturating_sub(record.head.processor).min(time));
        Task {
            number: record.head.task.unwrap_or_default(),
            shift: 0,
            longest,
            time: time.max(kinds.iter().fold(0, |sum, &time| sum.saturating_add(time))),
            kinds,
            idle,
            peers: sum_of_peers(record.threads.iter().flat_map(|thread| &thread.peers)),
            sent: sum_of_sizes(record.threads.iter().map(|thread| &thread.sent)),
            received: sum_of_sizes(record.threads.iter().map(|thread| &thread.received)),
            calls,
            record,
        }
    }

    /// Returns the time outside of calls.
    pub(crate) fn computing(&self) -> u64 {
        let calls = self
            .kinds
            .iter()
            .fold(0, |sum: u64, &time| sum.saturating_add(time));
        self.time.saturating_sub(calls)
    }

    fn at_signed(&self, time: u64) -> i128 {
        i128::from(time) + self.shift
    }

    /// Converts a time of the task's record to one of the job, limited to the job's duration.
    pub(crate) fn at(&self, time: u64) -> u64 {
        self.at_signed(time).clamp(0, self.longest.into()) as u64
    }

    /// Returns messages and bytes, sent and received.
    pub(crate) fn totals(&self) -> [(u64, u64); 2] {
        [&self.sent, &self.received].map(|sizes| {
            sizes.iter().fold((0, 0), |sum: (u64, u64), size| {
                (sum.0.saturating_add(size.0), sum.1.saturating_add(size.1))
            })
        })
    }

    /// Returns whether the record was cut short: the task was killed before it left or ended.
    pub(crate) fn cut_short(&self) -> bool {
        self.record.head.ended.is_none() && self.record.head.left.is_none()
    }

    /// Returns sentences about what its record lacks.
    fn problems(&self) -> Vec<String> {
        let (head, number) = (&self.record.head, self.number);
        let mut said = Vec::new();
        if self.cut_short() {
            let within = self.record.threads.iter().find_map(|thread| thread.current);
            let within = within.map_or(String::new(), |(call, _, peer)| {
                let peer = peer.map_or(String::new(), |peer| format!(", about task {peer}"));
                format!(", within {}{peer}", call.name())
            });
            said.push(format!(
                "task {number} was killed, or ended by _exit{within}; its numbers cover the time before"
            ));
        }
        if head.unrecorded > 0 {
            said.push(format!(
                "task {number} has more threads than can be recorded; {} of their calls are not counted",
                head.unrecorded
            ));
        }
        if head.samples_lost > 0 || head.names_lost > 0 {
            said.push(format!(
                "task {number}: there was no room for {} samples and {} marks or toggles",
                head.samples_lost, head.names_lost
            ));
        }
        said
    }
}

/// Returns the nanoseconds that a sample stands for, or `None` without sampling.
pub(crate) fn weight(record: &Record) -> Option<f64> {
    let head = &record.head;
    if head.period == 0 {
        return None;
    }
    // The kernel checks its timers once per clock tick, which may be less often than requested.
    let measured = head.processor as f64 / head.samples.max(1) as f64;
    let trusted = head.off == 0 && head.samples >= 20 && head.processor > 0;
    Some(match trusted {
        true => measured,
        false => head.period as f64,
    })
}

fn sum_of_calls(calls: impl Iterator<Item = CallRecord>) -> Vec<CallRecord> {
    let mut sums: BTreeMap<Call, CallRecord> = BTreeMap::new();
    for call in calls {
        sums.entry(call.call)
            .and_modify(|sum| {
                sum.count = sum.count.saturating_add(call.count);
                sum.time = sum.time.saturating_add(call.time);
                sum.longest = sum.longest.max(call.longest);
                sum.bytes = sum.bytes.saturating_add(call.bytes);
                sum.failed = sum.failed.saturating_add(call.failed);
                sum.busy = sum.busy.saturating_add(call.busy);
            })
            .or_insert(call);
    }
    let mut sums: Vec<CallRecord> = sums.into_values().collect();
    sums.sort_by_key(|call| std::cmp::Reverse((call.time, call.count)));
    sums
}

fn sum_of_peers<'a>(peers: impl Iterator<Item = &'a Peer>) -> Vec<Peer> {
    let mut sums: BTreeMap<Option<u32>, Peer> = BTreeMap::new();
    for peer in peers {
        let sum = sums.entry(peer.task).or_insert(Peer {
            task: peer.task,
            ..Peer::default()
        });
        sum.sent = sum.sent.saturating_add(peer.sent);
        sum.sent_bytes = sum.sent_bytes.saturating_add(peer.sent_bytes);
        sum.received = sum.received.saturating_add(peer.received);
        sum.received_bytes = sum.received_bytes.saturating_add(peer.received_bytes);
    }
    sums.into_values().collect()
}

fn sum_of_sizes<'a>(sizes: impl Iterator<Item = &'a Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
    let mut sums = vec![(0u64, 0u64); SIZES];
    for of_thread in sizes {
        for (sum, size) in sums.iter_mut().zip(of_thread) {
            *sum = (sum.0.saturating_add(size.0), sum.1.saturating_add(size.1));
        }
    }
    sums
}
