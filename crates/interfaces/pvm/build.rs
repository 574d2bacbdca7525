//! The part of the library that has to be C, and how the library is linked: with libregatta.so, as the crate `sys` has it, and by this name.

fn main() {
    for file in ["csrc/format.c", "build.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new()
        .file("csrc/format.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("regatta_pvm_format");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpvm3.so.3");
    // Where cargo builds, libregatta.so lies beside this library, installed one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
