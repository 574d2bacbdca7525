//! The tables of calls in `docs/express.md` are correct: headers and libraries have exactly these functions.

use std::collections::BTreeSet;

use regatta_tests::express;

struct Row {
    c: String,
    fortran: Vec<String>,
    there: bool,
}

fn read(path: &str) -> String {
    let path = express::file(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the rows of the table below a heading.
fn table(heading: &str) -> Vec<Row> {
    let text = read("../../../docs/express.md");
    let section = text.split("\n## ").find(|part| part.starts_with(heading));
    let lines = section.expect("a heading").lines();
    let mut rows = Vec::new();
    for line in lines.filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, c, fortran, there, known, ..] = cells[..] else {
            panic!("not a row: {line}");
        };
        let bare = |name: &str| name.trim_matches('`').to_owned();
        let states = ["attested", "derived", "reconstructed", "own"];
        assert!(states.contains(&known), "{line}");
        assert!(["yes", "no"].contains(&there), "{line}");
        rows.push(Row {
            c: bare(c),
            fortran: fortran.split(", ").map(bare).collect(),
            there: there == "yes",
        });
    }
    assert!(rows.len() > 8, "only {} rows", rows.len());
    rows
}

fn there(heading: &str) -> impl Iterator<Item = Row> {
    table(heading).into_iter().filter(|row| row.there)
}

/// Returns the names before an opening parenthesis in lines that begin with a return type.
fn declared(header: &str) -> BTreeSet<String> {
    const TYPES: [&str; 4] = ["int ", "size_t ", "char *", "FILE *"];
    let text = read(header);
    let rests = text.lines().filter_map(|line| {
        let mut rests = TYPES.iter().map(|kind| line.strip_prefix(kind));
        rests.find_map(|rest| rest)
    });
    rests
        .filter_map(|rest| Some(rest.split_once('(')?.0.to_owned()))
        .collect()
}

#[test]
fn each_call_of_the_table_is_declared_and_exported() {
    let named: BTreeSet<String> = there("Calls").map(|row| row.c).collect();
    assert_eq!(named, declared("include/express.h"));
    let exported = express::exported(&express::library()).into_iter();
    assert_eq!(named, exported.collect());
}

#[test]
fn each_call_of_cros_is_declared_and_exported() {
    let named: BTreeSet<String> = there("CrOS III").map(|row| row.c).collect();
    assert_eq!(named, declared("../cros/include/cros.h"));
    let exported = express::exported(&express::cros()).into_iter();
    assert_eq!(named, exported.collect());
}

#[test]
fn each_call_of_cubix_is_declared_and_exported() {
    let named: BTreeSet<String> = there("Cubix").map(|row| row.c).collect();
    assert_eq!(named, declared("include/cubix.h"));
    let exported = express::exported(&express::cubix()).into_iter();
    assert_eq!(named, exported.collect());
}

#[test]
fn each_call_of_plotix_is_declared_and_exported() {
    let named: BTreeSet<String> = there("Plotix").map(|row| row.c).collect();
    assert_eq!(named, declared("../plotix/include/plotix.h"));
    let exported = express::exported(&express::plotix()).into_iter();
    assert_eq!(named, exported.collect());
}

#[test]
fn each_routine_of_the_tables_is_in_its_library_of_fortran() {
    for (heading, library) in [
        ("Calls", "libfexpress.a"),
        ("Cubix", "libfcubix.a"),
        ("Plotix", "libfplotix.a"),
    ] {
        let named = there(heading).flat_map(|row| row.fortran);
        let named: BTreeSet<String> = named.filter(|name| !name.is_empty()).collect();
        // Functions with other names are internal to the library.
        let routines = express::fortran_routines(library).into_iter();
        let routines = routines.filter(|name| name.ends_with('_'));
        let routines: BTreeSet<String> = routines
            .map(|name| name.trim_end_matches('_').to_uppercase())
            .collect();
        assert_eq!(named, routines, "{library}");
    }
}
