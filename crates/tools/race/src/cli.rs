//! `regatta race` as a command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::discover::{self, Competitor, Found};
use crate::network::{Network, hosts, inside};
use crate::plan::{self, Effort, Wishes};
use crate::results::Results;
use crate::settings::Family;
use crate::stop::Stop;
use crate::{
    compare, family, mpi_operations, ping_pong, portability, prepare, race, reference, report,
    same_program, settings, table,
};

/// Race Regatta against the message-passing libraries on this machine.
///
/// Writes results.json, results.csv and report.html, and prints a table.
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
    /// Hold the results of one race against those of another
    Compare {
        /// Folder or results.json of the first race
        a: PathBuf,
        /// Folder or results.json of the second race
        b: PathBuf,
    },
    /// Get the peers: Open MPI and MPICH from PyPI, MPICH and PVM from the distribution
    Prepare {
        /// Folder for peers [default: regatta/peers in the cache folder]
        #[arg(long, value_name = "DIR")]
        peers: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Options {
    /// Suites: primitives, oversubscribed, start, memory; on request pvm, ahmad-wu-1991, interfaces
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    suite: Vec<String>,
    /// Operations, such as one-to-one or broadcast [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    operation: Vec<String>,
    /// Environments, such as regatta or openmpi [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    environment: Vec<String>,
    /// Numbers of tasks [default: 2, 4, 8, 16, 32; spawn: 1, 10, 100]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256))]
    tasks: Vec<u32>,
    /// Sizes of messages in bytes [default: 0 to 16 MiB]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    bytes: Vec<u64>,
    /// The network that messages cross; all but `local` take namespaces, so root or a user namespace
    #[arg(long, value_name = "NAME", default_value = "local")]
    network: Network,
    /// Number of hosts, unless the network is `local`
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(2..=i64::from(hosts::MOST)))]
    hosts: u32,
    /// At most four and a half minutes
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
    /// Race one environment against itself: every point must end in a tie
    #[arg(long)]
    aa: bool,
    /// With --aa: the second one is made so many per cent slower on purpose, and every point must show it
    #[arg(long, value_name = "PERCENT", requires = "aa", value_parser = clap::value_parser!(u32).range(1..=100))]
    delay: Option<u32>,
    /// Seed of the order of launches [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for the results [default: results/race-SECONDS]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder with peers installed by `regatta race prepare`
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Print the results as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

impl Race {
    /// Run the command.
    pub fn run(self) -> Result<ExitCode> {
        match self.action {
            Some(Action::Compare { a, b }) => compare_files(&a, &b),
            Some(Action::Prepare { peers }) => {
                get_peers(&peers.unwrap_or_else(discover::default_peers))
            }
            None => self.options.race(),
        }
    }
}

fn compare_files(a: &Path, b: &Path) -> Result<ExitCode> {
    let (first, second) = (Results::read(a)?, Results::read(b)?);
    for warning in compare::warnings(&first, &second) {
        eprintln!("warning: {warning}");
    }
    let differences = compare::differences(&first, &second);
    if differences.is_empty() {
        bail!("the two races have no point in common: race the same operations, tasks and sizes");
    }
    print!(
        "{}",
        compare::render(
            &differences,
            &a.display().to_string(),
            &b.display().to_string()
        )
    );
    Ok(ExitCode::SUCCESS)
}

fn get_peers(peers: &Path) -> Result<ExitCode> {
    let mut missing = 0;
    for prepared in prepare::prepare(peers) {
        match prepared.outcome {
            Ok(done) => println!("{}: {done}", prepared.name),
            Err(error) => {
                missing += 1;
                println!("{}: not here: {error:#}", prepared.name);
            }
        }
    }
    if missing > 0 {
        println!("The race runs without {missing} of its peers.");
    }
    Ok(ExitCode::SUCCESS)
}

/// The table, and where the files are.
fn print(results: &Results, out: &Path) {
    println!("{}", table::render(results));
    println!(
        "results: {}\nreport:  {}",
        out.join("results.json").display(),
        out.join("report.html").display()
    );
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
        fs::create_dir_all(&out)
            .with_context(|| format!("cannot create the folder {}", out.display()))?;
        let mut found =
            discover::discover(&self.peers.clone().unwrap_or_else(discover::default_peers));
        let mut notes = std::mem::take(&mut found.missing);
        if !self.environment.is_empty() {
            // A user who names environments knows which are left out.
            notes.clear();
        }
        let mut competitors = self.choose(found)?;
        notes.extend(peer_notes(&competitors));
        notes.extend(family::notes(&competitors, &self.wishes(), self.network));
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
            quiet: self.quiet,
            notes,
            command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        };
        let stop = Stop::on_signals()?;
        let results = match (race.run(&stop), interrupted(&stop)) {
            (Ok(results), _) => results,
            (Err(error), None) => return Err(error),
            (Err(error), Some(status)) => {
                eprintln!("regatta: race: {error:#}");
                return Ok(status);
            }
        };
        write(&out, &results)?;
        match self.json {
            true => println!("{}", results.to_json()),
            false => print(&results, &out),
        }
        Ok(match (interrupted(&stop), twin) {
            (Some(status), _) => status,
            (None, Some((a, b))) => judge_twins(&results, &a, &b, self.delay),
            (None, None) => ExitCode::SUCCESS,
        })
    }

    /// Refuses names and numbers that no race could have.
    fn check(&self) -> Result<()> {
        check_names("suite", &self.suite, &plan::SUITES)?;
        let others = [
            "join-leave",
            family::SPAWN,
            family::NOTIFY,
            "idle",
            "blocked-receive",
        ];
        check_names(
            "operation",
            &self.operation,
            &[
                &plan::OPERATIONS[..],
                &portability::OPERATIONS,
                &others,
                &ping_pong::OPERATIONS,
                &mpi_operations::OPERATIONS,
            ]
            .concat(),
        )?;
        if self.budget.is_some_and(|ms| !(ms.is_finite() && ms > 0.0)) {
            bail!("--budget takes a number of milliseconds above 0");
        }
        self.check_tasks()?;
        // A host may have one node.
        let hosts =
            !self.suite.is_empty() && self.suite.iter().all(|suite| is_about_interfaces(suite));
        let tasks = self.tasks.iter().copied();
        let tasks: Vec<u32> = tasks.filter(|&number| !(hosts && number == 1)).collect();
        family::check_tasks(&self.operation, &tasks)
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            suites: self.suite.clone(),
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

    /// The environments asked for, or all that take part unasked.
    fn choose(&self, found: Found) -> Result<Vec<Competitor>> {
        let names: Vec<&str> = found.competitors.iter().map(|c| c.name.as_str()).collect();
        for asked in &self.environment {
            if !names.contains(&asked.as_str()) {
                bail!(
                    "there is no environment {asked:?} here; found: {}",
                    names.join(", ")
                );
            }
        }
        // Without a network there is nothing to encrypt.
        let fits = |c: &Competitor| !self.network.is_local() || c.arguments.is_empty();
        // Suites about interfaces over Regatta's own have all of these.
        let over = self.suite.iter().any(|suite| is_about_interfaces(suite))
            || (self.suite.is_empty() && self.operation.iter().any(|name| is_of_interfaces(name)));
        let of_mpi = |name: &String| mpi_operations::is_one(name);
        let mpi = self.suite.iter().any(|name| name == mpi_operations::SUITE)
            || (self.suite.is_empty() && self.operation.iter().any(of_mpi));
        let wanted = |c: &Competitor| match self.environment.as_slice() {
            [] if c.family.is_started_by_regatta() && over => c.name != same_program::REGATTA_MPICH,
            [] if mpi && mpi_operations::takes_part(c.family) && c.tuned => true,
            [] => !c.on_request || self.full,
            asked => asked.contains(&c.name),
        };
        // Nothing is said of those that take part in none of the suites.
        let plays = |c: &Competitor| {
            let part = |suite: &String| match suite.as_str() {
                mpi_operations::SUITE => mpi_operations::takes_part(c.family),
                suite => !is_about_interfaces(suite) || portability::takes_part(suite, c.family),
            };
            self.suite.is_empty() || self.suite.iter().any(part)
        };
        let all = found.competitors.into_iter();
        Ok(all.filter(fits).filter(wanted).filter(plays).collect())
    }

    /// Every host gets as many tasks as the others.
    fn check_tasks(&self) -> Result<()> {
        let uneven = |tasks: &&u32| !tasks.is_multiple_of(self.hosts);
        match self.tasks.iter().find(uneven) {
            Some(tasks) if !self.network.is_local() => bail!(
                "{tasks} tasks cannot be dealt evenly to {} hosts: ask for a multiple",
                self.hosts
            ),
            _ => Ok(()),
        }
    }
}

/// The status of a command that a signal has interrupted, as shells have it.
fn interrupted(stop: &Stop) -> Option<ExitCode> {
    stop.asked()
        .map(|signal| ExitCode::from((128 + signal) as u8))
}

fn is_about_interfaces(suite: &str) -> bool {
    !portability::places(suite).is_empty()
}

fn is_of_interfaces(operation: &str) -> bool {
    portability::OPERATIONS.contains(&operation)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

fn check_names(what: &str, asked: &[String], known: &[&str]) -> Result<()> {
    for name in asked {
        if !known.contains(&name.as_str()) {
            bail!(
                "there is no {what} {name:?}; there are: {}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

/// Takes those out of a race who cannot take part on this network; the notes that say so.
fn leave_out(competitors: &mut Vec<Competitor>, network: Network) -> Vec<String> {
    let mut notes = Vec::new();
    let mut without = |family: Family, note: &str| {
        let before = competitors.len();
        competitors.retain(|c| c.family != family);
        if competitors.len() < before {
            notes.push(note.to_owned());
        }
    };
    if network == Network::Loopback {
        let note = "pvm is not raced over 127.0.0.1: its tasks on one host talk by Unix sockets";
        without(Family::Pvm, note);
    }
    if !network.is_local() {
        for (family, name) in [
            (Family::RegattaPvm, "regatta-pvm"),
            (Family::RegattaNx, "regatta-nx"),
            (Family::RegattaExpress, "regatta-express"),
            (Family::RegattaMpi, "regatta-mpi"),
        ] {
            without(family, &format!("{name} is raced on one host only"));
        }
    }
    notes
}

/// Notes for readers about the peers that take part.
fn peer_notes(competitors: &[Competitor]) -> Vec<String> {
    let note = |c: &Competitor| {
        let why = settings::takes_part_crowded(c.family).err()?;
        Some(format!(
            "{} is not raced with more tasks than processors: it {why}",
            c.name
        ))
    };
    let mut notes: Vec<String> = competitors.iter().filter_map(note).collect();
    let machines = competitors
        .iter()
        .filter(|c| matches!(c.family, Family::Pvm | Family::RegattaPvm));
    notes.extend(machines.map(|c| {
        format!(
            "{}'s time to join and leave is without starting its daemon, which runs already",
            c.name
        )
    }));
    notes
}

/// Enter the only environment a second time.
fn twin(competitors: &mut Vec<Competitor>, delay: Option<u32>) -> Result<(String, String)> {
    let [one] = competitors.as_slice() else {
        bail!("--aa races one environment against itself: name it, like --aa --environment limit");
    };
    let mut again = Competitor {
        name: format!("{}-again", one.name),
        ..one.clone()
    };
    again
        .flags
        .extend(delay.map(|percent| format!("-DMEASURE_DELAY={percent}")));
    let names = (one.name.clone(), again.name.clone());
    competitors.push(again);
    Ok(names)
}

/// The verdict goes to stderr, so that --json keeps stdout to itself.
fn judge_twins(results: &Results, a: &str, b: &str, delay: Option<u32>) -> ExitCode {
    let differences = compare::within(results, a, b);
    eprintln!(
        "\nA/A: {a} against itself\n{}",
        compare::render(&differences, a, b).trim_end()
    );
    let (faster, slower, ties) = compare::count(&differences);
    let sentence = match delay {
        None if ties > 0 && faster + slower == 0 => {
            eprintln!(
                "A/A passed: no point has a side, {ties} of {} are ties.",
                differences.len()
            );
            return ExitCode::SUCCESS;
        }
        Some(percent) if slower > 0 && slower == differences.len() => {
            eprintln!("A/A passed: the delay of {percent} % was found at all {slower} points.");
            return ExitCode::SUCCESS;
        }
        None => "this machine is too noisy for this many launches, or the race favours an order",
        Some(_) => {
            "the delay was not found everywhere: this machine is too noisy for this many launches"
        }
    };
    eprintln!("A/A failed: {sentence}.");
    ExitCode::FAILURE
}

fn write(out: &Path, results: &Results) -> Result<()> {
    let files = [
        ("results.json", results.to_json()),
        ("results.csv", results.to_csv()),
        ("report.html", report::render(results, &reference::points())),
        ("picture.svg", report::picture(results)),
    ];
    for (name, text) in files {
        let file = out.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
