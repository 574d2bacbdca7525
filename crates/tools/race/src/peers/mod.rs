//! The peers: all that the race knows of each kind of environment stands in one file of this folder, an implementation of [`Peer`].
//!
//! A peer finds its environments on this machine, gets them, compiles programs for them, starts jobs under their launchers, states its
//! settings with the measurement behind each, and says what its library lacks. The crate's README has the contract.

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

/// All of them, in the order in which their environments are shown.
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
    /// Its environments: their names in results, and how they are drawn.
    pub looks: &'static [Look],
    /// The file of `programs/adapters` that is written to its interface, without `.c`.
    pub adapter: &'static str,
    /// Beginnings of the names of its library's file, the first that the loader tells; none without a library.
    pub libraries: &'static [&'static str],
    /// Says why its tasks cannot do something; none: they can.
    pub lacks: fn(Need) -> Option<&'static str>,
    /// Says why it is not raced on a network; none: it is.
    pub misses: fn(Network) -> Option<&'static str>,
    /// Whether it takes part when there are more tasks than processors; else why not.
    pub crowded: Result<(), &'static str>,
    /// Whether its tasks can wait outside the library without using a processor, and so take turns with others.
    pub takes_turns: bool,
    /// Whether it is an interface of Regatta's, started by `regatta run`.
    pub ours: bool,
    /// Whether it stands for what the hardware allows.
    pub limit: bool,
    /// Whether Regatta is held against it; not what is there to show what is possible: the hardware's limit, TCP alone, a program without messages.
    pub rival: bool,
    /// Whether it is one task without any other, which runs applications only.
    pub one_task: bool,
    /// Whether its programs start their other tasks themselves: an application has their number as its last argument.
    pub starts_tasks: bool,
    /// Whether its launcher can profile a job.
    pub profiles: bool,
    /// Whether programs on a host load their nodes, as the library's users write them; else the launcher starts all, and the first task plays
    /// the host.
    pub loads_nodes: bool,
    /// Whether starting 100 tasks takes it seconds.
    pub starts_slowly: bool,
    /// Note for readers of its times, without the environment's name.
    pub note: Option<&'static str>,
    /// The launcher's arguments that give each task a processor of its own; with more tasks than processors, the best that was tried.
    pub pinning: [&'static [&'static str]; 2],
    /// The launcher's arguments that deal more tasks than processors to these in turn; none: its pinning.
    pub dealt: &'static [&'static str],
    /// The launcher's arguments instead of these for one task that starts others.
    pub unpinned: &'static [&'static str],
    /// Its settings, each with the measurement behind it.
    pub tunings: &'static [Tuning],
    /// Beginnings of the names of files in /dev/shm that are left when its tasks are killed.
    pub left_behind: &'static [&'static str],
    /// Whether getting it takes package lists, which another one's packages bring.
    pub takes_package_lists: bool,
}

impl Facts {
    /// Of most.
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

    /// Its environments on this machine, or sentences that say what is missing and how to get it.
    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>>;

    /// Gets it below the folder for peers, unless it is there; what was done. None: it comes with another one or with Regatta.
    fn prepare(&self, _peers: &Path) -> Option<Result<String>> {
        None
    }

    /// The adapter on this network.
    fn adapter(&self, _network: Network) -> &'static str {
        self.facts().adapter
    }

    /// The environment whose program it runs.
    fn program<'a>(&self, competitor: &'a Competitor) -> &'a str {
        &competitor.name
    }

    /// The compiler's arguments. `programs` is the folder of the sources, into which headers and links may be put.
    fn flags(&self, _programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        Ok(competitor.flags.clone())
    }

    /// A variable by which the loader finds another library than the one that the program was linked with.
    fn loader(&self, _programs: &Path) -> Option<(String, String)> {
        None
    }

    /// Which way messages go by these settings, for libraries that do not tell.
    fn path(&self, _network: Network, _settings: &Resolved) -> &'static str {
        ""
    }

    /// The command that starts a job on one host; the program's arguments are to follow.
    fn launch(&self, job: &Job) -> Command;

    /// Returns the command that starts a job on one host and ends with its profile, a line of JSON; none: it has no such command.
    fn launch_profiled(&self, _job: &Job) -> Option<Command> {
        None
    }

    /// Returns the command that starts a job on several hosts, or over 127.0.0.1. Needed of those that are raced there.
    fn launch_between(&self, job: &Job, _hosts: &Hosts) -> Command {
        self.launch(job)
    }

    /// Starts what must run around a launch, such as daemons; dropping it ends it, and all tasks there.
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
    /// Says why its tasks cannot do something; none: they can.
    pub fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Application(application) if application.text(self.facts().adapter).is_none() => {
                Some("it is not written for this interface")
            }
            need => (self.facts().lacks)(need),
        }
    }
}

/// Daemons and the like, which run around a launch.
pub trait Surroundings {
    /// The variable by which tasks find it.
    fn variable(&self) -> (&'static str, String);
}

/// The mark of an environment's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Circle,
    /// A cross.
    Cross,
    /// A square on its tip.
    Diamond,
    /// Its outline.
    DiamondOpen,
    /// A narrow one.
    DiamondTall,
    /// A pentagon.
    Pentagon,
    /// A square.
    Square,
    /// Its outline.
    SquareOpen,
    /// A triangle on its tip.
    TriangleDown,
    /// A triangle.
    TriangleUp,
    /// Its outline.
    TriangleUpOpen,
}

impl Mark {
    /// Its name in the script that draws it.
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

/// How an environment is drawn: one name, colour and mark in every plot and every race.
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
    /// Whether it is one of the interfaces over Regatta's own.
    pub interface: bool,
    /// Whether it is Regatta's own interface with settings that make a difference between hosts alone, and is raced there alone.
    pub between_hosts: bool,
    /// Whether it is raced only when it is named, or by the suite about it: no full race has it.
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

/// The look of this environment.
pub fn look(name: &str) -> Option<&'static Look> {
    let mut all = ALL.iter().flat_map(|peer| peer.facts().looks);
    all.find(|look| look.name == name)
}

/// Whether this environment is Regatta's own interface with settings for networks, which is raced between hosts alone.
pub fn is_between_hosts(name: &str) -> bool {
    look(name).is_some_and(|look| look.between_hosts)
}

/// Is this environment raced only when it is named, or by the suite about it? No full race has it.
pub fn is_of_a_suite(name: &str) -> bool {
    look(name).is_some_and(|look| look.of_a_suite)
}

/// Whether Regatta is held against the environment of this name. One of another version of the race counts.
pub fn is_rival(name: &str) -> bool {
    let mut all = ALL.iter().map(|peer| peer.facts());
    let of_it = |facts: &&Facts| facts.looks.iter().any(|look| look.name == name);
    all.find(of_it).is_none_or(|facts| facts.rival)
}

/// Where environments are looked for.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The folder of peers that were got for the race only.
    pub peers: &'a Path,
    /// The environments that were found before.
    pub found: &'a [Competitor],
}

impl Machine<'_> {
    fn named(&self, name: &str) -> Option<&Competitor> {
        self.found.iter().find(|one| one.name == name)
    }
}

/// A job that a launcher is to start.
#[derive(Debug)]
pub struct Job<'a> {
    /// The environment.
    pub competitor: &'a Competitor,
    /// Its program.
    pub program: &'a Path,
    /// The settings of this launch.
    pub settings: &'a Resolved,
    /// How many tasks the launcher is asked for, or the program itself if it has none.
    pub tasks: u32,
}

impl Job<'_> {
    /// The launcher with arguments that say how many tasks there are, the settings and the program.
    fn under_launcher(&self, number: &[&str]) -> Command {
        let mut command = Command::new(&self.competitor.launcher);
        command.args(number).args(&self.competitor.arguments);
        command.args(&self.settings.arguments).arg(self.program);
        command
    }

    /// The program, which starts its other tasks.
    fn by_itself(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env("RACE_TASKS", self.tasks.to_string());
        command
    }
}

/// Says that a peer is not here, and how to get it.
pub fn missing(name: &str, what: &str) -> String {
    format!(
        "{name} takes no part, because it is not installed ({what}); `regatta race prepare` installs what it can"
    )
}

/// Suffix of the name of the second environment in a race of one against itself (`--aa`).
pub const AA_SUFFIX: &str = "-again";

/// Says why two tasks cannot both send before they receive.
pub const WAITS: &str =
    "a send may wait for its receive, so tasks that all send first may wait for ever";

/// Says why a library lacks what `MPI_Sendrecv` does.
const NO_SENDRECV: &str = "its call for that, if it has one, is in exchange";

/// Returns what libraries of MPI lack: nothing that the race asks for, but this.
fn lacks_of_mpi(need: Need) -> Option<&'static str> {
    match need {
        Need::Deaths => Some("MPI has no call that tells of the end of a task"),
        Need::Buffering => Some(WAITS),
        _ => None,
    }
}

/// Says why sums at one task and their like are not raced.
const NO_MORE_COLLECTIVES: &str =
    "its calls of that kind, if it has any, are what its collectives of all tasks are made of here";

/// Returns what libraries without one-sided transfers, datatypes and threads lack.
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

    /// Abilities, and the word by which an adapter says that it has it.
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
