//! The part of the library that has to be C, and how the library is linked: with libregatta.so, as the crate `sys` has it, and by this name.

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
    // Where cargo builds, libregatta.so lies beside this library, installed one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
