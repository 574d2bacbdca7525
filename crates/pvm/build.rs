//! The part of the library that has to be C: functions with a variable list of arguments.

fn main() {
    println!("cargo:rerun-if-changed=csrc/format.c");
    println!("cargo:rerun-if-changed=build.rs");
    cc::Build::new()
        .file("csrc/format.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("regatta_pvm_format");
}
