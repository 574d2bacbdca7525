//! Constants in Fortran.

use std::fmt::Write;

use crate::constants;
use crate::constants::HANDLES;

/// A named constant (PARAMETER) of Fortran.
pub(super) struct Parameter {
    /// The type of its handle, or `None` for an INTEGER.
    pub handle: Option<&'static str>,
    /// Its name, with `MPI_`.
    pub name: &'static str,
    /// Its value.
    pub value: i64,
}

/// Returns all INTEGER and handle constants.
pub(super) fn parameters() -> Vec<Parameter> {
    let all = constants();
    let value = |text: &str| -> Option<i64> {
        let text = all
            .iter()
            .find(|it| it.name == text)
            .map_or(text, |it| it.value);
        match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let wanted = all
        .iter()
        .filter(|it| !it.name.starts_with("MPI_T_") && !it.name.starts_with("MPI_F_"));
    wanted
        .filter_map(|it| {
            let handle = HANDLES.iter().find(|handle| **handle == it.kind).copied();
            if handle.is_none() && it.kind != "int" {
                return None;
            }
            // C's maximum lengths of strings include the terminating NUL.
            let is_length = it.name.starts_with("MPI_MAX_");
            let value = value(it.value)? - i64::from(is_length);
            Some(Parameter {
                handle,
                name: it.name,
                value,
            })
        })
        .collect()
}

/// INTEGER constants that C does not have, or that have a different value in C.
pub(super) const OWN: [(&str, i64); 9] = [
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SOURCE", 1),
    ("MPI_TAG", 2),
    ("MPI_ERROR", 3),
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_COUNT_KIND", 8),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_LOGICAL_KIND", 4),
];

/// LOGICAL constants, all `.FALSE.`, that state what compilers may do with buffers.
pub(super) const SUPPORT: [&str; 2] = ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"];

/// Returns the special arguments (such as MPI_BOTTOM): name, type and shape of their declarations in `mpif.h`. Each is
/// in a common block of its own.
pub(super) fn sentinels() -> Vec<(&'static str, &'static str, &'static str)> {
    let all = constants().into_iter();
    all.filter_map(|it| {
        let (kind, shape) = match (it.kind, it.name) {
            ("void*", _) => ("INTEGER", ""),
            ("char**", _) => ("CHARACTER*1", "(1)"),
            ("char***", _) => ("CHARACTER*1", "(1,1)"),
            ("int*", _) => ("INTEGER", "(1)"),
            ("Status*", "MPI_STATUS_IGNORE") => ("INTEGER", "(8)"),
            ("Status*", _) => ("INTEGER", "(8,1)"),
            _ => return None,
        };
        Some((it.name, kind, shape))
    })
    .collect()
}

/// Returns the name of the common block of a special argument.
pub(super) fn block(name: &str) -> String {
    name.to_lowercase().replace("mpi_", "mpi_regatta_")
}

/// Returns the declarations of all constants, in lines that are valid in both fixed and free source form.
pub(super) fn declarations() -> String {
    let mut out = String::new();
    let mut integer = |kind: &str, name: &str, value: String| {
        let _ = writeln!(out, "      {kind} {name}");
        let _ = writeln!(out, "      PARAMETER ({name}={value})");
    };
    for (name, value) in OWN {
        integer("INTEGER", name, value.to_string());
    }
    for it in parameters() {
        integer("INTEGER", it.name, it.value.to_string());
    }
    integer(
        "INTEGER(KIND=8)",
        "MPI_DISPLACEMENT_CURRENT",
        "-1".to_owned(),
    );
    for name in SUPPORT {
        integer("LOGICAL", name, ".FALSE.".to_owned());
    }
    for (name, kind, shape) in sentinels() {
        let _ = writeln!(out, "      {kind} {name}{shape}");
        let _ = writeln!(out, "      COMMON /{}/ {name}", block(name));
    }
    out
}
