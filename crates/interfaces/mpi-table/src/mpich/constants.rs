//! Constants of MPICH's ABI. A line of the table is a name and a value; type and heading are those of the standard ABI.
//! For constants that only this ABI has, the type precedes the name. A fourth word is the constant of the standard ABI
//! that is passed to `regatta-mpi` in its place.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Constant;
use crate::constants::HANDLES;

/// The value, in the table, of constants that are exported data of the library.
pub(crate) const EXTERN: &str = "extern";

/// Returns all constants in the order of the standard ABI, without those that this ABI lacks, then those that only this
/// ABI has.
pub fn constants() -> Vec<Constant> {
    let mut values = values();
    let mut all = crate::constants();
    all.retain_mut(|constant| match values.remove(constant.name) {
        Some(value) => {
            constant.value = value;
            true
        }
        None => constant.value.starts_with("MPI_"),
    });
    assert!(values.is_empty(), "no constants of MPI: {values:?}");
    all.extend(alone());
    all
}

/// Returns the constants that the standard ABI does not have.
fn alone() -> impl Iterator<Item = Constant> {
    lines().filter_map(|words| match words[..] {
        [kind, name, value] | [kind, name, value, _] => Some(Constant {
            kind,
            name,
            value,
            heading: "Of this interface alone",
        }),
        _ => None,
    })
}

fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("../../table/mpich/constants.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split(' ').collect())
}

fn values() -> BTreeMap<&'static str, &'static str> {
    let pair = |words: Vec<&'static str>| match words[..] {
        [name, value] => Some((name, value)),
        _ => None,
    };
    lines().filter_map(pair).collect()
}

/// Returns each constant that both ABIs have, with its value in this ABI.
pub(super) fn both() -> impl Iterator<Item = (Constant, &'static str)> {
    let here: BTreeMap<_, _> = values();
    crate::constants().into_iter().filter_map(move |constant| {
        let value = here.get(constant.name)?;
        Some((constant, *value))
    })
}

/// Returns the constant of the standard ABI with this name.
fn standard(name: &str) -> Constant {
    let all = crate::constants();
    let found = all.into_iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no constant {name}"))
}

/// Returns whether a handle is an `int` in this ABI instead of a pointer as in the standard ABI. All handles of the
/// tool interface are pointers.
pub(crate) fn is_int(handle: &str) -> bool {
    HANDLES.contains(&handle) && handle != "File"
}

/// Returns the predefined handles of each kind as pairs of the value in this ABI and in the standard ABI. The kinds
/// that are ints follow, as input of a macro `handles!` that makes a type for each.
pub fn handles_in_rust() -> String {
    let mut out = String::new();
    for kind in HANDLES {
        let same = lines().filter_map(|words| match words[..] {
            [of, _, value, name] if of == kind => Some((standard(name), value)),
            _ => None,
        });
        let pairs = both().filter(|(constant, _)| constant.kind == kind);
        let pairs: String = pairs
            .chain(same)
            .map(|(constant, value)| format!("({value}, {}), ", constant.value))
            .collect();
        let name = kind.to_uppercase();
        let _ = writeln!(out, "const {name}: &[(u32, u16)] = &[{pairs}];");
    }
    let ints = HANDLES.into_iter().filter(|kind| is_int(kind));
    let ints = ints.map(|kind| format!("{kind} {}\n", kind.to_uppercase()));
    out + "handles! {\n" + &ints.collect::<String>() + "}\n"
}

/// Returns the constants of this ABI that the library itself uses.
pub fn values_in_rust() -> String {
    let wanted = [
        "MPI_MAX_PROCESSOR_NAME",
        "MPI_STATUS_IGNORE",
        "MPI_UNWEIGHTED",
        "MPI_WEIGHTS_EMPTY",
        "MPI_T_PVAR_ALL_HANDLES",
    ];
    let mut out = String::new();
    let alone = alone().map(|constant| (constant, constant.value));
    let all = both().filter(|(constant, _)| wanted.contains(&constant.name));
    for (constant, value) in all.chain(alone) {
        let Some(name) = constant.name.strip_prefix("MPI_") else {
            continue;
        };
        // Regatta chooses the value of exported data, and takes that of the standard ABI, which needs no translation.
        let value = match value {
            EXTERN => constant.value,
            value => value,
        };
        let _ = match constant.kind {
            "int" => writeln!(out, "pub const {name}: c_int = {value};"),
            "Datatype" => writeln!(out, "pub const {name}: u32 = {value};"),
            _ => writeln!(out, "pub const {name}: usize = {value}_isize as usize;"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_of_the_standard_abi_has_a_value_here() {
        let here: Vec<_> = constants().iter().map(|it| it.name).collect();
        for constant in crate::constants() {
            if HANDLES.contains(&constant.kind) {
                assert!(here.contains(&constant.name), "{}", constant.name);
            }
        }
    }

    #[test]
    fn a_datatype_s_value_has_its_size() {
        let value_of = |name: &str| constants().into_iter().find(|it| it.name == name);
        for (name, size) in [("MPI_CHAR", 1), ("MPI_INT", 4), ("MPI_DOUBLE", 8)] {
            let value = value_of(name).expect("a type").value;
            let value = u32::from_str_radix(value.trim_start_matches("0x"), 16).expect("a number");
            assert_eq!(value >> 8 & 0xff, size, "{name}");
        }
    }
}
