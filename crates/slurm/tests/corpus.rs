//! The inputs kept for the fuzzer, and what must hold for them, with the ordinary compiler.

use std::path::Path;

#[path = "../../../fuzz/src/slurm.rs"]
mod slurm;

/// Every file of a folder of the corpus; there must be some.
fn each(folder: &str, property: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files: Vec<_> = std::fs::read_dir(corpus.join(folder)).unwrap().collect();
    assert!(!files.is_empty(), "the corpus is empty");
    for file in files {
        property(&std::fs::read(file.unwrap().path()).unwrap());
    }
}

#[test]
fn letters_lists_and_environments_are_understood_or_refused() {
    each("slurm", slurm::slurm);
}
