//! The modules `mpi` and `mpi_f08`. They contain only interfaces and constants, so compiling them produces a module
//! file but no code to link.

use std::fmt::Write;

use super::constants::{self, OWN, SUPPORT, block, declarations, parameters, sentinels};
use super::declare::{Module, any, interface};
use super::include::PROCEDURES;
use super::{Routine, routines};
use crate::constants::HANDLES;

const MPI: &str = "\
! The module mpi: made by Regatta of its table of MPI's functions and constants.
module mpi
implicit none
public
";

const F08: &str = "\
! The module mpi_f08: made by Regatta of its table of MPI's functions and constants.
module mpi_f08
use, intrinsic :: iso_c_binding, only: c_ptr
implicit none
public
private :: c_ptr
";

/// Returns the source of the module with this name, `mpi` or `mpi_f08`.
pub fn module(name: &str) -> String {
    match name {
        "mpi" => mpi(),
        "mpi_f08" => mpi_f08(),
        other => panic!("no module {other}"),
    }
}

fn mpi() -> String {
    let mut out = MPI.to_owned();
    out.push_str(&declarations());
    for name in PROCEDURES {
        let _ = writeln!(out, "external {name}");
    }
    out.push_str("interface\n");
    for routine in routines().iter().filter(|it| it.is_old()) {
        for prefix in ["", "P"] {
            let name = format!("{prefix}{}{}", routine.function.prefix(), routine.c_name());
            interface(&mut out, routine, &name, Module::Mpi);
        }
    }
    out.push_str("subroutine MPI_F_sync_reg(buf)\n");
    any(&mut out, "buf", "");
    out.push_str("end subroutine\nend interface\n");
    sizes(&mut out);
    out.push_str("end module mpi\n");
    out
}

fn mpi_f08() -> String {
    let mut out = F08.to_owned();
    for of in HANDLES {
        let _ = writeln!(
            out,
            "type, bind(c) :: MPI_{of}\ninteger :: MPI_VAL\nend type"
        );
    }
    out.push_str(STATUS);
    numbers(&mut out);
    out.push_str("abstract interface\n");
    callbacks(&mut out);
    out.push_str("end interface\ninterface\n");
    predefined(&mut out);
    out.push_str("end interface\n");
    for (prefix, start) in [("", "mpi"), ("P", "pmpi")] {
        generics(&mut out, prefix, start);
    }
    out.push_str("interface MPI_F_sync_reg\nsubroutine mpi_f_sync_reg_f08(buf)\n");
    any(&mut out, "buf", "");
    out.push_str("end subroutine\nend interface\n");
    for of in HANDLES {
        comparisons(&mut out, of);
    }
    out.push_str(STATUSES);
    sizes(&mut out);
    out.push_str("end module mpi_f08\n");
    out
}

const STATUS: &str = "\
type, bind(c) :: MPI_Status
integer :: MPI_SOURCE
integer :: MPI_TAG
integer :: MPI_ERROR
integer, private :: MPI_internal(5)
end type
";

/// Conversions between the statuses of the two modules.
const STATUSES: &str = "\
interface
subroutine MPI_Status_f2f08(f_status, f08_status, ierror)
import
integer, intent(in) :: f_status(8)
type(MPI_Status) :: f08_status
integer, optional :: ierror
end subroutine
subroutine MPI_Status_f082f(f08_status, f_status, ierror)
import
type(MPI_Status), intent(in) :: f08_status
integer :: f_status(8)
integer, optional :: ierror
end subroutine
end interface
";

/// Writes the constants; handles have their derived types.
fn numbers(out: &mut String) {
    for (name, value) in OWN {
        let _ = writeln!(out, "integer, parameter :: {name} = {value}");
    }
    for constants::Parameter {
        handle,
        name,
        value,
    } in parameters()
    {
        let _ = match handle {
            None => writeln!(out, "integer, parameter :: {name} = {value}"),
            Some(of) => writeln!(
                out,
                "type(MPI_{of}), parameter :: {name} = MPI_{of}({value})"
            ),
        };
    }
    out.push_str("integer(kind=8), parameter :: MPI_DISPLACEMENT_CURRENT = -1\n");
    for name in SUPPORT {
        let _ = writeln!(out, "logical, parameter :: {name} = .false.");
    }
    for (name, kind, shape) in sentinels() {
        let (kind, shape) = match name {
            "MPI_STATUS_IGNORE" => ("type(MPI_Status)", ""),
            "MPI_STATUSES_IGNORE" => ("type(MPI_Status)", "(1)"),
            _ => (kind, shape),
        };
        let _ = writeln!(out, "{kind} :: {name}{shape}");
        let _ = writeln!(out, "common /{}/ {name}", block(name));
    }
}

/// Writes a generic interface for each name. It includes the large-count form where the compiler can distinguish the
/// two by their arguments.
fn generics(out: &mut String, prefix: &str, start: &str) {
    let all = routines();
    let mut left: Vec<&Routine> = all.iter().filter(|it| it.is_new()).collect();
    while let Some(first) = left.first().copied() {
        let name = generic(first);
        let (here, others): (Vec<&Routine>, Vec<&Routine>) =
            left.iter().partition(|it| generic(it) == name);
        left = others;
        let head = format!("{prefix}{}{name}", first.function.prefix());
        let _ = writeln!(out, "interface {head}");
        for routine in here {
            let start = match routine.function.prefix() {
                "MPIX_" => format!("{start}x"),
                _ => start.to_owned(),
            };
            let specific = format!("{start}_{}_f08", routine.c_name().to_lowercase());
            interface(out, routine, &specific, Module::F08);
        }
        out.push_str("end interface\n");
    }
}

/// Returns the name by which programs call a routine.
fn generic(routine: &Routine) -> String {
    let name = routine.c_name();
    let changes = |it: &crate::Parameter| {
        it.large.is_some() && it.kind.trim_start_matches("const ").starts_with("int")
    };
    let differs = routine.function.parameters.iter().any(changes);
    match name.strip_suffix("_c") {
        Some(short) if differs || !routine.function.has_large() => short.to_owned(),
        _ => name,
    }
}

fn comparisons(out: &mut String, of: &str) {
    for (operator, word) in [("==", "eq"), ("/=", "ne")] {
        let function = format!("mpi_{}_{word}", of.to_lowercase());
        let _ = writeln!(
            out,
            "interface operator({operator})\nfunction {function}(a, b)\nimport\n\
             type(MPI_{of}), intent(in) :: a, b\nlogical :: {function}\nend function\nend interface"
        );
    }
}

/// Writes the interface of MPI_SIZEOF for each type that every compiler supports.
fn sizes(out: &mut String) {
    out.push_str("interface MPI_Sizeof\n");
    let types = [
        ("character", "character(len=*)"),
        ("logical1", "logical(kind=1)"),
        ("logical2", "logical(kind=2)"),
        ("logical4", "logical(kind=4)"),
        ("logical8", "logical(kind=8)"),
        ("integer1", "integer(kind=1)"),
        ("integer2", "integer(kind=2)"),
        ("integer4", "integer(kind=4)"),
        ("integer8", "integer(kind=8)"),
        ("real4", "real(kind=4)"),
        ("real8", "real(kind=8)"),
        ("complex4", "complex(kind=4)"),
        ("complex8", "complex(kind=8)"),
    ];
    for (name, kind) in types {
        let _ = writeln!(
            out,
            "subroutine mpi_sizeof_{name}(x, size, ierror)\n{kind}, dimension(..), intent(in) :: x\n\
             integer :: size\ninteger, optional :: ierror\nend subroutine"
        );
    }
    out.push_str("end interface\n");
}

/// Writes the interface of a procedure. Each element of `lines` declares the arguments of one type.
fn procedure(out: &mut String, name: &str, arguments: &str, lines: &[&str]) {
    let _ = writeln!(out, "subroutine {name}({arguments})\nimport");
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("end subroutine\n");
}

/// Writes the abstract interfaces of the callbacks that programs pass.
fn callbacks(out: &mut String) {
    for (suffix, count) in [("", "integer"), ("_c", "integer(kind=8)")] {
        procedure(
            out,
            &format!("MPI_User_function{suffix}"),
            "invec, inoutvec, len, datatype",
            &[
                "type(c_ptr), value :: invec, inoutvec",
                &format!("{count} :: len"),
                "type(MPI_Datatype) :: datatype",
            ],
        );
        procedure(
            out,
            &format!("MPI_Datarep_conversion_function{suffix}"),
            "userbuf, datatype, count, filebuf, position, extra_state, ierror",
            &[
                "type(c_ptr), value :: userbuf, filebuf",
                "type(MPI_Datatype) :: datatype",
                &format!("{count} :: count"),
                "integer(kind=8) :: position, extra_state",
                "integer :: ierror",
            ],
        );
    }
    procedure(
        out,
        "MPI_Datarep_extent_function",
        "datatype, extent, extra_state, ierror",
        &[
            "type(MPI_Datatype) :: datatype",
            "integer(kind=8) :: extent, extra_state",
            "integer :: ierror",
        ],
    );
    for of in ["Comm", "File", "Win", "Session"] {
        procedure(
            out,
            &format!("MPI_{of}_errhandler_function"),
            "object, error_code",
            &[
                &format!("type(MPI_{of}) :: object"),
                "integer :: error_code",
            ],
        );
    }
    for (of, object) in ATTRIBUTED {
        copy(out, &format!("MPI_{of}_copy_attr_function"), object);
        delete(out, &format!("MPI_{of}_delete_attr_function"), object);
    }
    requests(out);
}

/// Objects with attributes: the infix of their function names, and their handle type.
const ATTRIBUTED: [(&str, &str); 3] = [("Comm", "Comm"), ("Type", "Datatype"), ("Win", "Win")];

fn copy(out: &mut String, name: &str, object: &str) {
    procedure(
        out,
        name,
        "object, keyval, extra_state, &\n    attribute_val_in, attribute_val_out, flag, ierror",
        &[
            &format!("type(MPI_{object}) :: object"),
            "integer :: keyval, ierror",
            "integer(kind=8) :: extra_state, attribute_val_in, attribute_val_out",
            "logical :: flag",
        ],
    );
}

fn delete(out: &mut String, name: &str, object: &str) {
    procedure(
        out,
        name,
        "object, keyval, attribute_val, extra_state, ierror",
        &[
            &format!("type(MPI_{object}) :: object"),
            "integer :: keyval, ierror",
            "integer(kind=8) :: attribute_val, extra_state",
        ],
    );
}

/// Writes the abstract interfaces of the callbacks of generalized requests.
fn requests(out: &mut String) {
    let state = "integer(kind=8) :: extra_state";
    let error = "integer :: ierror";
    procedure(
        out,
        "MPI_Grequest_query_function",
        "extra_state, status, ierror",
        &[state, "type(MPI_Status) :: status", error],
    );
    procedure(
        out,
        "MPI_Grequest_free_function",
        "extra_state, ierror",
        &[state, error],
    );
    procedure(
        out,
        "MPI_Grequest_cancel_function",
        "extra_state, complete, ierror",
        &[state, "logical :: complete", error],
    );
}

/// Writes the interfaces of predefined callbacks, which programs pass to the library.
fn predefined(out: &mut String) {
    for (of, object) in ATTRIBUTED {
        let start = format!("MPI_{}", of.to_uppercase());
        copy(out, &format!("{start}_NULL_COPY_FN"), object);
        copy(out, &format!("{start}_DUP_FN"), object);
        delete(out, &format!("{start}_NULL_DELETE_FN"), object);
    }
    for (suffix, count) in [("", "integer"), ("_C", "integer(kind=8)")] {
        procedure(
            out,
            &format!("MPI_CONVERSION_FN_NULL{suffix}"),
            "userbuf, datatype, count, filebuf, position, extra_state, ierror",
            &[
                "type(c_ptr), value :: userbuf, filebuf",
                "type(MPI_Datatype) :: datatype",
                &format!("{count} :: count"),
                "integer(kind=8) :: position, extra_state",
                "integer :: ierror",
            ],
        );
    }
}
