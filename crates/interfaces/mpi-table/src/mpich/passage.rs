//! Translation of a parameter from the caller's ABI to `regatta-mpi`, and back.

use super::roles::Role;
use crate::constants::HANDLES;
use crate::rust::rust_type;
use crate::{Function, Parameter};

/// Rust code around a call of `regatta-mpi`, for one parameter.
#[derive(Default)]
pub(super) struct Passage {
    /// Statements before the call.
    pub(super) before: String,
    /// The argument that is passed.
    pub(super) argument: String,
    /// Statements after the call.
    pub(super) after: String,
}

/// All roles, and the parameters that a call both reads and writes.
pub(super) struct Table {
    pub(super) roles: Vec<Role>,
    pub(super) changed: Vec<&'static str>,
}

/// Returns the Rust type of a parameter in the caller's ABI.
pub(super) fn outer_type(kind: &str) -> String {
    let element = kind
        .trim_start_matches("const ")
        .trim_end_matches(['*', ']', '[']);
    let rust = rust_type(kind);
    match element {
        "Status" | "F08_status" => rust.replace("Status", "outer::Status"),
        _ if HANDLES.contains(&element) => rust.replace(element, &format!("outer::{element}")),
        _ => rust,
    }
}

impl Table {
    /// Returns the translation of a parameter of a function of `regatta-mpi`, in one of its forms.
    pub(super) fn passage(
        &self,
        function: &Function,
        parameter: &Parameter,
        large: bool,
    ) -> Passage {
        let name = parameter.rust();
        let plain = || Passage {
            argument: argument(parameter, large),
            ..Passage::default()
        };
        if let Some(role) = self.roles.iter().find(|it| it.has(function, parameter)) {
            return self.number(function, parameter, role.name);
        }
        let kind = parameter.kind;
        if HANDLES.contains(&kind) {
            return Passage {
                before: format!("let {name} = {name}.inward();\n"),
                ..plain()
            };
        }
        if kind.ends_with("_function*") {
            panic!(
                "{}: a function of the program's needs a call of its own",
                function.name
            );
        }
        let (constant, target) = match kind.strip_prefix("const ") {
            Some(target) => (true, target),
            None => (false, kind),
        };
        let array = target.strip_suffix("[]");
        let pointer = target.strip_suffix('*');
        match (array, pointer) {
            (Some(of), _) if HANDLES.contains(&of) => {
                let length = length(function, parameter);
                in_room("Handles", &name, length, constant)
            }
            (_, Some("Status")) if name == "array_of_statuses" => {
                let length = length(function, parameter);
                in_room("Statuses", &name, length, false)
            }
            (_, Some("Status")) => {
                let how = match function.name.starts_with("Status_set") {
                    _ if constant => "given",
                    true => "changed",
                    false => "out",
                };
                array_passage(&name, constant, &format!("Outcome::{how}({name})"))
            }
            (_, Some(of)) if HANDLES.contains(&of) => {
                let how = self.how(function, parameter);
                array_passage(&name, constant, &format!("Place::{how}({name})"))
            }
            _ => plain(),
        }
    }

    fn how(&self, function: &Function, parameter: &Parameter) -> &'static str {
        let full = format!("{}.{}", function.name, parameter.name);
        match self.changed.iter().any(|it| *it == full) {
            true => "changed",
            false => "out",
        }
    }

    /// Returns the translation of a number or an address that has a role.
    fn number(&self, function: &Function, parameter: &Parameter, role: &str) -> Passage {
        let name = parameter.rust();
        match parameter.kind {
            "const void*" | "void*" => Passage {
                before: format!(
                    "let {name} = roles::{role}::inward({name} as isize) as {};\n",
                    rust_type(parameter.kind)
                ),
                argument: name,
                ..Passage::default()
            },
            kind if kind.ends_with('*') => {
                let how = self.how(function, parameter);
                Passage {
                    before: format!(
                        "let mut {name} = Number::{how}({name}, roles::{role}::inward);\n"
                    ),
                    argument: format!("{name}.pass()"),
                    after: format!("{name}.give(roles::{role}::outward);\n"),
                }
            }
            _ => Passage {
                before: format!("let {name} = roles::{role}::inward({name});\n"),
                argument: name,
                ..Passage::default()
            },
        }
    }
}

/// Returns the argument for a parameter that needs no translation before the call.
fn argument(parameter: &Parameter, large: bool) -> String {
    match parameter.name {
        // Only `regatta-mpi` knows how many codes there are.
        "array_of_errcodes" => format!(
            "Codes {{ at: {}, outward: roles::code::outward }}",
            parameter.rust()
        ),
        _ => parameter.passed(large),
    }
}

/// Returns the translation by an object `made` from the caller's pointer. The object passes a pointer of its own and
/// writes results back, unless the parameter is constant.
fn array_passage(name: &str, constant: bool, made: &str) -> Passage {
    Passage {
        before: format!("let mut {name} = {made};\n"),
        argument: format!("{name}.pass()"),
        after: match constant {
            true => String::new(),
            false => format!("{name}.give();\n"),
        },
    }
}

/// Returns the translation of an array with this length, with storage for the translated elements.
fn in_room(what: &str, name: &str, length: &str, constant: bool) -> Passage {
    let made = format!("{what}::of({name}, {length}, &mut {name}_room)");
    let passage = array_passage(name, constant, &made);
    Passage {
        before: format!("let mut {name}_room = Room::new();\n{}", passage.before),
        ..passage
    }
}

/// Returns the expression for the length of an array.
fn length(function: &Function, parameter: &Parameter) -> &'static str {
    let neighbours = function.name.to_lowercase().contains("neighbor_");
    match parameter.name {
        "sendtypes" if neighbours => "peers::neighbours(comm).1",
        "recvtypes" if neighbours => "peers::neighbours(comm).0",
        "sendtypes" => "peers::senders(sendbuf, comm)",
        "recvtypes" => "peers::count(comm)",
        "array_of_info" => "peers::at_root(comm, root, count)",
        _ => {
            let counts = ["count", "incount"];
            let count = function
                .parameters
                .iter()
                .find(|it| counts.contains(&it.name));
            match count.map(|it| it.name) {
                Some("count") => "i64::from(count)",
                Some(_) => "i64::from(incount)",
                None => panic!(
                    "{}: how many elements has {}?",
                    function.name, parameter.name
                ),
            }
        }
    }
}
