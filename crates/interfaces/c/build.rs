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
    // Each of these words may bring another linker, also `-C link-arg=-B` with its folder.
    let chosen = std::env::var_os("RUSTC_LINKER").is_some()
        || ["linker", "link-arg", "-fuse-ld"]
            .iter()
            .any(|word| flags.contains(word));
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder");
    let script = format!("{folder}/{SCRIPT}");
    if !chosen && is_understood(&script) {
        println!("cargo:rustc-cdylib-link-arg=-T");
        println!("cargo:rustc-cdylib-link-arg={script}");
    }
}

/// Does the linker that the compiler starts by itself take the script? (`ld` may be another program than one expects.)
fn is_understood(script: &str) -> bool {
    let out = std::env::var("OUT_DIR").expect("cargo names a folder");
    let (source, library) = (format!("{out}/empty.rs"), format!("{out}/libempty.so"));
    std::fs::write(&source, "").expect("a file");
    let compiler = std::env::var("RUSTC").expect("cargo names the compiler");
    let target = std::env::var("TARGET").expect("cargo names the target");
    let arguments = [
        "--crate-type=cdylib",
        "-Cpanic=abort",
        "--edition=2024",
        "--target",
        &target,
    ];
    let linked = std::process::Command::new(compiler)
        .args(arguments)
        .args([
            "-Clink-arg=-T",
            &format!("-Clink-arg={script}"),
            "-o",
            &library,
            &source,
        ])
        .output();
    linked.is_ok_and(|linked| linked.status.success())
}
