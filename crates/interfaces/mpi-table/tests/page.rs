//! Checks that docs/mpi.md names exactly the functions that are not implemented.

use std::collections::BTreeSet;
use std::path::Path;

use regatta_mpi_table::{extensions, functions, implemented};

#[test]
fn the_page_names_the_functions_that_are_not_there() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(top.join("docs/mpi.md")).expect("the page");
    let (_, section) = page
        .split_once("\n## Functions that are not there\n")
        .expect("its last section");
    let table = section.lines().filter(|line| line.starts_with("| "));
    let named: BTreeSet<String> = table
        .flat_map(|line| line.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect();
    let there = implemented(&top.join("crates/interfaces/mpi/src/calls"));
    assert!(there.len() > 300, "only {} functions", there.len());
    let missing: BTreeSet<String> = functions()
        .into_iter()
        .chain(extensions())
        .filter(|function| !function.is_conversion() && !there.contains_key(&function.rust_name()))
        .map(|function| format!("{}{}", function.prefix(), function.name))
        .collect();
    let forgotten: Vec<_> = missing.difference(&named).collect();
    let there: Vec<_> = named.difference(&missing).collect();
    assert!(
        forgotten.is_empty() && there.is_empty(),
        "not there, and not on the page: {forgotten:?}; on the page, and there or no functions at all: {there:?}"
    );
}
