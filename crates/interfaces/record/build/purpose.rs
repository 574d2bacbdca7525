//! The purpose of each function of the header: that of its section, or what its parameters say, but for a few exceptions.

use regatta_c_table::Function;

/// A name of a `Kind` in `src/calls.rs`; none: the function is not recorded, since it returns at once and tells a program what it is
/// told anyway.
pub type Purpose = Option<&'static str>;

/// What tells the purpose of a section's functions.
enum Rule {
    /// All have this one.
    All(Purpose),
    /// Their parameters: a message goes out or comes in. The others have this purpose.
    Messages(Purpose),
}

use Rule::{All, Messages};

const COLLECTIVE: Purpose = Some("Collective");
const OTHER: Purpose = Some("Other");
const RECEIVE: Purpose = Some("Receive");
const SEND: Purpose = Some("Send");
const WAIT: Purpose = Some("Wait");

const SECTIONS: [(&str, Rule); 12] = [
    ("errors", All(None)),
    ("life", All(OTHER)),
    ("who", All(None)),
    ("send and receive", Messages(WAIT)),
    ("strided and scattered memory", Messages(WAIT)),
    ("completion", All(WAIT)),
    ("loans: messages that are never copied", Messages(OTHER)),
    ("groups", All(COLLECTIVE)),
    ("collectives", All(COLLECTIVE)),
    ("tasks that come and go", All(OTHER)),
    ("names, mailboxes, named groups", All(OTHER)),
    // The recorder has functions of its own for `rg_mark`, `rg_toggle` and `rg_profile`.
    ("settings and insight", All(None)),
];

const EXCEPTIONS: [(&[&str], Purpose); 4] = [
    (
        &[
            "rg_initialized",
            "rg_on_wait",
            "rg_fd",
            "rg_group_is_revoked",
            "rg_dead",
            "rg_op_create",
            "rg_op_free",
        ],
        None,
    ),
    (&["rg_loan_open"], RECEIVE),
    (
        &[
            "rg_group_revoke",
            "rg_group_tie",
            "rg_group_tolerate_left",
            "rg_acknowledge_dead",
        ],
        OTHER,
    ),
    (&["rg_meet", "rg_meet_members"], COLLECTIVE),
];

const THIS_FILE: &str = "crates/interfaces/record/build/purpose.rs";

/// Returns the functions that are recorded, each with its purpose, or a sentence for whoever has changed the header.
pub fn all(functions: &[Function]) -> Result<Vec<(&str, &'static str)>, String> {
    let exceptions = EXCEPTIONS.iter().flat_map(|(names, _)| *names);
    for name in exceptions {
        if !functions.iter().any(|function| function.name == *name) {
            return Err(format!(
                "regatta.h has no {name}: take it out of EXCEPTIONS in {THIS_FILE}"
            ));
        }
    }
    let mut recorded = Vec::new();
    for function in functions {
        recorded.extend(purpose(function)?.map(|kind| (&*function.name, kind)));
    }
    Ok(recorded)
}

fn purpose(function: &Function) -> Result<Purpose, String> {
    let Function { name, section, .. } = function;
    let is_own = |(names, _): &&(&[&str], Purpose)| names.contains(&&**name);
    if let Some((_, purpose)) = EXCEPTIONS.iter().find(is_own) {
        return Ok(*purpose);
    }
    match SECTIONS.iter().find(|(known, _)| known == section) {
        Some((_, All(purpose))) => Ok(*purpose),
        Some((_, Messages(otherwise))) => Ok(of_message(function).or(*otherwise)),
        None => Err(format!(
            "regatta.h declares {name} in the section \"{section}\", which is not known here: say in SECTIONS of {THIS_FILE} \
             what the time in its functions is called"
        )),
    }
}

/// Whether a message comes in, which counts if one goes out as well, or goes out. A probe has no memory for it.
fn of_message(function: &Function) -> Purpose {
    let has_any = |names: &[&str]| names.iter().any(|name| function.has(name));
    let has_memory = has_any(&["buf", "rbuf", "views", "block"]);
    match has_memory {
        true if has_any(&["from", "message"]) => RECEIVE,
        true if function.has("to") => SEND,
        _ => None,
    }
}
