//! The part that a parameter has in Fortran: by its type in C, and by the rules of `table/fortran.txt`.

use super::Routine;
use crate::{Function, Parameter};

const RULES: &str = include_str!("../../table/fortran.txt");

/// The part of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Only C has it.
    Absent,
    /// A buffer of any type.
    Choice,
    /// INTEGER(MPI_ADDRESS_KIND), a value that C passes as a pointer; INTEGER in functions of MPI-1.
    Value,
    /// An address that is given back.
    Place,
    /// A procedure of the program's, of this type in C.
    Procedure(&'static str),
    /// CHARACTER that the library reads.
    Text,
    /// CHARACTER that the library writes.
    TextOut,
    /// Arrays of CHARACTER.
    Texts,
    /// Arrays of such arrays.
    TextTable,
    /// A handle that the library reads: its type.
    Handle(&'static str),
    /// A handle that it may write.
    HandleOut(&'static str),
    /// An array of handles: its type, and the parameter that has its length.
    Handles(&'static str, &'static str),
    /// INTEGER of the size of C's int, or LOGICAL, that the library reads.
    Int,
    /// One that it may write.
    IntOut,
    /// An array of them.
    Ints,
    /// Triples.
    Ranges,
    /// INTEGER of eight bytes.
    Wide,
    /// One that the library may write.
    WideOut,
    /// An array of them.
    Wides,
    /// A status.
    Status,
    /// An array of statuses.
    Statuses,
}

/// The words of the rules that begin with this one.
fn lines(rule: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let words = RULES.lines().map(|line| line.split(' ').collect());
    words.filter(move |it: &Vec<&str>| it[0] == rule)
}

/// Whether a rule names this.
pub(super) fn has(rule: &str, name: &str) -> bool {
    lines(rule).any(|words| words[1..].contains(&name))
}

/// Whether a parameter is LOGICAL.
pub(super) fn is_logical(name: &str) -> bool {
    has("logical", name)
}

/// The parameter that has the number of an array's elements.
pub(super) fn length(function: &Function, name: &str) -> Option<&'static str> {
    let words = lines("length").find(|words| words[1] == name)?;
    let present =
        |word: &&&str| **word == "peers" || function.parameters.iter().any(|it| it.name == **word);
    words[2..].iter().find(present).copied()
}

/// The module of the library that has this routine by hand: all that the standard has removed are in one.
pub(super) fn by_hand(routine: &Routine) -> Option<&'static str> {
    if routine.function.is_removed() {
        return Some("removed");
    }
    let c_name = &*routine.c_name();
    let words = lines("hand").find(|words| words[2..].contains(&c_name));
    words.map(|words| words[1])
}

/// The part of this parameter.
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
        // A name of three letters, by its pointer.
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
