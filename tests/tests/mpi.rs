//! Programs of MPI do on Regatta what the standard says: the first steps, and the library's names.

use std::process::Command;

use regatta_tests::mpi;

#[test]
fn processes_pass_messages() {
    mpi::play("begin", 1, "ring");
    mpi::play("begin", 3, "ring");
    mpi::play("begin", 4, "many_to_one");
}

/// Each function of the standard is there, under its name and its profiling name.
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
    for function in regatta_mpi_table::functions() {
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
