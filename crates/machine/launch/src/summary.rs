//! The summary when a job is over, in sentences and in JSON.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{elf, program, words};
use regatta_job::{End, Lifecycle};

/// Names shown of a longer list.
const FEW: usize = 4;

/// "sleep (pid 7), cat (pid 8) and 3 more".
pub(crate) fn few(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(FEW)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// One sentence for all tasks that ended well without joining, when that is news: no task joined, or others did.
pub(crate) fn never_joined(
    lifecycle: &Lifecycle,
    tasks: u32,
    name: &OsStr,
    path: &Path,
) -> Option<String> {
    let ranks = lifecycle.never_joined();
    if lifecycle.joined() && !ranks.is_empty() {
        return Some(format!(
            "{} ended without joining the job (rg_init); the others were told not to wait",
            words::tasks(&ranks)
        ));
    }
    if ranks.len() < tasks as usize {
        return None;
    }
    let name = name.to_string_lossy();
    let who = if tasks == 1 {
        "the task never".to_owned()
    } else {
        format!("none of the {tasks} tasks")
    };
    Some(format!("{who} joined Regatta: {}", reason(&name, path)))
}

/// Why a program does not join, as far as its file tells.
fn reason(name: &str, path: &Path) -> String {
    if program::interpreter(path).is_some() {
        return format!("{name} is a script, and what it starts is no Regatta program");
    }
    let libraries = elf::needed(path).unwrap_or_default();
    let linked = |part: &str| libraries.iter().find(|library| library.starts_with(part));
    if let Some(library) = linked("libmpi") {
        return format!(
            "{name} is linked to {library}, another message-passing library: start it with that library's mpirun"
        );
    }
    if let Some(library) = linked("libpvm3").or_else(|| linked("libgpvm3")) {
        return format!(
            "{name} is linked to {library}: either it ended before it called PVM, or the loader found PVM's own library, which has its own daemon; with the folder of Regatta's in LD_LIBRARY_PATH it finds that"
        );
    }
    if linked("libregatta").is_some() {
        return format!("{name} is linked to libregatta, but ended before it called rg_init");
    }
    format!(
        "{name} is not a Regatta program (it is not linked to libregatta), or ended before it called rg_init"
    )
}

/// The end of a task, for a program to read.
pub(crate) fn task_event(lifecycle: &Lifecycle, rank: u32, pid: u32, end: End) -> Value {
    let mut event = json!({"event": "end", "task": rank, "pid": pid});
    if let Some(host) = lifecycle.host(rank) {
        event["host"] = json!(host);
    }
    match end {
        End::Exited(status) => event["status"] = json!(status),
        End::Signalled { signal, core } => {
            event["signal"] = json!(signal);
            event["core"] = json!(core);
        }
        End::Lost => event["lost"] = json!(true),
    }
    event
}

/// The end of the job, for a program to read.
pub(crate) fn job_event(lifecycle: &Lifecycle, tasks: u32, took: Duration) -> Value {
    let mut event = json!({
        "event": "job",
        "schema": "regatta-run/1",
        "tasks": tasks,
        "status": lifecycle.status(),
        "seconds": took.as_secs_f64(),
        "never_joined": lifecycle.never_joined(),
    });
    if let Some(failure) = lifecycle.first_failure() {
        event["first_failure"] = task_event(lifecycle, failure.rank, failure.pid, failure.end);
    }
    event
}
