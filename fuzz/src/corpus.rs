//! The inputs that are kept, for the tests of the crates that read them.

use std::path::Path;

/// Every file of a folder of the corpus; there must be some.
pub fn each(folder: &str, property: impl Fn(&[u8])) {
    // The including crate is two folders below the top.
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    let files: Vec<_> = std::fs::read_dir(corpus.join(folder)).unwrap().collect();
    assert!(!files.is_empty(), "the corpus is empty");
    for file in files {
        property(&std::fs::read(file.unwrap().path()).unwrap());
    }
}
