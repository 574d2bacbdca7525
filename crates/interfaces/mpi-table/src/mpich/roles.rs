//! Roles: parameters whose special values (numbers or addresses) differ between the two ABIs.
//!
//! A line of the table is a role's name, its constants (a name that ends in `*` stands for all constants with this
//! prefix) and its parameters (a `*` at the end marks an output; a function's name in front restricts the parameter to
//! that function). A `|` after the role's name marks values that are sets of bits.

use std::fmt::Write;

use super::constants::both;
use crate::{Constant, Function, Parameter};

/// A role of parameters.
pub(super) struct Role {
    pub(super) name: &'static str,
    /// Whether its values are sets of bits.
    bits: bool,
    constants: Vec<&'static str>,
    parameters: Vec<&'static str>,
}

/// Returns all roles in the order of the table.
pub(super) fn roles() -> Vec<Role> {
    include_str!("../../table/mpich/roles.txt")
        .lines()
        .filter(|line| !line.starts_with("changed:"))
        .map(|line| {
            let mut parts = line.split(':');
            let mut words = || -> Vec<_> {
                let part = parts.next().unwrap_or_default();
                part.split_whitespace().collect()
            };
            let (name, constants, parameters) = (words(), words(), words());
            let [name] = name[..] else { panic!("{line}") };
            Role {
                name: name.trim_end_matches('|'),
                bits: name.ends_with('|'),
                constants,
                parameters,
            }
        })
        .collect()
}

/// Returns the parameters (handles and keys) that a call both reads and writes.
pub(super) fn changed() -> Vec<&'static str> {
    let mut lines = include_str!("../../table/mpich/roles.txt").lines();
    let line = lines.find_map(|line| line.strip_prefix("changed:"));
    line.unwrap_or_default().split_whitespace().collect()
}

impl Role {
    /// Returns whether a parameter has this role.
    pub(super) fn has(&self, function: &Function, parameter: &Parameter) -> bool {
        let star = match parameter.kind.trim_start_matches("const ") {
            "void*" => "",
            kind if kind.ends_with('*') => "*",
            kind if kind.ends_with("[]") => return false,
            _ => "",
        };
        let name = format!("{}{star}", parameter.name);
        let full = format!("{}.{name}", function.name);
        self.parameters.iter().any(|it| *it == name || *it == full)
    }

    /// Returns the role's constants, each with its value in this ABI.
    fn pairs(&self) -> Vec<(Constant, &'static str)> {
        let has = |name: &str| {
            self.constants.iter().any(|it| match it.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => *it == name,
            })
        };
        both().filter(|(constant, _)| has(constant.name)).collect()
    }
}

/// Returns a module for each role with two functions: `inward` translates a value of this ABI to the standard ABI,
/// `outward` the other way.
pub fn roles_in_rust() -> String {
    let mut out = String::new();
    for role in roles() {
        let pairs = role.pairs();
        assert!(!pairs.is_empty(), "{}", role.name);
        let kind = match pairs[0].0.kind {
            "Offset" => "i64",
            kind if kind.ends_with('*') => "isize",
            _ => "std::ffi::c_int",
        };
        let name = role.name;
        let _ = writeln!(out, "pub mod {name} {{");
        if role.bits {
            let to: Vec<_> = pairs.iter().map(|(it, here)| (*here, it.value)).collect();
            bits(&mut out, "inward", &to);
            let back: Vec<_> = to.into_iter().map(|(here, there)| (there, here)).collect();
            bits(&mut out, "outward", &back);
        } else {
            values(&mut out, &role, kind, &pairs);
        }
        out.push_str("}\n");
    }
    out
}

/// Writes the two functions of a role. `inward` maps a value that is special only in the standard ABI to one that is
/// special in neither.
fn values(out: &mut String, role: &Role, kind: &str, pairs: &[(Constant, &'static str)]) {
    let here: Vec<_> = pairs.iter().map(|(_, here)| *here).collect();
    let there: Vec<_> = pairs.iter().map(|(constant, _)| constant.value).collect();
    for (name, from, to) in [("inward", &here, &there), ("outward", &there, &here)] {
        // Most ranks and tags are not negative, and no constant is 0 or more.
        let quick = match from.iter().chain(to.iter()).all(|it| it.starts_with('-')) {
            true => "if value >= 0 { return value; }",
            false => "",
        };
        let mut rows: String = from
            .iter()
            .zip(to)
            .map(|(from, to)| format!("{from} => {to}, "))
            .collect();
        let strays = to.iter().filter(|it| !from.contains(it));
        let strays: Vec<_> = strays.copied().collect();
        if name == "inward" && !strays.is_empty() && role.name != "distribution_argument" {
            let _ = write!(rows, "{} => {kind}::MIN, ", strays.join(" | "));
        }
        if role.name == "code" {
            let (first, second) = match name {
                "inward" => (here_last(pairs), there_last(pairs)),
                _ => (there_last(pairs), here_last(pairs)),
            };
            let _ = write!(
                rows,
                "value if value > {first} => value - {first} + {second}, "
            );
        }
        let _ = writeln!(
            out,
            "#[inline(always)] pub fn {name}(value: {kind}) -> {kind} {{ {quick} match value {{ {rows} value => value }} }}"
        );
    }
}

const LAST: &str = "MPI_ERR_LASTCODE";

fn here_last(pairs: &[(Constant, &'static str)]) -> &'static str {
    let last = pairs.iter().find(|(constant, _)| constant.name == LAST);
    last.expect("the last code").1
}

fn there_last(pairs: &[(Constant, &'static str)]) -> &'static str {
    let last = pairs.iter().find(|(constant, _)| constant.name == LAST);
    last.expect("the last code").0.value
}

fn bits(out: &mut String, name: &str, pairs: &[(&str, &str)]) {
    let rows: String = pairs
        .iter()
        .map(|(from, to)| format!("if value & {from} != 0 {{ found |= {to}; }}\n"))
        .collect();
    let all: Vec<_> = pairs.iter().map(|(from, _)| *from).collect();
    let all = all.join(" | ");
    // Unknown bits are an error: the highest bit, which has no meaning, is set so that it is reported.
    let _ = writeln!(
        out,
        "pub fn {name}(value: std::ffi::c_int) -> std::ffi::c_int {{ let mut found = if value & !({all}) != 0 {{ std::ffi::c_int::MIN }} else {{ 0 }};\n{rows}found }}"
    );
}
