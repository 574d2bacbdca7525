//! Generates the declarations of the functions of `regatta.h`, and a stub of libregatta.so to link dependent crates with.

use std::path::{Path, PathBuf};

use regatta_c_table::{Function, functions};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let functions = functions();
    let declared = |function: &Function| format!("    pub fn {function};\n");
    let declarations: String = functions.iter().map(declared).collect();
    let block = format!("unsafe extern \"C\" {{\n{declarations}}}\n");
    std::fs::write(out.join("functions.rs"), block).expect("a file");
    stand_in(&out, &functions);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=dylib=regatta");
}

/// Makes a library with the name and the functions of libregatta.so, to link with. Cargo cannot be told to build libregatta.so
/// first.
fn stand_in(out: &Path, functions: &[Function]) {
    let trap =
        |function: &Function| format!("void {}(void) {{ __builtin_trap(); }}\n", function.name);
    let functions: String = functions.iter().map(trap).collect();
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
