//! How the module is linked: with libregatta.so, as the crate `sys` has it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // In an environment of Python's, the module is four folders below the prefix: lib/python3.N/site-packages/regatta_mpi.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/../../../../lib:$ORIGIN");
}
