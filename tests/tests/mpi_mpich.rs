//! Programs compiled for MPICH's ABI run on Regatta's library for it: the programs of the other MPI tests, and one for
//! what only this ABI has.

use std::process::Command;

use regatta_tests::Job;
use regatta_tests::mpi::mpich;

fn play(program: &str, processes: &[u32], scenarios: &[&str]) {
    for &processes in processes {
        for scenario in scenarios {
            mpich::play(program, processes, scenario);
        }
    }
}

/// The library exports each function under its name and its profiling name, and the variables that programs read.
#[test]
fn all_names_are_exported() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(mpich::library())
        .output()
        .expect("nm");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    let all = regatta_mpi_table::functions().into_iter();
    let mut wanted: Vec<String> = Vec::new();
    for function in all.chain(regatta_mpi_table::customary()) {
        wanted.push(format!("MPI_{}", function.name));
        if function.has_large() {
            wanted.push(format!("MPI_{}_c", function.name));
        }
    }
    let profiling = wanted.iter().map(|name| format!("P{name}"));
    let profiling: Vec<String> = profiling.collect();
    wanted.extend(profiling);
    for data in [
        "UNWEIGHTED",
        "WEIGHTS_EMPTY",
        "F_STATUS_IGNORE",
        "T_PVAR_ALL_HANDLES",
    ] {
        wanted.push(format!("MPI_{data}"));
    }
    wanted.retain(|name| !names.contains(&name.as_str()));
    assert_eq!(wanted, Vec::<String>::new());
}

#[test]
fn what_this_interface_alone_has() {
    let scenarios = [
        "values",
        "statuses",
        "handles",
        "removed",
        "callbacks",
        "facts",
    ];
    play("mpich", &[1, 3], &scenarios);
    play("customary", &[1], &["handles", "statuses", "removed"]);
}

#[test]
fn messages() {
    play("begin", &[3], &["ring", "many_to_one"]);
    let scenarios = [
        "modes",
        "completion",
        "persistent",
        "probes",
        "exchanges",
        "given_up",
        "mistakes",
    ];
    play("messages", &[2], &scenarios);
    play("messages", &[1], &["generalized"]);
    play("partitioned", &[2], &["sizes", "layouts", "mistakes"]);
}

#[test]
fn datatypes_and_operators() {
    let scenarios = [
        "facts",
        "large",
        "names",
        "attributes",
        "columns",
        "irregular",
        "parts",
        "errors",
    ];
    play("types", &[1], &scenarios);
    play("packing", &[2], &["packed"]);
    play("packing", &[1], &["external", "operators"]);
}

#[test]
fn collectives() {
    play(
        "collective_oracle",
        &[3],
        &["blocking", "started", "all_forms"],
    );
    play("collective_errors", &[3], &["arguments"]);
    play(
        "collective_sides",
        &[4],
        &["between", "crossing", "neighbours"],
    );
}

#[test]
fn communicators() {
    let scenarios = [
        "groups",
        "copies",
        "parts",
        "of_groups",
        "freed",
        "attributes",
    ];
    play("communicators", &[2], &scenarios);
    play("intercommunicators", &[5], &["made", "parts", "of_groups"]);
    play("topologies", &[2], &["grids", "graphs", "distributed"]);
}

#[test]
fn arguments_that_mean_nothing_are_not_looked_at() {
    let scenarios = ["rooted", "in_place", "nobody", "empty"];
    play("insignificant", &[1, 4], &scenarios);
    play("insignificant", &[4], &["between", "processes"]);
}

#[test]
fn windows() {
    let scenarios = [
        "fences",
        "posts",
        "locks",
        "atomics",
        "operators",
        "layouts",
        "shared",
        "facts",
        "mistakes",
    ];
    play("windows", &[2], &scenarios);
}

#[test]
fn files() {
    let folder = std::env::temp_dir().join(format!("mpich-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let place = folder.display().to_string();
    for scenario in [
        "opening",
        "mistakes",
        "pointers",
        "shared",
        "views",
        "short_extents",
        "representations",
    ] {
        Job::of(2, &mpich::program("files"), &[scenario, &place])
            .run()
            .passed();
    }
    std::fs::remove_dir(&folder).expect("no files are left");
}

#[test]
fn the_environment_and_the_tool_interface() {
    play(
        "surroundings",
        &[2],
        &["memory", "hints", "handlers", "end"],
    );
    play("tools", &[1], &["settings", "counters", "categories"]);
    play("classes", &[1], &["check"]);
}

#[test]
fn processes_start_and_meet_others() {
    let scenarios = ["spawn", "spawn_several", "spawn_nothing", "ports", "join"];
    play("processes", &[2], &scenarios);
}

#[test]
fn survivors_go_on_and_errors_are_told() {
    Job::of(2, &mpich::program("faults"), &["shrink"])
        .option("--on-failure=continue")
        .run()
        .ended_with(128 + 9);
    Job::of(3, &mpich::program("faults"), &["abort"])
        .run()
        .ended_with(7);
    Job::of(3, &mpich::program("faults"), &["fatal"])
        .run()
        .said("MPI_Send: the destination is 3; ranks here are 0 to 2");
}
