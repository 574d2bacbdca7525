//! The news of a command about the hosts of a virtual machine, while a job runs in it.
//!
//! The command is `regatta hosts --watch --json`, or whatever the plan says. Each line that it writes lists all hosts; the
//! last one counts. It runs beside the tasks: no signal of the job is its, and it ends with the job.
//!
//! A command that ends before is started again: at once, then no more often than once in [`AGAIN`], and after longer and longer pauses (up to
//! [`LONGEST_PAUSE`]) while it ends without a report or cannot be started at all. That says nothing about the daemon, which may have no thread for
//! it at the moment. It is over only when a line says so (`"ending": true`): the last report of a daemon that ends, or the word of a command
//! that finds no daemon.

use std::collections::HashMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use regatta_job::failover::{HostState, MembershipView};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde_json::Value;

use crate::program;
use crate::refusal::Refusal;
use crate::signals::Signals;
use crate::sys::{self, Image, Mask, Place};

/// Read at once.
const PIECE: usize = 64 << 10;
/// Longer lines are nonsense: a host takes some 200 bytes.
const LONGEST: usize = 16 << 20;
/// From one time that the command is started again to the next.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest pause, after many lives without a report: a host that is cut off has to hear of it before a verdict is long past.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
const MOMENT: Duration = Duration::from_millis(10);

/// The command, as sentences name it.
const TELLER: &str = "the process that tells this job of the hosts of the virtual machine";

/// A host that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The name of this host and no other.
    pub name: String,
    /// Another one after the host has been gone.
    pub run: String,
    /// Where its daemon is.
    pub address: SocketAddr,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// The hosts that are up.
    pub hosts: Vec<Listed>,
    /// The daemon that says this ends, so no other report follows.
    pub ending: bool,
    /// The runs of all hosts that are not gone. With a hindrance the list of hosts says little.
    pub view: MembershipView,
    /// Of runs that are gone: why.
    pub causes: HashMap<String, String>,
}

/// The command, and what it has said.
#[derive(Debug)]
pub(crate) struct News {
    words: Vec<String>,
    mask: Mask,
    /// None: it has ended, or is to end.
    pipe: Option<OwnedFd>,
    /// Its standard input, and what it has not taken of that.
    input: Option<OwnedFd>,
    unsaid: Vec<u8>,
    teller: Option<Pid>,
    arrived: Vec<u8>,
    /// When it was last started again.
    began: Option<Instant>,
    /// It has reported since.
    has_reported: bool,
    /// How its process ended, until that has been looked at.
    end: Option<WaitStatus>,
    /// How many times in a row it has ended without a report, or could not be started.
    failures: u32,
    /// The last line says that the daemon ends, or has ended.
    ends: bool,
    /// How it fares, when there is something to say: a sentence, until somebody has taken it.
    remark: Option<String>,
    /// It was started again, and nobody has asked yet.
    revived: bool,
    /// It is not started again.
    over: bool,
}

/// A command that was started.
struct Life {
    pipe: OwnedFd,
    input: OwnedFd,
    teller: Pid,
}

impl News {
    /// Runs the command. One that cannot be started now is tried again.
    pub(crate) fn open(words: &[String], signals: &Signals) -> Self {
        Self::with_mask(words, *signals.before())
    }

    fn with_mask(words: &[String], mask: Mask) -> Self {
        let mut news = Self {
            words: words.to_vec(),
            mask,
            pipe: None,
            input: None,
            unsaid: Vec::new(),
            teller: None,
            arrived: Vec::new(),
            began: None,
            has_reported: false,
            end: None,
            failures: 0,
            ends: false,
            remark: None,
            revived: false,
            over: false,
        };
        news.begin();
        news
    }

    /// Starts the command.
    fn begin(&mut self) {
        self.has_reported = false;
        match Life::begin(&self.words, &self.mask) {
            Ok(life) => {
                self.pipe = Some(life.pipe);
                self.input = Some(life.input);
                self.teller = Some(life.teller);
            }
            Err(refusal) => self.fail(&refusal.sentence),
        }
    }

    /// The command has ended without a report, or could not be started.
    fn fail(&mut self, why: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 {
            self.remark = Some(format!(
                "{why}. Until it tells something, this job does not hear of hosts that are lost or added, nor whether this one is cut off; it is started again and again"
            ));
        }
    }

    /// The current report, if it is a new one.
    pub(crate) fn next(&mut self) -> Option<Report> {
        self.revive();
        self.flush();
        let mut piece = vec![0; PIECE];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut piece[..]) {
                Ok(count) if count > 0 && self.arrived.len() < LONGEST => {
                    self.arrived.extend_from_slice(&piece[..count]);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                _ => self.hush(),
            }
        }
        let end = self.arrived.iter().rposition(|&byte| byte == b'\n')?;
        let lines: Vec<u8> = self.arrived.drain(..=end).collect();
        let last = lines[..end].rsplit(|&byte| byte == b'\n').next()?;
        let said: Value = serde_json::from_slice(last).ok()?;
        self.ends = said["ending"] == true;
        self.over |= self.ends && self.pipe.is_none();
        let report = report(&said)?;
        self.has_reported = true;
        if std::mem::take(&mut self.failures) > 0 {
            self.remark = Some(format!("{TELLER} tells of them again"));
        }
        Some(report)
    }

    /// Starts the command again if it has ended, and some time has passed since it was started last.
    fn revive(&mut self) {
        if self.over || self.pipe.is_some() {
            return;
        }
        if let Some(teller) = self.teller {
            // Nobody else may look after children for a while.
            match rustix::process::waitpid(Some(teller), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => self.reaped(teller, status),
                Ok(None) | Err(Errno::INTR) => return,
                Err(_) => self.teller = None,
            }
        }
        if let Some(status) = self.end.take() {
            self.note_end(status);
        }
        if self.over || !self.pause().is_zero() {
            return;
        }
        self.began = Some(Instant::now());
        self.begin();
        self.revived |= self.pipe.is_some();
    }

    /// All that the command has said in this life is known.
    fn note_end(&mut self, status: WaitStatus) {
        let how = match (status.exit_status(), status.terminating_signal()) {
            (_, Some(signal)) => format!("was killed by signal {signal}"),
            (code, None) => format!("has ended with status {}", code.unwrap_or_default()),
        };
        if !self.has_reported {
            self.fail(&format!("{TELLER} {how} without a word"));
        } else if status.signaled() {
            self.remark = Some(format!("{TELLER} {how}; another one is started"));
        }
    }

    /// Until the command is to be started again, if it is.
    pub(crate) fn until_revival(&self) -> Option<Duration> {
        let is_due = !self.over && self.pipe.is_none();
        // One that is about to be gone may take a moment to end.
        is_due.then(|| self.pause().max(MOMENT))
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(8);
        let whole = (AGAIN * (1 << doublings)).min(LONGEST_PAUSE);
        let pause = |began: Instant| whole.saturating_sub(began.elapsed());
        self.began.map_or(Duration::ZERO, pause)
    }

    /// Whether the command was started again since this was last asked: what was said to it before is forgotten.
    pub(crate) fn take_revived(&mut self) -> bool {
        std::mem::take(&mut self.revived)
    }

    /// A sentence on how the command fares, once.
    pub(crate) fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// Says a line to the command. False: it has not taken the one before yet, or has ended and will be started again.
    pub(crate) fn send_line(&mut self, line: &[u8]) -> bool {
        self.flush();
        if self.pipe.is_none() {
            return self.over;
        }
        if !self.unsaid.is_empty() {
            return false;
        }
        self.unsaid.extend_from_slice(line);
        self.flush();
        true
    }

    fn flush(&mut self) {
        while let Some(input) = self.input.as_ref().filter(|_| !self.unsaid.is_empty()) {
            match rustix::io::write(input, &self.unsaid) {
                Ok(count) => drop(self.unsaid.drain(..count)),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.input = None,
            }
        }
        self.unsaid.clear();
    }

    /// Will nothing more be said?
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Nobody listens any more.
    pub(crate) fn close(&mut self) {
        self.over = true;
        self.hush();
    }

    fn hush(&mut self) {
        self.over |= self.ends;
        self.pipe = None;
        self.input = None;
        if let Some(teller) = self.teller {
            let _ = rustix::process::kill_process(teller, Signal::KILL);
        }
    }

    /// The process that tells, while it runs: no signal of the job is its.
    pub(crate) fn teller(&self) -> Option<Pid> {
        self.teller
    }

    /// Takes note of a child's end, if it is that process.
    pub(crate) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if self.teller != Some(pid) {
            return;
        }
        // Its last words may be in the pipe yet.
        (self.teller, self.end) = (None, Some(status));
    }

    /// The descriptors to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let pipe = self.pipe.iter();
        pipe.map(|pipe| PollFd::new(pipe, PollFlags::IN))
    }
}

impl Life {
    fn begin(words: &[String], mask: &Mask) -> Result<Self, Refusal> {
        let failed =
            |what: String| Refusal::of_regatta(format!("{TELLER} cannot be started: {what}"));
        let name = words.first().map_or("", String::as_str);
        let path = program::find(name.as_ref(), std::env::var_os("PATH").as_deref())?;
        let nothing =
            File::open("/dev/null").map_err(|error| failed(format!("/dev/null: {error}")))?;
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .and_then(|pipe| rustix::io::ioctl_fionbio(&pipe.0, true).map(|()| pipe))
            .map_err(|errno| failed(errno.to_string()))?;
        let (their_input, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .and_then(|pipe| rustix::io::ioctl_fionbio(&pipe.1, true).map(|()| pipe))
            .map_err(|errno| failed(errno.to_string()))?;
        let place = Place {
            stdio: [
                Some(their_input.as_fd()),
                Some(theirs.as_fd()),
                Some(nothing.as_fd()),
            ],
            kept: [None, None, None],
            cores: None,
            // Not the tasks': the keys of a terminal are not for it.
            group: sys::process_group(),
            files: None,
            mask,
        };
        let entry = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            sys::c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let teller = Image::new(
            sys::c_string(path.as_os_str().as_bytes()),
            words
                .iter()
                .map(|word| sys::c_string(word.as_bytes()))
                .collect(),
            std::env::vars_os().map(entry).collect(),
        )
        .start(c"LC_ALL=C".to_owned(), &place)
        .map_err(|error| failed(format!("{error:?}")))?;
        Ok(Self {
            pipe: ours,
            input,
            teller,
        })
    }
}

/// The report in a line; none if it makes no sense.
fn report(report: &Value) -> Option<Report> {
    let all = report["hosts"].as_array()?;
    let living = |host: &&Value| {
        let state = host["state"].as_str();
        state.is_some_and(|state| ["here", "up", "suspected"].contains(&state))
    };
    let living: Vec<&Value> = all.iter().filter(living).collect();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pair = |host: &&Value| {
        let state = match host["state"] == "suspected" {
            true => HostState::Suspected,
            false => HostState::Alive,
        };
        Some((text(&host["run"])?, state))
    };
    let cause = |host: &Value| Some((text(&host["run"])?, text(&host["cause"])?));
    let own = living.iter().find(|host| host["state"] == "here");
    Some(Report {
        hosts: listed(&living),
        ending: report["ending"] == true,
        view: MembershipView {
            own: own.and_then(|host| text(&host["run"])),
            left: living.iter().filter_map(pair).collect(),
            hindrance: text(&report["reason"]),
        },
        causes: all.iter().filter_map(cause).collect(),
    })
}

/// The hosts that are up, of those that are not gone.
fn listed(living: &[&Value]) -> Vec<Listed> {
    let mut names: HashMap<&str, u32> = HashMap::new();
    for name in living.iter().filter_map(|host| host["name"].as_str()) {
        *names.entry(name).or_default() += 1;
    }
    let host = |host: &&Value| {
        let name = host["name"].as_str().filter(|name| !name.is_empty())?;
        let address: SocketAddr = host["address"].as_str()?.parse().ok()?;
        // One that has not said what it is has no name yet.
        let up = host["state"] != "suspected" && host["cores"].is_u64();
        up.then_some(Listed {
            name: match names.get(name) {
                Some(1) => name.to_owned(),
                _ => address.to_string(),
            },
            run: host["run"].as_str()?.to_owned(),
            address,
        })
    };
    living.iter().filter_map(host).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use rustix::time::Timespec;
    use serde_json::json;

    use super::*;

    fn host(name: &str, number: u8, state: &str) -> Value {
        json!({"name": name, "run": format!("r{number}"), "address": format!("10.0.0.{number}:77"), "state": state, "cores": 2})
    }

    fn read(report: &Value) -> Report {
        super::report(report).expect("a report")
    }

    #[test]
    fn hosts_that_are_up_are_listed_under_names_that_mean_one() {
        let mut report = json!({"reason": null, "hosts": [
            host("alpha", 1, "here"), host("beta", 2, "up"), host("gamma", 3, "suspected"),
            host("twin", 4, "up"), host("twin", 5, "up"), host("beta", 2, "dead"), host("old", 6, "left"),
            {"name": "10.0.0.7:77", "run": "r7", "address": "10.0.0.7:77", "state": "up", "cores": null},
        ]});
        let all = ["alpha", "beta", "10.0.0.4:77", "10.0.0.5:77"].map(str::to_owned);
        let read_so = read(&report);
        let names: Vec<String> = read_so.hosts.iter().map(|host| host.name.clone()).collect();
        assert_eq!(names, all);
        assert_eq!((read_so.view.hindrance, read_so.ending), (None, false));
        report["reason"] = json!("only 1 of 3 hosts answer");
        let why = read(&report).view.hindrance;
        assert_eq!(why.as_deref(), Some("only 1 of 3 hosts answer"));
    }

    #[test]
    fn who_lives_who_is_here_and_why_others_are_gone_is_known_by_run() {
        let mut gone = host("delta", 4, "dead");
        gone["cause"] = json!("it has been silent");
        let hosts = [
            host("alpha", 1, "here"),
            host("beta", 2, "up"),
            host("gamma", 3, "suspected"),
            gone,
        ];
        let report = read(&json!({"reason": null, "hosts": hosts}));
        assert_eq!(report.view.own.as_deref(), Some("r1"));
        let view = &report.view;
        assert!(view.is_suspected("r3") && view.is_left("r2") && !view.is_suspected("r2"));
        assert!(!view.is_left("r4"));
        assert_eq!(
            report.causes.get("r4").map(String::as_str),
            Some("it has been silent")
        );
    }

    /// Runs a script of the shell, which knows in `$life` how often it was started, until it is over. Counts its reports.
    fn run_script(script: &str) -> (u32, Vec<String>) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("regatta-news-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).expect("a directory");
        let count = format!(
            "cd {} && touch $$ && life=$(ls | wc -l) && {script}",
            directory.display()
        );
        let words = ["/bin/sh", "-c", &count].map(str::to_owned);
        let mut news = News::with_mask(&words, sys::block(&[]));
        let (mut reports, mut remarks) = (0, Vec::new());
        while !news.is_over() {
            reports += u32::from(news.next().is_some());
            remarks.extend(news.take_remark());
            let left = news.until_revival().unwrap_or(AGAIN);
            let left = Timespec::try_from(left).expect("a short time");
            let mut fds: Vec<PollFd> = news.polls().collect();
            let _ = rustix::event::poll(&mut fds, Some(&left));
        }
        std::fs::remove_dir_all(&directory).expect("it is ours");
        (reports, remarks)
    }

    #[test]
    fn a_command_that_is_killed_is_started_again_until_it_finds_no_daemon() {
        // The first life is killed, the second ends after a report, the third finds no daemon.
        let script = "case $life in \
             1) echo '{\"hosts\":[]}'; kill -9 $$ ;; \
             2) echo '{\"hosts\":[]}' ;; \
             3) echo '{\"ending\":true}'; exit 125 ;; \
             esac";
        let (reports, remarks) = run_script(script);
        assert_eq!((reports, remarks.len()), (2, 1), "{remarks:?}");
        assert!(remarks[0].contains("killed by signal 9"), "{remarks:?}");
    }

    #[test]
    fn a_command_that_ends_without_a_report_is_started_again_until_it_tells_something() {
        // The daemon does not answer in the first two lives.
        let script = "case $life in \
             1) exit 125 ;; \
             2) kill -9 $$ ;; \
             3) echo '{\"hosts\":[]}'; echo '{\"ending\":true,\"hosts\":[]}' ;; \
             esac";
        let (reports, remarks) = run_script(script);
        assert!(reports > 0);
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        let first = "has ended with status 125 without a word";
        assert!(remarks[0].contains(first), "{remarks:?}");
        assert!(remarks[1].ends_with("tells of them again"), "{remarks:?}");
    }

    #[test]
    fn a_command_that_cannot_be_started_is_tried_again() {
        let words = ["/nowhere/regatta".to_owned()];
        let mut news = News::with_mask(&words, sys::block(&[]));
        assert!(news.take_remark().is_some());
        assert!(news.next().is_none() && !news.is_over());
        assert_eq!(news.take_remark(), None, "it is said once");
        assert!(news.until_revival().is_some_and(|left| left > AGAIN));
    }

    #[test]
    fn a_command_that_has_told_of_the_daemons_end_is_not_started_again() {
        let script = "echo '{\"ending\":true,\"hosts\":[]}'";
        assert_eq!(run_script(script), (1, Vec::new()));
    }

    proptest! {
        #[test]
        fn nonsense_lists_nobody(line in ".{0,80}", name in ".*", address in ".*", state in ".*") {
            let said = serde_json::from_str(&line).unwrap_or(Value::Null);
            let _ = super::report(&said);
            let host = json!({"name": name, "run": 3, "cores": 1, "address": address, "state": state});
            let report = json!({"hosts": [host, 7, null]});
            prop_assert_eq!(read(&report).hosts, Vec::new());
        }
    }
}
