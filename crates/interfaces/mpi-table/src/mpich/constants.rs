//! Constants of MPICH's ABI. A line is a name and a value: the type and the heading are those of the standard ABI. Constants
//! of this ABI alone have their type before the name; one behind the value is the standard's that the core takes for it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Constant;
use crate::constants::HANDLES;

/// A value that is exported data of the library.
pub(crate) const EXTERN: &str = "extern";

/// All constants in the order of the standard ABI's, but for those that this ABI does not have.
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

/// Constants that the standard ABI does not have.
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

/// A constant's values in both ABIs, this one's first.
pub(super) fn both() -> impl Iterator<Item = (Constant, &'static str)> {
    let here: BTreeMap<_, _> = values();
    crate::constants().into_iter().filter_map(move |constant| {
        let value = here.get(constant.name)?;
        Some((constant, *value))
    })
}

/// The standard ABI's constant of this name.
fn standard(name: &str) -> Constant {
    let all = crate::constants();
    let found = all.into_iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no constant {name}"))
}

/// Whether a handle is an int here, and no pointer as in the standard ABI. All of the tool interface are pointers.
pub(crate) fn is_int(handle: &str) -> bool {
    HANDLES.contains(&handle) && handle != "File"
}

/// The predefined handles of each kind: pairs of the value here and the standard ABI's. Then the kinds that are ints, for a macro
/// `handles` that makes a type of each.
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

/// The constants of this ABI that the library itself has to know.
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
        // The value of exported data is ours to choose: the standard ABI's needs no translation.
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
