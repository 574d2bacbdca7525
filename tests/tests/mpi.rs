//! Programs of MPI behave as the standard says: first steps, and the names that the library exports.

use std::process::Command;

use regatta_tests::mpi;

#[test]
fn processes_pass_messages() {
    mpi::play("begin", 1, "ring");
    mpi::play("begin", 3, "ring");
    mpi::play("begin", 4, "many_to_one");
}

/// Programs and libraries that mix C and Fortran, or are older than MPI-2, find the names that every `mpi.h` has.
#[test]
fn names_that_every_mpi_has_are_there() {
    mpi::play("customary", 1, "handles");
    mpi::play("customary", 1, "statuses");
    mpi::play("customary", 1, "removed");
}

#[test]
fn arguments_that_mean_nothing_are_not_looked_at() {
    for processes in [1, 4] {
        for scenario in ["rooted", "in_place", "nobody", "empty"] {
            mpi::play("insignificant", processes, scenario);
        }
    }
    mpi::play("insignificant", 4, "between");
    mpi::play("insignificant", 4, "processes");
}

/// The library exports each function of the standard under its name and its profiling name (`PMPI_`).
#[test]
fn all_names_of_the_standard_are_exported() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(mpi::library())
        .output()
        .expect("nm");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    let mut missing = Vec::new();
    let all = regatta_mpi_table::functions().into_iter();
    for function in all.chain(regatta_mpi_table::customary()) {
        let suffixes: &[&str] = if function.has_large() {
            &["", "_c"]
        } else {
            &[""]
        };
        for suffix in suffixes {
            for prefix in ["MPI_", "PMPI_"] {
                let name = format!("{prefix}{}{suffix}", function.name);
                if !names.contains(&name.as_str()) {
                    missing.push(name);
                }
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
