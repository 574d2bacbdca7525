//! The purpose of each function follows from the header.

#[path = "../build/purpose.rs"]
mod purpose;

use regatta_c_table::{Function, functions};
use regatta_record::{CALLS, Call, Kind};

#[test]
fn sections_parameters_and_exceptions_tell_purposes() {
    for (name, kind) in [
        ("rg_issend", Kind::Send),
        ("rg_loan_share", Kind::Send),
        ("rg_sendrecv", Kind::Receive),
        ("rg_imrecvv", Kind::Receive),
        ("rg_loan_open", Kind::Receive),
        ("rg_improbe", Kind::Wait),
        ("rg_waitall", Kind::Wait),
        ("rg_iexscan", Kind::Collective),
        ("rg_agree", Kind::Collective),
        ("rg_meet", Kind::Collective),
        ("rg_group_revoke", Kind::Other),
        ("rg_loan", Kind::Other),
        ("rg_spawn", Kind::Other),
    ] {
        assert_eq!(Call::named(name).kind(), kind, "{name}");
    }
    for name in ["rg_rank", "rg_time", "rg_op_create", "rg_mark"] {
        assert!(CALLS.iter().all(|call| call.0 != name), "{name}");
    }
}

#[test]
fn what_the_header_does_not_tell_ends_the_build_with_a_sentence() {
    let mut all = functions();
    let section = "weather".to_owned();
    all.push(Function {
        name: "rg_rain".to_owned(),
        section,
        ..all[0].clone()
    });
    let fault = purpose::all(&all).expect_err("an unknown section");
    assert!(
        fault.contains("rg_rain in the section \"weather\""),
        "{fault}"
    );
    let fault = purpose::all(&all[..1]).expect_err("exceptions without functions");
    assert!(fault.contains("has no rg_initialized"), "{fault}");
}
