//! The purpose of each function of the header: that of its section, or what its parameters say, but for a few exceptions.

use regatta_c_table::Function;

/// Exceptions by their names, then sections, with a `Kind` of `src/calls.rs`. By message: functions that send, or receive, have that
/// purpose. None: they are not recorded, since they return at once and tell a program what it is told anyway; and the recorder has
/// functions of its own for `rg_mark`, `rg_toggle` and `rg_profile`.
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

/// Returns the functions that are recorded, each with its purpose, or a sentence for whoever has changed the header.
pub fn all(functions: &[Function]) -> Result<Vec<(&str, &'static str)>, String> {
    let names = lines().flat_map(|(names, _)| names.split(' '));
    for name in names.filter(|name| name.starts_with("rg_")) {
        if !functions.iter().any(|function| function.name == name) {
            return Err(format!("regatta.h has no {name}: {HERE} still names it"));
        }
    }
    let mut recorded = Vec::new();
    for function in functions {
        let kind = purpose(function)?;
        recorded.extend((kind != "none").then_some((&*function.name, kind)));
    }
    Ok(recorded)
}

const HERE: &str = "PURPOSES in crates/interfaces/record/build/purpose.rs";

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
            "regatta.h declares {name} in the section \"{section}\": say in {HERE} what the time in functions of that section is called"
        )),
    }
}

/// Whether a message comes in, which counts if one goes out as well, or goes out. A probe has no memory for it.
fn of_message(function: &Function) -> Option<&'static str> {
    let has_any = |names: &[&str]| names.iter().any(|name| function.has(name));
    match has_any(&["buf", "rbuf", "views", "block"]) {
        true if has_any(&["from", "message"]) => Some("Receive"),
        true if function.has("to") => Some("Send"),
        _ => None,
    }
}
