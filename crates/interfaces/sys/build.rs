//! A stand-in for libregatta.so, with which everything that uses this crate is linked.

use std::path::{Path, PathBuf};

fn main() {
    for file in ["build.rs", HEADER] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    stand_in(&out);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=dylib=regatta");
}

const HEADER: &str = "../c/include/regatta.h";

/// A library by the name and with the functions of libregatta.so, to be linked with: cargo knows no order in which
/// libregatta.so would be there first.
fn stand_in(out: &Path) {
    let header = std::fs::read_to_string(HEADER).expect("regatta.h");
    let mut names: Vec<&str> = header
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("rg_"))
        .collect();
    names.sort_unstable();
    names.dedup();
    let functions: String = names
        .iter()
        .map(|name| format!("void {name}(void) {{ __builtin_trap(); }}\n"))
        .collect();
    let source = out.join("stand_in.c");
    std::fs::write(&source, functions).expect("a file");
    let library = out.join("libregatta.so.0");
    let status = cc::Build::new()
        .get_compiler()
        .to_command()
        .args([
            "-shared",
            "-fPIC",
            "-w",
            "-Wl,-soname,libregatta.so.0",
            "-o",
        ])
        .arg(&library)
        .arg(&source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the linker");
    let name = out.join("libregatta.so");
    let _ = std::fs::remove_file(&name);
    std::os::unix::fs::symlink("libregatta.so.0", name).expect("a link");
}
