//! What is noted of a call beside its time, as the line of code that follows the call: its parameters tell, but for a few exceptions.

use regatta_c_table::Function;
use regatta_record::Kind;

/// Functions whose code is in `src/wrap/completion.rs`.
const OWN: [&str; 7] = [
    "rg_wait",
    "rg_test",
    "rg_waitall",
    "rg_waitany",
    "rg_testall",
    "rg_testany",
    "rg_on_complete",
];

/// The lines of functions whose parameters tell nothing, or something else.
const EXCEPTIONS: [(&[&str], &str); 8] = [
    // Programs call these again and again: they are no events.
    (
        &["rg_progress", "rg_clear_fd", "rg_raise_fd"],
        "span.found_nothing();",
    ),
    // A message that is too long is not received.
    (
        &["rg_recv_within", "rg_recv_passed"],
        "if result == OK { span.received(group, &*status); }",
    ),
    (&["rg_loan_share"], ""),
    (&["rg_loan_open", "rg_put"], LEN),
    // `len` and `count` are those of each member.
    (
        &["rg_alltoall", "rg_ialltoall"],
        "if result == OK { span.bytes(len.wrapping_mul(note::members(group))); }",
    ),
    (
        &["rg_reduce_scatter_block", "rg_ireduce_scatter_block"],
        "if result == OK { span.bytes(count.wrapping_mul(note::size(kind)).wrapping_mul(note::members(group))); }",
    ),
    (
        &["rg_init", "rg_enter"],
        "if result == OK { note::joined(); }",
    ),
    (&["rg_finalize"], "if result == OK { note::left(); }"),
];

const LEN: &str = "if result == OK { span.bytes(len); }";
const COUNT: &str = "if result == OK { span.bytes(count.wrapping_mul(note::size(kind))); }";

/// The lines of all others: the first one whose purpose and parameters a function has. Names mean the same throughout the header.
const RULES: [(Kind, &[&str], &str); 20] = [
    (
        Kind::Send,
        &["to", "tag", "views"],
        "if result == OK { span.sent(group, to, tag, note::length(views, n)); }",
    ),
    (
        Kind::Send,
        &["to", "tag", "len"],
        "if result == OK { span.sent(group, to, tag, len); }",
    ),
    (
        Kind::Receive,
        &["message", "status"],
        "note::received_of(&mut span, result, (before, message), &*status);",
    ),
    (
        Kind::Receive,
        &["to", "status"],
        "if note::received(&mut span, result, group, &*status) { span.sent(group, to, stag, slen); }",
    ),
    (
        Kind::Receive,
        &["status"],
        "note::received(&mut span, result, group, &*status);",
    ),
    // The message is noted when the request is complete.
    (
        Kind::Receive,
        &["message", "request"],
        "note::begun_of(result, request, (before, message));",
    ),
    (
        Kind::Receive,
        &["request"],
        "note::begun(result, request, group);",
    ),
    // A receive of the message is noted later. Loops of looks that find nothing would fill the events.
    (
        Kind::Wait,
        &["message", "found"],
        "if result != OK || !note::found(message, group) { span.found_nothing(); }",
    ),
    (
        Kind::Wait,
        &["message"],
        "if result == OK { note::found(message, group); }",
    ),
    (Kind::Wait, &["found"], "note::looked(&mut span, found);"),
    (Kind::Wait, &["done"], "note::looked(&mut span, done);"),
    (Kind::Wait, &[], ""),
    // The bytes of this task's.
    (Kind::Collective, &["root", "count", "kind"], COUNT),
    (Kind::Collective, &["root", "len"], LEN),
    (
        Kind::Collective,
        &["in_lens"],
        "if result == OK { span.bytes(note::given(in_lens, group)); }",
    ),
    (
        Kind::Collective,
        &["len", "lens"],
        "if result == OK { span.bytes(note::own(input, len, lens, group)); }",
    ),
    (
        Kind::Collective,
        &["counts", "kind"],
        "if result == OK { span.bytes(note::given(counts, group).wrapping_mul(note::size(kind))); }",
    ),
    (Kind::Collective, &["count", "kind"], COUNT),
    (Kind::Collective, &["len"], LEN),
    (Kind::Other, &[], ""),
];

/// Ends the build if an exception names a function that the header does not have.
pub fn check(functions: &[Function]) {
    let exceptions = EXCEPTIONS.iter().flat_map(|(names, _)| *names);
    for name in OWN.iter().chain(exceptions) {
        assert!(
            functions.iter().any(|function| function.name == *name),
            "regatta.h has no {name}: take it out of crates/interfaces/recorder/build/note.rs"
        );
    }
}

/// Returns whether the recorder has code of its own for a function.
pub fn is_own(function: &Function) -> bool {
    OWN.contains(&&*function.name)
}

/// Returns the line that follows the call, or nothing if only its time is recorded.
pub fn after(function: &Function, kind: Kind) -> &'static str {
    let exception = EXCEPTIONS
        .iter()
        .find(|(names, _)| names.contains(&&*function.name));
    if let Some((_, line)) = exception {
        return line;
    }
    let has_all = |names: &[&str]| names.iter().all(|name| function.has(name));
    let rule = RULES
        .iter()
        .find(|(purpose, names, _)| *purpose == kind && has_all(names));
    match rule {
        Some((.., line)) => line,
        // Members only meet, or make a group.
        None if kind == Kind::Collective && !function.has("input") && !function.has("buf") => "",
        None => panic!(
            "the parameters of {} in regatta.h do not tell what a profile notes of it ({kind:?}): say that in RULES or EXCEPTIONS of \
             crates/interfaces/recorder/build/note.rs",
            function.name
        ),
    }
}

/// Returns the lines before the call, which make what the line after it uses. Where the caller passes no status, they pass one of ours.
pub fn before(after: &str) -> String {
    let mut lines = String::new();
    if after.contains("status") {
        lines += "
        let mut own = note::NO_STATUS;
        let status = if status.is_null() { &raw mut own } else { status };";
    }
    if after.contains("before") {
        lines += "
        let before = note::message(message);";
    }
    lines
}
