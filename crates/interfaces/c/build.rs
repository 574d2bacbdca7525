//! Sets the shared library's soname, its unwinder, and the order of its functions.
mod idle;

use std::process::Command;

fn main() {
    regatta_unwinder::link();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta.so.0");
    // The library must stay loaded after a dlclose, because threads of the program run one of its functions when they end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
    order();
}

/// Places the functions that idle tasks run next to each other, by a linker script. Does nothing if the linker does not
/// understand the script.
fn order() {
    const LIST: &str = "idle.txt";
    println!("cargo:rerun-if-changed={LIST}");
    println!("cargo:rerun-if-changed=idle.rs");
    let list = format!("{}/{LIST}", variable("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(list).expect("the list of functions");
    let script = format!("{}/idle.ld", variable("OUT_DIR"));
    std::fs::write(&script, idle::script(&list)).expect("a file");
    if is_understood(&script) {
        println!("cargo:rustc-cdylib-link-arg=-T");
        println!("cargo:rustc-cdylib-link-arg={script}");
    }
}

/// Returns whether the linker understands the script. Flags, configuration and PATH determine which program is the linker, so
/// this links an empty library in the same way.
fn is_understood(script: &str) -> bool {
    let folder = variable("OUT_DIR");
    let (source, library) = (
        format!("{folder}/empty.rs"),
        format!("{folder}/libempty.so"),
    );
    std::fs::write(&source, "").expect("a file");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = std::env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let linked = Command::new(variable("RUSTC"))
        .args(["--crate-type=cdylib", "--target", &variable("TARGET")])
        .args(flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .args(linker.ok())
        .args(["-Clink-arg=-T", &format!("-Clink-arg={script}")])
        .args(["-o", &library, &source])
        .output();
    linked.is_ok_and(|linked| linked.status.success())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
