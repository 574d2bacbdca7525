//! Names of functions, from the symbol tables of the mapped files.
//!
//! The records name the files, and records are untrusted: a malformed file has no names.

use std::collections::HashMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

/// Maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// The functions of files that were looked up.
#[derive(Default)]
pub(crate) struct Symbols(HashMap<String, Table>);

/// The functions of a file, sorted by address.
#[derive(Default)]
struct Table(Vec<Function>);

struct Function {
    begin: u64,
    size: u64,
    name: String,
}

impl Symbols {
    /// Returns the demangled name of the function at this address of the file.
    pub(crate) fn name(&mut self, path: &str, address: u64) -> Option<String> {
        let table = self
            .0
            .entry(path.to_owned())
            .or_insert_with(|| Table::of(Path::new(path)).unwrap_or_default());
        table.find(address).map(demangled)
    }
}

impl Table {
    fn of(path: &Path) -> Option<Table> {
        let known = std::fs::metadata(path).ok()?;
        if !known.is_file() || known.len() > MAX_FILE_BYTES {
            return None;
        }
        Table::read(&std::fs::read(path).ok()?)
    }

    fn read(bytes: &[u8]) -> Option<Table> {
        let file = object::File::parse(bytes).ok()?;
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter(|symbol| {
            symbol.kind() == SymbolKind::Text && !symbol.is_undefined() && symbol.address() != 0
        });
        let functions = functions.filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(Function {
                begin: symbol.address(),
                size: symbol.size(),
                name: name.to_owned(),
            })
        });
        let mut functions: Vec<Function> = functions.collect();
        // Among several names of one function prefer the largest, then the plainest.
        functions.sort_by(|a, b| {
            let order = a.begin.cmp(&b.begin).then(b.size.cmp(&a.size));
            let plain = |name: &str| (name.starts_with('_'), name.len());
            order.then(plain(&a.name).cmp(&plain(&b.name)))
        });
        functions.dedup_by_key(|function| function.begin);
        Some(Table(functions))
    }

    fn find(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|function| function.begin <= address);
        let found = self.0.get(behind.checked_sub(1)?)?;
        // Assembly functions have no size: they extend to the next function.
        let inside = found.size == 0 || address - found.begin < found.size;
        inside.then_some(&found.name)
    }
}

/// Returns a name as in the source text, for Rust, C++ or C.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle()
    {
        return text;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_programs_text() {
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_ZN3foo3barEi"), "foo::bar(int)");
        let rust = "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE";
        assert_eq!(demangled(rust), "core::fmt::Write::write_fmt");
    }

    #[test]
    fn an_address_belongs_to_the_function_that_holds_it() {
        let function = |begin, size, name: &str| Function {
            begin,
            size,
            name: name.to_owned(),
        };
        let table = Table(vec![
            function(16, 8, "a"),
            function(32, 0, "b"),
            function(64, 4, "c"),
        ]);
        let found: Vec<Option<&str>> = [15, 16, 23, 24, 40, 64, 68]
            .iter()
            .map(|&address| table.find(address))
            .collect();
        let expected = [None, Some("a"), Some("a"), None, Some("b"), Some("c"), None];
        assert_eq!(found, expected);
    }

    #[test]
    fn this_program_has_names_and_a_cut_one_does_no_harm() {
        let own = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(own).expect("a program");
        let whole = Table::read(&bytes).expect("a table");
        assert!(whole.0.iter().any(|function| function.name == "main"));
        for length in [0, 10, 64, 1000, bytes.len() / 2, bytes.len() - 1] {
            let _ = Table::read(&bytes[..length]);
        }
    }
}
