//! Generates `mpi.h` from the table.

use std::fmt::Write;

use crate::constants::{HANDLES, TOOL_HANDLES};
use crate::{Constant, Function, constants, customary, extensions, functions, mpich};

const STANDARD: &str = "\
/* mpi.h: MPI 5.0, by its standard application binary interface. A program that was compiled with it runs with every
 * library of that interface: libmpi_abi.so.1. Made by Regatta of its table of MPI's functions and constants. */
#ifndef MPI_H_ABI
#define MPI_H_ABI
";

const MPICH: &str = "\
/* mpi.h: MPI 5.0, by the application binary interface of MPICH. A program that was compiled with it runs with every
 * library of that interface: libmpi.so.12. Made by Regatta of its table of MPI's functions and constants. */
#ifndef MPI_INCLUDED
#define MPI_INCLUDED
";

const NUMBERS: &str = "
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

";

const STANDARD_STATUS: &str = "\
typedef int MPI_Fint;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
typedef MPI_Status MPI_F08_status;
";

const MPICH_STATUS: &str = "\
typedef int MPI_Fint;

typedef struct MPI_Status {
    int MPI_internal[2];
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
} MPI_Status;
typedef MPI_Status MPI_F08_status;
";

/// Types of the callbacks that programs pass: return type, name, parameters.
const CALLBACKS: &str = "\
void User_function(void *invec, void *inoutvec, int *len, MPI_Datatype *datatype)
void User_function_c(void *invec, void *inoutvec, MPI_Count *len, MPI_Datatype *datatype)
int Grequest_query_function(void *extra_state, MPI_Status *status)
int Grequest_free_function(void *extra_state)
int Grequest_cancel_function(void *extra_state, int complete)
int Copy_function(MPI_Comm comm, int keyval, void *extra_state, void *attribute_val_in, void *attribute_val_out, int *flag)
int Delete_function(MPI_Comm comm, int keyval, void *attribute_val, void *extra_state)
int Comm_copy_attr_function(MPI_Comm comm, int keyval, void *extra_state, void *attribute_val_in, void *attribute_val_out, int *flag)
int Comm_delete_attr_function(MPI_Comm comm, int keyval, void *attribute_val, void *extra_state)
int Type_copy_attr_function(MPI_Datatype datatype, int keyval, void *extra_state, void *attribute_val_in, void *attribute_val_out, int *flag)
int Type_delete_attr_function(MPI_Datatype datatype, int keyval, void *attribute_val, void *extra_state)
int Win_copy_attr_function(MPI_Win win, int keyval, void *extra_state, void *attribute_val_in, void *attribute_val_out, int *flag)
int Win_delete_attr_function(MPI_Win win, int keyval, void *attribute_val, void *extra_state)
int Datarep_extent_function(MPI_Datatype datatype, MPI_Aint *extent, void *extra_state)
int Datarep_conversion_function(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position, void *extra_state)
int Datarep_conversion_function_c(void *userbuf, MPI_Datatype datatype, MPI_Count count, void *filebuf, MPI_Offset position, void *extra_state)
void Comm_errhandler_function(MPI_Comm *comm, int *error_code, ...)
void File_errhandler_function(MPI_File *file, int *error_code, ...)
void Win_errhandler_function(MPI_Win *win, int *error_code, ...)
void Session_errhandler_function(MPI_Session *session, int *error_code, ...)
void T_event_cb_function(MPI_T_event_instance event_instance, MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, void *user_data)
void T_event_free_cb_function(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, void *user_data)
void T_event_dropped_cb_function(MPI_Count count, MPI_T_event_registration event_registration, int source_index, MPI_T_cb_safety cb_safety, void *user_data)
";

/// The ABI of a header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Abi {
    Standard,
    Mpich,
}

/// Returns the text of `mpi.h` for the standard ABI.
pub fn header() -> String {
    text(Abi::Standard, &constants())
}

/// Returns the text of `mpi.h` for MPICH's ABI.
pub(crate) fn header_of_mpich() -> String {
    text(Abi::Mpich, &mpich::constants())
}

fn text(abi: Abi, constants: &[Constant]) -> String {
    let (head, status) = match abi {
        Abi::Standard => (STANDARD, STANDARD_STATUS),
        Abi::Mpich => (MPICH, MPICH_STATUS),
    };
    let mut out = [head, NUMBERS, status].concat();
    // In the standard ABI each handle is a pointer to an incomplete struct.
    for handle in HANDLES.into_iter().chain(TOOL_HANDLES) {
        let _ = match abi == Abi::Mpich && mpich::is_int(handle) {
            true => writeln!(out, "typedef int MPI_{handle};"),
            false => writeln!(out, "typedef struct MPI_ABI_{handle} *MPI_{handle};"),
        };
    }
    for name in ["T_cb_safety", "T_source_order"] {
        enumeration(&mut out, constants, name);
    }
    out.push('\n');
    callbacks(&mut out);
    out.push_str(REMOVED);
    let mut heading = "";
    for constant in constants {
        if constant.heading != heading {
            heading = constant.heading;
            let _ = writeln!(out, "\n/* {heading} */");
        }
        define(&mut out, constant);
    }
    out.push_str(FORTRAN_STATUSES);
    if abi == Abi::Mpich {
        out.push_str(DUPLICATE);
    }
    let customary = customary();
    let all: Vec<Function> = functions().into_iter().chain(customary.clone()).collect();
    for prefix in ["MPI_", "PMPI_"] {
        let _ = writeln!(out, "\n/* Functions, {prefix} */");
        for function in &all {
            for &large in function.forms() {
                declare(&mut out, function, prefix, large);
            }
        }
    }
    if abi == Abi::Standard {
        out.push_str(ALIASES);
        for prefix in ["MPI_", "PMPI_"] {
            for function in &customary {
                alias(&mut out, function, prefix);
            }
        }
    }
    out.push_str("\n/* Functions beyond the standard */\n");
    for function in extensions() {
        declare(&mut out, &function, "MPIX_", false);
        declare(&mut out, &function, "PMPIX_", false);
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    out
}

/// Types that the standard has removed.
const REMOVED: &str = "\
typedef MPI_Comm_errhandler_function MPI_Handler_function;
";

/// C declarations of Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE. Their values are addresses that the program's
/// linker determines.
const FORTRAN_STATUSES: &str = "
/* Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE; not of the standard ABI, but of this library */
extern MPI_Fint *const MPI_F_STATUS_IGNORE;
extern MPI_Fint *const MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUS_IGNORE;
extern MPI_F08_status *const MPI_F08_STATUSES_IGNORE;
";

/// Heading of the macros that replace these names. Regatta's library also exports them as functions, for programs that
/// take their addresses or call them without this header.
const ALIASES: &str = "
/* Functions that the ABI has by other names: calls of them run with every library of the ABI */
";

/// Writes a macro that replaces calls of a function by calls of its counterpart in the ABI.
fn alias(out: &mut String, function: &Function, prefix: &str) {
    let parameters = function.parameters.iter().map(|it| it.name);
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let name = function.name;
    let to = match name {
        "Address" => "Get_address".to_owned(),
        "Errhandler_create" => "Comm_create_errhandler".to_owned(),
        "Errhandler_get" => "Comm_get_errhandler".to_owned(),
        "Errhandler_set" => "Comm_set_errhandler".to_owned(),
        "Type_hindexed" => "Type_create_hindexed".to_owned(),
        "Type_hvector" => "Type_create_hvector".to_owned(),
        "Type_struct" => "Type_create_struct".to_owned(),
        _ if function.is_conversion() => name.replace("_f2c", "_fromint").replace("_c2f", "_toint"),
        _ => return,
    };
    let _ = writeln!(
        out,
        "#define {prefix}{name}({parameters}) {prefix}{to}({parameters})"
    );
}

/// The function behind MPI_DUP_FN.
const DUPLICATE: &str = "
int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra_state, void *attribute_val_in, void *attribute_val_out, int *flag);
";

fn callbacks(out: &mut String) {
    for line in CALLBACKS.lines() {
        let (returns, rest) = line.split_once(' ').unwrap_or_default();
        let (name, parameters) = rest.split_once('(').unwrap_or_default();
        let _ = writeln!(out, "typedef {returns} (MPI_{name})({parameters};");
    }
    for object in ["Comm", "File", "Win", "Session"] {
        let _ = writeln!(
            out,
            "typedef MPI_{object}_errhandler_function MPI_{object}_errhandler_fn;"
        );
    }
}

fn enumeration(out: &mut String, constants: &[Constant], name: &str) {
    let constants = constants.iter().filter(|it| it.kind == name);
    let values: Vec<String> = constants
        .map(|it| format!("    {} = {}", it.name, it.value))
        .collect();
    let _ = writeln!(
        out,
        "\ntypedef enum MPI_{name} {{\n{}\n}} MPI_{name};",
        values.join(",\n")
    );
}

fn define(out: &mut String, constant: &Constant) {
    let Constant {
        kind, name, value, ..
    } = constant;
    let _ = match *kind {
        "T_cb_safety" | "T_source_order" => Ok(()),
        kind if *value == mpich::EXTERN => writeln!(out, "extern {} const {name};", c_type(kind)),
        "int" if value.starts_with('-') => writeln!(out, "#define {name} ({value})"),
        "int" => writeln!(out, "#define {name} {value}"),
        _ if value.starts_with("MPI_") => writeln!(out, "#define {name} {value}"),
        kind => writeln!(out, "#define {name} (({}){value})", c_type(kind)),
    };
}

fn declare(out: &mut String, function: &Function, prefix: &str, large: bool) {
    let suffix = if large { "_c" } else { "" };
    let parameters = function.parameters.iter().map(|it| {
        let kind = it.large.filter(|_| large).unwrap_or(it.kind);
        // An array parameter (`T x[]`) would let the compiler assume that elements exist, but some arguments are
        // special addresses.
        match kind.strip_suffix("[]") {
            Some(of) => format!("{} *{}", c_type(of), it.name),
            None => {
                let at = kind.find('[').unwrap_or(kind.len());
                let (kind, array) = kind.split_at(at);
                format!("{} {}{array}", c_type(kind), it.name)
            }
        }
    });
    let mut parameters: Vec<String> = parameters.collect();
    if function.variadic {
        parameters.push("...".to_owned());
    }
    if parameters.is_empty() {
        parameters.push("void".to_owned());
    }
    let returns = c_type(function.returns);
    let name = function.name;
    let _ = writeln!(
        out,
        "{returns} {prefix}{name}{suffix}({});",
        parameters.join(", ")
    );
}

/// Returns the C type for a type of the table.
fn c_type(kind: &str) -> String {
    let (constant, kind) = match kind.strip_prefix("const ") {
        Some(kind) => ("const ", kind),
        None => ("", kind),
    };
    let prefix = match kind.trim_end_matches('*') {
        "int" | "char" | "void" | "double" => "",
        _ => "MPI_",
    };
    format!("{constant}{prefix}{kind}")
}
