//! The data of the timeline, for the page's script. Times are in microseconds.

use regatta_record::{CALLS, EventKind};
use serde_json::{Value, json};

use crate::messages::Messages;
use crate::profile::{Profile, Task};
use crate::units::count;

/// Maximum number of events on the page, so that a browser can still handle it.
const MAX_EVENTS: usize = 120_000;

/// Returns the data, and a line about the number of events, which is empty if there is no data.
pub(super) fn data(profile: &Profile, messages: &Messages) -> (Value, String) {
    let all: usize = profile
        .tasks
        .iter()
        .map(|task| task.record.events.len())
        .sum();
    if all == 0 {
        return (json!({}), String::new());
    }
    let first = first_shown(profile, all);
    let mut shown = 0;
    let tasks = profile
        .tasks
        .iter()
        .map(|task| of_task(task, first, &mut shown));
    let tasks: Vec<Value> = tasks.collect();
    let arrows = messages
        .arrows
        .iter()
        .filter(|arrow| arrow.received >= first);
    let arrows = arrows.map(|arrow| {
        json!([
            arrow.from,
            micros(arrow.sent),
            arrow.to,
            micros(arrow.received),
            arrow.bytes,
            arrow.tag
        ])
    });
    let data = json!({
        "tasks": tasks,
        "arrows": arrows.collect::<Vec<_>>(),
        "names": CALLS.iter().map(|call| call.0).collect::<Vec<_>>(),
        "kinds": CALLS.iter().map(|call| call.1 as u8).collect::<Vec<_>>(),
        "span": [micros(first), micros(profile.span())],
    });
    (data, note(profile, shown))
}

/// Returns a task with its events that end at `first` or later. Adds their number to `shown`.
fn of_task(task: &Task, first: u64, shown: &mut usize) -> Value {
    let (mut calls, mut marks, mut toggles) = (Vec::new(), Vec::new(), Vec::new());
    let events = task.record.events.iter();
    for event in events.filter(|event| task.at(event.ended) >= first) {
        let [began, ended] = [event.began, event.ended].map(|time| micros(task.at(time)));
        *shown += 1;
        match event.kind {
            EventKind::Call(call) => {
                let peer = event.peer.map_or(-1, i64::from);
                calls.push(json!([
                    began,
                    ended,
                    call.0,
                    event.bytes,
                    peer,
                    event.tag,
                    event.failed
                ]));
            }
            EventKind::Mark(name) => marks.push(json!([began, text(task, name)])),
            EventKind::Toggle(name) => toggles.push(json!([began, ended, text(task, name)])),
            EventKind::Message => {}
        }
    }
    let head = &task.record.head;
    json!({
        "task": task.number,
        "life": [micros(task.at(head.began)), micros(task.at(head.last))],
        "calls": calls, "marks": marks, "toggles": toggles,
    })
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

fn text(task: &Task, number: usize) -> &str {
    let mut names = task.record.names.iter();
    let found = names.find(|name| name.number == number);
    found.map_or("", |name| &name.text)
}

/// Returns the time from which on there are at most [`MAX_EVENTS`] events, counted from the newest.
fn first_shown(profile: &Profile, all: usize) -> u64 {
    if all <= MAX_EVENTS {
        return 0;
    }
    let events = profile.tasks.iter();
    let mut ends: Vec<u64> = events
        .flat_map(|task| task.record.events.iter().map(|event| task.at(event.ended)))
        .collect();
    let at = ends.len() - MAX_EVENTS;
    *ends.select_nth_unstable(at).1
}

fn note(profile: &Profile, shown: usize) -> String {
    let all: usize = profile
        .tasks
        .iter()
        .map(|task| task.record.events.len())
        .sum();
    let lost = profile
        .tasks
        .iter()
        .map(|task| task.record.head.events_lost);
    let lost = lost.fold(0, u64::saturating_add);
    let mut note = format!("{} events", count(shown as u64));
    if shown < all {
        note += &format!(", the newest of {}", count(all as u64));
    }
    if lost > 0 {
        note += &format!(
            "; {} older ones were overwritten (increase --events to keep more)",
            count(lost)
        );
    }
    note + "."
}
