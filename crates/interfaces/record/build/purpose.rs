//! The purpose of each function of the header. It follows from the section or from the parameters, with a few exceptions.

use regatta_c_table::Function;

/// The purposes of exceptions by name, and then of sections. Each is a `Kind` of `src/calls.rs`.
///
/// "by message" stands for `Send` or `Receive` for functions that send or receive. "none" means that the functions are not recorded:
/// they return at once, without communication, or (`rg_mark`, `rg_toggle` and `rg_profile`) the recorder itself implements them.
const PURPOSES: &str = "\
rg_initialized rg_on_wait rg_fd rg_group_is_revoked rg_dead rg_op_create rg_op_free = none
rg_loan_open = Receive
rg_acknowledge_dead rg_group_revoke rg_group_tie rg_group_tolerate_left = Other
rg_meet rg_meet_members = Collective
errors = none
life = Other
who = none
send and receive = by message, or Wait
strided and scattered memory = by message, or Wait
completion = Wait
loans: messages that are never copied = by message, or Other
groups = Collective
collectives = Collective
tasks that come and go = Other
names, mailboxes, named groups = Other
settings and insight = none
";

/// Returns the functions that are recorded, with their purposes. Fails with a sentence that says what to add to the table after a
/// change of the header.
pub fn all(functions: &[Function]) -> Result<Vec<(&str, &'static str)>, String> {
    let names = lines().flat_map(|(names, _)| names.split(' '));
    for name in names.filter(|name| name.starts_with("rg_")) {
        if !functions.iter().any(|function| function.name == name) {
            return Err(format!(
                "regatta.h has no {name}: {PURPOSES_LOCATION} still names it"
            ));
        }
    }
    let mut recorded = Vec::new();
    for function in functions {
        let kind = purpose(function)?;
        recorded.extend((kind != "none").then_some((&*function.name, kind)));
    }
    Ok(recorded)
}

const PURPOSES_LOCATION: &str = "PURPOSES in crates/interfaces/record/build/purpose.rs";

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    PURPOSES
        .lines()
        .map(|line| line.split_once(" = ").expect("a purpose"))
}

fn purpose(function: &Function) -> Result<&'static str, String> {
    let Function { name, section, .. } = function;
    let is_it = |of: &str| of == section || of.split(' ').any(|one| one == name);
    match lines().find(|(of, _)| is_it(of)) {
        Some((_, purpose)) => Ok(match purpose.strip_prefix("by message, or ") {
            Some(otherwise) => of_message(function).unwrap_or(otherwise),
            None => purpose,
        }),
        None => Err(format!(
            "regatta.h declares {name} in the section \"{section}\": say in {PURPOSES_LOCATION} what the time in functions of that section is called"
        )),
    }
}

/// Returns whether a function receives a message or sends one, and `None` for neither. A function that does both counts as receiving.
/// A probe does neither, because it has no memory for the message.
fn of_message(function: &Function) -> Option<&'static str> {
    let has_any = |names: &[&str]| names.iter().any(|name| function.has(name));
    match has_any(&["buf", "rbuf", "views", "block"]) {
        true if has_any(&["from", "message"]) => Some("Receive"),
        true if function.has("to") => Some("Send"),
        _ => None,
    }
}
