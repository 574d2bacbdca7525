//! Common parts of the engine's tests.
#![allow(dead_code)]

pub mod net;
pub mod oracle;
pub mod world;

use proptest::test_runner::Config;

/// Runs this many cases, or as many as `PROPTEST_CASES` says. Failures are not kept in files: each becomes a test of its own.
pub fn cases(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: asked.and_then(|n| n.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}
