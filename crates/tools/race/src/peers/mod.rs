//! The peers: kinds of environments. Each is in one file of this folder, which has all that the race knows of it, as an
//! implementation of [`Peer`].
//!
//! A peer finds its environments on this machine, installs them, compiles programs for them, starts jobs with their
//! launchers, states its settings with the measurement for each, and says what its library lacks. The crate's README
//! has the contract.

pub mod interfaces;
pub mod limit;
pub mod mpich;
pub mod mpich_debian;
pub mod openmpi;
pub mod pvm;
pub mod regatta;
pub mod regatta_mpich;
pub mod regatta_pvm;
pub mod serial;
pub mod ttcp;

use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::discover::Competitor;
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::Need;
use crate::process::Supervisor;
use crate::settings::{Resolved, Tuning};

/// All peers, in the order in which their environments are shown.
pub static ALL: &[&dyn Peer] = &[
    &regatta::Regatta,
    &regatta_pvm::RegattaPvm,
    &interfaces::NX,
    &interfaces::EXPRESS,
    &interfaces::MPI,
    &openmpi::OpenMpi,
    &mpich::Mpich,
    &regatta_mpich::RegattaMpich,
    &mpich_debian::MpichDebian,
    &pvm::Pvm,
    &limit::Limit,
    &serial::Serial,
    &ttcp::Ttcp,
];

/// Facts about a library that do not depend on the machine.
#[derive(Debug)]
pub struct Facts {
    /// Its environments: their names in results, and their appearance in plots.
    pub looks: &'static [Look],
    /// The file of `programs/adapters` for its interface, without `.c`.
    pub adapter: &'static str,
    /// Prefixes of the names of its library's files. The first file that the loader lists is shown. Empty if there is
    /// no library.
    pub libraries: &'static [&'static str],
    /// Returns why its tasks lack an ability, or `None` if they have it.
    pub lacks: fn(Need) -> Option<&'static str>,
    /// Returns why it is not raced on a network, or `None` if it is.
    pub misses: fn(Network) -> Option<&'static str>,
    /// Whether it takes part when there are more tasks than processors, or the reason why not.
    pub crowded: Result<(), &'static str>,
    /// Whether its tasks can wait outside the library without using a processor, so that it can take turns with others.
    pub takes_turns: bool,
    /// Whether it is an interface of Regatta's, started by `regatta run`.
    pub ours: bool,
    /// Whether it shows what the hardware allows.
    pub limit: bool,
    /// Whether Regatta is compared with it. False for environments that only show what is possible: the hardware's
    /// limit, TCP alone, a program without messages.
    pub rival: bool,
    /// Whether it always has one task, and runs applications only.
    pub one_task: bool,
    /// Whether its programs start their other tasks themselves. An application then gets their number as its last
    /// argument.
    pub starts_tasks: bool,
    /// Whether its launcher can profile a job.
    pub profiles: bool,
    /// Whether programs of a host load their nodes, as users of the library write them. Otherwise the launcher starts
    /// all tasks, and the first one acts as the host.
    pub loads_nodes: bool,
    /// Whether it takes seconds to start 100 tasks.
    pub starts_slowly: bool,
    /// Note for readers about its times, without the environment's name.
    pub note: Option<&'static str>,
    /// The launcher's arguments that give each task a processor of its own, and those for more tasks than processors:
    /// the best that were tried.
    pub pinning: [&'static [&'static str]; 2],
    /// The launcher's arguments that assign more tasks than processors to the processors in turn. If empty, `pinning`
    /// is used.
    pub dealt: &'static [&'static str],
    /// The launcher's arguments in place of `pinning` for one task that starts others.
    pub unpinned: &'static [&'static str],
    /// Its settings, each with the measurement behind it.
    pub tunings: &'static [Tuning],
    /// Prefixes of the names of files in /dev/shm that remain when its tasks are killed.
    pub left_behind: &'static [&'static str],
    /// Whether installing it needs package lists, which the installation of another peer downloads.
    pub takes_package_lists: bool,
}

impl Facts {
    /// The facts of most peers. The others override fields.
    const USUAL: Facts = Facts {
        looks: &[],
        adapter: "mpi",
        libraries: &[],
        lacks: lacks_of_mpi,
        misses: |_| None,
        crowded: Ok(()),
        takes_turns: true,
        ours: false,
        limit: false,
        rival: true,
        one_task: false,
        starts_tasks: false,
        profiles: false,
        loads_nodes: false,
        starts_slowly: false,
        note: None,
        pinning: [&[], &[]],
        dealt: &[],
        unpinned: &[],
        tunings: &[],
        left_behind: &[],
        takes_package_lists: false,
    };
}

/// A library, and how programs are compiled for it and started under it. It may come as several environments.
pub trait Peer: Debug + Sync {
    /// Returns the facts about it.
    fn facts(&self) -> &Facts;

    /// Returns its environments on this machine, or sentences that say what is missing and how to install it.
    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>>;

    /// Installs it below the folder for peers unless it is there. Returns what was done, or `None` if it needs no
    /// installation of its own.
    fn prepare(&self, _peers: &Path) -> Option<Result<String>> {
        None
    }

    /// Returns the name of its adapter on this network.
    fn adapter(&self, _network: Network) -> &'static str {
        self.facts().adapter
    }

    /// Returns the name of the environment whose program it runs.
    fn program<'a>(&self, competitor: &'a Competitor) -> &'a str {
        &competitor.name
    }

    /// Returns the compiler's arguments. `programs` is the folder of the sources, in which headers and links may be
    /// created.
    fn flags(&self, _programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        Ok(competitor.flags.clone())
    }

    /// Returns a variable by which the loader finds another library than the one that the program was linked with.
    fn loader(&self, _programs: &Path) -> Option<(String, String)> {
        None
    }

    /// Returns the path of messages with these settings, for libraries that do not report it.
    fn path(&self, _network: Network, _settings: &Resolved) -> &'static str {
        ""
    }

    /// Returns the command that starts a job on one host. The caller adds the program's arguments.
    fn launch(&self, job: &Job) -> Command;

    /// Returns the command that starts a job on one host and ends with its profile, a line of JSON. Returns `None` if
    /// it has no such command.
    fn launch_profiled(&self, _job: &Job) -> Option<Command> {
        None
    }

    /// Returns the command that starts a job on several hosts, or over 127.0.0.1. Peers that are raced there override
    /// it.
    fn launch_between(&self, job: &Job, _hosts: &Hosts) -> Command {
        self.launch(job)
    }

    /// Starts what must run around a launch, such as daemons. Dropping the result ends it, and all its tasks.
    fn surround(
        &self,
        _supervisor: &Supervisor,
        _competitor: &Competitor,
        _work: &Path,
        _hosts: Option<&Hosts>,
    ) -> Result<Option<Box<dyn Surroundings>>> {
        Ok(None)
    }
}

impl dyn Peer + '_ {
    /// Returns why its tasks lack an ability, or `None` if they have it.
    pub fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Application(application) if application.text(self.facts().adapter).is_none() => {
                Some("it is not written for this interface")
            }
            need => (self.facts().lacks)(need),
        }
    }
}

/// Daemons or a virtual machine that run around a launch.
pub trait Surroundings {
    /// Returns the variable by which tasks find it.
    fn variable(&self) -> (&'static str, String);
}

/// The mark of an environment's points in plots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Circle,
    /// A cross.
    Cross,
    /// A square on its tip.
    Diamond,
    /// The outline of a diamond.
    DiamondOpen,
    /// A narrow diamond.
    DiamondTall,
    /// A pentagon.
    Pentagon,
    /// A square.
    Square,
    /// The outline of a square.
    SquareOpen,
    /// A triangle on its tip.
    TriangleDown,
    /// A triangle.
    TriangleUp,
    /// The outline of a triangle.
    TriangleUpOpen,
}

impl Mark {
    /// Returns its name in the script that draws it.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Circle => "circle",
            Mark::Cross => "cross",
            Mark::Diamond => "diamond",
            Mark::DiamondOpen => "diamond-open",
            Mark::DiamondTall => "tall",
            Mark::Pentagon => "pentagon",
            Mark::Square => "square",
            Mark::SquareOpen => "square-open",
            Mark::TriangleDown => "down",
            Mark::TriangleUp => "up",
            Mark::TriangleUpOpen => "up-open",
        }
    }
}

/// How an environment is drawn. Name, colour and mark are the same in every plot and every race.
#[derive(Debug)]
pub struct Look {
    /// Its name in results.
    pub name: &'static str,
    /// Its name for readers.
    pub label: &'static str,
    /// `#rrggbb`.
    pub color: &'static str,
    /// Mark of its points.
    pub mark: Mark,
    /// Whether it is an interface over Regatta's own.
    pub interface: bool,
    /// Whether it is Regatta's own interface with settings that matter between hosts only, and is raced only there.
    pub between_hosts: bool,
    /// Whether it is raced only when it is named, or by the suite about it. A full race does not include it.
    pub of_a_suite: bool,
}

impl Look {
    const fn new(name: &'static str, label: &'static str, color: &'static str, mark: Mark) -> Look {
        Look {
            name,
            label,
            color,
            mark,
            interface: false,
            between_hosts: false,
            of_a_suite: false,
        }
    }

    const fn of_a_suite(self) -> Look {
        Look {
            of_a_suite: true,
            ..self
        }
    }

    const fn between_hosts(name: &'static str, label: &'static str, color: &'static str) -> Look {
        Look {
            between_hosts: true,
            ..Look::new(name, label, color, Mark::Circle)
        }
    }

    const fn interface(name: &'static str, label: &'static str, color: &'static str) -> Look {
        Look {
            interface: true,
            ..Look::new(name, label, color, Mark::Circle)
        }
    }
}

/// Returns the look of this environment.
pub fn look(name: &str) -> Option<&'static Look> {
    let mut all = ALL.iter().flat_map(|peer| peer.facts().looks);
    all.find(|look| look.name == name)
}

/// Returns whether this environment is Regatta's own interface with settings for networks, which is raced between hosts
/// only.
pub fn is_between_hosts(name: &str) -> bool {
    look(name).is_some_and(|look| look.between_hosts)
}

/// Returns whether this environment is raced only when it is named, or by the suite about it. A full race does not
/// include it.
pub fn is_of_a_suite(name: &str) -> bool {
    look(name).is_some_and(|look| look.of_a_suite)
}

/// Returns whether Regatta is compared with the environment of this name. An environment that this version does not
/// know counts as a rival.
pub fn is_rival(name: &str) -> bool {
    let mut all = ALL.iter().map(|peer| peer.facts());
    let of_it = |facts: &&Facts| facts.looks.iter().any(|look| look.name == name);
    all.find(of_it).is_none_or(|facts| facts.rival)
}

/// Where environments are searched.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The folder of peers that were installed for the race only.
    pub peers: &'a Path,
    /// The environments that were found before.
    pub found: &'a [Competitor],
}

impl Machine<'_> {
    fn named(&self, name: &str) -> Option<&Competitor> {
        self.found.iter().find(|one| one.name == name)
    }
}

/// A job to be started by a launcher.
#[derive(Debug)]
pub struct Job<'a> {
    /// The environment.
    pub competitor: &'a Competitor,
    /// Its program.
    pub program: &'a Path,
    /// The settings of this launch.
    pub settings: &'a Resolved,
    /// The number of tasks that the launcher is asked for, or the program itself if there is no launcher.
    pub tasks: u32,
}

impl Job<'_> {
    /// Returns the launcher with the arguments for the number of tasks, the settings and the program.
    fn under_launcher(&self, number: &[&str]) -> Command {
        let mut command = Command::new(&self.competitor.launcher);
        command.args(number).args(&self.competitor.arguments);
        command.args(&self.settings.arguments).arg(self.program);
        command
    }

    /// Returns the program, which starts its other tasks.
    fn by_itself(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env("RACE_TASKS", self.tasks.to_string());
        command
    }
}

/// Returns a sentence that says that a peer is not installed, and how to install it.
pub fn missing(name: &str, what: &str) -> String {
    format!(
        "{name} does not take part, because it is not installed ({what}); `regatta race prepare` installs most peers"
    )
}

/// Suffix of the name of the second environment in a race of one against itself (`--aa`).
pub const AA_SUFFIX: &str = "-again";

/// Reason why two tasks cannot both send before they receive.
pub const WAITS: &str =
    "a send may wait for its receive, so tasks that all send first may deadlock";

/// Reason why a library lacks an operation like `MPI_Sendrecv`.
const NO_SENDRECV: &str = "its call for that, if it has one, is in exchange";

/// Returns why libraries of MPI lack an ability, or `None` if they have it.
fn lacks_of_mpi(need: Need) -> Option<&'static str> {
    match need {
        Need::Deaths => Some("MPI has no call that reports the end of a task"),
        Need::Buffering => Some(WAITS),
        _ => None,
    }
}

/// Reason why sums at one task and similar operations are not raced.
const NO_MORE_COLLECTIVES: &str =
    "its calls of this kind, if any, are used here to build its collectives of all tasks";

/// Returns why libraries without one-sided transfers, datatypes and threads lack an ability, or `None` if they have it.
fn lacks_of_others(need: Need) -> Option<&'static str> {
    match need {
        Need::Windows | Need::Blocks | Need::Threads | Need::Mpi | Need::FreedCollectives => {
            Some("only MPI has transfers to other tasks' memory, datatypes and threads")
        }
        Need::Sendrecv | Need::SendrecvTypes => Some(NO_SENDRECV),
        Need::MoreCollectives => Some(NO_MORE_COLLECTIVES),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::discover;
    use crate::operations;

    /// Abilities, and the macro by which an adapter declares each.
    const WORDS: [(Need, &str); 16] = [
        (Need::Hosts, "ENV_HOSTS"),
        (Need::Buffering, "ENV_BUFFERS"),
        (Need::Sendrecv, "ENV_SENDRECV"),
        (Need::SendrecvTypes, "ENV_SENDRECV"),
        (Need::Types, "ENV_TYPES"),
        (Need::Packing, "ENV_PACKS"),
        (Need::PackedTypes, "ENV_PACKS_TYPES"),
        (Need::PackedDefault, "ENV_PACKS_DEFAULT"),
        (Need::Windows, "ENV_WINDOWS"),
        (Need::Blocks, "ENV_BLOCKS"),
        (Need::Threads, "ENV_THREADS"),
        (Need::MoreCollectives, "ENV_MORE_COLLECTIVES"),
        (Need::Mpi, "ENV_MPI"),
        (Need::FreedCollectives, "ENV_MPI"),
        (Need::Spawning, "ENV_SPAWNS"),
        (Need::Deaths, "ENV_WATCHES"),
    ];

    /// An operation that is planned for an environment must be in the program that is compiled for it.
    #[test]
    fn whatever_a_peer_does_not_lack_its_adapter_has() {
        for peer in ALL.iter().filter(|peer| !peer.facts().one_task) {
            let file = format!("adapters/{}.c", peer.adapter(Network::Local));
            let adapter = crate::build::text(&file).expect("the adapter is compiled in");
            for (need, word) in WORDS {
                let has = adapter.contains(&format!("#define {word}\n"));
                let can = peer.lacks(need).is_none();
                assert!(has || !can, "{peer:?} has no {word} for {need:?}");
            }
            assert_eq!(peer.lacks(Need::Messages), None, "{peer:?}");
        }
    }

    #[test]
    fn every_operation_has_an_environment_that_can_run_it() {
        for operation in operations::all() {
            let can = |peer: &&dyn Peer| peer.lacks(operation.need).is_none();
            assert!(ALL.iter().any(can), "{operation:?}");
        }
    }

    #[test]
    fn every_environment_has_one_look_and_every_setting_a_reason() {
        let names: Vec<&str> = ALL
            .iter()
            .flat_map(|peer| peer.facts().looks.iter().map(|look| look.name))
            .collect();
        assert_eq!(operations::distinct(names.iter()).len(), names.len());
        for competitor in discover(Path::new("/nonexistent")).competitors {
            assert!(names.contains(&competitor.name.as_str()), "{competitor:?}");
        }
        for &peer in ALL {
            let described = crate::settings::describe(peer, true, Network::Local);
            let empty = |s: &crate::results::Setting| s.reason.is_empty() || s.when.is_empty();
            assert!(!described.iter().any(empty), "{described:?}");
        }
    }

    #[test]
    fn who_packs_nothing_is_raced_with_bytes_only() {
        let can = |peer: &dyn Peer, name| {
            let operation = operations::find(name).expect("it is in the table");
            peer.lacks(operation.need).is_none()
        };
        let ours: &dyn Peer = &regatta::Regatta;
        assert!(can(ours, "ping-pong-blocking") && can(ours, "ping-pong-blocking-pack-raw"));
        assert!(!can(ours, "ping-pong-blocking-pack-raw-int"));
        assert!(!can(ours, "ping-pong-blocking-pack-default"));
        for operation in operations::of(&crate::suites::PVM) {
            for peer in [ALL[1], &pvm::Pvm, &openmpi::OpenMpi] {
                assert!(can(peer, operation.name), "{peer:?} {operation:?}");
            }
            assert!(!can(&limit::Limit, operation.name), "{operation:?}");
        }
    }
}
