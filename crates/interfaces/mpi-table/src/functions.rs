//! Functions and their parameters.

use std::collections::BTreeSet;

use crate::constants::HANDLES;

/// An MPI function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its C return type without `MPI_`; `int` for most functions.
    pub returns: &'static str,
    /// Its name without `MPI_`.
    pub name: &'static str,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// Its chapter: the file name in `table/functions`, without extension.
    pub chapter: &'static str,
    /// Whether variable arguments (`...`) follow its parameters.
    pub variadic: bool,
}

/// A function that converts between a handle and an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Converts a handle to an integer.
    ToInt,
    /// Converts an integer to a handle.
    FromInt,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its C type without `MPI_`, such as `const void*` or `int[]`.
    pub kind: &'static str,
    /// Its type in the large-count form, if that differs.
    pub large: Option<&'static str>,
    /// Its name.
    pub name: &'static str,
}

impl Function {
    /// Returns whether it has a large-count form.
    pub fn has_large(&self) -> bool {
        self.parameters.iter().any(|it| it.large.is_some())
    }

    /// Returns whether its result is a value instead of an error code.
    pub fn returns_value(&self) -> bool {
        self.returns != "int" || self.is_conversion()
    }

    /// Returns whether it converts between a handle and an integer, and so needs no function of `regatta-mpi`.
    pub fn is_conversion(&self) -> bool {
        self.conversion().is_some()
    }

    /// Returns in which direction it converts between a handle and an integer; `None` for other functions. The
    /// functions of MPICH's ABI (`c2f`, `f2c`) have other names than those of the standard ABI.
    pub(crate) fn conversion(&self) -> Option<Conversion> {
        let (_, how) = self.name.rsplit_once('_')?;
        let given = self.parameters.first()?.kind;
        match how {
            "toint" | "c2f" if HANDLES.contains(&given) => Some(Conversion::ToInt),
            "fromint" | "f2c" if HANDLES.contains(&self.returns) => Some(Conversion::FromInt),
            _ => None,
        }
    }

    /// Returns whether it belongs to the tool interface, which has no error handlers.
    pub fn is_for_tools(&self) -> bool {
        self.name.starts_with("T_")
    }

    /// Returns whether the standard has removed it.
    pub fn is_removed(&self) -> bool {
        self.chapter == REMOVED
    }

    /// Returns the prefix of its C name.
    pub fn prefix(&self) -> &'static str {
        match self.chapter {
            EXTENSIONS => "MPIX_",
            _ => "MPI_",
        }
    }

    /// Returns the name of the Rust function that implements both its forms.
    pub fn rust_name(&self) -> String {
        self.name.to_lowercase()
    }
}

macro_rules! chapters {
    ($($chapter:literal),*) => {
        const CHAPTERS: &[(&str, &str)] = &[$(($chapter, include_str!(concat!("../table/functions/", $chapter, ".txt")))),*];
    };
}

chapters!(
    "messages",
    "types",
    "collectives",
    "operators",
    "groups",
    "communicators",
    "topologies",
    "environment",
    "errors",
    "info",
    "processes",
    "windows",
    "files",
    "tools"
);

/// The chapter of functions that are not in the standard.
const EXTENSIONS: &str = "extensions";

/// The chapter of functions that the standard has removed.
const REMOVED: &str = "removed";

/// The chapter of functions that are in the standard but not in its ABI: conversions of handles and statuses between C
/// and Fortran.
const FORTRAN: &str = "fortran";

/// Returns all functions of the standard, by chapter, then by name.
pub fn functions() -> Vec<Function> {
    parsed(CHAPTERS)
}

/// Returns the functions beyond the standard, whose names begin with `MPIX_`.
pub fn extensions() -> Vec<Function> {
    let text = include_str!("../table/functions/extensions.txt");
    parsed(&[(EXTENSIONS, text)])
}

/// Returns the functions that the standard has removed and that programs still call.
pub fn removed() -> Vec<Function> {
    let text = include_str!("../table/functions/removed.txt");
    parsed(&[(REMOVED, text)])
}

/// Returns the functions that are not in the standard ABI but that every `mpi.h` declares: conversions of handles and
/// statuses between C and Fortran, and functions that the standard has removed.
pub fn customary() -> Vec<Function> {
    let mut all = removed();
    let text = include_str!("../table/functions/fortran.txt");
    all.extend(parsed(&[(FORTRAN, text)]));
    all
}

fn parsed(chapters: &[(&'static str, &'static str)]) -> Vec<Function> {
    let lines = chapters
        .iter()
        .flat_map(|&(chapter, text)| text.lines().map(move |line| (chapter, line)));
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(chapter, line)| parse(chapter, line).unwrap_or_else(|| panic!("{line}")))
        .collect()
}

fn parse(chapter: &'static str, line: &'static str) -> Option<Function> {
    let (head, rest) = line.split_once('(')?;
    let (returns, name) = head.rsplit_once(' ').unwrap_or(("int", head));
    let inside = rest.strip_suffix(')')?;
    let texts = inside.split(", ").filter(|text| !text.is_empty());
    let variadic = inside.ends_with("...");
    let texts = texts.filter(|&text| text != "...");
    let parameters: Option<Vec<_>> = texts.map(parameter).collect();
    Some(Function {
        returns,
        name,
        parameters: parameters?,
        chapter,
        variadic,
    })
}

fn parameter(text: &'static str) -> Option<Parameter> {
    let (kind, name) = text.rsplit_once(' ')?;
    let Some((kind, to)) = kind.split_once('~') else {
        return Some(Parameter {
            kind,
            large: None,
            name,
        });
    };
    let large = match (kind, to) {
        ("int" | "Aint", "") => "Count",
        ("int", "Aint") => "Aint",
        ("int*" | "Aint*", "") => "Count*",
        ("int*", "Aint") => "Aint*",
        ("const int[]" | "const Aint[]", "") => "const Count[]",
        ("const int[]", "Aint") => "const Aint[]",
        ("User_function*", "") => "User_function_c*",
        ("Datarep_conversion_function*", "") => "Datarep_conversion_function_c*",
        _ => return None,
    };
    Some(Parameter {
        kind,
        large: Some(large),
        name,
    })
}

/// Returns the types of the callbacks that functions take, in alphabetical order.
fn callbacks() -> BTreeSet<&'static str> {
    let all = functions().into_iter().chain(removed());
    let kinds = all.flat_map(|function| {
        let parameters = function.parameters.into_iter();
        parameters.flat_map(|parameter| [Some(parameter.kind), parameter.large])
    });
    let names = kinds.flatten().filter_map(|kind| kind.strip_suffix('*'));
    names
        .filter(|name| name.ends_with("_function") || name.ends_with("_function_c"))
        .collect()
}

/// Returns Rust declarations of all callback types as opaque pointers, for libraries that only pass callbacks on.
pub fn opaque_callbacks() -> String {
    let all = callbacks().into_iter();
    all.map(|name| format!("pub type {name} = *const std::ffi::c_void;\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_callbacks_of_either_form() {
        let all = callbacks();
        for name in [
            "User_function",
            "User_function_c",
            "Copy_function",
            "Grequest_cancel_function",
        ] {
            assert!(all.contains(name), "{name} of {all:?}");
        }
        assert_eq!(all.len(), 20);
    }

    #[test]
    fn there_are_as_many_functions_as_the_standard_has() {
        let all = functions();
        let large = all.iter().filter(|it| it.has_large()).count();
        assert_eq!(all.len() + large, 662);
    }
}
