//! What is recorded of a call in addition to its time. This follows from the names of its parameters, which have the same meaning
//! throughout the header.

use regatta_c_table::Function;
use regatta_record::Kind;

/// The line of code that follows a call. The first line applies whose left side has the function's name, or its purpose and only
/// parameters that it has. "none" means that only the time is recorded.
const NOTES: &str = "\
rg_wait rg_test rg_waitall rg_waitany rg_testall rg_testany rg_on_complete = completion
rg_progress rg_clear_fd rg_raise_fd = span.found_nothing();
rg_recv_within rg_recv_passed = if result == OK { span.received(group, &*status); }
rg_loan_share = none
rg_loan_open rg_put = if result == OK { span.bytes(len); }
rg_alltoall rg_ialltoall = if result == OK { span.bytes(len.wrapping_mul(note::members(group))); }
rg_reduce_scatter_block rg_ireduce_scatter_block = if result == OK { span.bytes(count.wrapping_mul(note::size(kind)).wrapping_mul(note::members(group))); }
rg_init rg_enter = if result == OK { note::joined(); }
rg_finalize = if result == OK { note::left(); }
Send to tag views = if result == OK { span.sent(group, to, tag, note::length(views, n)); }
Send to tag len = if result == OK { span.sent(group, to, tag, len); }
Receive message status = note::received_of(&mut span, result, (before, message), &*status);
Receive to status = if note::received(&mut span, result, group, &*status) { span.sent(group, to, stag, slen); }
Receive status = note::received(&mut span, result, group, &*status);
Receive message request = note::begun_of(result, request, (before, message));
Receive request = note::begun(result, request, group);
Wait message found = if result != OK || !note::found(message, group) { span.found_nothing(); }
Wait message = if result == OK { note::found(message, group); }
Wait found = note::looked(&mut span, found);
Wait done = note::looked(&mut span, done);
Wait = none
Collective root len = if result == OK { span.bytes(len); }
Collective in_lens = if result == OK { span.bytes(note::given(in_lens, group)); }
Collective len lens = if result == OK { span.bytes(note::own(input, len, lens, group)); }
Collective counts kind = if result == OK { span.bytes(note::given(counts, group).wrapping_mul(note::size(kind))); }
Collective count kind = if result == OK { span.bytes(count.wrapping_mul(note::size(kind))); }
Collective len = if result == OK { span.bytes(len); }
Other = none
";

const NOTES_LOCATION: &str = "NOTES in crates/interfaces/recorder/build/note.rs";

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    NOTES
        .lines()
        .map(|line| line.split_once(" = ").expect("a note"))
}

/// Ends the build if the table names a function that the header does not have.
pub fn check(functions: &[Function]) {
    let words = lines().flat_map(|(words, _)| words.split(' '));
    for name in words.filter(|word| word.starts_with("rg_")) {
        let is_there = functions.iter().any(|function| function.name == name);
        assert!(
            is_there,
            "regatta.h has no {name}: {NOTES_LOCATION} still names it"
        );
    }
}

/// Returns the line that follows the call, "none", or "completion" if the function is in `src/wrap/completion.rs`.
pub fn after(function: &Function, kind: Kind) -> &'static str {
    let purpose = format!("{kind:?}");
    let is_it = |words: &str| {
        let (first, mut parameters) = (words.split(' ').next(), words.split(' ').skip(1));
        let named = words.split(' ').any(|word| word == function.name);
        named || first == Some(&purpose) && parameters.all(|name| function.has(name))
    };
    match lines().find(|(words, _)| is_it(words)) {
        Some((_, note)) => note,
        // The call moves no data of the program: it is a barrier, or makes a group.
        None if kind == Kind::Collective && !function.has("input") && !function.has("buf") => {
            "none"
        }
        None => panic!(
            "the parameters of {} in regatta.h do not tell what a profile notes of it: say that in {NOTES_LOCATION}",
            function.name
        ),
    }
}

/// Returns the lines before the call, which define the variables that the line after it uses. If the caller passes no status, they
/// provide one.
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
