//! Fortran programs with mpif.h, with the module mpi, and with the module mpi_f08.

use std::collections::BTreeSet;
use std::process::Command;

use regatta_tests::mpi_fortran::{job, library};

/// With mpif.h, in fixed form, as position-independent code and at a fixed address. At a fixed address, the common
/// blocks of MPI are those in the program.
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

/// With the module mpi: types, grids, attributes, windows, files, and callbacks of the program.
#[test]
fn programs_with_the_module_mpi_have_every_chapter() {
    let folder = std::env::temp_dir().join(format!("regatta-fortran-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let place = folder.display().to_string();
    let job = job(3, "fortran_mpi", &["fortran_mpi.f90"], &["-O2"], &[&place]);
    job.run().passed().said("all of it");
    std::fs::remove_dir_all(&folder).expect("the folder");
}

/// With the module mpi_f08: handles have types, `ierror` may be omitted, counts may be large.
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

/// Handles, attributes and statuses are converted from Fortran to C and back.
#[test]
fn a_program_has_parts_in_c_and_in_fortran() {
    let files = ["fortran_mixed.f90", "fortran_part.c"];
    let job = job(2, "fortran_mixed", &files, &["-O1"], &[]);
    job.run().passed().said("all of it");
}

/// An error without a handler ends the job, as it does in C.
#[test]
fn an_error_that_nobody_handles_ends_the_job() {
    let job = job(2, "fortran_wrong", &["fortran_old.f"], &["-O0"], &["wrong"]);
    job.run().ended_with(6).said("MPI_Send");
}

/// The library has exactly the table's MPI routines, under each of their names.
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
