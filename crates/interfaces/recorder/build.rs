//! The library's functions, made of those of `regatta.h` and of what is noted of each; and its name for the loader.

use std::path::PathBuf;

use regatta_c_table::{Function, functions};
use regatta_record::{CALLS, LEFT_ALONE, Note};

const LISTS: &str = "the lists of crates/core/record/src/calls.rs";

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta_recorder.so");
    println!("cargo:rerun-if-changed=build.rs");
    let functions = functions();
    let (mut real, mut wrap) = (String::new(), String::new());
    for function in &functions {
        let name = &*function.name;
        real += &format!("    fn {function};\n");
        match CALLS.iter().position(|call| call.0 == name) {
            Some(number) => wrap += &wrapped(function, number, CALLS[number].2),
            None => assert!(LEFT_ALONE.contains(&name), "{LISTS} lack {name}"),
        }
    }
    let listed = CALLS.len() + LEFT_ALONE.len();
    assert_eq!(listed, functions.len(), "{LISTS} have more than regatta.h");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    std::fs::write(out.join("real.rs"), format!("real! {{\n{real}}}\n")).expect("a file");
    std::fs::write(out.join("wrap.rs"), wrap).expect("a file");
}

/// The function that the loader finds in place of libregatta.so's.
fn wrapped(function: &Function, number: usize, note: Note) -> String {
    let (name, arguments) = (&function.name, function.arguments());
    let peer = ["from", "to"].into_iter().find(|peer| function.has(peer));
    let enter = match peer {
        Some(peer) => format!("Span::enter_about(Call({number}), group, {peer})"),
        None => format!("Span::enter(Call({number}))"),
    };
    let (before, after) = (before(function, note), after(function, note));
    let body = match note {
        Note::Own => format!("completion::{name}({arguments})"),
        _ => format!(
            "let mut span = {enter};{before}
        let result = real::{name}({arguments});{after}
        span.leave(result)"
        ),
    };
    // Text of unsafe code, with its reason.
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

/// Returns the lines before the call. Where the caller passes no status, they pass one of ours.
fn before(function: &Function, note: Note) -> String {
    let mut lines = String::new();
    if matches!(note, Note::Received | Note::ReceivedIfFits) {
        lines += "
        let mut own = note::NO_STATUS;
        let status = if status.is_null() { &raw mut own } else { status };";
    }
    if matches!(note, Note::Received | Note::Begun) && function.has("message") {
        lines += "
        let before = note::message(message);";
    }
    lines
}

/// What is noted when the call has returned.
fn after(function: &Function, note: Note) -> String {
    let of_message = function.has("message");
    let line = match note {
        Note::Time | Note::Own => return String::new(),
        Note::Sent if function.has("views") => {
            "if result == OK { span.sent(group, to, tag, note::length(views, n)); }"
        }
        Note::Sent => "if result == OK { span.sent(group, to, tag, len); }",
        Note::Received if of_message => {
            "note::received_of(&mut span, result, (before, message), &*status);"
        }
        Note::Received if function.has("to") => {
            "if note::received(&mut span, result, group, &*status) { span.sent(group, to, stag, slen); }"
        }
        Note::Received => "note::received(&mut span, result, group, &*status);",
        Note::ReceivedIfFits => "if result == OK { span.received(group, &*status); }",
        Note::Begun if of_message => "note::begun_of(result, request, (before, message));",
        Note::Begun => "note::begun(result, request, group);",
        Note::Found if function.has("found") => {
            "if result != OK || !note::found(message, group) { span.found_nothing(); }"
        }
        Note::Found => "if result == OK { note::found(message, group); }",
        Note::Looked if function.has("found") => "note::looked(&mut span, found);",
        Note::Looked => "note::looked(&mut span, done);",
        Note::Quiet => "span.found_nothing();",
        Note::Bytes if function.has("count") => {
            "if result == OK { span.bytes(count.wrapping_mul(note::size(kind))); }"
        }
        Note::Bytes => "if result == OK { span.bytes(len); }",
        Note::BytesByMember if function.has("in_lens") => {
            "if result == OK { span.bytes(note::given(in_lens, group)); }"
        }
        Note::BytesByMember if function.has("lens") => {
            "if result == OK { span.bytes(note::own(input, len, lens, group)); }"
        }
        Note::BytesByMember if function.has("counts") => {
            "if result == OK { span.bytes(note::given(counts, group).wrapping_mul(note::size(kind))); }"
        }
        Note::BytesByMember if function.has("count") => {
            "if result == OK { span.bytes(count.wrapping_mul(note::size(kind)).wrapping_mul(note::members(group))); }"
        }
        Note::BytesByMember => {
            "if result == OK { span.bytes(len.wrapping_mul(note::members(group))); }"
        }
        Note::Joined => "if result == OK { note::joined(); }",
        Note::Left => "if result == OK { note::left(); }",
    };
    format!("\n        {line}")
}
