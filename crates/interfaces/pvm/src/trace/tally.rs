//! The reports for a tracer that wants counts and times of calls instead of single events.

use super::record::{Value, record};
use crate::message::Body;
use crate::system::events::{self, Counted, meaning, number};

const CALLS: i32 = meaning("VCT");
const NAMES: i32 = meaning("VID");
const SECONDS: i32 = meaning("TGS");
const MICROSECONDS: i32 = meaning("TGU");
const COUNTS: i32 = meaning("PRF");

/// A column of the report: its meaning, and the function that picks its values.
type Column = (i32, fn(&Counted) -> i32);

/// Encodes an event with these columns for all calls that have been counted, and resets the counters.
fn tally(event: &str, task: i32, picked: &[Column]) -> Body {
    let counted = events::counted();
    let names = counted.iter().map(|one| one.name()).collect();
    let columns: Vec<(i32, Vec<i32>)> = picked
        .iter()
        .map(|(meaning, pick)| (*meaning, counted.iter().map(pick).collect()))
        .collect();
    let first = [
        (CALLS, Value::Int(counted.len() as i32)),
        (NAMES, Value::Texts(names)),
    ];
    let columns = columns
        .iter()
        .map(|(meaning, column)| (*meaning, Value::Ints(column)));
    record(
        number(event) as i32,
        false,
        task,
        first.into_iter().chain(columns),
    )
}

/// Encodes how often each call was made, and how long these calls took in total.
pub fn times(task: i32) -> Body {
    tally(
        "timing",
        task,
        &[
            (SECONDS, Counted::seconds),
            (MICROSECONDS, Counted::microseconds),
            (COUNTS, Counted::count),
        ],
    )
}

/// Encodes how often each call was made.
pub fn counts(task: i32) -> Body {
    tally("profiling", task, &[(COUNTS, Counted::count)])
}
