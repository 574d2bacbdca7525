//! The table of functions in `docs/pvm.md` is correct: it lists exactly what the headers declare and the library
//! exports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regatta_tests::pvm;

fn here(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the functions of the table and whether Regatta has them.
fn table() -> Vec<(String, String)> {
    let text = here("docs/pvm.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.splitn(3, '|');
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        Some((name, cells.next()?.trim().to_owned()))
    });
    rows.collect()
}

/// Returns the names of functions in a C text: words before an opening parenthesis.
fn functions(text: &str) -> BTreeSet<String> {
    let begins = ["pvm_", "pvmget", "PvmM", "PvmS", "PvmP"];
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices('(') {
        let before = text[..at].trim_end();
        let start = before
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |end| end + 1);
        let word = &before[start..];
        if begins.iter().any(|begin| word.starts_with(begin)) {
            found.insert(word.to_owned());
        }
    }
    found
}

fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(pvm::library())
        .output()
        .expect("nm, of binutils");
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines()
        .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
        .collect()
}

#[test]
fn the_table_of_functions_is_that_of_header_and_library() {
    let table = table();
    let names: BTreeSet<String> = table.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), table.len(), "a function stands there twice");
    let code: String = ["pvm3.h", "pvmtev.h"]
        .map(|name| here(&format!("crates/interfaces/pvm/include/{name}")))
        .concat();
    let declared: BTreeSet<String> = functions(&code)
        .into_iter()
        .filter(|name| name.starts_with("pvm_") || !name.contains("Mbox"))
        .collect();
    let missing: Vec<_> = declared.difference(&names).collect();
    assert!(
        missing.is_empty(),
        "declared, and not in the table: {missing:?}"
    );
    let exported = exported();
    for (name, state) in &table {
        let there = exported.contains(name);
        assert_eq!(
            there,
            ["yes", "no"].contains(&state.as_str()),
            "{name}: {state}, but exported: {there}"
        );
    }
    let count = table.iter().filter(|(_, state)| state == "yes").count();
    assert!(count > 100, "only {count} functions are there");
}

#[test]
fn what_the_table_says_is_not_there_says_so_itself() {
    let code = here("crates/interfaces/pvm/src/system/mod.rs");
    for (name, _) in table().iter().filter(|(_, state)| state == "no") {
        let at = code
            .find(&format!("fn {name}("))
            .unwrap_or_else(|| panic!("{name} is said not to be there, and is"));
        let body = &code[at..];
        let end = body.find("\n}\n").expect("its end");
        assert!(body[..end].contains("codes::NOT_IMPL"), "{name}");
    }
}
