//! The shared library's name for the loader, its unwinder, and the order of its code.
fn main() {
    regatta_unwinder::link();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta.so.0");
    println!("cargo:rerun-if-changed=build.rs");
    order();
}

/// Functions of idle tasks lie together. A linker that somebody has chosen may not understand the script: there all stays in its order.
fn order() {
    const SCRIPT: &str = "idle.ld";
    println!("cargo:rerun-if-changed={SCRIPT}");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = std::env::var_os("RUSTC_LINKER").is_some()
        || ["linker", "-fuse-ld"]
            .iter()
            .any(|word| flags.contains(word));
    if !chosen {
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder");
        println!("cargo:rustc-cdylib-link-arg=-T");
        println!("cargo:rustc-cdylib-link-arg={folder}/{SCRIPT}");
    }
}
