//! Runs a single launch: the command, its time limit, and the machine's speed before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::discover::Competitor;
use crate::idle;
use crate::network::crossing;
use crate::network::hosts::{Hosts, Passed};
use crate::operations::{Kind, Operation, Program};
use crate::output::{self, Output};
use crate::peers::{self, Job};
use crate::plan::{self, Group, Launch, Work};
use crate::process::{self, Finished, Supervisor};
use crate::programs::Programs;
use crate::settings::Resolved;
use crate::speed::{self, Pair};
use crate::stop::Stop;

/// Time for which a blocked task is watched.
const WATCH: Duration = Duration::from_secs(2);

/// Maximum length of a program's last line that is kept as the reason of a failure, in characters.
pub(crate) const MAX_REASON_CHARS: usize = 300;

/// Runs launches, one at a time.
pub struct Runner {
    /// Folder of all files that are needed only during the race.
    pub work: PathBuf,
    /// The environments.
    pub competitors: Vec<Competitor>,
    /// Their programs.
    pub programs: Programs,
    /// The hosts, or `None` if the race is on this host only.
    pub hosts: Option<Hosts>,
    /// The two processors between which the machine's speed is measured.
    pub pair: Option<Pair>,
    /// Milliseconds per point.
    pub budget: f64,
    /// Time limit of one launch.
    pub limit: Duration,
    /// Starts the programs, and has the request to stop.
    pub supervisor: Supervisor,
}

/// The result of one launch.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The launch.
    pub launch: Launch,
    /// One-way time of a cache line before and after the launch, ns.
    pub line_ns: [f64; 2],
    /// The measurements, which may be incomplete if the launch failed.
    pub measured: Measured,
    /// A sentence on the failure, if there was one.
    pub failure: Option<String>,
    /// Duration of the whole launch, s.
    pub seconds: f64,
}

/// The measurements of one launch.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The program's output.
    pub output: Output,
    /// Time from the launcher's start to its end, s.
    pub job: Option<f64>,
    /// Resident memory and proportional share per task, KiB.
    pub memory: Option<(f64, f64)>,
    /// Processor time of a blocked task, per cent.
    pub processor: Option<f64>,
    /// The traffic between hosts.
    pub passed: Passed,
    /// Minimum number of bytes that messages had to bring to other hosts.
    pub due: u64,
}

impl Outcome {
    /// Returns whether it has neither a figure nor a failure.
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
        let said = !self.output.points.is_empty() || self.output.answer.is_some();
        !said && !figures.contains(&true)
    }
}

impl Runner {
    /// Runs one launch of a group. Returns `None` if the race is to stop and the launch has given nothing yet.
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

    /// Returns the version of an environment, which its library states in a launch without points.
    pub fn version(&self, competitor: usize, settings: Resolved) -> Option<String> {
        let facts = self.competitors[competitor].peer.facts();
        if facts.one_task || self.stop().is_asked() {
            return facts.one_task.then(|| "no library".to_owned());
        }
        let group = Group {
            competitor,
            suite: "",
            tasks: 2,
            work: Work::Points(Vec::new()),
            settings,
            launches: 1,
        };
        let launch = Launch {
            group: 0,
            round: 0,
            seed: 0,
        };
        let (measured, _) = self.attempt(&group, launch).ok()?;
        let version = measured.output.version;
        (!version.is_empty()).then_some(version)
    }

    /// Returns the race's request to stop.
    pub fn stop(&self) -> &Stop {
        self.supervisor.stop()
    }

    /// Measures the machine's speed in ns. Returns 0 where it cannot be measured.
    pub fn line_ns(&self) -> f64 {
        self.pair.map_or(0.0, speed::line_ns)
    }

    fn attempt(&self, group: &Group, launch: Launch) -> Result<(Measured, Finished)> {
        let competitor = &self.competitors[group.competitor];
        let surroundings = competitor.peer.surround(
            &self.supervisor,
            competitor,
            &self.work,
            self.hosts.as_ref(),
        )?;
        let hold = self.work.join("hold");
        let mut command = self.command(group, launch, &hold)?;
        command.envs(surroundings.as_ref().map(|one| one.variable()));
        // Between hosts all processes end with the race's namespaces.
        if self.hosts.is_none() && group.work != Work::Own(Kind::JoinLeave) {
            command = process::tied(command);
        }
        match group.work {
            Work::Own(Kind::IdleMemory | Kind::IdleProcessor) => {
                self.watch_idle(&mut command, group, &hold)
            }
            Work::Points(_) | Work::Own(_) | Work::Application(..) | Work::Counted(..) => {
                let passed = || self.hosts.as_ref().map(Hosts::passed).unwrap_or_default();
                let before = passed();
                let finished = self.supervisor.run(&mut command, self.limit)?;
                let after = passed();
                let output = output::parse(&finished.stdout);
                let due = self.hosts.as_ref().map_or(0, |hosts| {
                    crossing::least(&output.points, group.tasks, hosts.number())
                });
                let job = (group.work == Work::Own(Kind::JoinLeave) && !finished.interrupted)
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

    /// Returns the launcher with its settings, the program and its arguments.
    fn command(&self, group: &Group, launch: Launch, hold: &Path) -> Result<Command> {
        let competitor = &self.competitors[group.competitor];
        let program = self.programs.of(group)?;
        let mut command = match &self.hosts {
            Some(hosts) => {
                hosts.reset();
                let job = job(competitor, group, program, group.tasks);
                competitor.peer.launch_between(&job, hosts)
            }
            None => here(competitor, group, program),
        };
        self.arguments(&mut command, group, launch, hold);
        Ok(command)
    }

    /// Returns the command of a job on this host that takes turns with others. The listener at `socket` controls
    /// its turns.
    pub fn duet_command(&self, group: &Group, seed: u64, socket: &Path) -> Result<Command> {
        let competitor = &self.competitors[group.competitor];
        let mut command = here(competitor, group, self.programs.of(group)?);
        command.arg("--duet").arg(socket);
        if let Work::Points(points) = &group.work {
            command.args(plan::arguments(points, seed));
        }
        self.variables(&mut command, group);
        Ok(process::tied(command))
    }

    /// Adds the program's arguments, variables and the working folder.
    fn arguments(&self, command: &mut Command, group: &Group, launch: Launch, hold: &Path) {
        match &group.work {
            Work::Points(points) => command
                .arg("--budget")
                .arg(self.budget.to_string())
                .args(plan::arguments(points, launch.seed)),
            Work::Own(Kind::Spawn | Kind::Notify) => command
                .arg(group.work.operation())
                .arg(group.tasks.to_string()),
            // Runs the operation of idle memory, whose tasks wait in the same way.
            Work::Own(Kind::IdleProcessor) => command.arg(Work::Own(Kind::IdleMemory).operation()),
            Work::Application(operation, size) | Work::Counted(operation, size) => {
                let mut arguments = problem_arguments(operation, *size);
                if self.competitors[group.competitor].peer.facts().starts_tasks {
                    arguments.push(group.tasks.to_string());
                }
                command.args(arguments)
            }
            work => command.arg(work.operation()),
        };
        command.env("RACE_HOLD", hold);
        self.variables(command, group);
    }

    /// Adds the variables of all launches, and the working folder.
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

    /// Runs idle tasks, which wait until the file `hold` is removed, and measures them meanwhile.
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
                Work::Own(Kind::IdleMemory) => measured.memory = idle::memory(&tasks),
                _ => measured.processor = idle::processor(&tasks, WATCH, self.stop()),
            }
        }
        fs::remove_file(hold)?;
        let finished = running.finish(self.limit + WATCH)?;
        measured.output = output::parse(&finished.stdout);
        Ok((measured, finished))
    }
}

fn job<'a>(competitor: &'a Competitor, group: &'a Group, program: &'a Path, tasks: u32) -> Job<'a> {
    Job {
        competitor,
        program,
        settings: &group.settings,
        tasks,
    }
}

/// Returns the arguments that give an application a problem.
fn problem_arguments(operation: &Operation, size: u64) -> Vec<String> {
    let Program::Application(application) = operation.program else {
        return Vec::new();
    };
    let problem = application
        .problem(size)
        .map_or(&[][..], |one| one.arguments);
    let all = application.arguments.iter().chain(problem);
    all.map(|word| (*word).to_owned()).collect()
}

/// Returns the launcher for one host with its settings and the program.
fn here(competitor: &Competitor, group: &Group, program: &Path) -> Command {
    let launched = match group.has_host() {
        // The host starts its nodes.
        true if competitor.peer.facts().loads_nodes => 1,
        true => group.processes(),
        false => group.launched(),
    };
    let job = job(competitor, group, program, launched);
    let counted = match group.work {
        Work::Counted(..) => competitor.peer.launch_profiled(&job),
        _ => None,
    };
    let mut command = counted.unwrap_or_else(|| competitor.peer.launch(&job));
    if group.has_host() {
        command.env("RACE_TASKS", group.processes().to_string());
    }
    command
}

/// Returns a failure if fewer bytes passed between hosts than the messages had: they then took another path.
fn short_cut(measured: &Measured) -> Option<String> {
    let (passed, due) = (measured.passed.bytes, measured.due);
    (passed < due).then(|| {
        format!("not over the network: only {passed} bytes passed between hosts instead of at least {due}")
    })
}

/// Returns why a launch failed, or `None` if it did not.
pub fn failure_of(finished: &Finished, output: &Output, work: &Work) -> Option<String> {
    if finished.timed_out {
        return Some(format!("time-out after {:.0} s", finished.seconds));
    }
    let whole = match work {
        Work::Own(Kind::JoinLeave) => true,
        Work::Application(..) => output.answer.is_some(),
        Work::Counted(..) => output.answer.is_some() && output.counts.is_some(),
        Work::Own(_) | Work::Points(_) => output.done,
    };
    if output.answer.is_some_and(|answer| !answer.verified) {
        return Some("failed: wrong answer".to_owned());
    }
    if finished.success && whole {
        return None;
    }
    let last = finished
        .stderr
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.starts_with("---"));
    let last = last.unwrap_or("it ended early without output").trim();
    // The text comes from another program, and is shown in tables and reports.
    let shown = last.chars().filter(|letter| !letter.is_control());
    let shown: String = shown.take(MAX_REASON_CHARS).collect();
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

/// Removes the shared memory of a peer whose tasks were killed: this user's files that were created during the launch
/// and have a peer's prefix.
fn remove_left_behind(before: &BTreeSet<PathBuf>) {
    let names: Vec<&str> = peers::ALL
        .iter()
        .flat_map(|peer| peer.facts().left_behind)
        .copied()
        .collect();
    for file in shared_files().difference(before) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ours =
            fs::symlink_metadata(file).is_ok_and(|m| m.uid() == rustix::process::getuid().as_raw());
        if ours && names.iter().any(|one| name.starts_with(one)) {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor;
    use crate::network::Network;
    use crate::peers::Peer;
    use crate::peers::interfaces::MPI;
    use crate::peers::interfaces::NX;
    use crate::peers::limit::Limit;
    use crate::peers::mpich::Mpich;
    use crate::peers::openmpi::OpenMpi;
    use crate::peers::regatta::Regatta;
    use crate::{operations, settings};

    fn words(peer: &'static dyn Peer, tasks: u32, work: Work) -> Vec<String> {
        let competitor = competitor("x", peer);
        let runner = Runner {
            work: PathBuf::from("/"),
            competitors: vec![competitor],
            programs: Programs::of_points(vec![Some(PathBuf::from("/program"))]),
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
        let operation = operations::find(operation).unwrap();
        let settings = settings::resolve(peer, true, Network::Local, operation, tasks > 2);
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
        let words = words(&OpenMpi, 2, one_point());
        assert_eq!(words[..5], ["/launcher", "-n", "2", "--bind-to", "core"]);
        let program = words.iter().position(|w| w == "/program").unwrap();
        assert_eq!(words[program + 1..], ["--budget", "5", "one-to-one=0,8"]);
    }

    #[test]
    fn regatta_is_started_by_its_own_command() {
        assert_eq!(
            words(&Regatta, 32, Work::Own(Kind::JoinLeave)),
            ["/launcher", "run", "-n", "32", "/program", "join-leave"]
        );
    }

    #[test]
    fn a_task_that_starts_others_is_told_how_many() {
        assert_eq!(
            words(&Mpich, 10, Work::Own(Kind::Spawn))[1..],
            ["-n", "1", "/program", "spawn", "10"]
        );
        assert_eq!(
            words(&Regatta, 2, Work::Own(Kind::Notify))[1..],
            [
                "run", "-n", "1", "--bind", "core", "/program", "notify", "2"
            ]
        );
    }

    #[test]
    fn a_host_of_regatta_s_is_launched_alone_and_mpi_s_with_its_nodes() {
        let work = || Work::Points(vec![("host-broadcast".to_owned(), vec![8])]);
        let expected: [(&'static dyn Peer, &str); 4] =
            [(&Regatta, "1"), (&NX, "1"), (&MPI, "5"), (&Mpich, "5")];
        for (peer, launched) in expected {
            let words = words(peer, 4, work());
            let number = words.iter().position(|word| word == "-n").unwrap();
            assert_eq!(words[number + 1], launched, "{words:?}");
        }
    }

    #[test]
    fn without_a_launcher_the_program_starts_itself() {
        assert_eq!(
            words(&Limit, 2, Work::Own(Kind::IdleMemory)),
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
        let told = |f: &Finished| failure_of(f, &output, &Work::Own(Kind::JoinLeave)).unwrap();
        assert_eq!(
            told(&finished("noise\nthe reason\n---\n\n", false)),
            "failed: the reason"
        );
        assert_eq!(told(&finished("", true)), "time-out after 3 s");
        let long = format!("\u{1b}[2J{}", "x".repeat(1000));
        assert_eq!(
            told(&finished(&long, false)),
            format!("failed: [2J{}", "x".repeat(MAX_REASON_CHARS - 3))
        );
    }
}
