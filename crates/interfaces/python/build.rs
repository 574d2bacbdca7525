//! Sets the search path of libregatta.so, with which the crate `sys` links the module.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // In a Python environment the module is four folders below the prefix, in lib/python3.N/site-packages/regatta_mpi.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN/../../../../lib:$ORIGIN");
}
