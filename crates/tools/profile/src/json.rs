//! The profile as JSON. Times are in seconds.

use std::path::Path;

use regatta_record::{CallRecord, Kind, longest};
use serde_json::{Map, Value, json};

use crate::functions::Functions;
use crate::messages::Messages;
use crate::profile::{Profile, Task};

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Returns the profile as one object, which is printed after the job's last line.
pub(crate) fn value(
    profile: &Profile,
    functions: &Functions,
    messages: &Messages,
    report: Option<&Path>,
) -> Value {
    let tasks = profile.tasks.iter().map(|task| of_task(task, messages));
    let pairs = profile.pairs().into_iter().map(|((from, to), (number, bytes))| {
        json!({"from": from, "to": to, "messages": number, "bytes": bytes})
    });
    let sizes = profile.sizes().into_iter().enumerate();
    let sizes = sizes
        .filter(|(_, [sent, received])| sent.0 > 0 || received.0 > 0)
        .map(|(class, [sent, received])| {
            json!({
                "up_to": longest(class),
                "sent": sent.0, "sent_bytes": sent.1,
                "received": received.0, "received_bytes": received.1,
            })
        });
    let rows = functions.rows.iter().map(|row| {
        let times: Vec<f64> = row.times.iter().map(|time| time / 1e9).collect();
        json!({"name": row.name, "file": row.file, "seconds": row.time() / 1e9, "by_task": times})
    });
    json!({
        "event": "profile",
        "schema": "regatta-profile/1",
        "seconds": seconds(profile.span()),
        "tasks": tasks.collect::<Vec<_>>(),
        "calls": of_calls(&profile.calls()),
        "pairs": pairs.collect::<Vec<_>>(),
        "sizes": sizes.collect::<Vec<_>>(),
        "functions": rows.collect::<Vec<_>>(),
        "samples": functions.samples,
        "messages": messages.arrows.len(),
        "problems": profile.problems,
        "report": report.map(|report| report.display().to_string()),
    })
}

fn of_task(task: &Task, messages: &Messages) -> Value {
    let head = &task.record.head;
    let kinds: Map<String, Value> = Kind::ALL
        .iter()
        .map(|&kind| {
            (
                kind.word().to_owned(),
                seconds(task.kinds[kind as usize]).into(),
            )
        })
        .collect();
    let names = task.record.names.iter().map(|name| {
        json!({"name": name.text, "marks": name.marks, "times": name.times, "seconds": seconds(name.time)})
    });
    let [sent, received] = task.totals();
    json!({
        "task": task.number,
        "host": head.host,
        "program": head.program,
        "pid": head.pid,
        "seconds": seconds(task.time),
        "computing": seconds(task.computing()),
        "kinds": kinds,
        "idle": task.idle.map(seconds),
        "processor": seconds(head.processor),
        "sent": sent.0, "sent_bytes": sent.1,
        "received": received.0, "received_bytes": received.1,
        "calls": of_calls(&task.calls),
        "names": names.collect::<Vec<_>>(),
        "events": task.record.events.len(),
        "events_overwritten": head.events_lost,
        "waited_for_senders": seconds(messages.late.get(&task.number).copied().unwrap_or_default()),
        "cut_short": task.cut_short(),
    })
}

fn of_calls(calls: &[CallRecord]) -> Vec<Value> {
    let value = |call: &CallRecord| {
        json!({
            "call": call.call.name(),
            "kind": call.call.kind().word(),
            "calls": call.count,
            "seconds": seconds(call.time),
            "longest": seconds(call.longest),
            "bytes": call.bytes,
            "failed": call.failed,
        })
    };
    calls.iter().map(value).collect()
}
