//! The summary at the end of a job, in sentences and in JSON.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::words;
use regatta_job::{End, Lifecycle};

/// Maximum number of names shown of a list.
const MAX_NAMES: usize = 4;

/// Returns the first names of a list: "sleep (pid 7), cat (pid 8) and 3 more".
pub(crate) fn few(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(MAX_NAMES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns a sentence about the tasks that exited with 0 without joining, if that is worth reporting: no task joined,
/// or others did.
pub(crate) fn never_joined(
    lifecycle: &Lifecycle,
    tasks: u32,
    name: &OsStr,
    path: &Path,
) -> Option<String> {
    let ranks = lifecycle.never_joined();
    if lifecycle.joined() && !ranks.is_empty() {
        return Some(format!(
            "{} ended without joining the job (rg_init); the other tasks do not wait for them",
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
    Some(format!(
        "{who} joined Regatta: {}",
        regatta_program::why_alone(&name, path)
    ))
}

/// Returns the event for the end of a task.
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

/// Returns the event for the end of the job.
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

#[cfg(test)]
mod tests {
    use regatta_segment::job::TaskState;

    use super::*;
    use crate::plan::Plan;

    /// Returns the lifecycle of a job in which each task exited with 0 in the given state.
    fn over(states: &[TaskState]) -> Lifecycle {
        let count = states.len() as u32;
        let mut lifecycle = Lifecycle::new(Plan::new("x", count).policy(), count);
        states.iter().for_each(|_| lifecycle.task_started());
        for (rank, &state) in (0..).zip(states) {
            let end = (End::Exited(0), state);
            lifecycle.task_ended(
                Duration::ZERO,
                (rank, 100 + rank),
                end,
                false,
                &mut Vec::new(),
            );
        }
        lifecycle
    }

    fn said(states: &[TaskState]) -> Option<String> {
        let (name, path) = ("tool".as_ref(), Path::new("/nonexistent/tool"));
        never_joined(&over(states), states.len() as u32, name, path)
    }

    #[test]
    fn a_long_list_of_names_is_cut_with_how_many_more_there_are() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(few(&names[..4]), "a, b, c, d");
        assert_eq!(few(&names), "a, b, c, d and 1 more");
    }

    #[test]
    fn tasks_that_did_not_join_are_named_where_others_did() {
        use TaskState::{Expected, Left};
        assert_eq!(said(&[Left, Left]), None);
        let some = said(&[Expected, Left, Expected]).expect("two did not join");
        assert!(
            some.starts_with("tasks 0, 2 ended without joining the job"),
            "{some}"
        );
    }

    #[test]
    fn where_no_task_joined_the_program_is_the_reason() {
        use TaskState::Expected;
        let all = said(&[Expected, Expected]).expect("none joined");
        assert!(
            all.starts_with("none of the 2 tasks joined Regatta: tool is not a Regatta program"),
            "{all}"
        );
        let one = said(&[Expected]).expect("it did not join");
        assert!(one.starts_with("the task never joined Regatta"), "{one}");
    }

    #[test]
    fn a_program_that_reads_the_end_of_a_job_finds_its_first_failure() {
        let quiet = job_event(&over(&[TaskState::Left]), 1, Duration::ZERO);
        assert_eq!(quiet.get("first_failure"), None);
        let mut failed = Lifecycle::new(Plan::new("x", 1).policy(), 1);
        failed.task_started();
        let end = End::Signalled {
            signal: 9,
            core: false,
        };
        let end = (end, TaskState::Joined);
        failed.task_ended(Duration::ZERO, (0, 100), end, false, &mut Vec::new());
        let event = job_event(&failed, 1, Duration::from_millis(1500));
        assert_eq!(event["status"], 137);
        assert_eq!(event["seconds"], 1.5);
        assert_eq!(event["first_failure"]["signal"], 9);
        assert_eq!(event["first_failure"]["pid"], 100);
        assert_eq!(event["first_failure"].get("status"), None);
    }
}
