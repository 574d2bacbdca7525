//! The only way for a test to skip a check that this machine does not allow.
//!
//! Cargo shows nothing that a passing test prints, so each skip is also appended to the file that `SKIPPED_TESTS`
//! names. `scripts/test` sets that variable, lists and counts the skips at its end, and fails on any skip if `CI=true`.
//! `scripts/check-skips` finds tests that skip in another way. Tests of other crates include this file as a module.

use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable with the path of the file that collects skips.
const FILE: &str = "SKIPPED_TESTS";

/// Records that the running test leaves out a check because of `reason`.
///
/// The test returns right after this call, or continues without that check.
pub fn skip(reason: &str) {
    let program = std::env::current_exe().expect("the path of this test program");
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a dash and a hash to the name.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    // The harness names each test's thread. With a single test thread there is no such name.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("skipped: {program}::{test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os(FILE) {
        // A single write, so that lines of concurrent test programs do not mix.
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
