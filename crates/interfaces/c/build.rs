//! The shared library's name for the loader, and its unwinder.
fn main() {
    regatta_unwinder::link();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
