//! The functions that `regatta.h` declares, parsed from the header, which is the only table of their names, parameters and
//! types. Code that needs all functions is generated from this list at build time, or is compared with it by a test.
//!
//! The parser accepts only the subset of C that the header uses. Apart from comments, preprocessor lines and `extern "C"`, a
//! statement is a `typedef` or a declaration `TYPE NAME(TYPE NAME, ...);`, where a type is an optional `const`, a word, and
//! stars with or without `const`. Function types are `typedef void (*NAME)(TYPE NAME, ...);`. The build fails at a statement
//! that the parser does not understand, or if it misses a function.
#![forbid(unsafe_code)]

pub mod reference;

use std::fmt;

/// The text of `regatta.h`.
pub const HEADER: &str = include_str!("../../c/include/regatta.h");

/// A function of the header. `Display` writes what follows `fn` in its declaration in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function, such as `rg_send`.
    pub name: String,
    /// The section of the header that declares it.
    pub section: String,
    /// Return type in Rust: `c_int`, except for a few functions that cannot fail.
    pub returns: String,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the header, or another name if that is a keyword of Rust: `in` is `input`, `type` is `kind`.
    pub name: String,
    /// Type in Rust, from the standard library's module `ffi` or from `regatta-abi`.
    pub kind: String,
}

impl Function {
    /// Returns whether the function has a parameter of this name.
    pub fn has(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|it| it.name == parameter)
    }

    /// Returns the names of the parameters, separated by commas, as arguments of a call.
    pub fn arguments(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|it| &*it.name).collect();
        names.join(", ")
    }
}

impl fmt::Display for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}(", self.name)?;
        for Parameter { name, kind } in &self.parameters {
            write!(out, "{name}: {kind}, ")?;
        }
        write!(out, ") -> {}", self.returns)
    }
}

/// Returns all functions of the header, in its order.
pub fn functions() -> Vec<Function> {
    parse(HEADER)
}

/// Returns the names and texts of a header's sections. A line of dashes has the name of each.
fn sections(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split("/* ---- ").skip(1).map(|part| {
        let (name, rest) = part.split_once(" --").expect("a line of dashes");
        (name, rest.split_once("*/").expect("the end of the line").1)
    })
}

/// Returns a header without its comments. Panics if a comment does not end.
pub fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let code = parts.next().unwrap_or_default().to_owned();
    parts.fold(code, |code, part| {
        code + part.split_once("*/").expect("the end of a comment").1
    })
}

fn parse(header: &str) -> Vec<Function> {
    let front = header.split("/* ---- ").next().unwrap_or_default();
    let named = sections(header).map(|(name, text)| format!("section {name};{text}"));
    let lines = without_comments(&(front.to_owned() + &named.collect::<String>()));
    let lines = lines.lines().filter(|line| !line.starts_with('#'));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let text = text.trim().strip_prefix("extern \"C\" {");
    let text = text.and_then(|text| text.strip_suffix('}'));
    let text = text.expect("declarations of C, also for C++");
    let mut depth = 0;
    let statements = text.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ';' && depth == 0
    });
    let (mut callbacks, mut functions, mut section) = (Vec::new(), Vec::new(), "");
    for statement in statements.map(str::trim).filter(|it| !it.is_empty()) {
        if let Some(name) = statement.strip_prefix("section ") {
            section = name;
            continue;
        }
        let understood = match statement.strip_prefix("typedef ") {
            None => function(statement, section, &callbacks).map(|it| functions.push(it)),
            Some(kind) => match kind.strip_prefix("void (*") {
                Some(kind) => callback(kind).map(|it| callbacks.push(it)),
                None => Some(()),
            },
        };
        understood.unwrap_or_else(|| panic!("not understood: {statement}"));
    }
    // Counts the functions in another way, as names before a parenthesis, to find those that were missed.
    let names = text.split('(').filter(|before| {
        let word = before.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_');
        word.take(1).any(|word| word.starts_with("rg_"))
    });
    assert_eq!(functions.len(), names.count(), "functions were missed");
    assert!(!functions.is_empty(), "the header declares nothing");
    functions
}

fn function(declaration: &str, section: &str, callbacks: &[Parameter]) -> Option<Function> {
    let (head, inside) = declaration.strip_suffix(')')?.split_once('(')?;
    let Parameter { name, kind } = declared(head, callbacks)?;
    let parameters = match inside {
        "void" => Vec::new(),
        _ => parameters(inside, callbacks)?,
    };
    (name.starts_with("rg_") && kind != "c_void").then_some(Function {
        name,
        section: section.to_owned(),
        returns: kind,
        parameters,
    })
}

/// Parses a function type: the text after `typedef void (*`.
fn callback(declaration: &str) -> Option<Parameter> {
    let (name, inside) = declaration.strip_suffix(')')?.split_once(")(")?;
    let parameters = parameters(inside, &[])?;
    let kinds: Vec<String> = parameters.into_iter().map(|it| it.kind).collect();
    Some(Parameter {
        name: name.to_owned(),
        kind: format!("Option<unsafe extern \"C\" fn({})>", kinds.join(", ")),
    })
}

fn parameters(list: &str, callbacks: &[Parameter]) -> Option<Vec<Parameter>> {
    list.split(',')
        .map(|text| declared(text, callbacks))
        .collect()
}

/// Parses a type and the name that is declared with it.
fn declared(text: &str, callbacks: &[Parameter]) -> Option<Parameter> {
    // An array is a pointer to its first element.
    let (text, array) = match text.trim().strip_suffix("[]") {
        Some(element) => (element, Some("*")),
        None => (text, None),
    };
    let spaced = text.replace('*', " * ");
    let mut words = spaced.split_whitespace();
    let name = words.next_back()?;
    let first = words.next()?;
    let mut is_const = first == "const";
    let base = if is_const { words.next()? } else { first };
    let mut kind = match callbacks.iter().find(|it| it.name == base) {
        Some(callback) => callback.kind.clone(),
        None => in_rust(base)?,
    };
    for word in words.chain(array) {
        match word {
            "*" => {
                let pointer = if is_const { "*const" } else { "*mut" };
                kind = format!("{pointer} {kind}");
                is_const = false;
            }
            "const" if !is_const => is_const = true,
            _ => return None,
        }
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars().all(is_name).then(|| Parameter {
        name: match name {
            "in" => "input",
            "type" => "kind",
            name => name,
        }
        .to_owned(),
        kind,
    })
}

/// Returns the Rust type of a type name in the header.
fn in_rust(word: &str) -> Option<String> {
    let standard = match word {
        "void" => "c_void",
        "char" => "c_char",
        "int" | "rg_type" => "c_int",
        "double" => "c_double",
        "size_t" => "usize",
        "int64_t" => "i64",
        "uint32_t" => "u32",
        "uint64_t" => "u64",
        _ => {
            let parts = word.strip_prefix("rg_")?.split('_');
            let letters = parts.flat_map(|part| [part[..1].to_uppercase(), part[1..].to_owned()]);
            return Some(letters.collect());
        }
    };
    Some(standard.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(declarations: &str) -> Vec<String> {
        let header = format!("extern \"C\" {{\n{declarations}\n}}\n");
        let functions = parse(&header);
        functions.iter().map(Function::to_string).collect()
    }

    #[test]
    fn each_form_of_a_declaration_is_read_as_rust_declares_it() {
        let header = "#define RG_ONE 1 /* a comment;\n of rg_none() */\n\
            typedef struct {\n int32_t id;\n} rg_spawn_options;\n\
            typedef void (*rg_callback)(const rg_status *status, void *arg);\n\
            const char *rg_version(void); /* a comment */\n\
            double rg_time(void);\n\
            int rg_all(const void *in /*(*)*/, void **block, const void **open, const size_t *lens,\n\
            \x20   char *const argv[], const char *const *lines, const rg_spawn_options *options,\n\
            \x20   rg_type type, rg_callback done, uint64_t name);";
        let all = "rg_all(input: *const c_void, block: *mut *mut c_void, open: *mut *const c_void, \
            lens: *const usize, argv: *const *mut c_char, lines: *const *const c_char, \
            options: *const SpawnOptions, kind: c_int, done: Option<unsafe extern \"C\" fn(*const Status, *mut c_void)>, name: u64, ) -> c_int";
        let version = "rg_version() -> *const c_char";
        assert_eq!(read(header), [version, "rg_time() -> c_double", all]);
    }

    #[test]
    fn what_is_not_understood_ends_the_build() {
        for wrong in [
            "",
            "int rg_f(int)",
            "int rg_f(unsigned int a);",
            "int rg_f(int a[3]);",
            "int rg_f(int (*f)(int));",
            "int rg_f(struct rg_task *task);",
            "int rg_f();",
            "int f(int a);",
            "void rg_f(int a);",
            "int number;",
            "typedef int rg_f(int a);",
        ] {
            assert!(std::panic::catch_unwind(|| read(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_header_is_read_whole() {
        let functions = functions();
        assert!(functions.len() > 140, "only {}", functions.len());
        assert_eq!(functions[0].name, "rg_strerror");
        assert_eq!(functions[0].section, "errors");
        assert_eq!(functions[functions.len() - 1].name, "rg_profile");
        let send = "rg_send(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group, ) -> c_int";
        assert!(functions.iter().any(|it| it.to_string() == send));
    }
}
