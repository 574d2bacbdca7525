//! Each C call of the old interfaces has a Fortran form that a Fortran program can link, or a reason why it has none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use regatta_tests::{express, needs, nx, pvm};

/// Calls that Fortran does not have, by the reason.
const WITHOUT: [(&str, &[&str]); 4] = [
    (
        "PVM 3.4's library for Fortran has no such routine",
        &[
            "pvm_delete",
            "pvm_export",
            "pvm_getfds",
            "pvm_getminfo",
            "pvm_getnoresets",
            "pvm_gettmask",
            "pvm_insert",
            "pvm_lookup",
            "pvm_packf",
            "pvm_recvf",
            "pvm_reg_hoster",
            "pvm_reg_rm",
            "pvm_reg_tasker",
            "pvm_reg_tracer",
            "pvm_setminfo",
            "pvm_settmask",
            "pvm_strerror",
            "pvm_tickle",
            "pvm_unexport",
            "pvm_unpackf",
            "pvm_version",
            "pvmgetrsh",
            "pvmgettmp",
        ],
    ),
    (
        "the name is PVM's own for another call: pvmfsend and pvmfrecv are those of pvm_send and pvm_recv",
        &["pvm_fsend", "pvm_frecv"],
    ),
    (
        "it stands for a call of C's own stdio, or asks about its streams; Fortran has OPEN, READ and CLOSE, and KSINGL for fsingle",
        &[
            "fsingle",
            "ismulti",
            "cubix_fopen",
            "cubix_fclose",
            "cubix_fread",
            "cubix_fgets",
        ],
    ),
    (
        "no list of CrOS III's routines in Fortran was to be had",
        &[
            "cparam",
            "cread",
            "cwrite",
            "cshift",
            "vread",
            "vwrite",
            "vshift",
            "broadcast",
            "combine",
            "concat",
            "gridinit",
            "gridcoord",
            "gridproc",
            "gridchan",
            "crystal_router",
        ],
    ),
];

/// Routines of PVM whose Fortran names do not follow from the name of the C call.
const RENAMED: [(&str, &str); 3] = [
    ("pvm_addhosts", "pvmfaddhost"),
    ("pvm_delhosts", "pvmfdelhost"),
    ("pvm_start_pvmd", "pvmfstartpvmd"),
];

fn is_without(call: &str) -> bool {
    WITHOUT.iter().any(|(_, calls)| calls.contains(&call))
}

/// Returns the cells of a page's tables of calls; with a heading, only of the table below it.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = std::fs::read_to_string(path).expect("the page");
    let section = text.split("\n## ").find(|part| part.starts_with(heading));
    let lines = section.expect("the heading").lines();
    let cells = |line: &str| {
        line.split('|')
            .map(|cell| cell.trim().replace('`', ""))
            .collect()
    };
    lines
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .collect()
}

/// Compiles and links a Fortran program that refers to each routine.
fn links(name: &str, routines: &BTreeSet<String>, libraries: &[PathBuf]) {
    let mut program = String::from("      program names\n      implicit none\n");
    for routine in routines {
        // Implicit typing has no type for names that begin with an underscore.
        if routine.starts_with('_') {
            program += &format!("      integer {routine}\n");
        }
        program += &format!("      external {routine}\n");
    }
    for routine in routines {
        program += &format!("      call keep({routine})\n");
    }
    program += "      end\n      subroutine keep(routine)\n      implicit none\n      external routine\n      end\n";
    let folder = std::env::temp_dir().join(format!("fortran-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("names.f");
    std::fs::write(&source, program).expect("the program");
    let output = Command::new(needs::program("gfortran", "gfortran"))
        .args(["-std=legacy", "-fallow-leading-underscore", "-o"])
        .arg(folder.join("names"))
        .arg(source)
        .args(libraries)
        .output()
        .expect("gfortran");
    let _ = std::fs::remove_dir_all(&folder);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
}

/// Returns the paths of a library and of files beside it.
fn libraries(library: &Path, beside: &[&str]) -> Vec<PathBuf> {
    let folder = library.parent().expect("a folder");
    let beside = beside.iter().map(|name| folder.join(name));
    let last = [library.to_owned(), folder.join("libregatta.so.0")];
    beside.chain(last).collect()
}

#[test]
fn every_call_of_nx_links_from_fortran() {
    let rows = rows("nx.md", "Calls");
    let there = rows.iter().filter(|row| row[2] == "yes");
    let there = there.filter(|row| !row[4].starts_with("C only"));
    let names = there.flat_map(|row| match row[1].starts_with("nx_") {
        true => vec![row[1].clone()],
        false => vec![row[1].clone(), format!("_{}", row[1])],
    });
    let routines: BTreeSet<String> = names.collect();
    assert!(routines.len() > 180, "only {} routines", routines.len());
    links("nx", &routines, &libraries(&nx::library(), &[]));
}

#[test]
fn every_call_of_pvm_links_from_fortran_or_pvms_own_fortran_lacks_it() {
    let rows = rows("pvm.md", "Functions");
    let there = rows.iter().filter(|row| row[2] == "yes");
    let routine = |call: &str| {
        let renamed = RENAMED.iter().find(|(from, _)| *from == call);
        let packing = [("pvm_pk", "pvmfpack"), ("pvm_upk", "pvmfunpack")];
        let packs = packing.iter().find(|(begin, _)| call.starts_with(begin));
        let is_typed = !call.ends_with("mesg") && !call.ends_with("mesgbody");
        match renamed.or(packs.filter(|_| is_typed)) {
            Some((_, name)) => (*name).to_owned(),
            None => call.replacen("pvm_", "pvmf", 1),
        }
    };
    let calls = there
        .map(|row| row[1].as_str())
        .filter(|call| !is_without(call));
    let routines: BTreeSet<String> = calls.map(routine).collect();
    assert!(routines.len() > 60, "only {routines:?}");
    links(
        "pvm",
        &routines,
        &libraries(&pvm::library(), &["libfpvm3.a"]),
    );
}

#[test]
fn every_call_of_express_and_its_kin_links_from_fortran_or_has_its_reason() {
    let tables = [
        ("Calls", "libfexpress.a", express::library()),
        ("Cubix", "libfcubix.a", express::cubix()),
        ("Plotix", "libfplotix.a", express::plotix()),
        ("CrOS III", "", express::cros()),
    ];
    for (heading, fortran, library) in tables {
        let (mut routines, mut lacking) = (BTreeSet::new(), Vec::new());
        for row in rows("express.md", heading)
            .iter()
            .filter(|row| row[3] == "yes")
        {
            let names = row[2].split(", ").filter(|name| !name.is_empty());
            let names: Vec<String> = names.map(str::to_lowercase).collect();
            if names.is_empty() != is_without(&row[1]) {
                lacking.push(row[1].clone());
            }
            routines.extend(names);
        }
        assert!(
            lacking.is_empty(),
            "{heading}: in Fortran, or without a reason: {lacking:?}"
        );
        if !routines.is_empty() {
            let mut libraries = libraries(&library, &[fortran]);
            libraries.push(express::library());
            links(fortran, &routines, &libraries);
        }
    }
}

#[test]
fn no_call_is_said_to_be_without_a_form_that_is_not_there_at_all() {
    let pages = [
        ("pvm.md", "Functions", 2),
        ("express.md", "Cubix", 3),
        ("express.md", "CrOS III", 3),
    ];
    let there: BTreeSet<String> = pages
        .iter()
        .flat_map(|(page, heading, at)| {
            let rows = rows(page, heading).into_iter();
            rows.filter(move |row| row[*at] == "yes")
                .map(|row| row[1].clone())
        })
        .collect();
    let calls = WITHOUT.iter().flat_map(|(_, calls)| calls.iter());
    let unknown: Vec<_> = calls.filter(|call| !there.contains(**call)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
