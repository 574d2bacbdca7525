//! Carrying out one launch: the command, its time-out, and the machine's speed before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::discover::Competitor;
use crate::idle;
use crate::network::hosts::{Hosts, Passed};
use crate::network::{crossing, launch as between_hosts};
use crate::output::{self, Output};
use crate::plan::{self, Group, Launch, Work};
use crate::process::{self, Finished, Supervisor};
use crate::pvm::VirtualMachine;
use crate::regatta_pvm;
use crate::settings::Family;
use crate::speed::{self, Pair};
use crate::stop::Stop;

/// How long a blocked task is watched.
const WATCH: Duration = Duration::from_secs(2);

/// How many letters of a program's last words are kept as the reason of a failure.
const LONGEST_REASON: usize = 300;

/// Carries out launches, one at a time.
pub struct Runner {
    /// Folder for everything that is needed only during the race.
    pub work: PathBuf,
    /// The environments.
    pub competitors: Vec<Competitor>,
    /// Their programs; none where compiling failed.
    pub programs: Vec<Option<PathBuf>>,
    /// The hosts, unless there is only this one.
    pub hosts: Option<Hosts>,
    /// The processors whose distance is measured.
    pub pair: Option<Pair>,
    /// Milliseconds per point.
    pub budget: f64,
    /// Longest time of one launch.
    pub limit: Duration,
    /// Starts the programs, and knows when the race is to stop.
    pub supervisor: Supervisor,
}

/// The result of one launch.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which launch it was.
    pub launch: Launch,
    /// One way of a cache line before and after, ns.
    pub line_ns: [f64; 2],
    /// The measurements, perhaps from before something went wrong.
    pub measured: Measured,
    /// The failure, as a sentence.
    pub failure: Option<String>,
    /// Time the whole launch took, s.
    pub seconds: f64,
}

/// The figures of one launch.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The program's output.
    pub output: Output,
    /// From the launcher's start to its end, s.
    pub job: Option<f64>,
    /// Resident memory and proportional share per task, KiB.
    pub memory: Option<(f64, f64)>,
    /// Processor time of a blocked task, per cent.
    pub processor: Option<f64>,
    /// The traffic between hosts.
    pub passed: Passed,
    /// Bytes of messages that had to.
    pub due: u64,
}

impl Outcome {
    /// Neither a figure nor a failure.
    pub fn is_empty(&self) -> bool {
        self.failure.is_none() && self.measured.is_empty()
    }
}

impl Measured {
    fn is_empty(&self) -> bool {
        let figures = [
            self.job.is_some(),
            self.memory.is_some(),
            self.processor.is_some(),
        ];
        self.output.points.is_empty() && !figures.contains(&true)
    }
}

impl Runner {
    /// Carries out one launch of a group. None: the race is to stop, and the launch had given nothing yet.
    pub fn launch(&self, group: &Group, launch: Launch) -> Option<Outcome> {
        let before = self.line_ns();
        let shared = shared_files();
        let attempt = self.attempt(group, launch);
        let cut_short = match &attempt {
            Ok((_, finished)) => finished.interrupted,
            Err(_) => self.stop().is_asked(),
        };
        let (measured, failure, seconds) = match attempt {
            Ok((mut measured, finished)) => {
                let around = short_cut(&measured);
                if around.is_some() {
                    measured.output.points.clear();
                }
                let failure = failure_of(&finished, &measured.output, &group.work).or(around);
                (measured, failure, finished.seconds)
            }
            Err(error) => (Measured::default(), Some(format!("{error:#}")), 0.0),
        };
        if failure.is_some() || cut_short {
            remove_left_behind(&shared);
        }
        let after = if cut_short { before } else { self.line_ns() };
        let outcome = Outcome {
            launch,
            line_ns: [before, after],
            measured,
            failure: failure.filter(|_| !cut_short),
            seconds,
        };
        (!cut_short || !outcome.is_empty()).then_some(outcome)
    }

    /// The race's request to stop.
    pub fn stop(&self) -> &Stop {
        self.supervisor.stop()
    }

    /// The machine's speed now, ns; 0 where it cannot be measured.
    pub fn line_ns(&self) -> f64 {
        self.pair.map_or(0.0, speed::line_ns)
    }

    fn attempt(&self, group: &Group, launch: Launch) -> Result<(Measured, Finished)> {
        let competitor = &self.competitors[group.competitor];
        let pvm = match competitor.family {
            Family::Pvm => Some(VirtualMachine::start(
                &self.supervisor,
                competitor,
                &self.work,
                self.hosts.as_ref(),
            )?),
            _ => None,
        };
        let regatta_pvm = match competitor.family {
            Family::RegattaPvm => Some(regatta_pvm::Machine::start(
                &self.supervisor,
                competitor,
                &self.work,
            )?),
            _ => None,
        };
        let hold = self.work.join("hold");
        let mut command = self.command(group, launch, &hold)?;
        command.envs(pvm.as_ref().map(|machine| ("PVM_TMP", machine.folder())));
        command.envs(regatta_pvm.as_ref().map(regatta_pvm::Machine::variable));
        // Between hosts everything ends with the race's namespaces.
        if self.hosts.is_none() && group.work != Work::JoinLeave {
            command = process::tied(command);
        }
        match group.work {
            Work::IdleMemory | Work::IdleProcessor => self.watch_idle(&mut command, group, &hold),
            Work::Points(_) | Work::JoinLeave | Work::Spawn | Work::Notify => {
                let passed = || self.hosts.as_ref().map(Hosts::passed).unwrap_or_default();
                let before = passed();
                let finished = self.supervisor.run(&mut command, self.limit)?;
                let after = passed();
                let output = output::parse(&finished.stdout);
                let due = self.hosts.as_ref().map_or(0, |hosts| {
                    crossing::least(&output.points, group.tasks, hosts.number())
                });
                let job = (group.work == Work::JoinLeave && !finished.interrupted)
                    .then_some(finished.seconds);
                Ok((
                    Measured {
                        output,
                        job,
                        passed: after.since(before),
                        due,
                        ..Measured::default()
                    },
                    finished,
                ))
            }
        }
    }

    /// The launcher, its settings, the program and its arguments.
    fn command(&self, group: &Group, launch: Launch, hold: &Path) -> Result<Command> {
        let competitor = &self.competitors[group.competitor];
        let program = self.program(group)?;
        let mut command = match &self.hosts {
            Some(hosts) => {
                hosts.reset();
                between_hosts::command(hosts, competitor, group, program)
            }
            None => here(competitor, group, program),
        };
        self.arguments(&mut command, group, launch, hold);
        Ok(command)
    }

    fn program(&self, group: &Group) -> Result<&PathBuf> {
        let program = self.programs[group.competitor].as_ref();
        program.ok_or_else(|| anyhow::anyhow!("its program could not be compiled"))
    }

    /// As [`Runner::command`], for a job of this host that takes turns with others: it is told when by whoever listens at `socket`.
    pub fn duet_command(&self, group: &Group, seed: u64, socket: &Path) -> Result<Command> {
        let competitor = &self.competitors[group.competitor];
        let mut command = here(competitor, group, self.program(group)?);
        command.arg("--duet").arg(socket);
        if let Work::Points(points) = &group.work {
            command.args(plan::arguments(points, seed));
        }
        self.variables(&mut command, group);
        Ok(process::tied(command))
    }

    /// Adds the arguments of all launches: the program's own, variables and the folder.
    fn arguments(&self, command: &mut Command, group: &Group, launch: Launch, hold: &Path) {
        match &group.work {
            Work::Points(points) => command
                .arg("--budget")
                .arg(self.budget.to_string())
                .args(plan::arguments(points, launch.seed)),
            Work::JoinLeave => command.arg("join-leave"),
            Work::Spawn | Work::Notify => command
                .arg(group.work.operation())
                .arg(group.tasks.to_string()),
            Work::IdleMemory | Work::IdleProcessor => command.arg("idle"),
        };
        command.env("RACE_HOLD", hold);
        self.variables(command, group);
    }

    /// Adds the variables of all launches, and the folder.
    fn variables(&self, command: &mut Command, group: &Group) {
        let competitor = &self.competitors[group.competitor];
        command
            .envs(
                competitor
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .envs(
                group
                    .settings
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("TMPDIR", &self.work)
            .current_dir(&self.work);
    }

    /// Let the tasks wait for a file to go away, and look at them meanwhile.
    fn watch_idle(
        &self,
        command: &mut Command,
        group: &Group,
        hold: &Path,
    ) -> Result<(Measured, Finished)> {
        fs::write(hold, "")?;
        let running = self.supervisor.start(command)?;
        let mut measured = Measured::default();
        if running.await_line("idle", self.limit) {
            let tasks = idle::tasks(hold);
            match group.work {
                Work::IdleMemory => measured.memory = idle::memory(&tasks),
                _ => measured.processor = idle::processor(&tasks, WATCH, self.stop()),
            }
        }
        fs::remove_file(hold)?;
        let finished = running.finish(self.limit + WATCH)?;
        measured.output = output::parse(&finished.stdout);
        Ok((measured, finished))
    }
}

/// The launcher of one host, its settings and the program.
fn here(competitor: &Competitor, group: &Group, program: &Path) -> Command {
    let by_regatta = competitor.family.is_started_by_regatta();
    let launched = match group.has_host() {
        // It starts its nodes.
        true if by_regatta => 1,
        true => group.processes(),
        false => group.launched(),
    };
    let tasks = launched.to_string();
    let mut command = match competitor.family {
        family if family.starts_itself() => Command::new(program),
        _ => Command::new(&competitor.launcher),
    };
    match competitor.family {
        _ if by_regatta => command.args(["run", "-n", &tasks]),
        Family::OpenMpi | Family::Mpich | Family::Mpich4 => command.args(["-n", &tasks]),
        _ => command.env("RACE_TASKS", &tasks),
    };
    if group.has_host() {
        command.env("RACE_TASKS", group.processes().to_string());
    }
    command.args(&group.settings.arguments);
    if !competitor.family.starts_itself() {
        command.arg(program);
    }
    command
}

/// Messages that did not pass between hosts must have gone some other way.
fn short_cut(measured: &Measured) -> Option<String> {
    let (passed, due) = (measured.passed.bytes, measured.due);
    (passed < due).then(|| {
        format!("not over the network: only {passed} bytes passed between hosts where at least {due} had to")
    })
}

/// Why a launch failed, if it did.
pub fn failure_of(finished: &Finished, output: &Output, work: &Work) -> Option<String> {
    if finished.timed_out {
        return Some(format!("time-out after {:.0} s", finished.seconds));
    }
    let whole = output.done || *work == Work::JoinLeave;
    if finished.success && whole {
        return None;
    }
    let last = finished
        .stderr
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.starts_with("---"));
    let last = last.unwrap_or("it ended early without a word").trim();
    // It comes from another program, and goes into tables and reports.
    let shown = last.chars().filter(|letter| !letter.is_control());
    let shown: String = shown.take(LONGEST_REASON).collect();
    Some(format!("failed: {shown}"))
}

const SHARED: &str = "/dev/shm";

fn shared_files() -> BTreeSet<PathBuf> {
    fs::read_dir(SHARED)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Segments of a peer whose tasks were killed: files of ours that appeared during the launch and
/// carry a peer's name.
fn remove_left_behind(before: &BTreeSet<PathBuf>) {
    const PEERS: [&str; 4] = ["sm_segment", "mpich_sh", "ucx_shm", "vader_segment"];
    for file in shared_files().difference(before) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ours =
            fs::symlink_metadata(file).is_ok_and(|m| m.uid() == rustix::process::getuid().as_raw());
        if ours && PEERS.iter().any(|peer| name.starts_with(peer)) {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    fn words(family: Family, tasks: u32, work: Work) -> Vec<String> {
        let competitor = Competitor {
            name: "x".to_owned(),
            family,
            tuned: true,
            compiler: PathBuf::from("cc"),
            flags: vec![],
            launcher: PathBuf::from("/launcher"),
            arguments: vec![],
            variables: vec![],
            on_request: false,
        };
        let runner = Runner {
            work: PathBuf::from("/"),
            competitors: vec![competitor],
            programs: vec![Some(PathBuf::from("/program"))],
            hosts: None,
            pair: None,
            budget: 5.0,
            limit: Duration::from_secs(1),
            supervisor: Supervisor::new(&Stop::new().unwrap()),
        };
        let operation = match work {
            Work::Points(_) => "one-to-one",
            _ => work.operation(),
        };
        let settings = settings::resolve(family, true, operation, tasks > 2);
        let group = Group {
            competitor: 0,
            suite: "primitives",
            tasks,
            work,
            settings,
            launches: 1,
        };
        let launch = Launch {
            group: 0,
            round: 0,
            seed: 0,
        };
        let command = runner.command(&group, launch, Path::new("/hold")).unwrap();
        let arguments = command.get_args().map(|a| a.to_string_lossy().into_owned());
        std::iter::once(command.get_program().to_string_lossy().into_owned())
            .chain(arguments)
            .collect()
    }

    fn one_point() -> Work {
        Work::Points(vec![("one-to-one".to_owned(), vec![0, 8])])
    }

    #[test]
    fn launchers_get_settings_then_program_then_points() {
        let words = words(Family::OpenMpi, 2, one_point());
        assert_eq!(words[..5], ["/launcher", "-n", "2", "--bind-to", "core"]);
        let program = words.iter().position(|w| w == "/program").unwrap();
        assert_eq!(words[program + 1..], ["--budget", "5", "one-to-one=0,8"]);
    }

    #[test]
    fn regatta_is_started_by_its_own_command() {
        assert_eq!(
            words(Family::Regatta, 32, Work::JoinLeave),
            ["/launcher", "run", "-n", "32", "/program", "join-leave"]
        );
    }

    #[test]
    fn a_task_that_starts_others_is_told_how_many() {
        assert_eq!(
            words(Family::Mpich, 10, Work::Spawn)[1..],
            ["-n", "1", "/program", "spawn", "10"]
        );
        assert_eq!(
            words(Family::Regatta, 2, Work::Notify)[1..],
            [
                "run", "-n", "1", "--bind", "core", "/program", "notify", "2"
            ]
        );
    }

    #[test]
    fn a_host_of_regatta_s_is_launched_alone_and_mpi_s_with_its_nodes() {
        let work = || Work::Points(vec![("host-broadcast".to_owned(), vec![8])]);
        for (family, launched) in [
            (Family::Regatta, "1"),
            (Family::RegattaNx, "1"),
            (Family::Mpich, "5"),
        ] {
            let words = words(family, 4, work());
            let number = words.iter().position(|word| word == "-n").unwrap();
            assert_eq!(words[number + 1], launched, "{words:?}");
        }
    }

    #[test]
    fn without_a_launcher_the_program_starts_itself() {
        assert_eq!(
            words(Family::Limit, 2, Work::IdleMemory),
            ["/program", "idle"]
        );
    }

    #[test]
    fn messages_that_were_not_counted_are_a_failure() {
        let measured = |bytes| Measured {
            passed: Passed { bytes, packets: 1 },
            due: 1000,
            ..Measured::default()
        };
        assert!(short_cut(&measured(999)).is_some_and(|said| said.contains("999 bytes")));
        assert_eq!(short_cut(&measured(1000)), None);
    }

    #[test]
    fn a_failure_is_told_in_the_programs_last_words() {
        let finished = |stderr: &str, timed_out| Finished {
            stdout: String::new(),
            stderr: stderr.to_owned(),
            success: false,
            timed_out,
            interrupted: false,
            seconds: 3.0,
        };
        let output = Output::default();
        let told = |f: &Finished| failure_of(f, &output, &Work::JoinLeave).unwrap();
        assert_eq!(
            told(&finished("noise\nthe reason\n---\n\n", false)),
            "failed: the reason"
        );
        assert_eq!(told(&finished("", true)), "time-out after 3 s");
        let long = format!("\u{1b}[2J{}", "x".repeat(1000));
        assert_eq!(
            told(&finished(&long, false)),
            format!("failed: [2J{}", "x".repeat(LONGEST_REASON - 3))
        );
    }
}
