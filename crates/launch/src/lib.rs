//! Running a job of tasks on this host: start them, stay with them, and leave nothing behind.
//!
//! [`run`] is `regatta run` without its command line. The guide of this folder (README.md) tells where what is.

#![deny(unsafe_code)]

mod bind;
pub mod cgroup;
mod closing;
pub mod cores;
mod course;
mod elf;
mod front;
mod limits;
mod lines;
mod output;
mod plan;
pub mod program;
mod refusal;
mod signals;
mod sink;
pub mod supervise;
mod sys;
mod tree;
pub mod words;

pub use course::{End, Failure};
pub use front::run;
pub use plan::{Bind, Form, OnFailure, Plan};
pub use refusal::{Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND, STATUS_REFUSED};
pub use sys::{io_uring_allowed, user_namespace_allowed};

/// Tells the user of a refusal, in the form that the plan asks for.
pub fn tell(form: Form, refusal: &Refusal) {
    if form == Form::Json {
        let event = serde_json::json!({"event": "job", "schema": "regatta-run/1", "status": refusal.status, "error": refusal.sentence});
        println!("{event}");
    } else {
        eprintln!("regatta: {refusal}");
    }
}
