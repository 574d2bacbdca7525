//! Runs the fuzzer's checks on its corpus, without the fuzzer.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/profile.rs"]
mod profile;

use corpus::each;

#[test]
fn records_are_refused_or_read() {
    each("profile", profile::profile);
}
