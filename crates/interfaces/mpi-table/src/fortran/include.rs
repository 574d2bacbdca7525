//! The include file `mpif.h`.

use std::fmt::Write;

use super::constants::declarations;
use super::routines;

/// Predefined procedures that programs pass to MPI.
pub(super) const PROCEDURES: [&str; 14] = [
    "MPI_NULL_COPY_FN",
    "MPI_NULL_DELETE_FN",
    "MPI_DUP_FN",
    "MPI_COMM_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN",
    "MPI_COMM_DUP_FN",
    "MPI_TYPE_NULL_COPY_FN",
    "MPI_TYPE_NULL_DELETE_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_WIN_NULL_COPY_FN",
    "MPI_WIN_NULL_DELETE_FN",
    "MPI_WIN_DUP_FN",
    "MPI_CONVERSION_FN_NULL",
    "MPI_CONVERSION_FN_NULL_C",
];

const HEAD: &str = "\
! mpif.h: MPI for Fortran, in fixed and in free form. Made by Regatta
! of its table of MPI's functions and constants.
";

/// Returns the text of `mpif.h`.
pub fn include() -> String {
    let mut out = HEAD.to_owned();
    out.push_str(&declarations());
    for name in PROCEDURES {
        let _ = writeln!(out, "      EXTERNAL {name}");
    }
    for routine in routines() {
        if !routine.is_function() || !routine.is_old() {
            continue;
        }
        let kind = match routine.function.returns {
            "double" => "DOUBLE PRECISION",
            _ => "INTEGER(KIND=8)",
        };
        let name = routine.function.name.to_uppercase();
        for prefix in ["MPI_", "PMPI_"] {
            let _ = writeln!(out, "      {kind} {prefix}{name}");
            let _ = writeln!(out, "      EXTERNAL {prefix}{name}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_into_fixed_form() {
        for line in include().lines() {
            assert!(line.len() <= 72, "{line}");
            assert!(
                line.starts_with('!') || line.starts_with("      "),
                "{line}"
            );
        }
    }
}
