//! Orders to the hosts of a job, including this one, their reports, and the loss of a host.

use std::time::Duration;

use super::Supervisor;
use regatta_program::Refusal;

use crate::channel::messages::{Order, Report};
use crate::channel::remote::{Loss, UNASKED};
use crate::tasks::Started;
use regatta_job::End;

/// Maximum number of messages of one host that are handled before the loop checks other events.
const MAX_BATCH: usize = 64;

impl Supervisor<'_> {
    /// Returns whether a task is on another host.
    pub(super) fn is_elsewhere(&self, task: u32) -> bool {
        let host = self.registry.host_of(task);
        host.is_some_and(|host| self.peers.get(host).is_some())
    }

    /// Gives an order to a host, which may be this one.
    pub(super) fn order(&mut self, host: u32, order: Order) -> Result<(), Refusal> {
        match self.peers.get_mut(host) {
            Some(remote) => remote.send(&order),
            None => {
                self.worker.obey(order);
                Ok(())
            }
        }
    }

    /// Gives an order to the host of a task.
    pub(super) fn order_for(&mut self, task: u32, order: Order) {
        let host = self.registry.host_of(task).unwrap_or(self.peers.number());
        // Orders for one task fit into every frame.
        let _ = self.order(host, order);
    }

    /// Handles this host's own reports.
    pub(super) fn handle_own_reports(&mut self) {
        while let Some(report) = self.worker.next_report() {
            // This host is never given up.
            let _ = self.handle_report(self.peers.number(), report);
        }
    }

    /// Returns the time until a keepalive must be sent, or a host has been silent for too long.
    pub(super) fn until_beat(&self) -> Option<Duration> {
        let silence = self.silence();
        self.peers
            .living()
            .map(|remote| {
                let silent = silence.saturating_sub(remote.heard.elapsed());
                let until = remote.until_beat().min(silent);
                remote.until_concluded().map_or(until, |at| at.min(until))
            })
            .min()
    }

    fn silence(&self) -> Duration {
        self.plan
            .across
            .as_ref()
            .map_or(Duration::MAX, |across| across.silence)
    }

    /// Handles the reports of the other hosts.
    pub(super) fn handle_hosts(&mut self) {
        let away = self.peers.away();
        self.grow(away);
        for index in 0..self.peers.others().len() {
            let remote = &mut self.peers.others_mut()[index];
            if remote.lost {
                continue;
            }
            remote.heard += away;
            remote.link.flush();
            let gone = match self.handle_host(index) {
                Ok(()) => self.is_gone(index),
                Err(cause) => Some(cause),
            };
            self.pass_errors(index);
            if let Some(cause) = gone {
                self.host_lost(index, &cause);
            } else {
                let remote = &mut self.peers.others_mut()[index];
                self.streams.repay(remote);
                remote.beat();
            }
        }
    }

    /// Shows the standard error of a channel's command, except the last lines, which give the reason for the loss of
    /// the host.
    fn pass_errors(&mut self, index: usize) {
        let remote = &mut self.peers.others_mut()[index];
        if remote.link.is_ended() {
            return remote.read_errors();
        }
        for line in remote.errors() {
            self.streams.report(&format!("{}: {line}", remote.name));
        }
    }

    /// Like `pass_errors`, at the end of the job, with the last lines.
    pub(super) fn pass_last_errors(&mut self) {
        for remote in self.peers.living_mut() {
            for line in remote.last_errors() {
                self.streams.report(&format!("{}: {line}", remote.name));
            }
        }
    }

    /// Handles what has arrived from one host. Fails with the reason if the host must be given up.
    fn handle_host(&mut self, index: usize) -> Result<(), String> {
        // Of a channel that has ended everything is handled, since the last message gives the reason.
        let mut batch = 0;
        while batch < MAX_BATCH || self.peers.others()[index].link.is_ended() {
            batch += 1;
            let report = self.peers.others_mut()[index]
                .link
                .next()
                .map_err(|_| "its agent violated the protocol".to_owned())?;
            match report {
                Some(report) => self.handle_report_of_remote(index, report)?,
                None if self.peers.others_mut()[index].read() => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn handle_report_of_remote(&mut self, index: usize, report: Report) -> Result<(), String> {
        let remote = &mut self.peers.others_mut()[index];
        self.streams.note(&report, remote)?;
        let host = remote.number;
        self.handle_report(host, report)
    }

    /// Handles a report of any host, this one included. Fails with the reason if that host must be given up.
    pub(super) fn handle_report(&mut self, host: u32, report: Report) -> Result<(), String> {
        match report {
            Report::Started { rank, pid } => self.task_started(Started { rank, pid }),
            Report::Output {
                rank,
                stream,
                bytes,
            } => self.pass_output(host, (rank, stream), &bytes),
            Report::Ended { task } => self.task_ended(task),
            Report::Refused { status, sentence } => {
                let sentence = self.named(host, sentence);
                self.cannot_start(&Refusal::new(status as u8, sentence));
            }
            Report::Asked { task, bytes } => self.asked(task, &bytes),
            Report::Caught { piece } => self.caught(piece),
            Report::Heard { task, count } => self.registry.acknowledged(task, count),
            Report::Copied { changes } => {
                let words = self.failover.confirm(changes);
                self.pass_on(words);
            }
            Report::Hushed { task } => self.hushed(task),
            Report::SpawnPrepared {
                spawn,
                addresses,
                refused,
            } => {
                let ready = refused.map_or(Ok(addresses), Err);
                self.spawn_prepared(host, spawn, ready);
            }
            Report::Entered { first, refused } => {
                let refused = refused.map(|(why, sentence)| (why, self.named(host, sentence)));
                self.spawn_entered(host, first, refused)?;
            }
            Report::SpawnStarted { task, pid, refused } => {
                let started = Started { rank: task, pid };
                self.spawn_started((task, refused.map_or(Ok(started), Err)));
            }
            Report::JoinRequested { .. } if !self.is_open() => self.gate.keep(host, report),
            Report::JoinRequested {
                caller,
                program,
                address,
            } => self.join((host, caller), program, address),
            Report::Clock { by, id, time } => {
                let answer = (host, by, id);
                self.time_requests
                    .answered(&mut self.registry, answer, time);
            }
            Report::Taken { bytes } => self.streams.input_taken(bytes),
            Report::Beat {} | Report::Strays { .. } | Report::Settled { .. } => {}
            Report::Farewell { why } => return Err(why),
            _ => return Err(UNASKED.to_owned()),
        }
        Ok(())
    }

    /// Returns a sentence from a host, with the host's name if it is another one.
    fn named(&self, host: u32, sentence: String) -> String {
        match self.peers.get(host) {
            Some(remote) => format!("on the host {}: {sentence}", remote.name),
            None => sentence,
        }
    }

    /// Sends the available standard input to the host of task 0.
    pub(super) fn send_input(&mut self) {
        if let Some(remote) = self.peers.of_first_task() {
            self.streams.send_input(remote);
        }
    }

    /// Returns why a host must be given up, if it must.
    fn is_gone(&mut self, index: usize) -> Option<String> {
        let silence = self.silence();
        let growing = self.growing.as_ref();
        let ended = |since: Duration| match growing {
            Some(growing) => growing.has_daemon_ended(since),
            None => Some(true),
        };
        match self.peers.others_mut()[index].loss(silence, ended)? {
            Loss::OfHost(cause) => Some(cause),
            Loss::OfThisHost(cause) => {
                self.handle_own_daemon(&cause);
                Some(cause)
            }
        }
    }

    pub(super) fn host_lost(&mut self, index: usize, cause: &str) {
        let remote = &mut self.peers.others_mut()[index];
        remote.lose();
        if remote.has(0) {
            self.streams.close_input();
        }
        let running: Vec<(u32, u32)> = std::mem::take(&mut remote.running).into_iter().collect();
        let unstarted = std::mem::take(&mut remote.unstarted);
        let (number, name) = (remote.number, remote.name.clone());
        self.failover.host_lost(number);
        // Before hosts are told of the loss: then they must not follow the lost host any more.
        self.hosts_changed();
        let pause = self.peers.paused_lately();
        let pause = pause.map_or(String::new(), |pause| {
            let seconds = pause.as_secs_f32();
            format!("; this launcher did not run for {seconds:.1} s and may have been stopped")
        });
        let sentence = format!("the host {name} is lost: {cause}{pause}");
        let mut actions = Vec::new();
        let registry = &self.registry;
        let excused = |rank: u32| registry.is_excused(rank);
        self.lifecycle.host_lost(
            self.started.elapsed(),
            &sentence,
            &running,
            &unstarted,
            excused,
            &mut actions,
        );
        self.perform(actions);
        for rank in running
            .iter()
            .map(|(rank, _)| *rank)
            .chain(unstarted.iter().copied())
        {
            self.forget_reach(rank);
            self.registry.close_streams(rank);
            self.registry.task_ended(rank, End::Lost);
            self.hushed(rank);
        }
        self.registry.host_lost(number);
        self.time_requests.host_lost(&mut self.registry, number);
        self.streams.host_lost(number);
        self.spawns_lose(number, &unstarted);
    }
}
