//! The reports for a tracer that wants the number and times of calls, and not each call.

use super::record::{Value, record};
use crate::message::Body;
use crate::system::events::{self, Counted, meaning, number};

const CALLS: i32 = meaning("VCT");
const NAMES: i32 = meaning("VID");
const SECONDS: i32 = meaning("TGS");
const MICROSECONDS: i32 = meaning("TGU");
const COUNTS: i32 = meaning("PRF");

/// A column of the counts: its meaning, and the part of the count.
type Column = (i32, fn(&Counted) -> i32);

/// An event of this task that says of all calls that have been counted what is picked of them. Counting begins anew.
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

/// How often each was made, and how long all of these took.
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

/// How often each was made.
pub fn counts(task: i32) -> Body {
    tally("profiling", task, &[(COUNTS, Counted::count)])
}
