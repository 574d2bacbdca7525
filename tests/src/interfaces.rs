//! The examples that use several interfaces (`examples/interfaces`), on Regatta's libraries.

use std::path::{Path, PathBuf};

use crate::{express, nx, pvm};

/// Folder of the examples, relative to `tests/programs`.
const FOLDER: &str = "../../examples/interfaces";
/// Names under which programs load the libraries, all in one folder.
const LIBRARIES: [&str; 4] = [
    "libpvm3.so.3",
    "libnx.so.0",
    "libexpress.so.0",
    "libregatta.so.0",
];

/// Returns the folder that has all libraries; builds them first.
fn libraries() -> PathBuf {
    let folder = |library: PathBuf| library.parent().map(Path::to_owned);
    let folders = [pvm::library(), nx::library(), express::library()].map(folder);
    assert!(folders.iter().all(|one| *one == folders[0]), "{folders:?}");
    folders[0].clone().expect("a library is in a folder")
}

/// Compiles the C program `three.c`, linked with all three interfaces.
pub fn three() -> PathBuf {
    let folder = libraries();
    let headers = ["pvm", "nx", "express"].map(|name| {
        let path = format!("../crates/interfaces/{name}/include");
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    });
    let file = format!("{FOLDER}/three");
    let all = LIBRARIES.map(|library| folder.join(library));
    crate::programs::compile_all("three", &[&file], &headers, &all)
}
