//! The kept inputs, for the tests of the crates with the decoders.

use std::path::Path;

/// Calls `property` with every file of a folder of the corpus. Panics if there is none.
pub fn each(folder: &str, property: impl Fn(&[u8])) {
    // The crate that includes this file is three folders below the repository's root.
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    let files: Vec<_> = std::fs::read_dir(corpus.join(folder)).unwrap().collect();
    assert!(!files.is_empty(), "the corpus is empty");
    for file in files {
        property(&std::fs::read(file.unwrap().path()).unwrap());
    }
}
