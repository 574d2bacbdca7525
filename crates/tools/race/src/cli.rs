//! The command `regatta race`.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use tempfile::{Builder, NamedTempFile};

use crate::discover::{self, Competitor, Found};
use crate::export::Form;
use crate::network::{Network, hosts, inside};
use crate::peers::AA_SUFFIX;
use crate::plan::{Effort, Wishes};
use crate::results::{self, Results};
use crate::resume::Progress;
use crate::stop::Stop;
use crate::suites::{self, Suite};
use crate::{
    compare, eligible, export, machine, operations, peers, prepare, race, reference, report,
    resume, say, spreadsheet, table,
};

/// Race Regatta against the message-passing libraries on this machine.
///
/// Writes results.json, results.csv, ratios.csv and report.html, and prints a table.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Race {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Compare the results of two races
    Compare {
        /// Folder or results.json of the first race
        a: PathBuf,
        /// Folder or results.json of the second race
        b: PathBuf,
    },
    /// Print the results of a race as tables in Markdown or LaTeX, or as a script for gnuplot
    Export {
        /// Folder or results.json of the race
        race: PathBuf,
        #[command(flatten)]
        form: Forms,
    },
    /// Print a Markdown table of all operations with their suites and descriptions
    Operations,
    /// Install the peers: Open MPI and MPICH from PyPI, MPICH and PVM from the distribution
    Prepare {
        /// Folder for peers [default: regatta/peers in the cache folder]
        #[arg(long, value_name = "DIR")]
        peers: Option<PathBuf>,
    },
}

/// The options that select the form of exported results.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Forms {
    /// Tables in Markdown (the default)
    #[arg(long)]
    markdown: bool,
    /// Tables in LaTeX, for its package booktabs
    #[arg(long)]
    latex: bool,
    /// A script for gnuplot with its data
    #[arg(long)]
    gnuplot: bool,
    /// The machine, the notes, and the settings of all environments, in Markdown
    #[arg(long)]
    conditions: bool,
}

impl Forms {
    fn form(&self) -> Form {
        match self {
            Forms { latex: true, .. } => Form::Latex,
            Forms { gnuplot: true, .. } => Form::Gnuplot,
            Forms {
                conditions: true, ..
            } => Form::Conditions,
            _ => Form::Markdown,
        }
    }
}

#[derive(Debug, Args)]
struct Options {
    #[arg(long, value_name = "NAME", value_delimiter = ',', help = suites::help())]
    suite: Vec<String>,
    /// Operations, such as one-to-one or broadcast [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    operation: Vec<String>,
    /// Environments, such as regatta or openmpi [default: all that are installed]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    environment: Vec<String>,
    /// Numbers of tasks [default: 2, 4, 8, 16, 32; spawn: 1, 10, 100]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256))]
    tasks: Vec<u32>,
    /// Sizes of messages in bytes [default: 0 to 16 MiB], or of the problems of applications
    #[arg(long, value_name = "N", value_delimiter = ',')]
    bytes: Vec<u64>,
    /// The network between the tasks; all but `local` need network namespaces, and thus root or a user namespace
    #[arg(long, value_name = "NAME", default_value = "local")]
    network: Network,
    /// Number of hosts, unless the network is `local`
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(2..=i64::from(hosts::MAX_HOSTS)))]
    hosts: u32,
    /// At most four and a half minutes; applications and papers at most a quarter of an hour
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// At least ten launches per point, each operation in launches of its own
    #[arg(long)]
    full: bool,
    /// Launches per point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    launches: Option<u32>,
    /// Milliseconds per point in each launch
    #[arg(long, value_name = "MS")]
    budget: Option<f64>,
    /// Race one environment against itself; every point must be a tie
    #[arg(long)]
    aa: bool,
    /// With --aa: slow the second one down by this many per cent; every point must show it
    #[arg(long, value_name = "PERCENT", requires = "aa", value_parser = clap::value_parser!(u32).range(1..=100))]
    delay: Option<u32>,
    /// Seed of the order of launches [default: the current time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for the results [default: results/race-SECONDS]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the interrupted race in DIR: repeat its command for the points that were not measured
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "suite", "operation", "environment", "tasks", "bytes", "network", "hosts", "quick", "full", "launches", "budget", "aa", "seed", "out",
    ])]
    resume: Option<PathBuf>,
    /// Folder with peers installed by `regatta race prepare`
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Race Regatta even if its library was built without optimisation
    #[arg(long)]
    unoptimised: bool,
    /// Print the results as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long)]
    quiet: bool,
}

impl Race {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        match self.action {
            Some(Action::Compare { a, b }) => compare_files(&a, &b),
            Some(Action::Export { race, form }) => {
                say::text(export::render(&Results::read(&race)?, form.form()))?;
                Ok(ExitCode::SUCCESS)
            }
            Some(Action::Operations) => {
                say::text(operations::table())?;
                Ok(ExitCode::SUCCESS)
            }
            Some(Action::Prepare { peers }) => {
                get_peers(&peers.unwrap_or_else(discover::default_peers))
            }
            None => match self.options.resume.clone() {
                Some(folder) => self.options.go_on(&folder),
                None => self.options.race(),
            },
        }
    }
}

/// The arguments of an earlier race's command line.
#[derive(Debug, Parser)]
struct Again {
    #[command(flatten)]
    options: Options,
}

/// Creates a folder before the race, so that a folder that cannot be created is noticed then. Returns the folders that
/// had to be created, the innermost first.
fn make_folder(out: &Path) -> Result<Vec<PathBuf>> {
    let missing = out.ancestors().take_while(|folder| !folder.exists());
    let missing = missing.map(Path::to_owned).collect();
    fs::create_dir_all(out)
        .with_context(|| format!("cannot create the folder {}", out.display()))?;
    Ok(missing)
}

fn compare_files(a: &Path, b: &Path) -> Result<ExitCode> {
    let (first, second) = (Results::read(a)?, Results::read(b)?);
    for warning in compare::warnings(&first, &second) {
        say::aside(format_args!("warning: {warning}"));
    }
    let differences = compare::differences(&first, &second);
    if differences.is_empty() {
        bail!(
            "the two races have no point in common: run both with the same operations, tasks and sizes"
        );
    }
    say::text(compare::render(
        &differences,
        &a.display().to_string(),
        &b.display().to_string(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn get_peers(peers: &Path) -> Result<ExitCode> {
    let mut missing = 0;
    for prepared in prepare::prepare(peers) {
        match prepared.outcome {
            Ok(done) => say::line(format_args!("{}: {done}", prepared.name))?,
            Err(error) => {
                missing += 1;
                say::line(format_args!(
                    "{} could not be installed: {error:#}",
                    prepared.name
                ))?;
            }
        }
    }
    if missing > 0 {
        say::line(format_args!(
            "The race runs without {missing} of its peers."
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the table, and the folder of the files.
fn print(results: &Results, out: &Path) -> Result<()> {
    say::line(table::render(results))?;
    say::line(format_args!(
        "results: {}\nreport:  {}",
        out.join("results.json").display(),
        out.join("report.html").display()
    ))
}

impl Options {
    fn race(self) -> Result<ExitCode> {
        self.check()?;
        match (self.network.is_local(), inside::is_inside()) {
            (false, false) => return inside::run(),
            (false, true) => inside::follow(),
            (true, _) => {}
        }
        let seed = self.seed.unwrap_or_else(|| now() % 1_000_000);
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("results/race-{}", now())));
        let made = make_folder(&out)?;
        let outcome = self.race_into(&out, seed, None);
        // The folder of a race without results is empty.
        for folder in made {
            let _ = fs::remove_dir(folder);
        }
        outcome
    }

    /// Resumes an interrupted race, and writes old and new results to its folder.
    fn go_on(self, results: &Path) -> Result<ExitCode> {
        let old = Results::read(results)?;
        let folder = match results.is_dir() {
            true => results,
            false => results.parent().unwrap_or(Path::new("")),
        };
        let Some(before) = Progress::of(&old) else {
            bail!(
                "the race in {} is complete: there is nothing to resume",
                folder.display()
            );
        };
        resume::check_machine(&old.machine, &machine::describe(&discover::c_compiler()))?;
        let options = self.of_command(&old.machine.command)?;
        options.check()?;
        if !options.network.is_local() || options.aa {
            bail!(
                "a race between hosts, or of one environment against itself, cannot be resumed: run it again"
            );
        }
        // Fails before the race, not after it, if results cannot be written.
        new_file(folder)?;
        let seed = old.machine.seed;
        options.race_into(folder, seed, Some((old, before)))
    }

    /// Parses an earlier command line. A folder of peers that only the earlier command line names is refused, since
    /// programs from it would be run.
    fn of_command(self, command: &str) -> Result<Options> {
        let words = shlex::split(command)
            .with_context(|| format!("the command of that race cannot be parsed: {command}"))?;
        let again = Again::try_parse_from(&words).map_err(|error| {
            anyhow::anyhow!("the command of that race cannot be parsed ({command}): {error}")
        })?;
        if let (Some(peers), None) = (&again.options.peers, &self.peers) {
            bail!(
                "that race used peers from {}: pass --peers again if you trust the programs there",
                peers.display()
            );
        }
        Ok(Options {
            quiet: self.quiet,
            json: self.json,
            peers: self.peers,
            ..again.options
        })
    }

    /// Runs the race and writes its results to `folder`, merged with those of the race that it resumes, if any.
    fn race_into(
        self,
        out: &Path,
        seed: u64,
        before: Option<(Results, Progress)>,
    ) -> Result<ExitCode> {
        let mut found =
            discover::discover(&self.peers.clone().unwrap_or_else(discover::default_peers));
        let mut notes = std::mem::take(&mut found.missing);
        if !self.environment.is_empty() {
            // A user who names environments knows which ones are left out.
            notes.clear();
        }
        let mut competitors = self.choose(found)?;
        if !self.unoptimised && competitors.iter().any(|one| one.peer.facts().ours) {
            peers::regatta::check_optimised()?;
        }
        notes.extend(peer_notes(&competitors));
        notes.extend(eligible::notes(&competitors, &self.wishes(), self.network));
        if !self.network.is_local() {
            notes.extend(eligible::uneven_notes(&self.wishes(), self.hosts));
        }
        notes.extend(leave_out(&mut competitors, self.network));
        let twin = match self.aa {
            true => Some(twin(&mut competitors, self.delay)?),
            false => None,
        };
        let race = race::Race {
            competitors,
            network: self.network,
            hosts: self.hosts,
            wishes: self.wishes(),
            seed,
            before: before.as_ref().map(|(_, progress)| progress.clone()),
            quiet: self.quiet,
            notes,
            command: command_line(),
        };
        let stop = Stop::on_signals()?;
        let results = match (race.run(&stop), interrupted(&stop)) {
            (Ok(results), _) => results,
            (Err(error), None) => return Err(error),
            (Err(error), Some(status)) => {
                say::aside(format_args!("regatta: race: {error:#}"));
                return Ok(status);
            }
        };
        let results = match before {
            Some((old, _)) => resume::merge(old, results),
            None => results,
        };
        write(out, &results)?;
        match self.json {
            true => say::line(results.to_json())?,
            false => print(&results, out)?,
        }
        Ok(match (interrupted(&stop), twin) {
            (Some(status), _) => status,
            (None, Some((a, b))) => judge_twins(&results, &a, &b, self.delay),
            (None, None) => ExitCode::SUCCESS,
        })
    }

    /// Fails if names or numbers are not valid for any race.
    fn check(&self) -> Result<()> {
        let known = suites::ALL.iter().map(|one| one.name);
        check_names("suite", &self.suite, known.chain([suites::PAPERS]))?;
        let asked = suites::named(&self.suite);
        let of_hosts = |name: &&String| suites::find(name).is_some_and(|suite| suite.on_many_hosts);
        if let (Some(name), true) = (asked.iter().find(of_hosts), self.network.is_local()) {
            bail!(
                "the suite {name} is raced between hosts: add --network hosts, and --hosts with their number"
            );
        }
        let operations = operations::all().map(|operation| operation.name);
        check_names("operation", &self.operation, operations)?;
        if self.budget.is_some_and(|ms| !(ms.is_finite() && ms > 0.0)) {
            bail!("--budget needs a number of milliseconds above 0");
        }
        self.check_tasks()?;
        // An operation with a host may have one task, which is its only node.
        let has_host = |name: &String| {
            suites::find(name).is_some_and(|suite| operations::of(suite).any(|one| one.host))
        };
        let of_one = |name: &String| {
            let takes_one = |suite| operations::of(suite).all(|one| one.tasks.0 == 1);
            suites::find(name).is_some_and(takes_one)
        };
        let mut named = asked.iter();
        let one = !asked.is_empty() && named.all(|name| has_host(name) || of_one(name));
        let tasks = self.tasks.iter().copied();
        let tasks: Vec<u32> = tasks.filter(|&number| !(one && number == 1)).collect();
        eligible::check_tasks(&self.operation, &tasks)
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            suites: suites::named(&self.suite),
            operations: self.operation.clone(),
            tasks: self.tasks.clone(),
            bytes: self.bytes.clone(),
            effort: match (self.quick, self.full) {
                (true, _) => Effort::Quick,
                (_, true) => Effort::Full,
                _ => Effort::Normal,
            },
            launches: self.launches,
            budget: self.budget,
        }
    }

    /// Returns the environments that were asked for, or all that take part by default.
    fn choose(&self, found: Found) -> Result<Vec<Competitor>> {
        let names: Vec<&str> = found.competitors.iter().map(|c| c.name.as_str()).collect();
        for asked in &self.environment {
            if !names.contains(&asked.as_str()) {
                let known = peers::look(asked).is_some();
                let here = names.join(", ");
                match known {
                    true => bail!(
                        "the environment {asked:?} is not installed on this machine (`regatta race prepare` installs most peers); installed: {here}"
                    ),
                    false => {
                        bail!("unknown environment \"{asked}\"; installed on this machine: {here}")
                    }
                }
            }
        }
        // Variants for encryption and bypass differ only where there is a network.
        let fits = |c: &Competitor| !self.network.is_local() || !peers::is_between_hosts(&c.name);
        // Some suites include environments that other suites race on request only.
        let wishes = self.wishes();
        let raced = |suite: &&&Suite| operations::of(suite).any(|one| wishes.ask(suite, one));
        let raced: Vec<&Suite> = suites::ALL.iter().filter(raced).copied().collect();
        let called = |c: &Competitor| {
            raced
                .iter()
                .any(|suite| suite.on_request && (suite.calls)(c))
        };
        let wanted = |c: &Competitor| match self.environment.as_slice() {
            [] => called(c) || !c.on_request || (self.full && !peers::is_of_a_suite(&c.name)),
            asked => asked.contains(&c.name),
        };
        // Environments that take part in none of the suites are not mentioned.
        let plays = |c: &Competitor| {
            let suites = || wishes.suites.iter().filter_map(|name| suites::find(name));
            wishes.suites.is_empty() || suites().any(|suite| (suite.takes)(c.peer))
        };
        let all = found.competitors.into_iter();
        Ok(all.filter(fits).filter(wanted).filter(plays).collect())
    }

    /// Fails if a race between hosts has no number of tasks that can be split evenly among the hosts.
    fn check_tasks(&self) -> Result<()> {
        let even = |tasks: &u32| tasks.is_multiple_of(self.hosts);
        match self.tasks.first() {
            Some(tasks) if !self.network.is_local() && !self.tasks.iter().any(even) => bail!(
                "{tasks} tasks cannot be distributed evenly over {} hosts: use a multiple of that number",
                self.hosts
            ),
            _ => Ok(()),
        }
    }
}

/// Returns the exit status of a command that was interrupted by a signal, as shells report it.
fn interrupted(stop: &Stop) -> Option<ExitCode> {
    stop.asked()
        .map(|signal| ExitCode::from((128 + signal) as u8))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

fn check_names<'a>(
    what: &str,
    asked: &[String],
    known: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let known: Vec<&str> = known.collect();
    for name in asked {
        if !known.contains(&name.as_str()) {
            bail!(
                "unknown {what} {name:?}; the names are: {}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

/// Removes the environments that cannot take part on this network. Returns notes that say which and why.
fn leave_out(competitors: &mut Vec<Competitor>, network: Network) -> Vec<String> {
    let mut notes = Vec::new();
    competitors.retain(|one| match (one.peer.facts().misses)(network) {
        Some(why) => {
            notes.push(format!("{} {why}", one.name));
            false
        }
        None => true,
    });
    notes
}

/// Returns notes for readers about the peers that take part.
fn peer_notes(competitors: &[Competitor]) -> Vec<String> {
    let note = |c: &Competitor| {
        let why = c.peer.facts().crowded.err()?;
        Some(format!(
            "{} is not raced with more tasks than processors: it {why}",
            c.name
        ))
    };
    let mut notes: Vec<String> = competitors.iter().filter_map(note).collect();
    let times = |c: &Competitor| Some(format!("{}{}", c.name, c.peer.facts().note?));
    notes.extend(competitors.iter().filter_map(times));
    notes
}

/// Adds a copy of the only environment, to race it against itself.
fn twin(competitors: &mut Vec<Competitor>, delay: Option<u32>) -> Result<(String, String)> {
    let [one] = competitors.as_slice() else {
        bail!(
            "--aa races one environment against itself: name it, such as --aa --environment limit"
        );
    };
    let mut again = Competitor {
        name: format!("{}{AA_SUFFIX}", one.name),
        ..one.clone()
    };
    again
        .flags
        .extend(delay.map(|percent| format!("-DMEASURE_DELAY={percent}")));
    let names = (one.name.clone(), again.name.clone());
    competitors.push(again);
    Ok(names)
}

/// Prints the verdict to stderr, so that stdout has only the JSON with `--json`.
fn judge_twins(results: &Results, a: &str, b: &str, delay: Option<u32>) -> ExitCode {
    let differences = compare::within(results, a, b);
    say::aside(format_args!(
        "\nA/A: {a} against itself\n{}",
        compare::render(&differences, a, b).trim_end()
    ));
    let (faster, slower, ties) = compare::count(&differences);
    let sentence = match delay {
        None if ties > 0 && faster + slower == 0 => {
            say::aside(format_args!(
                "A/A passed: no point has a winner, {ties} of {} are ties.",
                differences.len()
            ));
            return ExitCode::SUCCESS;
        }
        Some(percent) if slower > 0 && slower == differences.len() => {
            say::aside(format_args!(
                "A/A passed: the delay of {percent} % was found at all {slower} points."
            ));
            return ExitCode::SUCCESS;
        }
        None => "this machine is too noisy for this many launches, or the race favours an order",
        Some(_) => {
            "the delay was not found everywhere: this machine is too noisy for this many launches"
        }
    };
    say::aside(format_args!("A/A failed: {sentence}."));
    ExitCode::FAILURE
}

/// Returns the command's own arguments from `race` on, quoted for a shell.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Quoting fails only for a NUL byte, which arguments cannot have.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// Creates an unnamed temporary file in this folder.
fn new_file(folder: &Path) -> Result<NamedTempFile> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    // The umask removes the permissions that the user does not want to give.
    let readable = Permissions::from_mode(0o666);
    let file = Builder::new().permissions(readable).tempfile_in(folder);
    file.with_context(|| format!("cannot write into {}", folder.display()))
}

/// Writes all files of a race. Each file is replaced atomically: it has its new content or its old one.
fn write(out: &Path, results: &Results) -> Result<()> {
    let files = [
        (results::JSON, results.to_json()),
        (spreadsheet::ROWS, results.to_csv()),
        (spreadsheet::RATIOS, results.ratios_to_csv()),
        ("report.html", report::render(results, &reference::points())),
        ("picture.svg", report::picture(results)),
    ];
    // Few races have paired ratios.
    let paired = (!results.paired.is_empty()).then(|| results.paired_to_csv());
    let paired = paired.map(|text| (spreadsheet::PAIRED, text));
    for (name, text) in files.into_iter().chain(paired) {
        let file = out.join(name);
        let written = new_file(out).and_then(|mut new| {
            new.write_all(text.as_bytes())?;
            new.as_file().sync_all()?;
            Ok(new.persist(&file)?)
        });
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};
    use std::io::Read;

    fn options(words: &[&str]) -> Options {
        Again::try_parse_from(words).expect("options").options
    }

    /// A reader that has the old file open keeps seeing it whole. If it does, a full disk or a kill during writing
    /// leaves the old file too.
    #[test]
    fn old_results_are_whole_until_the_new_ones_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = results(vec![row("ring", "limit", 2, 8, 1.0)]);
        write(folder.path(), &one).expect("results");
        let mut old = fs::File::open(folder.path().join("results.json")).expect("results");
        write(folder.path(), &results(vec![])).expect("new results");
        let mut text = String::new();
        old.read_to_string(&mut text).expect("the old results");
        assert_eq!(Results::parse(&text).expect("a race"), one);
        assert!(
            Results::read(folder.path())
                .expect("a race")
                .rows
                .is_empty()
        );
        assert_eq!(fs::read_dir(folder.path()).expect("files").count(), 5);
    }

    #[test]
    fn the_suite_of_hosts_needs_a_network_and_uneven_tasks_are_refused_only_alone() {
        let check = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let checked = options(&words).check();
            checked.map_err(|error| error.to_string())
        };
        let error = check("race --suite hosts").unwrap_err();
        assert!(error.contains("add --network hosts"), "{error}");
        assert_eq!(
            check("race --suite hosts --network hosts --hosts 4"),
            Ok(())
        );
        let error = check("race --network hosts --hosts 4 --tasks 6").unwrap_err();
        assert!(
            error.contains("6 tasks cannot be distributed evenly"),
            "{error}"
        );
        assert_eq!(check("race --network hosts --hosts 4 --tasks 6,8"), Ok(()));
    }

    #[test]
    fn a_command_with_spaces_is_read_again_and_its_peers_are_not_trusted() {
        let again = |command: &str| options(&["race"]).of_command(command);
        let options = again("race --quick --out '/tmp/my races' --bytes 8").expect("options");
        assert_eq!(options.out, Some(PathBuf::from("/tmp/my races")));
        let error = again("race --peers /tmp/x").unwrap_err().to_string();
        assert!(error.contains("--peers again"), "{error}");
    }
}
