//! MPI in Fortran, made of the table: the functions of the library, `mpif.h`, and the modules `mpi` and `mpi_f08`.
//!
//! All three call functions of the library by reference, as compilers of Fortran have it: an INTEGER is an address, the
//! lengths of CHARACTER arguments come after all others. A derived type of `mpi_f08` has the bytes of what `mpif.h` has in its place,
//! so one function serves all three. An argument that is left out is a null pointer.

mod constants;
mod declare;
mod include;
mod library;
mod module;
mod rules;

pub use include::include;
pub use library::{front, handles, names};
pub use module::module;

use crate::{Function, Parameter, extensions, functions, removed};
use rules::{Role, role};

/// A function as Fortran has it.
pub(crate) struct Routine {
    /// Its line of the table.
    pub function: Function,
    /// Whether it is the form for large counts, which only `mpi_f08` has.
    pub large: bool,
    /// Its parameters, without those that only C has.
    pub parameters: Vec<(Parameter, Role)>,
}

impl Routine {
    /// Its name in C without `MPI_`.
    pub fn c_name(&self) -> String {
        let suffix = if self.large && self.function.has_large() {
            "_c"
        } else {
            ""
        };
        format!("{}{suffix}", self.function.name)
    }

    /// Whether it is a function, and no subroutine.
    pub fn is_function(&self) -> bool {
        self.function.returns != "int"
    }

    /// Whether its last parameter is IERROR.
    pub fn has_error(&self) -> bool {
        !self.is_function() && self.function.name != "Pcontrol"
    }

    /// Whether `mpif.h` and the module `mpi` have it.
    pub fn is_old(&self) -> bool {
        !self.large
    }

    /// Whether the module `mpi_f08` has it.
    pub fn is_new(&self) -> bool {
        !self.function.is_removed() && !rules::has("old", self.function.name)
    }
}

/// All routines.
pub(crate) fn routines() -> Vec<Routine> {
    let all = functions().into_iter().chain(extensions()).chain(removed());
    let all =
        all.filter(|it| !it.is_for_tools() && !it.is_conversion() && !rules::has("none", it.name));
    let mut found = Vec::new();
    for function in all {
        if function.has_large() {
            found.push(routine(&function, true));
        }
        // Two functions have their second form in the table.
        let large = function.name.ends_with("_c");
        found.push(routine(&function, large));
    }
    found
}

fn routine(function: &Function, large: bool) -> Routine {
    let parameters = function.parameters.iter();
    let parameters = parameters.map(|it| (*it, role(function, it, large)));
    Routine {
        function: function.clone(),
        large,
        parameters: parameters.filter(|it| it.1 != Role::Absent).collect(),
    }
}
