//! The table of calls in `docs/nx.md` is correct: it lists exactly what the headers declare and the library exports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regatta_tests::nx;

fn here(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The languages that have a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    C,
    Fortran,
}

/// Returns each call of the table, whether Regatta has it, how well it is known, and the languages that have it.
fn table() -> Vec<(String, String, String, In)> {
    let text = here("docs/nx.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.splitn(4, '|');
        let languages = match line {
            _ if line.contains("| Fortran only") => In::Fortran,
            _ if line.contains("| C only") => In::C,
            _ => In::Both,
        };
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        let mut cell = || Some(cells.next()?.trim().to_owned());
        Some((name, cell()?, cell()?, languages))
    });
    rows.collect()
}

/// Returns the functions that `nx.h` declares: words before an opening parenthesis, outside of comments and
/// preprocessor lines.
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

/// Returns the C and the Fortran names of a call, two each. A call that begins with nx_ has one each.
fn forms(name: &str) -> (Vec<String>, Vec<String>) {
    let plain = (vec![name.to_owned()], vec![format!("{name}_")]);
    match name.starts_with("nx_") {
        true => plain,
        false => (
            [plain.0, vec![format!("_{name}")]].concat(),
            [plain.1, vec![format!("_{name}_")]].concat(),
        ),
    }
}

#[test]
fn the_table_of_calls_is_that_of_header_and_library() {
    let (table, declared, exported) = (table(), declared(), exported());
    let names: BTreeSet<&String> = table.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), table.len(), "a call stands there twice");
    assert!(table.len() > 90, "only {} calls were found", table.len());
    for (name, there, known, languages) in &table {
        let known = ["attested", "derived", "reconstructed"].contains(&known.as_str());
        assert!(known, "{name}: how well it is known");
        let (in_c, for_fortran) = forms(name);
        for form in &in_c {
            let should = there == "yes" && *languages != In::Fortran;
            assert_eq!(declared.contains(form), should, "nx.h: {form}");
            let is = exported.contains(form);
            assert_eq!(is, should, "{form}: {there}, but exported: {is}");
        }
        for form in for_fortran {
            let is = exported.contains(&form);
            let should = there == "yes" && *languages != In::C;
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
        .flat_map(|(name, .., languages)| {
            let (in_c, for_fortran) = forms(name);
            let in_c = in_c.into_iter().filter(|_| *languages != In::Fortran);
            in_c.chain(for_fortran.into_iter().filter(|_| *languages != In::C))
        })
        .collect();
    assert!(known.len() > 200, "only {} names", known.len());
    let unknown: Vec<_> = declared().difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "declared: {unknown:?}");
    // Internal functions of the Fortran library that its C part calls.
    let read = ["regatta_nx_initve_read", "regatta_nx_mkpart_read"];
    known.extend(
        ["msginfo", "msginfo_"]
            .into_iter()
            .chain(read)
            .map(str::to_owned),
    );
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
    let functions = table().into_iter().filter(|(name, there, _, languages)| {
        // A function in C is a function in Fortran.
        let returns = |kind| header.contains(&format!("\n{kind} {name}("));
        // The exception is restrictvol, which is a subroutine in Fortran.
        let is_function = name != "restrictvol";
        there == "yes"
            && *languages != In::C
            && is_function
            && ["long", "unsigned long", "double"].into_iter().any(returns)
    });
    let names: Vec<String> = functions.map(|(name, ..)| name).collect();
    assert!(names.len() > 20, "only {names:?}");
    for name in names {
        assert!(declared.contains(&name), "fnx.h lacks {name}");
    }
}
