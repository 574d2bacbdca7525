//! Generates the Fortran library in Rust: each function, under all its names, calls the C function.

use std::fmt::Write;

use super::rules::{self, Role};
use super::{Routine, routines};
use crate::functions::Conversion;
use crate::rust::rust_type;
use crate::{Function, Parameter, extensions, functions};

/// Returns the symbols of a routine, each with whether it calls the profiling (PMPI) function of C.
fn symbols(routine: &Routine) -> Vec<(String, bool)> {
    let name = format!("{}{}", routine.function.prefix(), routine.c_name()).to_lowercase();
    let mut all = Vec::new();
    if routine.is_old() {
        all.push((format!("{name}_"), false));
        all.push((format!("p{name}_"), true));
    }
    if routine.is_new() {
        all.push((format!("{name}_f08_"), false));
        all.push((format!("p{name}_f08_"), true));
    }
    all
}

/// Returns the symbols of all routines that are generated from the table.
pub fn names() -> Vec<String> {
    let all = routines().into_iter();
    all.flat_map(|it| symbols(&it)).map(|it| it.0).collect()
}

/// Returns the input of the library's macro `handles!`, which makes a type for each kind of handle: its name, and the C
/// functions that convert it from and to an integer.
pub fn handles() -> String {
    let mut out = "handles! {\n".to_owned();
    for function in functions() {
        if function.conversion() == Some(Conversion::FromInt) {
            let (of, from) = (function.returns, function.name);
            let to = from.replace("fromint", "toint");
            let _ = writeln!(out, "{of} MPI_{from} MPI_{to};");
        }
    }
    out + "}\n"
}

/// Returns the code of the library: declarations of the C functions, and the Fortran functions.
pub fn front() -> String {
    let mut out = String::new();
    for function in functions().iter().chain(&extensions()) {
        if function.is_for_tools() || function.is_conversion() {
            continue;
        }
        c_function(&mut out, function, false);
        if function.has_large() {
            c_function(&mut out, function, true);
        }
    }
    for routine in routines() {
        let by_hand = rules::by_hand(&routine);
        if by_hand.is_none() {
            body(&mut out, &routine);
        }
        for (symbol, profiling) in symbols(&routine) {
            entry(&mut out, &routine, &symbol, profiling, by_hand);
        }
    }
    out
}

/// Writes the type of a C function, and its declarations under its name and its profiling name.
fn c_function(out: &mut String, function: &Function, large: bool) {
    let kinds = function.parameters.iter();
    let mut kinds: Vec<String> = kinds.map(|it| rust_type(it.form(large))).collect();
    if function.variadic {
        kinds.push("...".to_owned());
    }
    let returns = returned(function);
    let name = format!("{}{}", function.name, if large { "_c" } else { "" });
    let kinds = kinds.join(", ");
    let _ = writeln!(
        out,
        "pub type {name} = unsafe extern \"C\" fn({kinds}) -> {returns};"
    );
    let named = function.parameters.iter();
    let named = named.map(|it| format!("{}: {}, ", it.rust(), rust_type(it.form(large))));
    let mut named: String = named.collect();
    if function.variadic {
        named.push_str("...");
    }
    let prefix = function.prefix();
    for prefix in [prefix, &format!("P{prefix}")] {
        let _ = writeln!(
            out,
            "#[allow(dead_code)]\nunsafe extern \"C\" {{ fn {prefix}{name}({named}) -> {returns}; }}"
        );
    }
}

fn returned(function: &Function) -> &'static str {
    match function.returns {
        "double" => "f64",
        "Aint" => "i64",
        _ => "c_int",
    }
}

/// Returns the Rust type of a Fortran parameter.
fn fortran_type(role: Role, is_old_value: bool) -> &'static str {
    match role {
        Role::Absent => unreachable!("a parameter of C's alone"),
        Role::Choice | Role::Place => "*mut c_void",
        Role::Value if is_old_value => "*mut c_int",
        Role::Value | Role::Wide | Role::WideOut | Role::Wides => "*mut i64",
        Role::Procedure(_) => "*const c_void",
        Role::Text | Role::TextOut | Role::Texts | Role::TextTable => "*mut u8",
        Role::Ranges => "*mut [c_int; 3]",
        Role::Status | Role::Statuses => "*mut Status",
        _ => "*mut c_int",
    }
}

fn has_length(role: Role) -> bool {
    matches!(
        role,
        Role::Text | Role::TextOut | Role::Texts | Role::TextTable
    )
}

/// Returns the parameters with their types.
fn declared(routine: &Routine) -> Vec<(String, &'static str)> {
    let is_old = rules::has("old", routine.function.name);
    let parameters = routine.parameters.iter();
    let mut all: Vec<(String, &str)> = parameters
        .map(|(it, role)| (it.rust(), fortran_type(*role, is_old)))
        .collect();
    if routine.has_error() {
        all.push(("ierror".to_owned(), "*mut c_int"));
    }
    let texts = routine.parameters.iter().filter(|it| has_length(it.1));
    all.extend(texts.map(|it| (format!("{}_length", it.0.name), "usize")));
    all
}

/// Writes the function under one of its symbols.
fn entry(
    out: &mut String,
    routine: &Routine,
    symbol: &str,
    profiling: bool,
    by_hand: Option<&str>,
) {
    let all = declared(routine);
    let parameters: String = all
        .iter()
        .map(|it| format!("{}: {}, ", it.0, it.1))
        .collect();
    let is_f08 = symbol.ends_with("_f08_");
    // Only `mpi_f08` returns the address of a detached buffer: the others pass a buffer of any type, which is ignored.
    let passed = all.iter().map(|it| match it.0.as_str() {
        "buffer_addr" if !is_f08 => "std::ptr::null_mut(), ".to_owned(),
        name => format!("{name}, "),
    });
    let passed: String = passed.collect();
    let name = routine.c_name();
    let function = name.to_lowercase();
    let module = by_hand.map_or(String::new(), |module| format!("{module}::"));
    let prefix = if profiling { "P" } else { "" };
    let call = match routine.function.is_removed() {
        true => String::new(),
        false => format!("{prefix}{}{name}, ", routine.function.prefix()),
    };
    let returns = match routine.is_function() {
        true => format!(" -> {}", returned(&routine.function)),
        false => String::new(),
    };
    // The SAFETY line of this generated unsafe code is part of the generated text.
    let _ = writeln!(
        out,
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({parameters}){returns} {{\n\
         // SAFETY: the program keeps MPI's rules.\nunsafe {{ {module}{function}({call}{passed}) }}\n}}"
    );
}

/// Writes the function that translates the arguments and calls the C function.
fn body(out: &mut String, routine: &Routine) {
    let name = routine.c_name();
    let all = declared(routine);
    let parameters: String = all
        .iter()
        .map(|it| format!("{}: {}, ", it.0, it.1))
        .collect();
    let returns = match routine.is_function() {
        true => format!(" -> {}", returned(&routine.function)),
        false => String::new(),
    };
    let (mut before, mut after) = (String::new(), String::new());
    for (parameter, role) in &routine.parameters {
        around(&mut before, &mut after, routine, parameter, *role);
    }
    let arguments: String = routine
        .function
        .parameters
        .iter()
        .map(|it| {
            let here = routine
                .parameters
                .iter()
                .find(|(other, _)| other.name == it.name);
            match here {
                Some((_, role)) => argument(&it.rust(), *role) + ", ",
                None if it.kind == "int" => "0, ".to_owned(),
                None => "std::ptr::null_mut(), ".to_owned(),
            }
        })
        .collect();
    let call = match (routine.is_function(), routine.has_error()) {
        (true, _) => format!("call({arguments})"),
        (false, true) => format!("let result = call({arguments});\n{after}finish(ierror, result)"),
        (false, false) => format!("let _ = call({arguments});"),
    };
    let _ = writeln!(
        out,
        "#[inline(always)]\nunsafe fn {}(call: {name}, {parameters}){returns} {{\n\
         // SAFETY: the program keeps MPI's rules.\nunsafe {{\n\
         {before}{call}\n}}\n}}",
        name.to_lowercase()
    );
}

/// Writes the code for a parameter before and after the call.
fn around(
    before: &mut String,
    after: &mut String,
    routine: &Routine,
    parameter: &Parameter,
    role: Role,
) {
    let name = &*parameter.rust();
    let _ = match role {
        Role::Text => writeln!(before, "let {name} = texts::text({name}, {name}_length);"),
        Role::TextOut => {
            let _ = writeln!(after, "{name}_.give(result, {name}, {name}_length);");
            writeln!(before, "let mut {name}_ = texts::Room::new();")
        }
        Role::HandleOut(of) => {
            let _ = writeln!(after, "*{name} = {name}_.to_int();");
            writeln!(before, "let mut {name}_ = {of}::of(*{name});")
        }
        Role::Handles(of, length) => {
            let length = match length {
                "peers" => peers(routine, name),
                length => format!("i64::from(*{length})"),
            };
            if !parameter.kind.starts_with("const") {
                let _ = writeln!(after, "{name}_.give({name});");
            }
            writeln!(
                before,
                "let mut {name}_ = Handles::<{of}>::take({name}, {length});"
            )
        }
        Role::IntOut if rules::is_logical(name) => writeln!(after, "logicals({name}, 1);"),
        Role::Ints
            if rules::is_logical(name) && name == "periods" && routine.c_name() == "Cart_get" =>
        {
            writeln!(after, "logicals({name}, *maxdims);")
        }
        Role::IntOut if rules::has("position", name) => {
            let _ = writeln!(before, "*{name} = UNDEFINED;");
            writeln!(after, "positions({name}, 1);")
        }
        Role::Ints if rules::has("positions", name) => {
            let _ = writeln!(before, "*outcount = UNDEFINED;");
            writeln!(after, "positions({name}, *outcount);")
        }
        Role::Place => writeln!(
            before,
            "let mut unused = 0u64;\nlet {name} = if {name}.is_null() {{ (&raw mut unused).cast() }} else {{ {name} }};"
        ),
        _ => Ok(()),
    };
}

/// Returns the code that computes the number of elements of an array of datatypes: one for each peer of the exchange.
fn peers(routine: &Routine, name: &str) -> String {
    let sends = name == "sendtypes";
    let count = match routine.function.name.to_lowercase().contains("neighbor_") {
        true => format!("neighbours(*comm, {sends})"),
        false => "peers(*comm)".to_owned(),
    };
    match sends {
        true => format!("unless_in_place(sendbuf, || {count})"),
        false => count,
    }
}

/// Returns the expression that passes a parameter to C.
fn argument(name: &str, role: Role) -> String {
    match role {
        Role::Choice => format!("sentinels::choice({name})"),
        Role::Text => format!("{name}.as_ptr()"),
        Role::TextOut => format!("{name}_.place()"),
        Role::Handle(of) => format!("{of}::of(*{name})"),
        Role::HandleOut(_) => format!("&mut {name}_"),
        Role::Handles(..) => format!("{name}_.place()"),
        Role::Int | Role::Wide => format!("*{name}"),
        Role::Ints if rules::has("weights", name) => format!("sentinels::weights({name})"),
        Role::Status | Role::Statuses => format!("sentinels::status({name})"),
        _ => name.to_owned(),
    }
}
