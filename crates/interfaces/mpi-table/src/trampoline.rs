//! Generates the library that MPItrampoline loads: all constants as data, and each function as `MPIABI_...`, which
//! calls the function of the standard ABI. Handles and callbacks have the same form in both; a status does not.

use std::fmt::Write;

use crate::rust::rust_type;
use crate::{Function, Parameter, constants, customary, functions};

/// Functions whose parameters the library translates by hand.
const BY_HAND: [&str; 1] = ["Grequest_start"];

/// Returns the constants and the functions as Rust.
pub fn front() -> String {
    let mut out = String::new();
    for constant in constants() {
        let Some(name) = constant.name.strip_prefix("MPI_") else {
            continue;
        };
        let kind = match constant.kind {
            "int" => "c_int",
            "Offset" => "i64",
            kind if kind.starts_with("T_") => continue,
            _ => "usize",
        };
        let value = match constant.value.strip_prefix("MPI_") {
            Some(other) => format!("MPIABI_{other}"),
            None => format!("{} as {kind}", constant.value),
        };
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub static MPIABI_{name}: {kind} = {value};"
        );
    }
    for function in functions().into_iter().chain(customary()) {
        let has_f08 = function.parameters.iter().any(is_f08);
        if function.is_for_tools() || has_f08 {
            continue;
        }
        for &large in function.forms() {
            one(&mut out, &function, large);
        }
    }
    out
}

/// Returns whether a parameter is a Fortran 2008 status.
fn is_f08(parameter: &Parameter) -> bool {
    parameter.kind.contains("F08_status")
}

fn one(out: &mut String, function: &Function, large: bool) {
    let name = format!("{}{}", function.name, if large { "_c" } else { "" });
    let returns = match function.returns {
        "int" | "Fint" => "c_int",
        "double" => "f64",
        "Aint" => "i64",
        _ => "usize",
    };
    let declared = |status: &str| -> String {
        let parameters = function.parameters.iter();
        let parameters = parameters.map(|it| {
            let kind = rust_type(it.form(large)).replace("Status", status);
            format!("{}: {kind}, ", it.rust())
        });
        parameters.collect()
    };
    let _ = writeln!(
        out,
        "unsafe extern \"C\" {{ fn MPI_{name}({}) -> {returns}; }}",
        declared("standard::Status")
    );
    if BY_HAND.contains(&function.name) {
        return;
    }
    let (mut before, mut after) = (String::new(), String::new());
    let mut arguments = String::new();
    for parameter in &function.parameters {
        let name = parameter.rust();
        arguments += &match statuses(function, parameter) {
            None => format!("{name}, "),
            Some(made) => {
                let _ = writeln!(before, "let mut {name} = {made};");
                if !parameter.kind.starts_with("const") {
                    let _ = writeln!(after, "{name}.give();");
                }
                format!("{name}.place(), ")
            }
        };
    }
    let call = format!("MPI_{name}({arguments})");
    let body = match after.is_empty() {
        true => call,
        false => format!("let result = {call};\n{after}result"),
    };
    let _ = writeln!(
        out,
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn MPIABI_{name}({}) -> {returns} {{\n\
         // SAFETY: the caller keeps MPI's rules.\nunsafe {{\n{before}{body}\n}}\n}}",
        declared("Status")
    );
}

/// Returns the expression for the object that holds the standard ABI's statuses in place of the caller's. Returns
/// `None` if the parameter is not a status.
fn statuses(function: &Function, parameter: &Parameter) -> Option<String> {
    let name = parameter.rust();
    match parameter.kind {
        "const Status*" => Some(format!("Statuses::one({name}.cast_mut())")),
        "Status*" if name == "array_of_statuses" => {
            let mut all = function.parameters.iter();
            let count = all.find(|it| ["count", "incount"].contains(&it.name));
            let count = count.expect("a number of statuses").name;
            Some(format!("Statuses::several({name}, {count})"))
        }
        "Status*" => Some(format!("Statuses::one({name})")),
        _ => None,
    }
}
