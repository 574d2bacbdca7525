//! Compiles the part of the library that has to be C, and sets how the library is linked: to libregatta.so (through the
//! crate `sys`) and with the library's name.

fn main() {
    for file in ["csrc/attributes.c", "include/nx.h", "build.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new()
        .file("csrc/attributes.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("regatta_nx_attributes");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnx.so.0");
    // In cargo's target folder libregatta.so lies beside this library; when installed it lies one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
