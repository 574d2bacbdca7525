//! The headers agree with those of PVM 3.4.6 in every constant, struct and function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn theirs() -> PathBuf {
    let folder = PathBuf::from("/usr/include");
    regatta_tests::needs::file(folder.join("pvm3.h"), "pvm-dev");
    folder
}

fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/pvm/include")
}

fn text(folder: &Path, header: &str) -> String {
    let path = folder.join(header);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Returns the output of a C program that is compiled with the headers of this folder.
    fn printed(&self, program: &str, headers: &Path) -> String {
        let (source, binary) = (self.0.join("program.c"), self.0.join("program"));
        std::fs::write(&source, program).expect("a file");
        compile(&source, headers, &["-o", binary.to_str().expect("a path")]);
        let output = Command::new(&binary).output().expect("the program");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn compile(source: &Path, headers: &Path, more: &[&str]) {
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .arg("-w")
        .arg(format!("-I{}", headers.display()))
        .arg(source)
        .args(more)
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", source.display());
}

/// Returns the names of all macros without parameters.
fn macros(header: &str) -> BTreeSet<&str> {
    let names = header.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = line.strip_prefix("define")?.trim_start();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (name, value) = rest.split_at(end);
        (!value.trim().is_empty() && !value.starts_with('(')).then_some(name)
    });
    names.collect()
}

/// Returns a C program that prints each of these macros.
fn printing(header: &str, names: &BTreeSet<&str>) -> String {
    // Debian's `pvmproto.h` needs definitions from another header of PVM's sources.
    let mut program =
        "#define __ProtoGlarp__(arguments) arguments\n#define MSGHDRLEN 32\n#define IMA_CSPP\n"
            .to_owned();
    program += &format!("#include <stdio.h>\n#include <sys/time.h>\n#include <{header}>\n");
    program += "static void text(const char *t) { printf(\"%s\\n\", t); }\n";
    program += "static void number(long long n) { printf(\"%lld\\n\", n); }\n";
    program += "#define show(x) _Generic((x), char *: text, default: number)(x)\n";
    program += "int main(void)\n{\n";
    for name in names {
        program += &format!("    printf(\"{name} \"); show({name});\n");
    }
    program + "    return 0;\n}\n"
}

fn same_macros(header: &str, least: usize) {
    let folder = Folder::new(&format!("regatta-{header}"));
    let (their_text, our_text) = (text(&theirs(), header), text(&ours(), header));
    let names = macros(&their_text);
    let missing: Vec<_> = names.difference(&macros(&our_text)).copied().collect();
    assert!(missing.is_empty(), "{header} lacks {missing:?}");
    assert!(
        names.len() >= least,
        "only {} macros were found",
        names.len()
    );
    let program = printing(header, &names);
    let (said, told) = (
        folder.printed(&program, &ours()),
        folder.printed(&program, &theirs()),
    );
    for (ours, theirs) in said.lines().zip(told.lines()) {
        assert_eq!(ours, theirs, "{header}: Regatta's, then PVM's");
    }
    assert_eq!(said.lines().count(), names.len());
}

#[test]
fn every_constant_of_pvm3_h_has_its_value() {
    same_macros("pvm3.h", 120);
}

#[test]
fn every_constant_of_pvmtev_h_has_its_value() {
    same_macros("pvmtev.h", 260);
}

#[test]
fn every_constant_of_pvmproto_h_has_its_value() {
    same_macros("pvmproto.h", 130);
}

/// Returns the fields of all structs, as `struct.field`.
fn fields(header: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<String> = None;
    for line in header.lines() {
        let line = line.split("/*").next().unwrap_or("").trim();
        if let Some(name) = line.strip_prefix("struct ") {
            if !line.contains('(') && !line.ends_with(';') {
                inside = Some(name.trim_end_matches('{').trim().to_owned());
            }
        } else if line.starts_with('}') {
            inside = None;
        }
        if let (Some(name), true) = (&inside, line.ends_with(';')) {
            let field = line
                .trim_end_matches(';')
                .split(['*', ' ', '\t'])
                .next_back();
            found.push(format!("{name}.{}", field.unwrap_or("")));
        }
    }
    found
}

#[test]
fn every_struct_has_the_same_fields_in_the_same_places() {
    for (header, least) in [("pvm3.h", 24), ("pvmtev.h", 16)] {
        let folder = Folder::new(&format!("regatta-structs-{header}"));
        let all = fields(&text(&theirs(), header));
        assert!(all.len() >= least, "{header}: only {all:?} were found");
        let mut program = format!(
            "#include <stdio.h>\n#include <stddef.h>\n#include <sys/time.h>\n#include <{header}>\nint main(void)\n{{\n"
        );
        for field in &all {
            let (name, field) = field.split_once('.').expect("a struct and a field");
            program += &format!(
                "    printf(\"{name}.{field} %zu %zu of %zu\\n\", offsetof(struct {name}, {field}), \
                 sizeof ((struct {name} *)0)->{field}, sizeof(struct {name}));\n"
            );
        }
        program += "    return 0;\n}\n";
        assert_eq!(
            folder.printed(&program, &ours()),
            folder.printed(&program, &theirs())
        );
    }
}

/// Returns the declarations of a header's functions, by name.
fn functions(header: &str, folder: &Path, defines: &[&str]) -> BTreeMap<String, String> {
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-E", "-P", "-include", "stdio.h"])
        .args(defines)
        .arg(folder.join(header))
        .output()
        .expect("a C compiler");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(open) = statement.find('(') else {
            continue;
        };
        let mut name = statement[..open]
            .trim()
            .rsplit([' ', '*'])
            .next()
            .unwrap_or("");
        if name.is_empty() || name == "int" {
            // A function that returns a function: int (*name(...))(...)
            let inner = &statement[open + 1..];
            name = inner
                .trim_start_matches('*')
                .split([' ', '('])
                .next()
                .unwrap_or("");
        }
        if name.starts_with("pvm") || name.starts_with("Pvm") {
            found.insert(name.to_owned(), statement);
        }
    }
    found
}

#[test]
fn every_function_has_the_same_signature() {
    let folder = Folder::new("regatta-prototypes");
    for (header, least) in [("pvm3.h", 115), ("pvmtev.h", 2)] {
        let defines = ["-DPVM33COMPAT", "-DNOTMPNAM"];
        let (declared, told) = (
            functions(header, &ours(), &defines),
            functions(header, &theirs(), &defines),
        );
        assert!(
            told.len() >= least,
            "{header}: only {} functions were found",
            told.len()
        );
        let missing: Vec<_> = told
            .keys()
            .filter(|name| !declared.contains_key(*name))
            .collect();
        assert!(missing.is_empty(), "{header} lacks {missing:?}");
        // Declares the functions again after PVM's own header; the compiler reports differences. (In PVM's header, the
        // function that `pvm_recvf` returns takes a function as its argument, which is a mistake there.)
        let again: String = told
            .keys()
            .filter(|name| *name != "pvm_recvf")
            .map(|name| format!("{};\n", declared[name]))
            .collect();
        let program = format!(
            "#define PVM33COMPAT\n#define NOTMPNAM\n#include <stdio.h>\n#include <sys/time.h>\n#include <{header}>\n{again}"
        );
        let source = folder.0.join("again.c");
        std::fs::write(&source, program).expect("a file");
        compile(&source, &theirs(), &["-fsyntax-only"]);
    }
}

/// Returns the parameters that a Fortran header defines.
fn parameters(header: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for line in header.lines().filter(|line| !line.starts_with(['c', 'C'])) {
        let Some((_, rest)) = line.split_once("parameter") else {
            continue;
        };
        let inside = rest.trim().trim_start_matches('(').trim_end_matches(')');
        let (name, value) = inside.split_once('=').expect("a parameter with a value");
        found.insert(
            name.trim().to_lowercase(),
            value.trim().parse().expect("a number"),
        );
    }
    found
}

#[test]
fn every_parameter_of_fpvm3_h_has_its_value() {
    let (declared, told) = (
        parameters(&text(&ours(), "fpvm3.h")),
        parameters(&text(&theirs(), "fpvm3.h")),
    );
    assert!(
        told.len() > 100,
        "only {} parameters were found",
        told.len()
    );
    assert_eq!(declared, told);
}
