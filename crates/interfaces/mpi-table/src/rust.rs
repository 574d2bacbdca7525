//! Generates Rust code from the table: constants, and the functions of a library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::constants::{HANDLES, TOOL_HANDLES};
use crate::functions::Conversion;
use crate::{Function, Parameter, constants, customary, extensions, functions};

/// Returns the kinds of handles, as input of a macro `handles!` that makes a type for each, and the constants as items
/// of a module. Addresses, such as the constants that stand for callbacks, become `usize`.
pub fn constants_in_rust() -> String {
    let mut out = format!(
        "handles! {{ {} {} }}\n",
        HANDLES.join(" "),
        TOOL_HANDLES.join(" ")
    );
    for constant in constants() {
        let name = constant.name.trim_start_matches("MPI_");
        let name = match name.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("_{name}"),
            false => name.to_owned(),
        };
        let value = constant.value.trim_start_matches("MPI_");
        let documentation = format!("`{}`.", constant.name);
        let (kind, value) = match constant.kind {
            "int" | "T_cb_safety" | "T_source_order" => ("std::ffi::c_int", value.to_owned()),
            "Offset" => ("i64", value.to_owned()),
            kind if kind.ends_with('*') => ("usize", value.to_owned()),
            kind if value.starts_with(|c: char| c.is_ascii_digit()) => {
                let kind = kind.trim_end_matches('*');
                let _ = writeln!(
                    out,
                    "/// {documentation}\npub const {name}: {kind} = {kind}({value});"
                );
                continue;
            }
            kind => (kind, value.to_owned()),
        };
        let _ = writeln!(
            out,
            "/// {documentation}\npub const {name}: {kind} = {value};"
        );
    }
    out
}

/// Returns the functions that `regatta-mpi` implements, each with its module: all `pub unsafe fn` and `pub fn` in the
/// files of this folder. A macro makes the three forms of a collective; their names are on one such line, separated by
/// commas.
pub fn implemented(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder of calls") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let module = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("a file of calls");
        for name in text.lines().flat_map(names) {
            let before = found.insert(name.to_owned(), module.clone().into_owned());
            assert_eq!(before, None, "{name} is implemented twice");
        }
    }
    found
}

/// Returns the names of the functions whose definitions begin on this line of a file of `calls`.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_in_macro = line.starts_with(' ');
    let code = line.trim_start();
    let rest = code
        .strip_prefix("pub unsafe fn ")
        .or_else(|| code.strip_prefix("pub fn "));
    let named = rest.and_then(|rest| rest.split_once(['(', '<']));
    // The macro's own text has `$` instead of names.
    let named =
        named.filter(|(names, _)| is_in_macro == names.contains(',') && !names.contains('$'));
    named.into_iter().flat_map(|(names, _)| names.split(", "))
}

/// Generates the functions of libmpi_abi.so. Each is exported under its name and its profiling name, and calls
/// `regatta-mpi`.
pub fn front(implemented: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut left = implemented.clone();
    let all = functions().into_iter().chain(extensions());
    for function in all.chain(customary()) {
        let is_there = left.remove(&function.rust_name()).is_some();
        for &large in function.forms() {
            let prefix = function.prefix();
            for prefix in [prefix, &format!("P{prefix}")] {
                one(&mut out, &function, large, prefix, is_there);
            }
        }
    }
    assert!(left.is_empty(), "no functions of MPI: {left:?}");
    out
}

/// Returns the functions of `regatta-mpi` that the libraries call. Each converts every argument to a valid value,
/// beginning with the object that has the error handler, and then calls the function that implements it.
pub fn checked(implemented: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let all = functions().into_iter().chain(extensions());
    for function in all.chain(customary()) {
        let name = function.rust_name();
        let Some(module) = implemented.get(&name) else {
            continue;
        };
        let returns = match function.returns_value() {
            true => returned(&function),
            false => "Result",
        };
        let form = function.tells_form().then_some("large: bool");
        let parameters: Vec<_> = function
            .parameters
            .iter()
            .map(Parameter::declared)
            .collect();
        let parameters: Vec<_> = parameters.iter().map(String::as_str).chain(form).collect();
        let has_handler = |it: &&Parameter| OBJECTS.contains(&it.kind);
        let (objects, others): (Vec<&Parameter>, Vec<_>) =
            function.parameters.iter().partition(has_handler);
        let checks: String = objects
            .into_iter()
            .chain(others)
            .filter(|it| it.is_checked() && !function.returns_value())
            .map(|it| format!("let {0} = {0}.valid(\"{1}\")?;\n", it.rust(), it.name))
            .collect();
        let arguments = function.parameters.iter().map(Parameter::rust);
        let arguments: Vec<_> = arguments.chain(form.map(|_| "large".to_owned())).collect();
        let _ = writeln!(
            out,
            "#[inline(always)]\npub unsafe fn {name}({}) -> {returns} {{\n// SAFETY: the caller keeps MPI's rules.\nunsafe {{\n{checks}calls::{module}::{name}({})\n}}\n}}",
            parameters.join(", "),
            arguments.join(", ")
        );
    }
    out
}

/// The kinds of handles whose objects have error handlers.
const OBJECTS: [&str; 4] = ["Comm", "Win", "File", "Session"];

/// Returns the Rust type of a function's result, which is `c_int` for an error code.
fn returned(function: &Function) -> &'static str {
    match function.returns {
        "int" | "Fint" => "c_int",
        "double" => "f64",
        "Aint" => "i64",
        handle => handle,
    }
}

fn one(out: &mut String, function: &Function, large: bool, prefix: &str, is_there: bool) {
    let suffix = if large { "_c" } else { "" };
    let parameters: String = function
        .parameters
        .iter()
        .map(|it| format!("{}: {}, ", it.rust(), rust_type(it.form(large))))
        .collect();
    let name = function.name;
    let returns = returned(function);
    let head = format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}{suffix}({parameters}) -> {returns}"
    );
    if let Some(conversion) = function.conversion() {
        let given = function.parameters[0].rust();
        let body = match conversion {
            Conversion::ToInt => format!("{given}.0 as c_int"),
            Conversion::FromInt => format!("{returns}({given} as u32 as usize)"),
        };
        let _ = writeln!(out, "{head} {{\n{body}\n}}");
        return;
    }
    let object = object(function);
    let called = format!("{}{name}{suffix}", function.prefix());
    if !is_there {
        let body = match function.returns {
            "int" if function.is_for_tools() => "T_ERR_NOT_SUPPORTED".to_owned(),
            "int" => format!(
                "// SAFETY: the caller keeps MPI's rules.\nunsupported({object}, \"{called}\")"
            ),
            "double" | "Aint" => "0 as _".to_owned(),
            kind => panic!("{name}: nothing makes a {kind}"),
        };
        let _ = writeln!(out, "{head} {{\n{body}\n}}");
        return;
    }
    let arguments = function.parameters.iter().map(|it| it.passed(large));
    let call = call_of(function, large, "checked", arguments);
    let reason = "// SAFETY: the caller keeps MPI's rules.";
    let _ = match function.returns {
        "int" if function.is_for_tools() => writeln!(
            out,
            "{head} {{\n{reason}\nfinish_tool({call}, \"{called}\")\n}}"
        ),
        "int" if !function.returns_value() => writeln!(
            out,
            "{head} {{\n{reason}\nfinish({call}, {object}, \"{called}\")\n}}"
        ),
        _ => writeln!(out, "{head} {{\n{reason}\n{call}\n}}"),
    };
}

/// Returns a call of the function in a module, with these arguments.
pub(crate) fn call_of(
    function: &Function,
    large: bool,
    module: &str,
    arguments: impl Iterator<Item = String>,
) -> String {
    let arguments: Vec<_> = arguments
        .chain(function.tells_form().then(|| large.to_string()))
        .collect();
    // The SAFETY line of this generated unsafe code is part of the generated text.
    format!(
        "unsafe {{ {module}::{}({}) }}",
        function.rust_name(),
        arguments.join(", ")
    )
}

impl Function {
    /// Returns its forms: for each, whether it is the large-count form.
    pub(crate) fn forms(&self) -> &'static [bool] {
        match self.has_large() {
            true => &[false, true],
            false => &[false],
        }
    }

    /// Returns whether a last argument tells the implementation which form was called: a datatype records how it was
    /// made.
    fn tells_form(&self) -> bool {
        let last = self.parameters.last();
        self.has_large() && last.is_some_and(|it| it.name == "newtype")
    }
}

/// Returns the object whose error handler handles errors of the function.
pub(crate) fn object(function: &Function) -> String {
    for parameter in &function.parameters {
        let kind = parameter.kind;
        if OBJECTS.contains(&kind) {
            return format!("Object::{kind}({})", parameter.rust());
        }
        if let Some(kind) = kind.strip_suffix('*')
            && OBJECTS.contains(&kind)
            && function.parameters.len() == 1
        {
            // The SAFETY line of this generated unsafe code is part of the generated text.
            return format!("Object::{kind}(unsafe {{ pointed({}) }})", parameter.rust());
        }
    }
    "Object::None".to_owned()
}

impl Parameter {
    pub(crate) fn form(&self, large: bool) -> &'static str {
        match self.large {
            Some(kind) if large => kind,
            _ => self.kind,
        }
    }

    /// Returns the name, with an underscore appended if it is a Rust keyword.
    pub(crate) fn rust(&self) -> String {
        match self.name {
            "type" | "ref" | "in" | "fn" => format!("{}_", self.name),
            name => name.to_owned(),
        }
    }

    /// Returns whether the implementing function may take a valid value instead of the argument: for a handle, a
    /// string, or a pointer to one object.
    fn is_checked(&self) -> bool {
        let is_pointer = self.kind.ends_with('*') && !self.kind.ends_with("_function*");
        // Both forms of an `Aint*` parameter have one type in `regatta-mpi`.
        let is_one = self.large.is_none() || self.kind == "Aint*";
        HANDLES.contains(&self.kind) || self.kind == "const char[]" || is_pointer && is_one
    }

    /// Returns its declaration in `regatta-mpi`, which has one type for both forms.
    fn declared(&self) -> String {
        let kind = match (self.kind, self.large) {
            // Each ABI has its own error codes.
            _ if self.name == "array_of_errcodes" => "impl Into<Codes>".to_owned(),
            (kind, None) => rust_type(kind),
            ("int" | "Aint", _) => "i64".to_owned(),
            ("int*", _) => "OutCount".to_owned(),
            ("const int[]", _) => "Ints".to_owned(),
            ("User_function*", _) => "UserFunction".to_owned(),
            ("Datarep_conversion_function*", _) => "Conversion".to_owned(),
            (kind, _) => rust_type(kind),
        };
        format!("{}: {kind}", self.rust())
    }

    /// Returns the expression that passes it to `regatta-mpi`, which has one function for both forms.
    pub(crate) fn passed(&self, large: bool) -> String {
        let name = self.rust();
        match (self.kind, self.large, large) {
            (_, None, _) => name,
            ("int", _, false) => format!("i64::from({name})"),
            ("int" | "Aint" | "Aint*" | "const Aint[]", _, _) => name,
            ("int*", _, false) => format!("OutCount::Small({name})"),
            ("int*", _, true) => format!("OutCount::Large({name})"),
            ("const int[]", _, false) => format!("Ints::Small({name})"),
            ("const int[]", _, true) => format!("Ints::Large({name})"),
            ("User_function*", _, false) => format!("UserFunction::Small({name})"),
            ("User_function*", _, true) => format!("UserFunction::Large({name})"),
            ("Datarep_conversion_function*", _, false) => format!("Conversion::Small({name})"),
            ("Datarep_conversion_function*", _, true) => format!("Conversion::Large({name})"),
            (kind, _, _) => panic!("{kind}"),
        }
    }
}

/// Returns the Rust type for a C type.
pub(crate) fn rust_type(kind: &str) -> String {
    let kind = kind.trim();
    if let Some(of) = kind.strip_suffix("[][3]") {
        return format!("*mut [{}; 3]", rust_type(of));
    }
    let (constant, kind) = match kind.strip_prefix("const ") {
        Some(kind) => (true, kind),
        None => (false, kind),
    };
    let pointer = if constant { "*const" } else { "*mut" };
    if let Some(of) = kind.strip_suffix("[]").or_else(|| kind.strip_suffix('*')) {
        if of.ends_with("_function") || of.ends_with("_function_c") {
            return of.to_owned();
        }
        let of = match of {
            "void" => "c_void".to_owned(),
            of => rust_type(of),
        };
        return format!("{pointer} {of}");
    }
    match kind {
        "int" | "Fint" | "T_cb_safety" | "T_source_order" => "c_int".to_owned(),
        "F08_status" => "Status".to_owned(),
        "char" => "c_char".to_owned(),
        "Aint" | "Count" | "Offset" => "i64".to_owned(),
        other => other.to_owned(),
    }
}
