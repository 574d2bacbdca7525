//! Whole applications (`programs/applications`), each of which verifies its own answer.

use super::{Kind, Need, Operation, Pattern, Program};
use crate::build;
use crate::plan::Effort;
use crate::suites::{AHMAD_1997, APPLICATIONS, MANIEZZO_SANNA, WHITE_1994};

/// Maximum number of tasks that an application is raced with.
const MAX_TASKS: u32 = 64;

/// An application, with one program for each interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Application {
    /// File name of the program's text below `programs/applications`, with `{}` for the interface.
    pub file: &'static str,
    /// The program's first arguments. The problem's arguments follow.
    pub arguments: &'static [&'static str],
    /// Unit of a problem's size, for readers.
    pub quantity: &'static str,
    /// The problems, by size.
    pub problems: &'static [Problem],
}

/// A problem that an application solves.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its size, which results have in place of bytes.
    pub size: u64,
    /// Its name for readers. If it is empty, the size is shown.
    pub label: &'static str,
    /// The program's arguments.
    pub arguments: &'static [&'static str],
    /// The smallest effort of a race that includes the problem by default. `None` if it is raced only when asked for,
    /// or in the suite of a paper.
    pub effort: Option<Effort>,
}

impl Application {
    /// Returns the path below `programs` of its text for an interface, or `None` if it is not written for that.
    pub fn text(&self, interface: &str) -> Option<String> {
        let path = format!("applications/{}", self.file.replace("{}", interface));
        build::text(&path).map(|_| path)
    }

    /// Returns the problem of this size.
    pub fn problem(&self, size: u64) -> Option<&'static Problem> {
        self.problems.iter().find(|problem| problem.size == size)
    }

    /// Returns the sizes of the problems that a race of this effort includes by default.
    pub fn usual(&self, effort: Effort) -> Vec<u64> {
        let within = |problem: &&Problem| problem.effort.is_some_and(|least| least <= effort);
        let here = self.problems.iter().filter(within);
        here.map(|problem| problem.size).collect()
    }
}

impl Operation {
    /// Returns the operation of an application.
    const fn application(name: &'static str, application: &'static Application) -> Operation {
        Operation {
            kind: Kind::Application,
            need: Need::Application(application),
            tasks: (1, MAX_TASKS),
            ..Operation::new(name, Program::Application(application))
        }
    }
}

const fn problem(
    effort: Effort,
    size: u64,
    label: &'static str,
    arguments: &'static [&'static str],
) -> Problem {
    Problem {
        size,
        label,
        arguments,
        effort: Some(effort),
    }
}

/// Returns a problem that is raced only when asked for.
const fn asked(size: u64, label: &'static str, arguments: &'static [&'static str]) -> Problem {
    Problem {
        effort: None,
        ..problem(Effort::Full, size, label, arguments)
    }
}

/// The systems of equations of I. Ahmad (1997), and one larger.
const EQUATIONS: &[Problem] = &[
    asked(256, "", &["256"]),
    asked(384, "", &["384"]),
    problem(Effort::Quick, 512, "", &["512"]),
    asked(640, "", &["640"]),
    asked(768, "", &["768"]),
    problem(Effort::Normal, 1024, "", &["1024"]),
    problem(Effort::Full, 2048, "", &["2048"]),
];

const fn gauss(arguments: &'static [&'static str]) -> Application {
    Application {
        file: "gauss/{}.c",
        arguments,
        quantity: "unknowns",
        problems: EQUATIONS,
    }
}

static ROW_BLOCK: Application = gauss(&["row-block"]);
static COLUMN_BLOCK: Application = gauss(&["column-block"]);
static COLUMN_SCATTERED: Application = gauss(&["column-scattered"]);

/// The numbers of bodies of I. Ahmad (1997), ten steps each. The largest has two steps.
static NBODY: Application = Application {
    file: "nbody/{}.c",
    arguments: &[],
    quantity: "bodies",
    problems: &[
        asked(512, "", &["512", "10"]),
        problem(Effort::Quick, 1024, "", &["1024", "10"]),
        asked(2048, "", &["2048", "10"]),
        problem(Effort::Normal, 4096, "", &["4096", "10"]),
        asked(8192, "", &["8192", "10"]),
        asked(16384, "", &["16384", "2"]),
    ],
};

static MD: Application = Application {
    file: "md/{}.c",
    arguments: &[],
    quantity: "particles",
    problems: &[
        // The grid must be wide enough for slabs of eight tasks.
        problem(Effort::Quick, 16384, "", &["16", "20"]),
        problem(Effort::Normal, 32000, "", &["20", "20"]),
    ],
};

/// The pictures of Maniezzo and Sanna, and a smaller one. The path is relative to the folder in which the race works.
static RIBBIT: Application = Application {
    file: "ribbit/{}.c",
    arguments: &["programs/applications/ribbit/scenes/still-life.scene"],
    quantity: "pixels",
    problems: &[
        problem(Effort::Quick, 400 * 300, "400x300", &["400", "300"]),
        problem(Effort::Normal, 800 * 600, "800x600", &["800", "600"]),
        problem(Effort::Full, 1024 * 768, "1024x768", &["1024", "768"]),
    ],
};

/// The time includes POV-Ray's own work, so the pictures are small.
static POVRAY: Application = Application {
    file: "povray/{}.c",
    arguments: &["programs/applications/povray/scene.pov"],
    quantity: "pixels",
    problems: &[
        problem(Effort::Quick, 160 * 120, "160x120", &["160", "120"]),
        problem(Effort::Normal, 400 * 300, "400x300", &["400", "300"]),
        asked(800 * 600, "800x600", &["800", "600"]),
    ],
};

static EP: Application = Application {
    file: "npb/{}/ep.c",
    arguments: &[],
    quantity: "pairs",
    problems: &[
        problem(Effort::Quick, 1 << 24, "class S", &["S"]),
        problem(Effort::Full, 1 << 25, "class W", &["W"]),
        asked(1 << 28, "class A", &["A"]),
        asked(1 << 30, "class B", &["B"]),
    ],
};
static MG: Application = Application {
    file: "npb/{}/mg.c",
    arguments: &[],
    quantity: "points",
    problems: &[
        problem(Effort::Quick, 1 << 15, "class S", &["S"]),
        problem(Effort::Quick, 1 << 21, "class W", &["W"]),
        asked(1 << 24, "class A", &["A"]),
        // Class B differs from class A only in its number of steps, so its size here is made different by 1.
        asked((1 << 24) + 1, "class B", &["B"]),
    ],
};
static CG: Application = Application {
    file: "npb/{}/cg.c",
    arguments: &[],
    quantity: "rows",
    problems: &[
        problem(Effort::Quick, 1400, "class S", &["S"]),
        problem(Effort::Quick, 7000, "class W", &["W"]),
        problem(Effort::Full, 14000, "class A", &["A"]),
        asked(75000, "class B", &["B"]),
    ],
};
static IS: Application = Application {
    file: "npb/{}/is.c",
    arguments: &[],
    quantity: "keys",
    problems: &[
        problem(Effort::Quick, 1 << 16, "class S", &["S"]),
        problem(Effort::Quick, 1 << 20, "class W", &["W"]),
        problem(Effort::Full, 1 << 23, "class A", &["A"]),
        asked(1 << 25, "class B", &["B"]),
    ],
};
static FT: Application = Application {
    file: "npb/{}/ft.c",
    arguments: &[],
    quantity: "points",
    problems: &[
        problem(Effort::Quick, 1 << 18, "class S", &["S"]),
        problem(Effort::Normal, 1 << 19, "class W", &["W"]),
        asked(1 << 23, "class A", &["A"]),
        asked(1 << 25, "class B", &["B"]),
    ],
};

/// All applications, as operations.
pub(super) static ALL: &[&Operation] = &[
    &Operation {
        heading: "Gaussian elimination, blocks of rows",
        about: "equations by Gaussian elimination with partial pivoting: in each step a search for the pivot among all tasks, and a broadcast",
        suites: &[&APPLICATIONS, &AHMAD_1997],
        pattern: Pattern::BroadcastsInTurn,
        ..Operation::application("gauss-row-block", &ROW_BLOCK)
    },
    &Operation {
        heading: "Gaussian elimination, blocks of columns",
        about: "the same by columns: one task finds the pivot, and broadcasts the multipliers",
        suites: &[&APPLICATIONS, &AHMAD_1997],
        pattern: Pattern::BroadcastsInTurn,
        ..Operation::application("gauss-column-block", &COLUMN_BLOCK)
    },
    &Operation {
        heading: "Gaussian elimination, scattered columns",
        about: "the same with columns that are assigned in turn",
        suites: &[&APPLICATIONS, &AHMAD_1997],
        pattern: Pattern::BroadcastsInTurn,
        ..Operation::application("gauss-column-scattered", &COLUMN_SCATTERED)
    },
    &Operation {
        heading: "N bodies",
        about: "bodies that attract each other; copies of them travel round a ring",
        suites: &[&APPLICATIONS, &AHMAD_1997],
        ..Operation::application("nbody", &NBODY)
    },
    &Operation {
        heading: "molecular dynamics",
        about: "particles with a short range: messages to both neighbours in each step",
        suites: &[&APPLICATIONS, &MANIEZZO_SANNA],
        ..Operation::application("md", &MD)
    },
    &Operation {
        heading: "rendering by micropolygons",
        about: "a picture of small polygons, which a master hands out and others render; pieces outside a worker's tile are returned",
        suites: &[&APPLICATIONS, &MANIEZZO_SANNA],
        ..Operation::application("ribbit", &RIBBIT)
    },
    &Operation {
        heading: "farm for POV-Ray",
        about: "a picture by POV-Ray in tiles that a master hands out; every pixel must equal that of a single run of POV-Ray",
        suites: &[&MANIEZZO_SANNA],
        // A master and at least one worker. The program without an environment is one task.
        tasks: (2, MAX_TASKS),
        ..Operation::application("povray", &POVRAY)
    },
    &Operation {
        heading: "NAS EP",
        about: "NAS kernel EP: Gaussian deviates, and one sum at the end",
        suites: &[&APPLICATIONS, &WHITE_1994],
        ..Operation::application("npb-ep", &EP)
    },
    &Operation {
        heading: "NAS MG",
        about: "NAS kernel MG: multigrid, planes to neighbours on finer and coarser grids",
        suites: &[&APPLICATIONS, &WHITE_1994],
        ..Operation::application("npb-mg", &MG)
    },
    &Operation {
        heading: "NAS CG",
        about: "NAS kernel CG: conjugate gradients, gathers and sums",
        suites: &[&APPLICATIONS, &WHITE_1994],
        ..Operation::application("npb-cg", &CG)
    },
    &Operation {
        heading: "NAS IS",
        about: "NAS kernel IS: integers sorted by a complete exchange",
        suites: &[&APPLICATIONS, &WHITE_1994],
        ..Operation::application("npb-is", &IS)
    },
    &Operation {
        heading: "NAS FT",
        about: "NAS kernel FT: Fourier transforms, transposed in each step",
        suites: &[&APPLICATIONS, &WHITE_1994],
        ..Operation::application("npb-ft", &FT)
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers;

    fn applications() -> impl Iterator<Item = &'static Application> {
        super::super::all().filter_map(|operation| match operation.program {
            Program::Application(application) => Some(application),
            Program::Primitive(_) => None,
        })
    }

    #[test]
    fn every_application_is_written_for_serial_and_for_our_own_interface() {
        for application in applications() {
            for interface in ["serial", "regatta"] {
                assert!(application.text(interface).is_some(), "{application:?}");
            }
            assert_eq!(application.text("limit"), None, "{application:?}");
        }
    }

    #[test]
    fn problems_have_sizes_of_their_own_and_a_quick_race_has_one() {
        for application in applications() {
            let sizes: Vec<u64> = application.problems.iter().map(|one| one.size).collect();
            assert!(sizes.is_sorted_by(|a, b| a < b), "{application:?}");
            assert!(!application.usual(Effort::Quick).is_empty());
        }
    }

    #[test]
    fn a_peer_without_a_text_for_its_interface_lacks_the_application() {
        let need = Need::Application(&NBODY);
        let limit: &dyn peers::Peer = &peers::limit::Limit;
        assert!(limit.lacks(need).is_some());
        let mpich: &dyn peers::Peer = &peers::mpich::Mpich;
        assert_eq!(mpich.lacks(need), None);
    }
}
