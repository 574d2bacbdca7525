//! Generates the functions of libmpi.so.12. Each is exported under its name and its profiling name, and translates its
//! arguments for `regatta-mpi`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::passage::{Passage, Table, outer_type};
use super::roles::{changed, roles};
use crate::functions::Conversion;
use crate::rust::{call_of, object};
use crate::{Function, customary, extensions, functions};

/// The module that implements each function, by the function's name in lower case.
type Modules = BTreeMap<String, String>;

const REASON: &str = "// SAFETY: the caller keeps MPI's rules.";

/// Returns the functions in Rust. `core` are the functions of `regatta-mpi`. `own` are those that the library
/// implements itself, by their names in lower case; they get the caller's values untranslated.
pub fn front(core: &Modules, own: &Modules) -> String {
    let mut out = String::new();
    let mut left = own.clone();
    let table = Table {
        roles: roles(),
        changed: changed(),
    };
    let all = functions()
        .into_iter()
        .chain(extensions())
        .chain(customary());
    for function in all {
        let own = left.remove(&function.rust_name());
        for &large in function.forms() {
            let body = match &own {
                Some(module) => own_call(&function, large, module),
                None => match (conversion(&function), core.get(&function.rust_name())) {
                    (Some(body), _) => body,
                    (None, Some(_)) => translated(&table, &function, large),
                    (None, None) => unsupported(&function, large),
                },
            };
            for prefix in [function.prefix(), &format!("P{}", function.prefix())] {
                let head = head(&function, large, prefix);
                let _ = writeln!(out, "{head} {{\n{body}}}");
            }
        }
    }
    assert!(left.is_empty(), "no functions of MPI: {left:?}");
    out
}

fn head(function: &Function, large: bool, prefix: &str) -> String {
    let suffix = if large { "_c" } else { "" };
    let parameters: String = function
        .parameters
        .iter()
        .map(|it| format!("{}: {}, ", it.rust(), outer_type(it.form(large))))
        .collect();
    let returns = match function.returns {
        "double" => "f64".to_owned(),
        kind => outer_type(kind),
    };
    let name = function.name;
    format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}{suffix}({parameters}) -> {returns}"
    )
}

/// Returns the name of a function in error messages.
fn called(function: &Function, large: bool) -> String {
    let suffix = if large { "_c" } else { "" };
    format!("\"{}{}{suffix}\"", function.prefix(), function.name)
}

/// Returns the body of a conversion between a handle and an integer: both are the same number, so the caller's value is
/// returned unchanged.
fn conversion(function: &Function) -> Option<String> {
    let name = function.parameters.first()?.rust();
    let kind = function.returns;
    Some(match function.conversion()? {
        Conversion::ToInt => format!("{name}.to_int()\n"),
        Conversion::FromInt => format!("outer::{kind}::from_int({name})\n"),
    })
}

/// Returns the body of a function that the library implements itself.
fn own_call(function: &Function, large: bool, module: &str) -> String {
    let arguments = function.parameters.iter().map(|it| it.passed(large));
    let call = call_of(function, large, &format!("own::{module}"), arguments);
    finished(function, &call, &own_object(function), large)
}

/// Returns the object of a call whose parameters are not translated.
fn own_object(function: &Function) -> String {
    for parameter in &function.parameters {
        let kind = parameter.kind;
        if matches!(kind, "Comm" | "Win" | "File" | "Session") {
            return format!("Object::{kind}({}.inward())", parameter.rust());
        }
    }
    "Object::None".to_owned()
}

fn finished(function: &Function, call: &str, object: &str, large: bool) -> String {
    let called = called(function, large);
    match function.returns {
        "int" if function.is_for_tools() => {
            format!("{REASON}\nroles::code::outward(finish_tool({call}, {called}))\n")
        }
        "int" => format!("{REASON}\nroles::code::outward(finish({call}, {object}, {called}))\n"),
        _ => format!("{REASON}\n{call}\n"),
    }
}

/// Returns the body of a function of `regatta-mpi`, with translations before and after the call.
fn translated(table: &Table, function: &Function, large: bool) -> String {
    let parameters = function.parameters.iter();
    let passages: Vec<Passage> = parameters
        .map(|it| table.passage(function, it, large))
        .collect();
    let arguments = passages.iter().map(|it| it.argument.clone());
    let call = call_of(function, large, "checked", arguments);
    // The lengths of arrays may depend on any other parameter, so arrays are translated last.
    let (arrays, others): (Vec<_>, Vec<_>) =
        passages.iter().partition(|it| it.before.contains("::of("));
    let before: String = others
        .iter()
        .chain(&arrays)
        .map(|it| it.before.as_str())
        .collect();
    let after: String = passages.iter().map(|it| it.after.as_str()).collect();
    if function.returns_value() {
        return format!("{before}{REASON}\n{call}\n");
    }
    let object = match object(function) {
        it if it.contains("pointed(") => {
            let parameter = &function.parameters[0];
            format!(
                "Object::{}({}.value)",
                parameter.kind.trim_end_matches('*'),
                parameter.rust()
            )
        }
        it => it,
    };
    format!(
        "{before}{REASON}\nlet outcome = {call};\n{after}{}",
        finished(function, "outcome", &object, large).replace(&format!("{REASON}\n"), "")
    )
}

/// Returns the body of a function that is not implemented.
fn unsupported(function: &Function, large: bool) -> String {
    let called = called(function, large);
    match function.returns {
        "int" if function.is_for_tools() => {
            "roles::code::outward(T_ERR_NOT_SUPPORTED)\n".to_owned()
        }
        "int" => format!(
            "{REASON}\nroles::code::outward(unsupported({}, {called}))\n",
            own_object(function)
        ),
        kind => panic!("{}: nothing makes a {kind}", function.name),
    }
}
