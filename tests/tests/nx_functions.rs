//! The table of calls in `docs/nx.md` is true: it names what the headers declare and what the library exports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regatta_tests::nx;

fn here(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The calls of the table, whether they are there, how well they are known, and whether Fortran has them.
fn table() -> Vec<(String, String, String, bool)> {
    let text = here("docs/nx.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.splitn(4, '|');
        let in_fortran = !line.contains("| C only");
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        let mut cell = || Some(cells.next()?.trim().to_owned());
        Some((name, cell()?, cell()?, in_fortran))
    });
    rows.collect()
}

/// The functions that `nx.h` declares: words before an opening parenthesis, outside of comments and lines of the preprocessor.
fn declared() -> BTreeSet<String> {
    let text = here("crates/interfaces/nx/include/nx.h");
    let mut code = String::new();
    for (index, part) in text.split("/*").enumerate() {
        let after = if index == 0 {
            part
        } else {
            part.split_once("*/").expect("an end").1
        };
        code += after;
    }
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    let declarations: String = lines.collect::<Vec<_>>().join(" ");
    let names = declarations.split(';').filter_map(|declaration| {
        let before = declaration.split_once('(')?.0.trim_end();
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        Some(before[start + 1..].to_owned())
    });
    names.collect()
}

fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(nx::library())
        .output()
        .expect("nm, of binutils");
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines()
        .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
        .collect()
}

/// The names of a call: C's two, and Fortran's two.
fn forms(name: &str) -> ([String; 2], [String; 2]) {
    (
        [name.to_owned(), format!("_{name}")],
        [format!("{name}_"), format!("_{name}_")],
    )
}

#[test]
fn the_table_of_calls_is_that_of_header_and_library() {
    let (table, declared, exported) = (table(), declared(), exported());
    let names: BTreeSet<&String> = table.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), table.len(), "a call stands there twice");
    assert!(table.len() > 90, "only {} calls were found", table.len());
    for (name, there, known, in_fortran) in &table {
        let known = ["attested", "derived", "reconstructed"].contains(&known.as_str());
        assert!(known, "{name}: how well it is known");
        let (in_c, for_fortran) = forms(name);
        for form in &in_c {
            assert_eq!(declared.contains(form), there == "yes", "nx.h: {form}");
            let is = exported.contains(form);
            assert_eq!(is, there == "yes", "{form}: {there}, but exported: {is}");
        }
        for form in for_fortran {
            let (is, should) = (exported.contains(&form), there == "yes" && *in_fortran);
            assert_eq!(is, should, "{form}: exported: {is}");
        }
        assert!(["yes", "no"].contains(&there.as_str()), "{name}: {there}");
    }
}

#[test]
fn nothing_is_declared_or_exported_that_the_table_lacks() {
    let table = table();
    let there = table.iter().filter(|(_, there, ..)| there == "yes");
    let mut known: BTreeSet<String> = there
        .flat_map(|(name, .., in_fortran)| {
            let (in_c, for_fortran) = forms(name);
            let for_fortran = for_fortran.into_iter().filter(move |_| *in_fortran);
            in_c.into_iter().chain(for_fortran)
        })
        .collect();
    assert!(known.len() > 200, "only {} names", known.len());
    let unknown: Vec<_> = declared().difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "declared: {unknown:?}");
    known.extend(["msginfo", "msginfo_"].map(str::to_owned));
    let unknown: Vec<_> = exported().difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "exported: {unknown:?}");
}

#[test]
fn every_function_of_fortran_is_declared_in_its_header() {
    let text = here("crates/interfaces/nx/include/fnx.h");
    let declared: BTreeSet<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map(str::to_lowercase)
        .collect();
    let header = here("crates/interfaces/nx/include/nx.h");
    let functions = table().into_iter().filter(|(name, there, _, in_fortran)| {
        // A function in C is one in Fortran.
        let returns = |kind| header.contains(&format!("\n{kind} {name}("));
        there == "yes"
            && *in_fortran
            && ["long", "unsigned long", "double"].into_iter().any(returns)
    });
    let names: Vec<String> = functions.map(|(name, ..)| name).collect();
    assert!(names.len() > 20, "only {names:?}");
    for name in names {
        assert!(declared.contains(&name), "fnx.h lacks {name}");
    }
}
