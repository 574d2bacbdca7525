//! Generates the list of recorded functions and their purposes from the header.

#[path = "build/purpose.rs"]
mod purpose;

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/purpose.rs");
    let functions = regatta_c_table::functions();
    let purposes = purpose::all(&functions).unwrap_or_else(|fault| panic!("{fault}"));
    let lines: String = purposes
        .iter()
        .map(|(name, kind)| format!("    (\"{name}\", Kind::{kind}),\n"))
        .collect();
    let list = format!(
        "/// All that are recorded, in the order of their numbers, which is that of the header.\n\
         pub const CALLS: &[(&str, Kind)] = &[\n{lines}];\n"
    );
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    std::fs::write(out.join("calls.rs"), list).expect("a file");
}
