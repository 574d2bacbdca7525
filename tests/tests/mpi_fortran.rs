//! Programs of MPI in Fortran: by mpif.h, by the module mpi, and by the module mpi_f08.

use std::collections::BTreeSet;
use std::process::Command;

use regatta_tests::mpi_fortran::{job, library};

/// By mpif.h, in fixed form, at any address and at a fixed one: there the program's own common blocks are MPI's.
#[test]
fn old_programs_have_every_chapter() {
    for (name, options) in [
        ("fortran_old", &["-O0"][..]),
        ("fortran_old_fixed", &["-O2", "-fno-pie", "-no-pie"][..]),
    ] {
        let job = job(3, name, &["fortran_old.f"], options, &[]);
        job.run().passed().said("all of it");
    }
}

/// By the module mpi: types, grids, attributes, windows, files, functions of the program's.
#[test]
fn programs_with_the_module_mpi_have_every_chapter() {
    let folder = std::env::temp_dir().join(format!("regatta-fortran-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let place = folder.display().to_string();
    let job = job(3, "fortran_mpi", &["fortran_mpi.f90"], &["-O2"], &[&place]);
    job.run().passed().said("all of it");
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// By the module mpi_f08: handles have types, errors may be left out, counts may be large.
#[test]
fn programs_with_the_module_mpi_f08_have_every_chapter() {
    let job = job(
        3,
        "fortran_f08",
        &["fortran_f08.f90"],
        &["-O2", "-std=f2018"],
        &[],
    );
    job.run().passed().said("all of it");
}

/// Handles, attributes and statuses go from Fortran to C and back.
#[test]
fn a_program_has_parts_in_c_and_in_fortran() {
    let files = ["fortran_mixed.f90", "fortran_part.c"];
    let job = job(2, "fortran_mixed", &files, &["-O1"], &[]);
    job.run().passed().said("all of it");
}

/// Errors end the job as they do in C.
#[test]
fn an_error_that_nobody_handles_ends_the_job() {
    let job = job(2, "fortran_wrong", &["fortran_old.f"], &["-O0"], &["wrong"]);
    job.run().ended_with(6).said("MPI_Send");
}

/// The library has the routines of the table, under each of their names, and no others of MPI.
#[test]
fn the_names_are_those_of_the_table() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
        .expect("nm");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .map(str::to_owned)
        .collect();
    let wanted: BTreeSet<String> = regatta_mpi_table::fortran_names().into_iter().collect();
    assert!(wanted.len() > 1500, "only {} names", wanted.len());
    let missing: Vec<_> = wanted.difference(&names).collect();
    assert_eq!(missing, Vec::<&String>::new());
    let own = |name: &&&String| {
        let parts = [
            "_fn_",
            "_eq_",
            "_ne_",
            "_fn_null_",
            "_regatta_",
            "_f082f_",
            "_f2f08_",
            "_sync_reg_",
        ];
        name.contains("sizeof_")
            || name.contains("sync_reg")
            || parts.iter().any(|it| name.contains(it))
    };
    let more: Vec<_> = names.difference(&wanted).collect();
    let more: Vec<_> = more.iter().filter(|it| !own(it)).collect();
    assert_eq!(more, Vec::<&&String>::new());
}
