//! Sets how the library is linked: to libregatta.so (through the crate `sys`) and with the library's name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libplotix.so.0");
    // In cargo's target folder libregatta.so lies beside this library; when installed it lies one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
