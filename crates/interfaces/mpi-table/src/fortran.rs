//! Fortran bindings, generated from the table: the functions of the library, `mpif.h`, and the modules `mpi` and
//! `mpi_f08`.
//!
//! All three call the functions of the library by reference, as Fortran compilers do: an INTEGER is passed as its
//! address, and the lengths of CHARACTER arguments follow all other arguments. A derived type of `mpi_f08` has the same
//! bytes as its counterpart in `mpif.h`, so one function serves all three. An omitted argument is a null pointer.

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

/// A function in its Fortran form.
pub(crate) struct Routine {
    /// The function's entry in the table.
    pub function: Function,
    /// Whether it is the large-count form, which only `mpi_f08` has.
    pub large: bool,
    /// Its parameters, without those that exist only in C.
    pub parameters: Vec<(Parameter, Role)>,
}

impl Routine {
    /// Returns its C name without `MPI_`.
    pub fn c_name(&self) -> String {
        let suffix = if self.large && self.function.has_large() {
            "_c"
        } else {
            ""
        };
        format!("{}{suffix}", self.function.name)
    }

    /// Returns whether it is a function, not a subroutine.
    pub fn is_function(&self) -> bool {
        self.function.returns != "int"
    }

    /// Returns whether its last parameter is IERROR.
    pub fn has_error(&self) -> bool {
        !self.is_function() && self.function.name != "Pcontrol"
    }

    /// Returns whether `mpif.h` and the module `mpi` have it.
    pub fn is_old(&self) -> bool {
        !self.large
    }

    /// Returns whether the module `mpi_f08` has it.
    pub fn is_new(&self) -> bool {
        !self.function.is_removed() && !rules::has("old", self.function.name)
    }
}

/// Returns all routines.
pub(crate) fn routines() -> Vec<Routine> {
    let all = functions().into_iter().chain(extensions()).chain(removed());
    let all =
        all.filter(|it| !it.is_for_tools() && !it.is_conversion() && !rules::has("none", it.name));
    let mut found = Vec::new();
    for function in all {
        if function.has_large() {
            found.push(routine(&function, true));
        }
        // Two functions have an entry of their own for the large form.
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
