//! The examples of several interfaces, on Regatta's libraries: `examples/interfaces`.

use std::path::{Path, PathBuf};

use crate::{express, nx, pvm};

/// The folder of the examples, from that of the tests' programs.
const FOLDER: &str = "../../examples/interfaces";
/// The names under which programs look for the libraries, all in one folder.
const LIBRARIES: [&str; 4] = [
    "libpvm3.so.3",
    "libnx.so.0",
    "libexpress.so.0",
    "libregatta.so.0",
];

/// The folder with all of them, once they are there.
fn libraries() -> PathBuf {
    let folder = |library: PathBuf| library.parent().map(Path::to_owned);
    let folders = [pvm::library(), nx::library(), express::library()].map(folder);
    assert!(folders.iter().all(|one| *one == folders[0]), "{folders:?}");
    folders[0].clone().expect("a library is in a folder")
}

/// The C program `three.c`, on the three of them.
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
