//! The one way for a test to skip what the machine it runs on does not allow.
//!
//! Cargo shows nothing that a passing test prints, so a skip also goes into the file that `SKIPPED_TESTS` names. `scripts/test`
//! sets that variable, counts and lists the skips at its end, and fails for any of them where `CI=true`. `scripts/check-skips`
//! finds tests that skip in another way. Tests of other crates include this file as a module.

use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the path of the file that collects skips.
const FILE: &str = "SKIPPED_TESTS";

/// Records that the test which runs in this thread does not check all it is for, because of `reason`.
///
/// A test returns right after this call, or goes on with less.
pub fn skip(reason: &str) {
    let program = std::env::current_exe().expect("the path of this test program");
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a dash and a hash to the name.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    // The harness names each test's thread; with one thread only there is no name to be had.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("skipped: {program}::{test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os(FILE) {
        // A single write, so that test programs that run at once cannot mix their lines.
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| {
                panic!(
                    "{line}this skip cannot be recorded in {}, which {FILE} names: {error}",
                    path.display()
                )
            });
    }
}
