//! The shared library's name for the loader.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta_recorder.so");
    println!("cargo:rerun-if-changed=build.rs");
}
