//! The launcher's part in outliving it: who would come next is told who it is, and what the registry knows; and when this host
//! is cut off from a majority, or its daemon has ended, so that the others may go on without it, the job here ends.

use std::collections::BTreeMap;

use regatta_wire::fields::Message;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::news::Report;
use crate::plan::Growth;
use crate::refusal::STATUS_REFUSED;
use crate::remote::Remote;
use crate::succession::{self, DAEMON_ENDED, GOES_ON_AS_ANOTHER, Heir, Line};

/// Why the others go on, when the daemon of this host says that the host is not the one any more on which the job began.
const ANOTHER_RUN: &str =
    "the other hosts had declared this one dead, and this host goes on as another one";

/// Why the others go on, when the daemon of this host has closed the channel to the agent that has become a launcher.
const LET_GO: &str = "the daemon of this host has ended, or lets go of the job";

/// See the module.
#[derive(Debug)]
pub(super) struct Lineage {
    /// This host, and its run.
    name: String,
    run: String,
    /// The runs of the job's hosts, by their numbers.
    runs: BTreeMap<u32, String>,
    /// The job is being ended here because others may go on with it.
    cut_off: bool,
}

impl Lineage {
    /// Of a job of a virtual machine.
    pub(super) fn new(growth: Option<&Growth>, runs: BTreeMap<u32, String>) -> Option<Self> {
        let growth = growth.filter(|growth| !growth.command.is_empty())?;
        Some(Self {
            name: growth.host.clone(),
            run: growth.run.clone(),
            runs,
            cut_off: false,
        })
    }

    /// Whether the job was left to others.
    pub(super) fn is_left(&self) -> bool {
        self.cut_off
    }

    pub(super) fn add(&mut self, number: u32, run: &str) {
        self.runs.insert(number, run.to_owned());
    }

    /// Who comes next, and next to that, of these hosts.
    fn heirs(&self, remotes: &[Remote]) -> Vec<Heir> {
        let mut heirs: Vec<Heir> = remotes
            .iter()
            .filter(|remote| !remote.lost)
            .filter_map(|remote| {
                Some(Heir {
                    number: remote.number,
                    name: remote.name.clone(),
                    run: self.runs.get(&remote.number)?.clone(),
                })
            })
            .filter(|heir| heir.run != self.run)
            .collect();
        heirs.sort_by_key(|heir| heir.number);
        heirs
    }
}

impl Supervisor<'_> {
    /// The hosts of the job have changed: all hear who comes next, and the first of these get a copy of the registry.
    pub(super) fn draw_line(&mut self) {
        let Some(lineage) = &self.lineage else { return };
        let line = Line {
            launcher: lineage.run.clone(),
            name: lineage.name.clone(),
            heirs: lineage.heirs(&self.remotes),
        };
        // What older copies lack must not come after a new one that has it.
        self.spread();
        let copies = succession::copies(line.heirs.len() + 1);
        let first: Vec<u32> = line
            .heirs
            .iter()
            .take(copies)
            .map(|heir| heir.number)
            .collect();
        let (mut snapshot, mut new) = (None, Vec::new());
        for remote in self.remotes.iter_mut().filter(|remote| !remote.lost) {
            if first.contains(&remote.number) && !remote.copies {
                remote.copies = true;
                new.push(remote.number);
                send_copy(
                    remote,
                    false,
                    snapshot.get_or_insert_with(|| self.registry.snapshot()),
                );
            }
            let line = line.clone();
            let _ = remote.send(&Order::Line { line });
        }
        let nobody = !self.has_copies();
        let registry = &self.registry;
        let has_copy = |task: u32| {
            registry
                .host_of(task)
                .is_some_and(|host| new.contains(&host))
        };
        let words = self
            .unconfirmed
            .copies_change(|task| nobody || has_copy(task));
        self.pass_on(words);
    }

    /// Whether another host has a copy of the registry.
    fn has_copies(&self) -> bool {
        let mut remotes = self.remotes.iter();
        remotes.any(|remote| remote.copies && !remote.lost)
    }

    /// Whether what is said to tasks on a host has to wait until a copy of the registry knows of what it comes. Tasks on this host
    /// are lost with it.
    pub(super) fn must_wait(&self, host: u32) -> bool {
        let Some(lineage) = &self.lineage else {
            return false;
        };
        let is_here = lineage.runs.get(&host) == Some(&lineage.run);
        if is_here || self.unconfirmed.is_confirmed(self.registry.last_change()) {
            return false;
        }
        let mut remotes = self.remotes.iter();
        let remote = remotes.find(|remote| remote.number == host);
        remote.is_some_and(|remote| !remote.copies && !remote.lost) && self.has_copies()
    }

    /// Asks the hosts with copies how much they know, if words wait for that.
    pub(super) fn ask_copies(&mut self) {
        if self.unconfirmed.is_to_be_asked() {
            let keepers = self.remotes.iter_mut();
            for remote in keepers.filter(|remote| remote.copies && !remote.lost) {
                let _ = remote.send(&Order::Confirm {});
            }
        }
    }

    /// Says to tasks on other hosts what has waited.
    pub(super) fn pass_on(&mut self, words: Vec<(u32, Vec<u8>)>) {
        for (task, bytes) in words {
            let host = self.registry.host_of(task);
            if let Some(remote) = host.and_then(|host| self.remote(host)) {
                let _ = remote.send(&Order::Tell { task, bytes });
            }
        }
    }

    /// Sends the changes of the registry to all copies, before any task reads what came of them.
    pub(super) fn spread(&mut self) {
        for change in self.registry.take_changes() {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            let keepers = self.remotes.iter_mut();
            for remote in keepers.filter(|remote| remote.copies && !remote.lost) {
                send_copy(remote, true, &bytes);
            }
        }
    }

    /// Ends the job here if a channel has ended because the daemon of this host has, or goes on as another host: then all do, and
    /// the others take this host for lost, so that one of them may go on with the job.
    pub(super) fn heed_own_daemon(&mut self, cause: &str) {
        let is_own = cause == DAEMON_ENDED || cause.ends_with(GOES_ON_AS_ANOTHER);
        if is_own && self.leads_others() && !self.lifecycle.is_ending() {
            self.leave_to_others(cause);
        }
    }

    fn leads_others(&self) -> bool {
        let mut lineage = self.lineage.iter();
        lineage.any(|lineage| !lineage.heirs(&self.remotes).is_empty())
    }

    /// Ends the job here because the way has ended on which another launcher spoke to this process before: the daemon of this host
    /// has ended or lets go of the job. True: other hosts may go on with it.
    pub(super) fn heed_end_of_tether(&mut self) -> bool {
        let leaves = self.leads_others() && !self.lifecycle.is_ending();
        if leaves {
            self.leave_to_others(LET_GO);
        }
        leaves
    }

    /// Ends the job here, without a verdict on it: that is for the host that goes on with it.
    fn leave_to_others(&mut self, why: &str) {
        self.lineage
            .iter_mut()
            .for_each(|lineage| lineage.cut_off = true);
        self.output.say(&format!(
            "{why}. The job ends here, since it may go on there: `regatta ps` on one of those hosts tells"
        ));
        let mut actions = Vec::new();
        let now = self.started.elapsed();
        self.lifecycle.give_up(now, STATUS_REFUSED, &mut actions);
        self.perform(actions);
    }

    /// Ends the job here if this host is cut off from hosts of the job that may go on without it, or was declared dead by them.
    pub(super) fn heed_standing(&mut self, report: &Report) {
        let other_run = |lineage: &Lineage| {
            let own = report.own.as_ref();
            own.is_some_and(|own| *own != lineage.run)
        };
        if self.lineage.as_ref().is_some_and(other_run) {
            self.heed_own_daemon(ANOTHER_RUN);
        }
        let (Some(lineage), Some(why)) = (&self.lineage, &report.hindrance) else {
            return;
        };
        let silent = |run: &String| {
            let state = report.living.get(run);
            *run != lineage.run && state.is_some_and(|state| state == "suspected")
        };
        let cut_off: Vec<u32> = lineage
            .runs
            .iter()
            .filter(|(_, run)| silent(run))
            .map(|(number, _)| *number)
            .collect();
        if lineage.cut_off || cut_off.is_empty() || self.lifecycle.is_ending() {
            return;
        }
        self.leave_to_others(why);
        for index in 0..self.remotes.len() {
            let remote = &self.remotes[index];
            if cut_off.contains(&remote.number) && !remote.lost {
                self.host_lost(index, "it does not answer");
            }
        }
    }
}

/// A copy, or a change to it, in pieces that fit.
fn send_copy(remote: &mut Remote, change: bool, bytes: &[u8]) {
    let mut pieces = bytes.chunks(succession::PIECE).peekable();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        let bytes = piece.to_vec();
        let _ = remote.send(&Order::Copy {
            change,
            bytes,
            last,
        });
    }
}
