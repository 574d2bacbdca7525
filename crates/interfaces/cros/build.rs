//! How the library is linked: with libregatta.so, as the crate `sys` has it, and by this name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcros.so.0");
    // Where cargo builds, libregatta.so lies beside this library, installed one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
