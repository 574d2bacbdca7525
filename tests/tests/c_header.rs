//! The crate `regatta-abi` and `regatta.h` agree: every struct with each of its fields, every constant, and nothing
//! else.
//!
//! A C program is generated from the crate's lists. It asserts all of them, and is compiled as C and as C++ together
//! with the header.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use regatta_abi::{Constant, Layout, Value, constants, layouts};
use regatta_c_table::{HEADER, without_comments};
use regatta_tests::needs;

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include")
}

/// Returns the header without its comments.
fn header() -> String {
    without_comments(HEADER)
}

/// Returns the identifier at the start of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Returns the bodies and names of all `typedef struct { BODY } NAME;`, or of those with another keyword.
fn definitions<'a>(header: &'a str, keyword: &str) -> Vec<(&'a str, &'a str)> {
    let begin = format!("typedef {keyword} {{");
    let parts = header.split(&begin).skip(1);
    let definition = |part: &'a str| {
        let (body, rest) = part.split_once('}').expect("the end of a definition");
        (body, word(rest.trim_start()))
    };
    parts.map(definition).collect()
}

/// Returns the names of the fields that a struct's body declares.
fn fields(body: &str) -> Vec<&str> {
    let declarations = body.split([';', ',']).map(str::trim);
    let named = declarations.filter(|text| !text.is_empty());
    let declarators = named.filter_map(|declaration| declaration.split('[').next());
    let names = declarators.filter_map(|declarator| declarator.rsplit([' ', '*']).next());
    names.collect()
}

/// Returns the names of all constants that the header defines, except those that end with an underscore, which are
/// internal.
fn constant_names(header: &str) -> BTreeSet<&str> {
    let macros = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    let enumerations = definitions(header, "enum").into_iter();
    let values = enumerations.flat_map(|(body, _)| body.split(',').map(str::trim));
    let names = macros.chain(values).map(word);
    names
        .filter(|name| name.starts_with("RG_") && !name.ends_with('_'))
        .collect()
}

/// Returns the names that only the header or only the list has.
fn differences(header: &str, layouts: &[Layout], constants: &[Constant]) -> Vec<String> {
    let mut found = Vec::new();
    let listed: BTreeSet<&str> = constants
        .iter()
        .map(|constant| word(constant.name))
        .collect();
    let defined = constant_names(header);
    let apart = listed.symmetric_difference(&defined);
    found.extend(apart.map(|name| name.to_string()));
    let structs = definitions(header, "struct");
    let enumerations = definitions(header, "enum");
    let types = structs.iter().chain(&enumerations).map(|(_, name)| *name);
    let (defined, listed): (BTreeSet<&str>, BTreeSet<&str>) = (
        types.collect(),
        layouts.iter().map(|layout| layout.name).collect(),
    );
    let apart = listed.symmetric_difference(&defined);
    found.extend(apart.map(|name| name.to_string()));
    for (body, name) in structs {
        let Some(layout) = layouts.iter().find(|layout| layout.name == name) else {
            continue;
        };
        let listed: Vec<&str> = layout.fields.iter().map(|field| field.name).collect();
        if listed != fields(body) {
            found.push(format!("the fields of {name}"));
        }
    }
    found
}

/// The program's beginning, valid in C and C++.
const HEAD: &str = r#"#include <regatta.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#ifdef __cplusplus
#include <type_traits>
#define HOLDS(what, text) static_assert(what, text)
#define ALIGNMENT(type) alignof(type)
#define IS(type, field, c) static_assert(std::is_same<decltype(type::field), c>::value, #type "." #field)
#else
#define HOLDS(what, text) _Static_assert(what, text)
#define ALIGNMENT(type) _Alignof(type)
#define IS(type, field, c) _Static_assert(sizeof(c) == sizeof(((type *)0)->field), #type "." #field)
#endif
"#;

/// Returns a program that compiles only if layouts and numbers are as listed. When it runs, it prints the handles and
/// addresses that differ.
fn program(layouts: &[Layout], constants: &[Constant]) -> String {
    let mut text = HEAD.to_owned();
    for Layout {
        name,
        size,
        alignment,
        fields,
    } in layouts
    {
        let _ = writeln!(text, "HOLDS(sizeof({name}) == {size}, \"{name}\");");
        let _ = writeln!(text, "HOLDS(ALIGNMENT({name}) == {alignment}, \"{name}\");");
        for field in fields {
            let (field, offset, bytes, alignment, c) = (
                field.name,
                field.offset,
                field.size,
                field.alignment,
                &field.c,
            );
            let here = format!("\"{name}.{field}\"");
            let _ = writeln!(
                text,
                "HOLDS(offsetof({name}, {field}) == {offset}, {here});"
            );
            let _ = writeln!(
                text,
                "HOLDS(sizeof((({name} *)0)->{field}) == {bytes}, {here});"
            );
            let _ = writeln!(text, "HOLDS(ALIGNMENT({c}) == {alignment}, {here});");
            let _ = writeln!(text, "IS({name}, {field}, {c});");
        }
    }
    let mut run = String::new();
    for Constant { name, value } in constants {
        // In C++, an enumeration value outside the range of the enumerators is not a constant expression.
        let (given, wanted) = match value {
            Value::Number(number) if !name.contains('(') => {
                let _ = writeln!(text, "HOLDS(({name}) == {number}LL, \"{name}\");");
                continue;
            }
            Value::Number(number) => (format!("(long long)({name})"), *number),
            Value::Handle(id) => (format!("(long long)({name}).id"), *id),
            Value::Address(address) => (format!("(long long)(intptr_t)({name})"), *address as i64),
        };
        // C has no literal for the lowest number.
        let wanted = match wanted {
            i64::MIN => format!("({}LL - 1)", i64::MIN + 1),
            wanted => format!("{wanted}LL"),
        };
        let _ = writeln!(
            run,
            "    if ({given} != {wanted}) return puts(\"{name}\"), 1;"
        );
    }
    text + "int main(void)\n{\n" + &run + "    return 0;\n}\n"
}

#[derive(Clone, Copy, Debug)]
enum Language {
    C,
    Cpp,
}

/// Compiles and runs a program. Returns the output of the compiler or the program as the error.
fn run(program: &str, language: Language) -> Result<(), String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("regatta-header-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (variable, compiler, suffix, standard) = match language {
        Language::C => ("CC", "cc", "c", "-std=c11"),
        Language::Cpp => ("CXX", "c++", "cpp", "-std=c++17"),
    };
    let given = std::env::var_os(variable);
    if given.is_none() {
        needs::program(compiler, if suffix == "c" { "gcc" } else { "g++" });
    }
    let (source, binary) = (folder.join(format!("all.{suffix}")), folder.join("all"));
    std::fs::write(&source, program).expect("a file");
    let compiled = Command::new(given.unwrap_or_else(|| compiler.into()))
        .args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include())
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .expect("a compiler");
    let ran = match compiled.status.success() {
        true => Command::new(&binary).output().expect("the program"),
        false => compiled,
    };
    let _ = std::fs::remove_dir_all(&folder);
    let said = [ran.stdout, ran.stderr].concat();
    match ran.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&said).into_owned()),
    }
}

#[test]
fn every_size_alignment_offset_type_and_value_is_that_of_c_and_of_cpp() {
    let program = program(&layouts(), &constants());
    for language in [Language::C, Language::Cpp] {
        assert_eq!(run(&program, language), Ok(()), "{language:?}");
    }
}

#[test]
fn header_and_crate_have_the_same_names() {
    let header = header();
    let names = constant_names(&header);
    assert!(
        names.len() > 70,
        "only {} constants were found",
        names.len()
    );
    assert!(definitions(&header, "struct").len() > 12);
    assert_eq!(differences(&header, &layouts(), &constants()), [""; 0]);
}

#[test]
fn what_only_one_of_them_has_is_found() {
    let header = header();
    let (all, mut fewer) = (layouts(), layouts());
    assert_eq!(fewer.remove(3).name, "rg_view");
    assert_eq!(differences(&header, &fewer, &constants()), ["rg_view"]);
    let one_less: Vec<Constant> = constants()
        .into_iter()
        .filter(|c| c.name != "RG_ERR_HOST")
        .collect();
    assert_eq!(differences(&header, &all, &one_less), ["RG_ERR_HOST"]);
    let more = header.replace("RG_INT8 = 1,", "RG_INT8 = 1, RG_HALF,") + "\n#define RG_MORE 7\n";
    assert_eq!(
        differences(&more, &all, &constants()),
        ["RG_HALF", "RG_MORE"]
    );
    // The new field takes the place of padding, so neither size nor offsets change.
    let padded = header.replace("    int32_t speed;", "    int32_t speed, more;");
    assert_ne!(padded, header);
    assert_eq!(
        differences(&padded, &all, &constants()),
        ["the fields of rg_host"]
    );
}

/// Asserts that a list with a mistake at `name` is refused in this language and that the output names the mistake.
fn refused(layouts: &[Layout], constants: &[Constant], name: &str, language: Language) {
    let said = run(&program(layouts, constants), language);
    let said = said.expect_err("a mistake is noticed");
    assert!(
        said.contains(name),
        "{language:?}: {name} is not in: {said}"
    );
}

#[test]
fn a_mistake_in_either_is_named() {
    type Alter = fn(&mut Vec<Layout>, &mut Vec<Constant>);
    fn event(layouts: &mut [Layout]) -> &mut Layout {
        let mut all = layouts.iter_mut();
        all.find(|layout| layout.name == "rg_event")
            .expect("events")
    }
    fn set(constants: &mut [Constant], name: &str, value: Value) {
        let mut all = constants.iter_mut();
        let found = all.find(|constant| constant.name == name);
        found.expect("the constant").value = value;
    }
    let both = [Language::C, Language::Cpp];
    let mistakes: [(&str, &[Language], Alter); 7] = [
        ("rg_event", &both, |all, _| event(all).size += 4),
        ("rg_event", &both, |all, _| event(all).alignment = 8),
        ("rg_event.host", &both, |all, _| {
            event(all).fields[3].offset += 4
        }),
        ("rg_event.mark", &[Language::Cpp], |all, _| {
            event(all).fields[0].c = "int32_t".to_owned()
        }),
        ("RG_ERR_TASK", &both, |_, all| {
            set(all, "RG_ERR_TASK", Value::Number(-4))
        }),
        ("RG_BXOR", &both, |_, all| {
            set(all, "RG_BXOR", Value::Handle(9))
        }),
        ("RG_IN_PLACE", &both, |_, all| {
            set(all, "RG_IN_PLACE", Value::Address(2))
        }),
    ];
    for (name, languages, alter) in mistakes {
        let (mut layouts, mut constants) = (layouts(), constants());
        alter(&mut layouts, &mut constants);
        for &language in languages {
            refused(&layouts, &constants, name, language);
        }
    }
}
