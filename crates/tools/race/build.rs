//! Generates the list of texts below `programs`, so that all of them are compiled into the command.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Extensions of the files that programs consist of or read.
const EXTENSIONS: [&str; 8] = ["c", "h", "f", "f90", "inc", "scene", "pov", "ini"];

fn main() -> io::Result<()> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs");
    let top = top.canonicalize()?;
    let mut files = Vec::new();
    collect(&top, &mut files)?;
    files.sort();
    let line = |file: &PathBuf| {
        let name = file.strip_prefix(&top).unwrap_or(file);
        format!("    ({name:?}, include_str!({file:?})),\n")
    };
    let lines: String = files.iter().map(line).collect();
    let out = env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(out.join("texts.rs"), format!("&[\n{lines}]\n"))
}

/// Adds the texts of a folder and of the folders below it. Cargo runs the build script again when a file is added or
/// removed there.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let (kind, path) = match entry? {
            // Editors leave hidden files and links beside the files that they edit.
            hidden if hidden.file_name().as_encoded_bytes().starts_with(b".") => continue,
            entry => (entry.file_type()?, entry.path()),
        };
        let known = |ending: &std::ffi::OsStr| EXTENSIONS.iter().any(|one| ending == *one);
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(known) {
            files.push(path);
        }
    }
    Ok(())
}
