//! The random histories of a test, and how one that has failed is repeated.
//!
//! Each history has a seed of its own. If one fails, the test prints the command that repeats this history, and appends
//! that line to a file in the build folder, in case its output is lost.

use std::any::Any;
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::Write;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{FailurePersistence, PersistedSeed, RngSeed};

/// The variable with the seed of the only history to run.
const VARIABLE: &str = "HISTORY_SEED";
/// Both tests draw the same history from one seed, so the first one also repeats histories of the second one.
const TEST: &str = "after_any_history";
const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/histories-that-failed");
/// The prefix by which proptest marks seeds of its default generator in text.
const KIND: &str = "cc ";

/// Returns the configuration. By default the histories are always the same, 50 000 for each seed. `PROPTEST_CASES` is
/// the number of new histories for each test, and `HISTORY_SEED` repeats a single one.
pub fn config(seed: u64) -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: Some(Box::new(Seeds)),
        ..ProptestConfig::default()
    };
    if asked().is_some() {
        // In addition to the persisted failures, which are counted separately.
        return ProptestConfig {
            cases: 0,
            max_shrink_iters: 0,
            ..default
        };
    }
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 50_000,
            rng_seed: RngSeed::Fixed(seed),
            ..default
        },
    }
}

fn asked() -> Option<PersistedSeed> {
    let asked = std::env::var(VARIABLE).ok()?;
    let seed = format!("{KIND}{asked}").parse();
    Some(seed.unwrap_or_else(|()| {
        panic!("{VARIABLE}={asked} is no seed: a failed history names one of 64 digits")
    }))
}

/// The persisted seeds: reads the one in the environment, and writes those that fail now.
#[derive(Clone, Debug)]
struct Seeds;

impl FailurePersistence for Seeds {
    fn load_persisted_failures2(&self, _: Option<&'static str>) -> Vec<PersistedSeed> {
        asked().into_iter().collect()
    }

    fn save_persisted_failure2(
        &mut self,
        _: Option<&'static str>,
        seed: PersistedSeed,
        _: &dyn Debug,
    ) {
        let seed = seed.to_string();
        let seed = seed.strip_prefix(KIND).unwrap_or(&seed);
        let command =
            format!("{VARIABLE}={seed} cargo test -p regatta-job --test histories {TEST}");
        eprintln!(
            "A history has failed. Below is a shorter one that fails, too. The history itself happens again with\n    {command}"
        );
        let kept = OpenOptions::new().create(true).append(true).open(KEPT);
        match kept.and_then(|mut file| writeln!(file, "{command}")) {
            Ok(()) => eprintln!("This line is also in {KEPT}."),
            Err(why) => eprintln!("This line could not be kept in {KEPT}: {why}"),
        }
    }

    fn box_clone(&self) -> Box<dyn FailurePersistence> {
        Box::new(self.clone())
    }

    fn eq(&self, other: &dyn FailurePersistence) -> bool {
        other.as_any().is::<Self>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
