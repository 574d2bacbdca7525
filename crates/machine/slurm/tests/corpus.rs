//! Runs the inputs kept for the fuzzer, and the properties that must hold for them, without the fuzzer.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/slurm.rs"]
mod slurm;

use corpus::each;

#[test]
fn letters_lists_and_environments_are_understood_or_refused() {
    each("slurm", slurm::slurm);
}
