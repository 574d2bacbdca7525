//! Compiles the part of the library that has to be C, and sets how the library is linked: to libregatta.so (through the
//! crate `sys`) and with PVM's library name.

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
    // In cargo's target folder libregatta.so lies beside this library; when installed it lies one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
