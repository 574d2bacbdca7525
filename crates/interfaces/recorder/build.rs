//! Generates the library's functions from those of `regatta.h`, their purposes and the table of what is recorded. Sets its soname.

#[path = "build/note.rs"]
mod note;

use std::path::PathBuf;

use regatta_c_table::{Function, functions};
use regatta_record::{CALLS, Kind};

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta_recorder.so");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/note.rs");
    let functions = functions();
    note::check(&functions);
    let declared = |function: &Function| format!("    fn {function};\n");
    let real: String = functions.iter().map(declared).collect();
    let mut wrap = String::new();
    for function in &functions {
        if let Some(number) = CALLS.iter().position(|call| call.0 == function.name) {
            wrap += &wrapped(function, number, CALLS[number].1);
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    std::fs::write(out.join("real.rs"), format!("real! {{\n{real}}}\n")).expect("a file");
    std::fs::write(out.join("wrap.rs"), wrap).expect("a file");
}

/// Returns the code of a function that replaces the one of libregatta.so.
fn wrapped(function: &Function, number: usize, kind: Kind) -> String {
    let (name, arguments) = (&function.name, function.arguments());
    let peer = ["from", "to"].into_iter().find(|peer| function.has(peer));
    let enter = match peer {
        Some(peer) => format!("Span::enter_about(Call({number}), group, {peer})"),
        None => format!("Span::enter(Call({number}))"),
    };
    let after = note::after(function, kind);
    let before = note::before(after);
    let body = match after {
        "completion" => format!("completion::{name}({arguments})"),
        _ => format!(
            "let mut span = {enter};{before}
        let result = real::{name}({arguments});
        {}
        span.leave(result)",
            if after == "none" { "" } else { after }
        ),
    };
    // Generates unsafe code, with its safety comment.
    format!(
        "#[unsafe(no_mangle)]
unsafe extern \"C\" fn {function} {{
    // SAFETY: the C contract, of this function and of that of libregatta.so.
    unsafe {{
        {body}
    }}
}}
"
    )
}
