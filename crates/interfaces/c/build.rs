//! The shared library's name for the loader.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
