//! The script that an interpreter executes, determined from its arguments, and whether it names a package.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read of a script.
const MAX_READ_BYTES: u64 = 1 << 20;
/// The only long option whose value is a separate argument.
const CHECKS: &str = "--check-hash-based-pycs";

/// What is executed.
#[derive(Debug, PartialEq, Eq)]
enum Script {
    /// This text, or a module of this name.
    Text(OsString),
    File(PathBuf),
    /// Text that is typed, or that cannot be determined.
    Other,
}

/// Returns whether the script that a program is, or that an interpreter is given, names this package. A script that
/// imports it only indirectly does not.
pub(super) fn names(program: &Path, arguments: &[OsString], package: &str) -> bool {
    let has = |bytes: &[u8]| {
        bytes
            .windows(package.len())
            .any(|it| it == package.as_bytes())
    };
    let script = match super::is_python(program.file_name().unwrap_or_default()) {
        true => script(arguments),
        false => Script::File(program.to_owned()),
    };
    match script {
        Script::Text(text) => has(text.as_bytes()),
        Script::File(path) => {
            let file = match path.is_dir() {
                true => path.join("__main__.py"),
                false => path,
            };
            let mut bytes = Vec::new();
            let file = std::fs::File::open(file);
            let read = file.and_then(|file| file.take(MAX_READ_BYTES).read_to_end(&mut bytes));
            read.is_ok() && has(&bytes)
        }
        Script::Other => false,
    }
}

/// Returns the script of an interpreter with these arguments.
fn script(arguments: &[OsString]) -> Script {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        match &*text {
            "-" => return Script::Other,
            "--" => {
                return words
                    .next()
                    .map_or(Script::Other, |file| Script::File(file.into()));
            }
            CHECKS => drop(words.next()),
            long if long.starts_with("--") => {}
            option if option.starts_with('-') => {
                // Letters of several options may be combined. What follows an option with a value is that value.
                let Some(at) = option.find(['c', 'm', 'W', 'X']) else {
                    continue;
                };
                let value = match &option[at + 1..] {
                    "" => words.next().cloned().unwrap_or_default(),
                    value => value.into(),
                };
                if matches!(option.as_bytes()[at], b'c' | b'm') {
                    return Script::Text(value);
                }
            }
            _ => return Script::File(word.into()),
        }
    }
    Script::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Script {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        script(&words)
    }

    #[test]
    fn the_script_is_the_first_word_that_is_no_option() {
        assert_eq!(of(&["a.py", "-c", "x"]), Script::File("a.py".into()));
        let many = ["-u", "-W", "ignore", "-uXfrozen_modules=off", "--", "-a.py"];
        assert_eq!(of(&many), Script::File("-a.py".into()));
        assert_eq!(
            of(&["-um", "mpi4py.bench"]),
            Script::Text("mpi4py.bench".into())
        );
        assert_eq!(of(&["-c", "import x"]), Script::Text("import x".into()));
        assert_eq!(of(&["-cimport x"]), Script::Text("import x".into()));
        assert_eq!(of(&[]), Script::Other);
        assert_eq!(of(&["-"]), Script::Other);
    }

    #[test]
    fn a_script_names_what_it_imports() {
        let says = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            names(Path::new("/usr/bin/python3"), &words, "mpi4py")
        };
        assert!(says(&["-c", "from mpi4py import MPI"]));
        assert!(says(&["-m", "mpi4py.run"]));
        assert!(!says(&["-c", "print(1)"]));
        assert!(!says(&["/nonexistent/mpi4py.py"]));
    }
}
