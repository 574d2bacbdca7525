//! Writes the interface of a routine in Fortran.

use std::fmt::Write;

use super::Routine;
use super::rules::{self, Role};
use crate::Parameter;

/// The module that an interface is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Module {
    /// `mpi`: handles and statuses are INTEGERs.
    Mpi,
    /// `mpi_f08`: handles and statuses have derived types, and IERROR is optional.
    F08,
}

/// Compiler directives that allow an argument of any type, kind and rank.
const ANY: [&str; 5] = [
    "!GCC$ ATTRIBUTES NO_ARG_CHECK ::",
    "!DEC$ ATTRIBUTES NO_ARG_CHECK ::",
    "!DIR$ IGNORE_TKR",
    "!$PRAGMA IGNORE_TKR",
    "!IBM* IGNORE_TKR",
];

/// Writes the interface of `routine` under this name.
pub(super) fn interface(out: &mut String, routine: &Routine, name: &str, module: Module) {
    let mut dummies: Vec<&str> = routine.parameters.iter().map(|it| it.0.name).collect();
    if routine.has_error() {
        dummies.push("ierror");
    }
    let word = match routine.is_function() {
        true => "function",
        false => "subroutine",
    };
    let _ = write!(out, "{word} {name}(");
    for (index, part) in dummies.chunks(4).enumerate() {
        let comma = if index == 0 { "" } else { ", &\n    " };
        let _ = write!(out, "{comma}{}", part.join(", "));
    }
    out.push_str(")\n");
    if module == Module::F08 {
        out.push_str("import\n");
    }
    for (parameter, role) in &routine.parameters {
        dummy(out, routine, parameter, *role, module);
    }
    if routine.has_error() {
        let optional = if module == Module::F08 {
            ", optional"
        } else {
            ""
        };
        let _ = writeln!(out, "integer{optional} :: ierror");
    }
    match routine.function.returns {
        "double" => {
            let _ = writeln!(out, "double precision :: {name}");
        }
        "Aint" => {
            let _ = writeln!(out, "integer(kind=8) :: {name}");
        }
        _ => {}
    }
    let _ = writeln!(out, "end {word}");
}

/// Declares an argument of any type. It has the TARGET attribute: otherwise gfortran would assume that later calls
/// (such as MPI_Wait) neither read nor write it.
pub(super) fn any(out: &mut String, name: &str, intent: &str) {
    for directive in ANY {
        let _ = writeln!(out, "{directive} {name}");
    }
    let _ = writeln!(out, "type(*), dimension(*){intent}, target :: {name}");
}

fn dummy(out: &mut String, routine: &Routine, parameter: &Parameter, role: Role, module: Module) {
    let name = parameter.name;
    let is_new = module == Module::F08;
    let number = |of: &str| match is_new {
        true => format!("type(MPI_{of})"),
        false => "integer".to_owned(),
    };
    let integer = match rules::is_logical(name) {
        true => "logical",
        false => "integer",
    };
    let kind = match role {
        Role::Absent => return,
        Role::Choice => {
            let constant = parameter.kind.starts_with("const");
            return any(out, name, if constant { ", intent(in)" } else { "" });
        }
        Role::Place if !is_new => return any(out, name, ""),
        Role::Place => "type(c_ptr)".to_owned(),
        Role::Value if rules::has("old", routine.function.name) => "integer".to_owned(),
        Role::Value | Role::WideOut => "integer(kind=8)".to_owned(),
        Role::Procedure(of) if is_new => format!("procedure(MPI_{of})"),
        Role::Procedure(_) => "external".to_owned(),
        Role::Text => "character(len=*), intent(in)".to_owned(),
        Role::TextOut => "character(len=*)".to_owned(),
        Role::Texts => "character(len=*), dimension(*)".to_owned(),
        Role::TextTable => "character(len=*), dimension(count,*)".to_owned(),
        Role::Handle(of) => format!("{}, intent(in)", number(of)),
        Role::HandleOut(of) => number(of),
        Role::Handles(of, _) => format!("{}, dimension(*)", number(of)),
        Role::Int => format!("{integer}, intent(in)"),
        Role::IntOut => integer.to_owned(),
        Role::Ints => format!("{integer}, dimension(*)"),
        Role::Ranges => "integer, dimension(3,*)".to_owned(),
        Role::Wide => "integer(kind=8), intent(in)".to_owned(),
        Role::Wides => "integer(kind=8), dimension(*)".to_owned(),
        Role::Status if is_new => number("Status"),
        Role::Status => "integer, dimension(8)".to_owned(),
        Role::Statuses if is_new => format!("{}, dimension(*)", number("Status")),
        Role::Statuses => "integer, dimension(8,*)".to_owned(),
    };
    let _ = writeln!(out, "{kind} :: {name}");
}
