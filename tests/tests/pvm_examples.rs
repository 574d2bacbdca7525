//! Every example that comes with PVM 3.4.6 has the same output on Regatta as on PVM, both compiled from source with
//! Regatta's headers and libraries, and as Debian has built it, unchanged.

use std::collections::BTreeSet;

use regatta_tests::needs;
use regatta_tests::pvm_examples::Step::{Console, Ended, Run, Start, Together, Type, Until};
use regatta_tests::pvm_examples::{
    DEBIAN, PLAIN, Program, Scenario, build, compare, debian_programs, sources,
};

/// Describes a program with one source file, which Debian installs under the program's name.
const fn program(name: &'static str, sources: &'static [&'static str]) -> Program {
    Program {
        name,
        sources,
        debian: Some(name),
        in_makefile: true,
    }
}

/// Describes a program that Debian does not install.
const fn source_only(
    name: &'static str,
    sources: &'static [&'static str],
    in_makefile: bool,
) -> Program {
    Program {
        name,
        sources,
        debian: None,
        in_makefile,
    }
}

/// Every example, with its sources.
const PROGRAMS: &[Program] = &[
    Program {
        debian: Some("hello.pvm"),
        ..program("hello", &["examples/hello.c"])
    },
    program("hello_other", &["examples/hello_other.c"]),
    program("master1", &["examples/master1.c"]),
    program("slave1", &["examples/slave1.c"]),
    program("fmaster1", &["examples/master1.f"]),
    program("fslave1", &["examples/slave1.f"]),
    program("spmd", &["examples/spmd.c"]),
    program("fspmd", &["examples/spmd.f"]),
    program("dbwtest", &["examples/bwtest.c"]),
    program("ibwtest", &["examples/bwtest.c"]),
    program("pbwtest", &["examples/bwtest.c"]),
    program("rbwtest", &["examples/bwtest.c"]),
    program("timing", &["examples/timing.c"]),
    program("timing_slave", &["examples/timing_slave.c"]),
    program("hitc", &["examples/hitc.f"]),
    program("hitc_slave", &["examples/hitc_slave.f"]),
    program("gexample", &["examples/gexample.c"]),
    program("fgexample", &["examples/gexample.f"]),
    program("inherita", &["examples/inherita.c"]),
    program("inheritb", &["examples/inheritb.c"]),
    program("inherit1", &["examples/inherit1.c"]),
    program("inherit2", &["examples/inherit2.c"]),
    program("inherit3", &["examples/inherit3.c"]),
    program("task0", &["examples/task0.c", "examples/taskf.c"]),
    program("task1", &["examples/task1.c", "examples/taskf.c"]),
    program("task_end", &["examples/task_end.c", "examples/taskf.c"]),
    program("rme", &["examples/rme.c", "examples/taskf.c"]),
    program("lmbi", &["examples/lmbi.c", "examples/taskf.c"]),
    program("gmbi", &["examples/gmbi.c", "examples/taskf.c"]),
    source_only("mbox", &["examples/mbox.c"], true),
    program("mhf_server", &["examples/mhf_server.c"]),
    program("mhf_tickle", &["examples/mhf_tickle.c"]),
    source_only("starter", &["examples/starter.c"], false),
    source_only("ptest", &["examples/ptest.c"], false),
    program("trsg", &["gexamples/trsg.c"]),
    program("frsg", &["gexamples/frsg.f"]),
    program("gexamp", &["gexamples/gexamp.c"]),
    program("joinleave", &["gexamples/joinleave.c"]),
    program("thb", &["gexamples/thb.c"]),
    program("tnb", &["gexamples/tnb.c"]),
    program("ge", &["gexamples/ge.c"]),
    Program {
        debian: Some("gs.pvm"),
        ..program("gs", &["gexamples/gs.c"])
    },
    program("tjf", &["gexamples/tjf.c"]),
    program("tjl", &["gexamples/tjl.c"]),
    program("tst", &["gexamples/tst.c"]),
];

/// Other programs in Debian's package, each with the reason why it is not run.
const NOT_RUN: &[(&str, &str)] = &[
    ("mtile", "draws with X11"),
    ("xep", "draws with X11"),
    (
        "srm.pvm",
        "becomes the resource manager of a machine in pvm_system.rs",
    ),
];

/// Names of PVM's built-in message handlers. Regatta's library does not have them.
const INSIDE: &[&str] = &[
    "Display Message Handler Information",
    "message handlers:",
    "free list.",
    "header.tag= -2147",
];
const ALL_FIGURES: &[&str] = &[""];

/// Scenarios of programs that Debian installs completely.
const SCENARIOS: &[Scenario] = &[
    // Must run first: PVM's group server also registers a name.
    Scenario {
        name: "a service that is found by its mailbox",
        steps: &[
            Run("gmbi", ""),
            Run("task1 service", ""),
            Start("task0 service"),
            Until("gmbi service", "owner_tid"),
            Run("gmbi", ""),
            Run("task0 service", ""),
            Run("task1 service", ""),
            Run("task1 service 0 f", ""),
            Run("task_end service 0", ""),
            Ended("task0 service"),
            Run("task1 service 0 r", ""),
            Start("task0 other p"),
            Until("gmbi other", "owner_tid"),
            Run("task_end other 0", ""),
            Ended("task0 other p"),
            Run("gmbi o*r", ""),
            Run("rme other 0", ""),
            Run("rme other 0", ""),
            Run("task_end other 0", ""),
            Run("lmbi 3 pm e", ""),
            Run("lmbi 2 d e", ""),
            Run("lmbi", ""),
            Run("gmbi", ""),
        ],
        ..PLAIN
    },
    Scenario {
        name: "hello",
        steps: &[Run("hello", ""), Console("spawn -> hello")],
        ..PLAIN
    },
    Scenario {
        name: "masters and slaves",
        steps: &[
            Run("master1", ""),
            Run("fmaster1", ""),
            Console("spawn -> master1"),
            Console("spawn -> fmaster1"),
        ],
        any_order: true,
        ..PLAIN
    },
    Scenario {
        name: "one program several times",
        steps: &[Console("spawn -4 -> spmd"), Console("spawn -4 -> fspmd")],
        ..PLAIN
    },
    Scenario {
        name: "bandwidth",
        steps: &[
            Together(&["dbwtest", "dbwtest"]),
            Together(&["ibwtest", "ibwtest"]),
            Together(&["pbwtest", "pbwtest"]),
            Together(&["rbwtest", "rbwtest"]),
            Console("spawn -2 -> dbwtest"),
        ],
        times: &["Roundtrip T", "[1:TASK] Roundtrip T"],
        // Written each time the first program looks for the second.
        left_out: &["pvm_gettid()"],
        ..PLAIN
    },
    Scenario {
        name: "timing",
        steps: &[Run("timing", "")],
        times: ALL_FIGURES,
        ..PLAIN
    },
    Scenario {
        name: "a pool of tasks",
        steps: &[Run("hitc", ""), Console("spawn -> hitc")],
        ..PLAIN
    },
    Scenario {
        name: "groups",
        steps: &[
            Run("gexample", "100\n4\n"),
            Console("spawn -3 -> gexample"),
            Run("fgexample", ""),
            // All tasks but the first assume that there are two tasks per host.
            Console("spawn -2 -> fgexample"),
        ],
        ..PLAIN
    },
    Scenario {
        name: "contexts",
        steps: &[
            Run("inherita inherit1", ""),
            Run("inherita inherit3", ""),
            Run("inherita", ""),
            Run("inheritb", ""),
        ],
        ..PLAIN
    },
    Scenario {
        name: "handlers",
        steps: &[
            Start("mhf_server"),
            Until("gmbi mhf_server", "owner_tid"),
            Start("mhf_tickle"),
            Type("mhf_tickle", "0\n", "mhf_server", "Are you talking"),
            Type("mhf_tickle", "1\n77\n0\n1\n", "mhf_server", "AFTER load"),
            Type("mhf_tickle", "1\n78\n5\n6\n", "mhf_server", "AFTER load"),
            Type(
                "mhf_tickle",
                "1\n77\n0\n2\n",
                "mhf_server",
                "already exists",
            ),
            Type("mhf_tickle", "4\n77\n0\n1\na  word\n", "mhf_server", "HIT:"),
            Type("mhf_tickle", "4\n78\n5\n6\n4242\n", "mhf_server", "HIT:"),
            Type("mhf_tickle", "4\n78\n0\n6\n4242\n", "mhf_server", "HIT:"),
            Type("mhf_tickle", "7\n8\n", "mhf_tickle", "CEAT - client"),
            Ended("mhf_tickle"),
            Run("mhf_tickle", "9\n"),
            Ended("mhf_server"),
        ],
        left_out: INSIDE,
        ..PLAIN
    },
    Scenario {
        name: "handlers that go",
        steps: &[
            Start("mhf_server"),
            Until("gmbi mhf_server", "owner_tid"),
            Start("mhf_tickle"),
            Type("mhf_tickle", "1\n77\n0\n1\n", "mhf_server", "AFTER load"),
            Type("mhf_tickle", "2\n9\n", "mhf_server", "AFTER delete"),
            Type("mhf_tickle", "2\n9\n0\n", "mhf_server", "Are you talking"),
            Type("mhf_tickle", "1\n79\n0\n3\n", "mhf_server", "AFTER load"),
            Type("mhf_tickle", "2\n9\n", "mhf_server", "AFTER delete"),
            Type("mhf_tickle", "1\n79\n0\n4\n", "mhf_server", "AFTER load"),
            Type("mhf_tickle", "3\n", "mhf_server", "just registered server"),
            Type("mhf_tickle", "\n0\n", "mhf_server", "Are you talking"),
            Type("mhf_tickle", "9\n", "mhf_tickle", "SEAT - server"),
            Ended("mhf_tickle"),
            Ended("mhf_server"),
        ],
        // PVM still lists tasks that have exited, and prints complaints about them at the end.
        left_out: &[
            "Display Message Handler Information",
            "message handlers:",
            "free list.",
            "dhandles[",
            "]: pvm_delmhf()",
        ],
        ..PLAIN
    },
    Scenario {
        name: "rows that are scattered and gathered",
        steps: &[Run("trsg", "4\n5\n"), Console("spawn -> trsg")],
        ..PLAIN
    },
    Scenario {
        name: "the same in Fortran",
        steps: &[Run("frsg", "4\n5\n"), Console("spawn -> frsg")],
        // The program adds to an uninitialized variable.
        left_out: &["Sum of Squares"],
        ..PLAIN
    },
    Scenario {
        name: "joining",
        steps: &[
            Run("joinleave 200", ""),
            Run("tjl", ""),
            Run("tjf", ""),
            Run("tst", ""),
            Run("thb 4", ""),
        ],
        ..PLAIN
    },
    Scenario {
        name: "numbers in groups",
        steps: &[
            Run("gexamp 4", ""),
            Run("gexamp", ""),
            Run("gs 4", ""),
            Run("gs", ""),
        ],
        // Written each time the first program looks.
        left_out: &["waiting on kids to join"],
        ..PLAIN
    },
    Scenario {
        name: "numbers in a group that some have left",
        steps: &[Run("ge 4", ""), Run("ge", "")],
        // Messages about tasks that had already left.
        left_out: &["doesn't match up!", "pvm_getinst()", "pvm_gettid()"],
        ..PLAIN
    },
];

/// Scenarios of programs that exist only as source.
const OF_SOURCES: &[Scenario] = &[
    Scenario {
        name: "mailboxes",
        steps: &[
            Run("mbox", ""),
            Run("mbox query nindices=2", ""),
            Run("mbox pers", ""),
            Run("mbox query 0", ""),
            Run("mbox", ""),
            Run("mbox minst", ""),
            Run("mbox pers minst", ""),
            Run("mbox pers minst name=other", ""),
            Run("mbox pers minst name=other", ""),
            Run("mbox pers owrit name=third", ""),
            Run("mbox pers owrit name=third", ""),
            Run("mbox info", ""),
            Run("mbox info t*", ""),
            Run("mbox query 1 favail", ""),
            Run("mbox query 0 rddel", ""),
            Run("mbox query nindices=3", ""),
            Run("mbox delete nindices=3", ""),
            Run("mbox delete 0 name=other", ""),
            Run("mbox default", ""),
            Run("mbox default33", ""),
            Run("mbox direct", ""),
            Run("mbox delete nindices=10", ""),
            Start("mbox query 0 wait"),
            Run("mbox pers", ""),
            Ended("mbox query 0 wait"),
            Run("mbox delete 0", ""),
            Run("mbox noexit", ""),
            Run("mbox noreset sleep=1", ""),
            Run("mbox querynoreset", ""),
            Run("mbox spawn query", ""),
            Run("mbox help", ""),
        ],
        // Where the names are given, the program compares uninitialized data, which may contain a newline.
        left_out: &["String Mismatch", "\"  !=  \""],
        ..PLAIN
    },
    Scenario {
        name: "programs that are started by one of them",
        steps: &[
            Run("starter -n 4 spmd", ""),
            Run("starter -n 3 gexample", ""),
            Run("starter", ""),
        ],
        any_order: true,
        ..PLAIN
    },
    Scenario {
        name: "rounds of a group",
        steps: &[
            Run("starter -n 4 ptest 4", ""),
            Together(&["ptest 3 0 6 2", "ptest 3 0 6 2", "ptest 3 0 6 2"]),
            Run("ptest", ""),
        ],
        any_order: true,
        ..PLAIN
    },
];

#[test]
fn every_example_is_in_the_table() {
    let of_table = |part: fn(&Program) -> Vec<&'static str>| {
        PROGRAMS
            .iter()
            .flat_map(part)
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let all: BTreeSet<_> = sources().into_iter().collect();
    assert!(all.len() > 40, "{all:?}");
    assert_eq!(
        of_table(|program| program.sources.to_vec()),
        all,
        "the table's sources, then PVM's"
    );
    let mut known = of_table(|program| program.debian.into_iter().collect());
    known.extend(NOT_RUN.iter().map(|(name, _)| (*name).to_owned()));
    let all: BTreeSet<_> = debian_programs().into_iter().collect();
    assert_eq!(known, all, "the table's programs, then Debian's");
}

#[test]
fn every_example_is_run() {
    // Programs that are spawned by other programs.
    let spawned = [
        "hello_other",
        "slave1",
        "fslave1",
        "timing_slave",
        "hitc_slave",
        "inherit1",
        "inherit2",
        "inherit3",
        "tnb",
    ];
    let steps = SCENARIOS
        .iter()
        .chain(OF_SOURCES)
        .flat_map(|scenario| scenario.steps);
    let run: BTreeSet<_> = steps
        .flat_map(|step| step.programs())
        .chain(spawned)
        .collect();
    let all: BTreeSet<_> = PROGRAMS.iter().map(|program| program.name).collect();
    assert_eq!(run, all, "those that are run, then all");
}

#[test]
fn examples_compiled_with_regatta_s_headers_and_libraries_say_what_they_say_on_pvm() {
    compare("pvm-sources", SCENARIOS, &|machine, maker| {
        build(machine, PROGRAMS, maker)
    });
}

#[test]
fn mailboxes_and_starters_say_what_they_say_on_pvm() {
    compare("pvm-more-sources", OF_SOURCES, &|machine, maker| {
        build(machine, PROGRAMS, maker)
    });
}

#[test]
fn examples_as_debian_has_built_them_say_what_they_say_on_pvm() {
    for file in PROGRAMS.iter().filter_map(|program| program.debian) {
        needs::file(format!("{DEBIAN}/{file}"), "pvm-examples");
    }
    compare("pvm-binaries", SCENARIOS, &|machine, _| {
        for program in PROGRAMS {
            if let Some(file) = program.debian {
                machine.install(format!("{DEBIAN}/{file}").as_ref(), program.name);
            }
        }
    });
}
