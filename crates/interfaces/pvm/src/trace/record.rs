//! An event in the trace format: numbers and strings, with a description the first time that a task sends such an
//! event.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::message::Body;
use crate::system::events;

// Marks from `pvmtev.h`.
const DESCRIPTION: i32 = -5;
const DESCRIPTION_END: i32 = -6;
const RECORD: i32 = -7;
const RECORD_END: i32 = -8;

// Data types.
const INT: i32 = 6;
const LONG: i32 = 8;
const STRING: i32 = 12;
const ARRAY: i32 = 0x80;

// The first fields of every event.
const SECONDS: i32 = events::meaning("TS");
const MICROSECONDS: i32 = events::meaning("TU");
const TASK: i32 = events::meaning("TID");

/// A value of an event.
#[derive(Clone)]
pub enum Value<'a> {
    Int(i32),
    /// PVM sends the lower 32 bits: in its encoding a `long` has four bytes.
    Address(usize),
    Text(&'a [u8]),
    Ints(&'a [i32]),
    Texts(Vec<&'a [u8]>),
}

impl Value<'_> {
    fn kind(&self) -> i32 {
        match self {
            Value::Int(_) => INT,
            Value::Address(_) => LONG,
            Value::Text(_) => STRING,
            Value::Ints(_) => INT | ARRAY,
            Value::Texts(_) => STRING | ARRAY,
        }
    }

    fn write(&self, body: Body) -> Body {
        match self {
            Value::Int(value) => body.int(*value),
            Value::Address(value) => body.int(*value as i32),
            Value::Text(text) => body.string(text),
            Value::Ints(values) => body.int(values.len() as i32).ints(values),
            Value::Texts(texts) => {
                let body = body.int(texts.len() as i32);
                texts.iter().fold(body, |body, text| body.string(text))
            }
        }
    }
}

/// Encodes an event of a task. `number` includes whether the call begins or ends. Unless the event has been `described`
/// before, each value is preceded by its meaning and type.
pub fn record<'a>(
    number: i32,
    described: bool,
    task: i32,
    values: impl IntoIterator<Item = (i32, Value<'a>)>,
) -> Body {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let first = [
        (SECONDS, Value::Int(now.as_secs() as i32)),
        (MICROSECONDS, Value::Int(now.subsec_micros() as i32)),
        (TASK, Value::Int(task)),
    ];
    let (begin, end) = match described {
        false => (DESCRIPTION, DESCRIPTION_END),
        true => (RECORD, RECORD_END),
    };
    let mut body = Body::new().int(begin).int(number);
    if !described {
        body = body.string(events::name(number).unwrap_or_default().to_bytes());
    }
    for (meaning, value) in first.into_iter().chain(values) {
        if !described {
            body = body.int(meaning).int(value.kind());
        }
        body = value.write(body);
    }
    body.int(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_described_once() {
        let words = |described, value| {
            let number = events::number("newtask") as i32;
            let body = record(number, described, 7, [(events::meaning("PT"), value)]);
            body.into_vec().len() / 4
        };
        // A mark, a number, a name of three words, four values preceded by two words each, and a mark.
        assert_eq!(words(false, Value::Int(1)), 2 + 3 + 12 + 1);
        assert_eq!(words(true, Value::Int(1)), 2 + 4 + 1);
        // Several values are preceded by their number.
        assert_eq!(words(true, Value::Ints(&[1, 2])), 2 + 3 + 3 + 1);
        assert_eq!(
            words(true, Value::Texts(vec![b"abc", b""])),
            2 + 3 + 1 + 4 + 1
        );
    }
}
