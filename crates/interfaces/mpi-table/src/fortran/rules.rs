//! The role of a parameter in Fortran, determined by its C type and the rules of `table/fortran.txt`.

use super::Routine;
use crate::{Function, Parameter};

const RULES: &str = include_str!("../../table/fortran.txt");

/// The role of a parameter in Fortran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Exists only in C.
    Absent,
    /// A buffer of any type.
    Choice,
    /// An INTEGER(MPI_ADDRESS_KIND) that C passes as a pointer. In MPI-1 functions it is an INTEGER.
    Value,
    /// An address that the function returns.
    Place,
    /// A callback of the program, with the name of its C type.
    Procedure(&'static str),
    /// A CHARACTER argument that the library reads.
    Text,
    /// A CHARACTER argument that the library writes.
    TextOut,
    /// An array of CHARACTER.
    Texts,
    /// An array of arrays of CHARACTER.
    TextTable,
    /// A handle that the library reads, with its type.
    Handle(&'static str),
    /// A handle that the library may write, with its type.
    HandleOut(&'static str),
    /// An array of handles, with their type and the parameter that has its length.
    Handles(&'static str, &'static str),
    /// An INTEGER of the size of a C `int`, or a LOGICAL, that the library reads.
    Int,
    /// An INTEGER or LOGICAL that the library may write.
    IntOut,
    /// An array of INTEGERs or LOGICALs.
    Ints,
    /// An array of triples of INTEGERs (ranges of ranks).
    Ranges,
    /// An 8-byte INTEGER that the library reads.
    Wide,
    /// An 8-byte INTEGER that the library may write.
    WideOut,
    /// An array of 8-byte INTEGERs.
    Wides,
    /// A status.
    Status,
    /// An array of statuses.
    Statuses,
}

/// Returns the words of each line of the rules that begins with `rule`.
fn lines(rule: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let words = RULES.lines().map(|line| line.split(' ').collect());
    words.filter(move |it: &Vec<&str>| it[0] == rule)
}

/// Returns whether a line of this rule contains the name.
pub(super) fn has(rule: &str, name: &str) -> bool {
    lines(rule).any(|words| words[1..].contains(&name))
}

/// Returns whether a parameter is LOGICAL.
pub(super) fn is_logical(name: &str) -> bool {
    has("logical", name)
}

/// Returns the parameter that has the length of an array.
pub(super) fn length(function: &Function, name: &str) -> Option<&'static str> {
    let words = lines("length").find(|words| words[1] == name)?;
    let present =
        |word: &&&str| **word == "peers" || function.parameters.iter().any(|it| it.name == **word);
    words[2..].iter().find(present).copied()
}

/// Returns the module of the library that implements this routine by hand. The module `removed` has all functions that
/// the standard has removed.
pub(super) fn by_hand(routine: &Routine) -> Option<&'static str> {
    if routine.function.is_removed() {
        return Some("removed");
    }
    let c_name = &*routine.c_name();
    let words = lines("hand").find(|words| words[2..].contains(&c_name));
    words.map(|words| words[1])
}

/// Returns the role of a parameter.
pub(super) fn role(function: &Function, parameter: &Parameter, large: bool) -> Role {
    let name = parameter.name;
    if lines("absent").any(|words| words[1] == function.name && words[2..].contains(&name)) {
        return Role::Absent;
    }
    let kind = parameter.form(large);
    let of = kind.strip_prefix("const ").unwrap_or(kind);
    // Routines of MPI-1 have an INTEGER where C has an MPI_Aint.
    let is_integer = function.is_removed();
    match of {
        "void*" if has("value", name) => Role::Value,
        "void*" if has("place", name) => Role::Place,
        "void*" => Role::Choice,
        // Some strings (such as names of data representations) are declared as `char*`, not as `char[]`.
        "char*" | "char[]" if kind.starts_with("const") => Role::Text,
        "char*" => Role::TextOut,
        "char*[]" => Role::Texts,
        "char**[]" => Role::TextTable,
        "Aint" if is_integer => Role::Int,
        "Aint*" if is_integer => Role::IntOut,
        "Aint[]" if is_integer => Role::Ints,
        "int" => Role::Int,
        "int*" => Role::IntOut,
        "int[]" => Role::Ints,
        "int[][3]" => Role::Ranges,
        "Aint" | "Count" | "Offset" => Role::Wide,
        "Aint*" | "Count*" | "Offset*" => Role::WideOut,
        "Aint[]" | "Count[]" => Role::Wides,
        "Status*" if name == "array_of_statuses" => Role::Statuses,
        "Status*" => Role::Status,
        _ => handle_or_procedure(function, name, of),
    }
}

fn handle_or_procedure(function: &Function, name: &str, of: &'static str) -> Role {
    if let Some(of) = of.strip_suffix("[]") {
        let length = length(function, name);
        let length = length.unwrap_or_else(|| panic!("{}: length of {name}", function.name));
        return Role::Handles(of, length);
    }
    match of.strip_suffix('*') {
        Some(of) if of.ends_with("_function") || of.ends_with("_function_c") => Role::Procedure(of),
        Some(of) => Role::HandleOut(of),
        None => Role::Handle(of),
    }
}
