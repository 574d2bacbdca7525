//! The suites: operations that race together, and the environments that take part. The entries of operations name their
//! suites. An operation of several suites is raced in each.

use crate::discover::Competitor;
use crate::operations::{self, Need};
use crate::papers::{applications, maniezzo, white};
use crate::peers::{
    Look, Peer, interfaces, is_of_a_suite, mpich_debian, pvm, regatta, regatta_mpich, ttcp,
};
use crate::places::{self, Place};
use crate::portability::targets;

/// The source of a suite's points. Applications are planned in the same way in all suites: at the places that the suite
/// lists for them, or else with their default problems.
#[derive(Debug, Clone, Copy)]
pub enum Points {
    /// The entries of its operations, whose kinds determine the launches.
    OfOperations,
    /// As `OfOperations`, between two tasks.
    Pairs,
    /// A list.
    Listed(fn() -> Vec<Place>),
}

/// Operations that are raced together.
#[derive(Debug)]
pub struct Suite {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Whether it is raced only if its name is given, or the name of an operation that is in no other suite.
    pub on_request: bool,
    /// Whether it is raced between hosts too.
    pub between_hosts: bool,
    /// Whether it is raced between any number of hosts, with one or two tasks on each, and not on one host.
    pub on_many_hosts: bool,
    /// Whether all of its points are headlines.
    pub headline: bool,
    /// Whether its points are in the page's overview.
    pub glance: bool,
    /// Whether its environments are launched one after the other although they could take turns, because some
    /// environments that it is about cannot.
    pub launched: bool,
    /// Whether its operations share one job of each environment, which has no settings for particular operations.
    pub one_setting: bool,
    /// Number of launches of a group in a race of normal effort.
    pub launches: u32,
    /// Whether the messages of its applications are counted by environments that support that.
    pub counted: bool,
    /// The source of its points.
    pub points: Points,
    /// Returns whether peers of this kind may take part.
    pub takes: fn(&dyn Peer) -> bool,
    /// Returns whether an environment that other suites race on request only takes part.
    pub calls: fn(&Competitor) -> bool,
}

const USUAL: Suite = Suite {
    name: "",
    on_request: false,
    between_hosts: true,
    on_many_hosts: false,
    headline: false,
    glance: false,
    launched: false,
    one_setting: false,
    launches: 9,
    counted: false,
    points: Points::OfOperations,
    takes: |_| true,
    calls: |_| false,
};

const ON_REQUEST: Suite = Suite {
    on_request: true,
    between_hosts: false,
    ..USUAL
};

/// Messages and collectives, with a processor for each task.
pub static PRIMITIVES: Suite = Suite {
    name: "primitives",
    glance: true,
    ..USUAL
};
/// Messages and collectives with more tasks than processors.
pub static OVERSUBSCRIBED: Suite = Suite {
    name: "oversubscribed",
    glance: true,
    ..USUAL
};
/// Messages and collectives between 2 to 8 hosts.
pub static HOSTS: Suite = Suite {
    name: "hosts",
    points: Points::Listed(|| places::of_hosts(&HOSTS)),
    between_hosts: true,
    on_many_hosts: true,
    glance: true,
    takes: |peer| peer.facts().ours || is_recent_mpi(peer),
    ..ON_REQUEST
};
/// Operations and their expressions by others, in every environment.
pub static GUIDELINES: Suite = Suite {
    name: "guidelines",
    points: Points::Listed(|| places::of_guidelines(&GUIDELINES)),
    one_setting: true,
    takes: |peer| !peer.facts().limit,
    calls: |competitor| is_interface(competitor) && !is_of_a_suite(&competitor.name),
    ..ON_REQUEST
};
/// Start and end of jobs and tasks.
pub static START: Suite = Suite {
    name: "start",
    headline: true,
    ..USUAL
};
/// Memory and processor time of waiting tasks.
pub static MEMORY: Suite = Suite {
    name: "memory",
    between_hosts: false,
    headline: true,
    ..USUAL
};
/// PVM's ways of sending messages.
pub static PVM: Suite = Suite {
    name: "pvm",
    points: Points::Pairs,
    between_hosts: true,
    launched: true,
    ..ON_REQUEST
};
/// Operations that only MPI has.
pub static MPI: Suite = Suite {
    name: "mpi",
    points: Points::Pairs,
    headline: true,
    glance: true,
    takes: is_mpi,
    calls: |competitor| is_mpi(competitor.peer) && competitor.tuned,
    ..ON_REQUEST
};
/// Further operations that only MPI has, to find those that take a multiple of a peer's time.
pub static CLIFFS: Suite = Suite {
    name: "cliffs",
    points: Points::Listed(|| places::of_entries(&CLIFFS)),
    glance: true,
    takes: is_recent_mpi,
    calls: |competitor| competitor.name == interfaces::MPI.name,
    ..ON_REQUEST
};
/// The tables of Ahmad and Wu, 1991. Shared memory without a library does not take part, since it is no interface.
pub static AHMAD_WU_1991: Suite = Suite {
    name: "ahmad-wu-1991",
    points: Points::Listed(|| places::of_messages(&AHMAD_WU_1991)),
    takes: |peer| !peer.facts().limit,
    calls: is_interface,
    ..ON_REQUEST
};
/// White, Alund and Sunderam, 1994: PVM's routes and TCP (Table 6), and the NAS kernels.
pub static WHITE_1994: Suite = Suite {
    name: "white-1994",
    points: Points::Listed(|| [white::places(), applications::places(&WHITE_1994)].concat()),
    between_hosts: true,
    launched: true,
    counted: true,
    calls: |one| is_pvm(one.peer) || is_ttcp(one.peer) || is_interface(one),
    ..ON_REQUEST
};
/// The ping-pongs of Maniezzo and Sanna, of up to 64 MB, and NetPIPE.
pub static MANIEZZO_SANNA: Suite = Suite {
    name: "maniezzo-sanna",
    points: Points::Listed(|| [maniezzo::places(), maniezzo::applications()].concat()),
    between_hosts: true,
    launched: true,
    launches: 5,
    calls: |one| (is_mpi(one.peer) && one.tuned) || one.name == regatta::NO_BYPASS,
    ..ON_REQUEST
};
/// Bounds on the cost of interfaces over Regatta's own.
pub static INTERFACES: Suite = Suite {
    name: "interfaces",
    points: Points::Listed(targets::places),
    takes: |peer| peer.facts().ours,
    calls: is_interface,
    ..ON_REQUEST
};

/// Whole applications.
pub static APPLICATIONS: Suite = Suite {
    name: "applications",
    headline: true,
    calls: is_interface,
    ..ON_REQUEST
};

/// The tables of I. Ahmad, 1997: NX, Express and PVM with primitives and applications.
pub static AHMAD_1997: Suite = Suite {
    name: "ahmad-1997",
    points: Points::Listed(|| {
        [
            places::of_messages(&AHMAD_1997),
            applications::places(&AHMAD_1997),
        ]
        .concat()
    }),
    takes: |peer| !peer.facts().limit,
    calls: is_interface,
    ..ON_REQUEST
};
/// All suites.
pub static ALL: [&Suite; 15] = [
    &PRIMITIVES,
    &OVERSUBSCRIBED,
    &HOSTS,
    &GUIDELINES,
    &START,
    &MEMORY,
    &PVM,
    &MPI,
    &CLIFFS,
    &AHMAD_WU_1991,
    &WHITE_1994,
    &MANIEZZO_SANNA,
    &INTERFACES,
    &APPLICATIONS,
    &AHMAD_1997,
];

/// Name of all suites of papers together, in one race.
pub const PAPERS: &str = "papers";
/// The suites of papers, by year.
pub static OF_PAPERS: [&Suite; 4] = [&AHMAD_WU_1991, &WHITE_1994, &AHMAD_1997, &MANIEZZO_SANNA];

/// Returns the names of suites for the names on a command line, where one name may stand for several suites.
pub fn named(names: &[String]) -> Vec<String> {
    let each = |name: &String| match name == PAPERS {
        true => OF_PAPERS.map(|suite| suite.name.to_owned()).to_vec(),
        false => vec![name.clone()],
    };
    operations::distinct(names.iter().flat_map(each))
}

fn is_mpi(peer: &dyn Peer) -> bool {
    peer.lacks(Need::Blocks).is_none()
}

/// Excludes MPICH 4.0: data put into a window that it allocates does not arrive, and between hosts a launch of all
/// sizes does not end in time.
fn is_recent_mpi(peer: &dyn Peer) -> bool {
    let is_old = |look: &Look| look.name == mpich_debian::NAME;
    is_mpi(peer) && !peer.facts().looks.iter().any(is_old)
}

fn is_pvm(peer: &dyn Peer) -> bool {
    peer.facts().adapter == pvm::ADAPTER
}

fn is_ttcp(peer: &dyn Peer) -> bool {
    peer.facts()
        .looks
        .iter()
        .any(|look| look.name == ttcp::NAME)
}

fn is_interface(competitor: &Competitor) -> bool {
    competitor.peer.facts().ours && competitor.name != regatta_mpich::NAME
}

/// Returns the help of the option that names suites.
pub fn help() -> String {
    let names = |on_request| {
        let here = ALL.iter().filter(|suite| suite.on_request == on_request);
        here.map(|suite| suite.name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "Suites: {}; on request {}; {PAPERS}: the {} of papers",
        names(false),
        names(true),
        OF_PAPERS.len()
    )
}

/// Returns the suite of this name.
pub fn find(name: &str) -> Option<&'static Suite> {
    ALL.into_iter().find(|suite| suite.name == name)
}

/// Returns the suite of primitives. `crowded` says that there are more tasks than processors.
pub fn of_primitives(crowded: bool) -> &'static Suite {
    match crowded {
        true => &OVERSUBSCRIBED,
        false => &PRIMITIVES,
    }
}
