//! A whole race: compiles programs, launches groups in order, repeats launches during which the machine's speed had
//! changed, and computes the results.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::build::{self, Sources};
use crate::discover::{self, Competitor};
use crate::duet::{self, Duet};
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::Kind;
use crate::plan::Ground;
use crate::plan::{self, Effort, Group, Launch, Wishes, Work};
use crate::process::Supervisor;
use crate::programs::Programs;
use crate::progress::Progress;
use crate::report::count;
use crate::results::{Environment, OURS, Paired, Ratio, Results, SCHEMA, Setting};
use crate::run::{Outcome, Runner};
use crate::share::{self, Share};
use crate::speed::Pair;
use crate::stop::Stop;
use crate::watchdog::Watchdog;
use crate::{collect, machine, resume, settings, stats, tree};

/// A quick race starts no round of launches after this time.
const MAX_QUICK_TIME: Duration = Duration::from_secs(90);
/// Minimum number of rounds of launches, if the race's whole time allows them.
const MIN_ROUNDS: u32 = 3;
/// As [`MAX_QUICK_TIME`], in a race of applications.
const MAX_QUICK_APPLICATIONS_TIME: Duration = Duration::from_secs(13 * 60);
/// Number of launches after which a quick race stops measuring an environment's start or join, if each launch took
/// [`MIN_TIME_RATIO_BEHIND`] times as long as Regatta's. Such launches are the longest of a race.
const MIN_KNOWN_LAUNCHES: usize = 5;
const MIN_TIME_RATIO_BEHIND: f64 = 3.0;
/// Number of failures after which a group is not launched again.
const MAX_FAILURES_OF_GROUP: usize = 2;
/// Maximum share of all launches that are repeated because the machine's speed had changed.
const MAX_REPEATED_SHARE: f64 = 0.2;
/// Time reserved for the results and the report of a race.
const REPORT_TIME: Duration = Duration::from_secs(20);
/// Maximum time, in all, of waiting until the machine has its usual speed again.
const MAX_SPEED_WAIT: Duration = Duration::from_secs(20);
/// Interval of checking the speed while waiting.
const SPEED_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of names that are tried for the race's folder.
const MAX_FOLDER_NAMES: u32 = 1000;

/// The note of a race that was asked to stop, and the error if nothing was measured.
pub(crate) const INTERRUPTED: &str =
    "the race was interrupted: finished measurements are kept, and the one in progress is lost";
pub(crate) const NOTHING_YET: &str = "the race was interrupted before anything was measured";

/// The definition of a race.
pub struct Race {
    /// The environments that take part.
    pub competitors: Vec<Competitor>,
    /// The network that messages cross.
    pub network: Network,
    /// Number of hosts, unless the network is local.
    pub hosts: u32,
    /// The user's wishes.
    pub wishes: Wishes,
    /// Seed of the order of launches.
    pub seed: u64,
    /// The progress of the interrupted race that this one resumes.
    pub before: Option<resume::Progress>,
    /// Whether no progress is shown on stderr.
    pub quiet: bool,
    /// Sentences known before the race, such as missing environments.
    pub notes: Vec<String>,
    /// The command line.
    pub command: String,
}

/// Returns the time limit of a launch.
fn longest_launch(effort: Effort) -> Duration {
    Duration::from_secs(match effort {
        Effort::Quick => 40,
        Effort::Normal => 120,
        Effort::Full => 600,
    })
}

/// Returns the time after which rounds of launches end. At least [`MIN_ROUNDS`] are run.
fn longest_rounds(effort: Effort, groups: &[Group]) -> Duration {
    let application = |group: &Group| matches!(group.work, Work::Application(..));
    match effort {
        Effort::Quick if groups.iter().any(application) => MAX_QUICK_APPLICATIONS_TIME,
        Effort::Quick => MAX_QUICK_TIME,
        Effort::Normal => Duration::from_secs(1800),
        Effort::Full => Duration::from_secs(4 * 3600),
    }
}

/// Returns the time limit of a whole race, including everything before and after its launches.
const fn longest_race(effort: Effort) -> Duration {
    Duration::from_secs(match effort {
        Effort::Quick => 15 * 60,
        Effort::Normal => 60 * 60,
        Effort::Full => 8 * 3600,
    })
}

/// Returns the time after the beginning from which nothing is launched, so that the last launch and the report have
/// time.
fn last_launch(effort: Effort) -> Duration {
    longest_race(effort) - longest_launch(effort) - REPORT_TIME
}

/// Returns the approximate time of a race of these groups, of which `playing` take turns. The time limits bound it.
fn estimate(wishes: &Wishes, groups: &[Group], playing: &[usize]) -> Duration {
    let budget = plan::budget(wishes);
    let launched = (0..groups.len()).filter(|index| !playing.contains(index));
    let seconds: f64 = launched
        .map(|index| plan::seconds(&groups[index], budget))
        .sum();
    let launches = Duration::from_secs_f64(seconds).min(longest_rounds(wishes.effort, groups));
    let turns = match playing.is_empty() {
        true => Duration::ZERO,
        false => duet::longest(wishes),
    };
    (launches + turns).min(longest_race(wishes.effort))
}

/// Returns a duration in whole minutes, as text.
fn minutes(time: Duration) -> String {
    count(time.as_secs().div_ceil(60), "minute")
}

/// A folder of the race, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    /// Creates the folder. Between hosts it is in memory that is freed with the race's namespaces. Programs are built
    /// and run in it, so it must be new, and accessible only to this user.
    fn create(hosts: Option<&Hosts>) -> Result<Folder> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let temporary = |number| {
            let name = format!("regatta-race-{}-{number}", std::process::id());
            std::env::temp_dir().join(name)
        };
        // A process may run several races, and another race's folder may have the same name.
        for number in 0..MAX_FOLDER_NAMES {
            let folder = match hosts {
                Some(hosts) => hosts.file("work"),
                None => temporary(number),
            };
            match builder.create(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    made.with_context(|| format!("cannot create {}", folder.display()))?;
                    return Ok(Folder(folder));
                }
            }
        }
        bail!("there are too many folders like {}", temporary(0).display());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Race {
    /// Runs the race until it is over or is asked to stop, and returns what was measured. Fails if it is to stop and
    /// nothing was measured yet.
    pub fn run(mut self, stop: &Arc<Stop>) -> Result<Results> {
        tree::adopt_orphans();
        let started = (SystemTime::now(), Instant::now());
        let made = match self.network {
            Network::Local => None,
            network => Some(Hosts::make(network, self.hosts)?),
        };
        self.notes.extend(made.as_ref().map(Hosts::describe));
        let share = match self.network {
            Network::Local => Share::take(),
            _ => None,
        };
        self.notes
            .extend(share.as_ref().map(|_| share::NOTE.to_owned()));
        let work = Folder::create(made.as_ref())?;
        let supervisor = Supervisor::new(stop);
        // Between hosts all processes end with the race's namespaces.
        let watchdog = match made {
            None => Watchdog::start(supervisor.beginning(), &work.0),
            Some(_) => None,
        };
        let (programs, groups) = self.compile(&supervisor, &work.0, made.as_ref())?;
        let runner = Runner {
            work: work.0.clone(),
            competitors: std::mem::take(&mut self.competitors),
            programs,
            hosts: made,
            pair: Pair::here(),
            budget: plan::budget(&self.wishes),
            limit: longest_launch(self.wishes.effort),
            supervisor,
        };
        let libraries = libraries(&runner);
        let versions = versions(&runner, &groups);
        let end = started.1 + last_launch(self.wishes.effort);
        let (outcomes, ratios, paired) = self.launch_all(&runner, &groups, end);
        runner.supervisor.end_leftovers();
        drop(watchdog);
        drop(share);
        let told = Told {
            libraries,
            versions,
        };
        let mut results = self.results(&runner, &groups, &outcomes, &told, started);
        results.ratios = ratios;
        results.paired = paired;
        Ok(results)
    }

    /// Compiles the programs. Returns them, and the groups whose programs exist.
    fn compile(
        &mut self,
        supervisor: &Supervisor,
        work: &Path,
        hosts: Option<&Hosts>,
    ) -> Result<(Programs, Vec<Group>)> {
        let ground = match hosts {
            None => Ground::local(crate::speed::allowed().len().max(1) as u32),
            Some(hosts) => Ground {
                network: self.network,
                hosts: hosts.number(),
                cores: hosts.processors(),
            },
        };
        let mut groups = plan::groups(&self.wishes, &self.competitors, ground);
        if let Some(before) = &self.before {
            groups = before.narrow(groups);
            if groups.is_empty() {
                bail!("all planned points of the race were measured: there is nothing to resume");
            }
        }
        let sources = Sources::write(work, self.network)?;
        let (programs, notes) =
            Programs::compile(&sources, supervisor, &self.competitors, &groups)?;
        self.notes.extend(notes);
        for competitor in &mut self.competitors {
            let loader = competitor.peer.loader(sources.folder());
            competitor.variables.extend(loader);
        }
        groups.retain(|group| programs.has(group));
        if groups.is_empty() {
            let why: String = self.notes.iter().map(|note| format!("\n{note}")).collect();
            bail!("nothing to race: no installed environment supports the requested points{why}");
        }
        Ok((programs, groups))
    }

    /// Launches all groups. Launches nothing after `no_later`.
    fn launch_all(
        &mut self,
        runner: &Runner,
        groups: &[Group],
        no_later: Instant,
    ) -> (Vec<Outcome>, Vec<Ratio>, Vec<Paired>) {
        let stop = runner.stop();
        let in_turns = |index: &usize| {
            let group = &groups[*index];
            let peer = runner.competitors[group.competitor].peer;
            duet::takes_part(group, peer, self.network)
        };
        let (playing, launched): (Vec<usize>, Vec<usize>) = (0..groups.len()).partition(in_turns);
        let mut order = plan::order(groups, self.seed);
        order.retain(|launch| launched.contains(&launch.group));
        let mut progress = Progress::new(order.len(), self.quiet);
        progress.print(&self.time_sentence(groups, &playing));
        let duet = Duet::new(runner, groups, &self.wishes, self.seed);
        let played = duet.play(&playing, no_later, &mut progress);
        self.notes.extend(played.notes);
        // The time limit of launches one after the other counts from here.
        let started = Instant::now();
        let mut field = Field {
            runner,
            groups,
            outcomes: Vec::new(),
            failures: BTreeMap::new(),
        };
        let quick = self.wishes.effort == Effort::Quick;
        let end = longest_rounds(self.wishes.effort, groups);
        let mut last = None;
        // Number of launches of the first rounds that were left out because the time of the whole race was up.
        let mut few = 0;
        for launch in order {
            if stop.is_asked() {
                break;
            }
            let over = Instant::now() > no_later;
            let late = over || (launch.round >= MIN_ROUNDS && started.elapsed() > end);
            // A launch of `notify` takes very little time.
            if late && groups[launch.group].work != Work::Own(Kind::Notify) {
                last.get_or_insert(launch.round);
                few += usize::from(over && launch.round < MIN_ROUNDS);
            } else if !(quick && field.is_far_behind(launch.group)) {
                field.launch(launch, &mut progress);
            }
        }
        self.notes
            .extend(last.map(|round| format!("time ran out after {round} rounds of launches")));
        self.notes.extend(self.time_note(few));
        self.repeat(&mut field, &mut progress, started, no_later);
        if stop.is_asked() {
            self.notes.push(INTERRUPTED.to_owned());
        }
        progress.finish();
        let mut outcomes = played.outcomes;
        outcomes.extend(field.outcomes);
        (outcomes, played.ratios, played.paired)
    }

    /// Returns a sentence on how long a race of these groups takes, of which `playing` take turns.
    fn time_sentence(&self, groups: &[Group], playing: &[usize]) -> String {
        format!(
            "the race will take about {}, at most {}",
            minutes(estimate(&self.wishes, groups, playing)),
            minutes(longest_race(self.wishes.effort)),
        )
    }

    /// Returns a note that `few` launches of the first rounds were left out because the time of the whole race was up.
    fn time_note(&self, few: usize) -> Option<String> {
        let time = minutes(longest_race(self.wishes.effort));
        (few > 0).then(|| {
            format!(
                "this kind of race is limited to {time}: {few} launches of the first {MIN_ROUNDS} rounds were omitted, so their points have wide intervals, or none"
            )
        })
    }

    /// Repeats, within limits, the launches during which the machine's speed had changed.
    fn repeat(
        &mut self,
        field: &mut Field<'_>,
        progress: &mut Progress,
        started: Instant,
        no_later: Instant,
    ) {
        let stop = field.runner.stop();
        let usual = collect::usual_line_ns(&field.outcomes);
        let spoiled: Vec<Launch> = field
            .outcomes
            .iter()
            .filter(|o| !collect::steady(o, usual))
            .map(|o| o.launch)
            .collect();
        if spoiled.is_empty() || stop.is_asked() || Instant::now() > no_later {
            return;
        }
        let most = (field.outcomes.len() as f64 * MAX_REPEATED_SHARE).ceil() as usize;
        progress.more(spoiled.len().min(most));
        let (mut repeated, mut patience) = (0, MAX_SPEED_WAIT);
        for launch in spoiled.iter().take(most) {
            let late = started.elapsed() > longest_rounds(self.wishes.effort, field.groups)
                || Instant::now() > no_later;
            if late || !field.await_usual(usual, &mut patience) {
                break;
            }
            field.launch(*launch, progress);
            repeated += 1;
        }
        self.notes.push(format!(
            "{} launches ran while the machine's speed was more than {:.0} % off its median; {repeated} were launched again",
            spoiled.len(),
            collect::UNSTEADY * 100.0
        ));
    }

    /// Returns the description of this machine during the race.
    fn conditions(
        &self,
        outcomes: &[Outcome],
        started: (SystemTime, Instant),
    ) -> crate::results::Machine {
        let lines: Vec<f64> = outcomes
            .iter()
            .flat_map(|o| o.line_ns)
            .filter(|ns| *ns > 0.0)
            .collect();
        let clocks: Vec<f64> = outcomes
            .iter()
            .map(|o| o.measured.output.clock_ns)
            .filter(|ns| *ns > 0.0)
            .collect();
        let known = |value: f64| if value.is_finite() { value } else { 0.0 };
        let mut machine = machine::describe(&discover::c_compiler());
        machine.started = started
            .0
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        machine.seconds = started.1.elapsed().as_secs_f64();
        machine.command = self.command.clone();
        machine.seed = self.seed;
        machine.clock_ns = known(stats::median(&clocks));
        machine.line_ns = known(stats::median(&lines));
        machine.line_ns_range = [
            known(stats::quantile(&lines, 0.05)),
            known(stats::quantile(&lines, 0.95)),
        ];
        machine
    }

    fn results(
        mut self,
        runner: &Runner,
        groups: &[Group],
        outcomes: &[Outcome],
        told: &Told,
        started: (SystemTime, Instant),
    ) -> Results {
        let machine = self.conditions(outcomes, started);
        let taking_part = |index: &usize| groups.iter().any(|group| group.competitor == *index);
        let environments = (0..runner.competitors.len())
            .filter(taking_part)
            .map(|index| {
                let competitor = &runner.competitors[index];
                environment(competitor, told, groups, outcomes, index, self.network)
            })
            .collect();
        let mut rows = collect::rows(groups, &runner.competitors, outcomes, self.network);
        if runner.stop().is_asked() {
            collect::flag_interrupted(&mut rows);
        }
        self.notes.extend(evidence(runner, groups, outcomes));
        Results {
            schema: SCHEMA.to_owned(),
            machine,
            environments,
            rows,
            ratios: Vec::new(),
            paired: Vec::new(),
            notes: self.notes,
        }
    }
}

/// Facts about each environment that the outputs of launches do not contain.
struct Told {
    /// The library file of each environment's program.
    libraries: Vec<String>,
    /// The version of each environment that no launch of the race prints.
    versions: Vec<Option<String>>,
}

/// Returns the versions of environments that race applications only, whose programs do not print them.
fn versions(runner: &Runner, groups: &[Group]) -> Vec<Option<String>> {
    let version = |index| {
        let mut mine = groups.iter().filter(|group| group.competitor == index);
        let silent = mine
            .clone()
            .all(|group| matches!(group.work, Work::Application(..) | Work::Counted(..)));
        let settings = mine.next()?.settings.clone();
        silent.then(|| runner.version(index, settings))?
    };
    (0..runner.competitors.len()).map(version).collect()
}

/// Returns the library file of each environment's program.
fn libraries(runner: &Runner) -> Vec<String> {
    let all = runner.competitors.iter().enumerate();
    let library = |(index, competitor)| match runner.programs.any_of(index) {
        Some(program) => build::library_of(&runner.supervisor, program, competitor),
        None => String::new(),
    };
    all.map(library).collect()
}

fn environment(
    competitor: &Competitor,
    told: &Told,
    groups: &[Group],
    outcomes: &[Outcome],
    index: usize,
    network: Network,
) -> Environment {
    let mine = |o: &&Outcome| {
        groups[o.launch.group].competitor == index && !o.measured.output.version.is_empty()
    };
    let version = outcomes
        .iter()
        .find(mine)
        .map(|o| o.measured.output.version.clone())
        .or_else(|| told.versions[index].clone());
    Environment {
        name: competitor.name.clone(),
        version: version.unwrap_or_else(|| "unknown: it was not asked".to_owned()),
        library: neutral(&told.libraries[index]),
        settings: described(competitor, network),
    }
}

/// Returns all settings of an environment on this network.
fn described(competitor: &Competitor, network: Network) -> Vec<Setting> {
    let own = competitor.arguments.iter().map(|argument| Setting {
        setting: argument.clone(),
        when: "always".to_owned(),
        reason: "what makes it an environment of its own".to_owned(),
    });
    let settings = settings::describe(competitor.peer, competitor.tuned, network);
    own.chain(settings).collect()
}

/// Returns a sentence with the kernel's byte counts between hosts, which show that messages crossed the network.
fn evidence(runner: &Runner, groups: &[Group], outcomes: &[Outcome]) -> Option<String> {
    runner.hosts.as_ref()?;
    let of = |index: usize| {
        let mine = outcomes
            .iter()
            .filter(|outcome| groups[outcome.launch.group].competitor == index);
        mine.fold((0, 0), |(passed, due), outcome| {
            (
                passed + outcome.measured.passed.bytes,
                due + outcome.measured.due,
            )
        })
    };
    let each = runner
        .competitors
        .iter()
        .enumerate()
        .filter_map(|(index, competitor)| {
            let (passed, due) = of(index);
            let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20)).ceil();
            (passed > 0).then(|| {
                format!(
                    "{} {} of at least {}",
                    competitor.name,
                    mib(passed),
                    mib(due)
                )
            })
        });
    Some(format!(
        "the kernel counted between hosts, in MiB (the samples' messages alone make up the second figure; less than that would be a short cut, and fail the launch): {}",
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// The launches so far.
struct Field<'a> {
    runner: &'a Runner,
    groups: &'a [Group],
    outcomes: Vec<Outcome>,
    failures: BTreeMap<usize, usize>,
}

impl Field<'_> {
    fn launch(&mut self, launch: Launch, progress: &mut Progress) {
        let group = &self.groups[launch.group];
        let name = self.name(group);
        if self.failures.get(&launch.group).copied().unwrap_or(0) >= MAX_FAILURES_OF_GROUP {
            progress.end(launch.group, &name, group.launches, 0.0);
            return;
        }
        progress.begin(&name);
        let Some(outcome) = self.runner.launch(group, launch) else {
            return;
        };
        if let Some(failure) = &outcome.failure {
            *self.failures.entry(launch.group).or_default() += 1;
            progress.print(&format!("{name}: {failure}"));
        }
        progress.end(launch.group, &name, group.launches, outcome.seconds);
        self.outcomes.push(outcome);
    }

    /// Returns whether this group starts jobs or tasks and is known well enough: it and Regatta's group have enough
    /// launches, and its shortest time is far above Regatta's longest.
    fn is_far_behind(&self, index: usize) -> bool {
        let group = &self.groups[index];
        if !matches!(group.work, Work::Own(Kind::JoinLeave | Kind::Spawn)) {
            return false;
        }
        let is_ours = |other: &Group| {
            (&other.work, other.tasks) == (&group.work, group.tasks)
                && self.runner.competitors[other.competitor].name == OURS
        };
        let Some(ours) = self.groups.iter().position(is_ours) else {
            return false;
        };
        let (times, ours) = (self.times(index), self.times(ours));
        let shortest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = ours.iter().copied().fold(0.0, f64::max);
        times.len().min(ours.len()) >= MIN_KNOWN_LAUNCHES
            && shortest > MIN_TIME_RATIO_BEHIND * longest
    }

    /// Returns the median time of each launch of a group that measures one operation.
    fn times(&self, group: usize) -> Vec<f64> {
        let of_group = |outcome: &&Outcome| outcome.launch.group == group;
        let work = &self.groups[group].work;
        let samples = |outcome: &Outcome| {
            let all = collect::samples(work, outcome);
            all.into_iter()
                .map(|(_, _, _, times)| stats::median(&times))
        };
        let outcomes = self.outcomes.iter().filter(of_group);
        outcomes.flat_map(samples).collect()
    }

    /// Waits until the machine has its usual speed. Returns false if `patience` is used up or the race is to stop.
    fn await_usual(&self, usual: f64, patience: &mut Duration) -> bool {
        let stop = self.runner.stop();
        loop {
            if stop.is_asked() {
                return false;
            }
            let now = self.runner.line_ns();
            if usual == 0.0 || (now / usual - 1.0).abs() <= collect::UNSTEADY {
                return true;
            }
            if *patience < SPEED_CHECK_INTERVAL {
                return false;
            }
            *patience -= SPEED_CHECK_INTERVAL;
            stop.wait(SPEED_CHECK_INTERVAL);
        }
    }

    fn name(&self, group: &Group) -> String {
        let environment = &self.runner.competitors[group.competitor].name;
        let what = match &group.work {
            Work::Points(points) => points
                .iter()
                .map(|p| p.0.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            work => work.operation().to_owned(),
        };
        let tasks = group.tasks;
        format!("{environment}, {tasks} tasks, {what}")
    }
}

/// Replaces this machine's folders at the beginning of a path, since results are shown to others.
fn neutral(path: &str) -> String {
    let from = |prefix: Option<std::path::PathBuf>, instead: &str| {
        let prefix = prefix?.to_string_lossy().into_owned();
        let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
        (prefix.len() > 1 && rest.starts_with('/')).then(|| format!("{instead}{rest}"))
    };
    from(std::env::current_dir().ok(), ".")
        .or_else(|| from(std::env::var_os("HOME").map(Into::into), "~"))
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor;
    use crate::{peers, suites};

    /// The time limit does not depend on the number of environments: an hour on two processors, and a quarter of that
    /// for a quick race.
    #[test]
    fn a_race_of_all_papers_has_a_time_that_is_told_before() {
        for (effort, most) in [(Effort::Quick, 15), (Effort::Normal, 60)] {
            let wishes = Wishes {
                suites: suites::named(&[suites::PAPERS.to_owned()]),
                operations: Vec::new(),
                tasks: Vec::new(),
                bytes: Vec::new(),
                effort,
                launches: None,
                budget: None,
            };
            let all = peers::ALL.iter();
            let competitors: Vec<Competitor> = all.map(|peer| competitor("it", *peer)).collect();
            let groups = plan::groups(&wishes, &competitors, Ground::local(2));
            let takes_turns = |index: &usize| {
                let peer = competitors[groups[*index].competitor].peer;
                duet::takes_part(&groups[*index], peer, Network::Local)
            };
            let playing: Vec<usize> = (0..groups.len()).filter(takes_turns).collect();
            assert!(!playing.is_empty());
            let most = Duration::from_secs(60 * most);
            let estimate = estimate(&wishes, &groups, &playing);
            assert!(estimate <= most && estimate > most / 4, "{estimate:?}");
            let end = last_launch(effort) + longest_launch(effort);
            assert!(end < most && longest_race(effort) == most, "{end:?}");
            assert!(last_launch(effort) > duet::longest(&wishes));
        }
    }
}
