//! Events of traced tasks: decodes them from messages.
//!
//! A message holds one event, several, or the meanings of parts of events. The first event of a kind from a task
//! describes the kind. Later ones have only values.

use std::collections::BTreeMap;

use crate::machine::{Answer, Code};

// Markers of `pvmtev.h`.
const SEVERAL: i32 = -1;
const MEANINGS: i32 = -3;
const DESCRIPTION: i32 = -5;
const RECORD: i32 = -7;

// Types of values.
const DOUBLE: i32 = 4;
const FLOAT: i32 = 5;
const INT: i32 = 6;
const USHORT: i32 = 11;
const STRING: i32 = 12;
const ARRAY: i32 = 0x80;

/// The part of an event that has the task's tid.
const TASK: &str = "TID";
/// Maximum number of elements of an array in an event, above any real one.
const MAX_ARRAY_LENGTH: i32 = 1 << 16;

/// A source of numbers and bytes.
pub trait Pieces {
    /// Returns the next number.
    fn number(&mut self) -> Answer<i32>;
    /// Returns the next bytes.
    fn bytes(&mut self, count: usize) -> Answer<Vec<u8>>;
}

/// A value of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Whole numbers.
    Int(Vec<i32>),
    /// Floating-point numbers.
    Real(Vec<f64>),
    /// Strings.
    Text(Vec<String>),
}

/// A part of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The short name of its meaning.
    pub name: String,
    /// The readable name of its meaning.
    pub words: String,
    /// The value, or the values of an array.
    pub value: Value,
    /// Whether it is an array.
    pub many: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The event's number, with the bit for entry or exit of the call.
    pub number: i32,
    /// Its name.
    pub name: String,
    /// Its parts.
    pub parts: Vec<Part>,
}

impl Event {
    /// Returns the tid of the event's task.
    pub fn task(&self) -> i32 {
        let part = self.parts.iter().find(|part| part.name == TASK);
        match part.map(|part| &part.value) {
            Some(Value::Int(numbers)) => numbers.first().copied().unwrap_or_default(),
            _ => 0,
        }
    }
}

/// Decodes messages with events.
#[derive(Default)]
pub struct Reader {
    meanings: BTreeMap<i32, (String, String)>,
    kinds: BTreeMap<i32, (String, Vec<(i32, i32)>)>,
}

fn text(from: &mut impl Pieces) -> Answer<String> {
    let length = from.number()?;
    if !(0..=MAX_ARRAY_LENGTH).contains(&length) {
        return Err(Code::BAD_MESSAGE);
    }
    let mut bytes = from.bytes(length as usize)?;
    // The text is NUL-terminated.
    bytes.pop();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn value(kind: i32, count: i32, from: &mut impl Pieces) -> Answer<Value> {
    if !(0..=MAX_ARRAY_LENGTH).contains(&count) {
        return Err(Code::BAD_MESSAGE);
    }
    Ok(match kind {
        INT..=USHORT => Value::Int((0..count).map(|_| from.number()).collect::<Answer<_>>()?),
        STRING => Value::Text((0..count).map(|_| text(from)).collect::<Answer<_>>()?),
        FLOAT => {
            let one = |_| Ok(f64::from(f32::from_bits(from.number()? as u32)));
            Value::Real((0..count).map(one).collect::<Answer<_>>()?)
        }
        DOUBLE => {
            let one = |_| {
                let (high, low) = (from.number()? as u32, from.number()? as u32);
                Ok(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
            };
            Value::Real((0..count).map(one).collect::<Answer<_>>()?)
        }
        // In a program's own event, parts of unknown type cannot be separated from the bytes after them.
        _ => return Err(Code::BAD_MESSAGE),
    })
}

impl Reader {
    /// Returns the events of a message. Decoding stops at malformed bytes.
    pub fn read(&mut self, from: &mut impl Pieces) -> Vec<Event> {
        let mut all = Vec::new();
        let Ok(mut mark) = from.number() else {
            return all;
        };
        let several = mark == SEVERAL;
        if several {
            mark = from.number().unwrap_or_default();
        }
        if mark == MEANINGS {
            let _ = self.read_meanings(from);
        }
        while let Ok(Some(event)) = self.read_event(mark, from) {
            all.push(event);
            mark = match several {
                true => from.number().unwrap_or_default(),
                false => 0,
            };
        }
        all
    }

    fn read_meanings(&mut self, from: &mut impl Pieces) -> Answer<()> {
        loop {
            let number = from.number()?;
            if number < 0 {
                return Ok(());
            }
            let meaning = (text(from)?, text(from)?);
            self.meanings.insert(number, meaning);
        }
    }

    fn read_event(&mut self, mark: i32, from: &mut impl Pieces) -> Answer<Option<Event>> {
        let number = match mark {
            DESCRIPTION | RECORD => from.number()?,
            _ => return Ok(None),
        };
        let mut parts = Vec::new();
        if mark == RECORD {
            let (name, kinds) = self.kinds.get(&number).ok_or(Code::BAD_MESSAGE)?;
            for &(meaning, kind) in kinds {
                parts.push(self.part(meaning, kind, from)?);
            }
            from.number()?;
            let name = name.clone();
            return Ok(Some(Event {
                number,
                name,
                parts,
            }));
        }
        let name = text(from)?;
        let mut kinds = Vec::new();
        loop {
            let meaning = from.number()?;
            if meaning < 0 {
                break;
            }
            let kind = from.number()?;
            kinds.push((meaning, kind));
            parts.push(self.part(meaning, kind, from)?);
        }
        self.kinds.insert(number, (name.clone(), kinds));
        Ok(Some(Event {
            number,
            name,
            parts,
        }))
    }

    fn part(&self, meaning: i32, kind: i32, from: &mut impl Pieces) -> Answer<Part> {
        let many = kind & ARRAY != 0;
        let count = if many { from.number()? } else { 1 };
        let value = value(kind & !ARRAY, count, from)?;
        let known = self.meanings.get(&meaning).cloned();
        let (name, words) = known.unwrap_or_else(|| (format!("D{meaning}"), String::new()));
        Ok(Part {
            name,
            words,
            value,
            many,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, and texts preceded by their lengths.
    struct Given(std::collections::VecDeque<Result<i32, &'static str>>);

    impl Pieces for Given {
        fn number(&mut self) -> Answer<i32> {
            match self.0.pop_front() {
                Some(Ok(number)) => Ok(number),
                Some(Err(text)) => {
                    self.0.push_front(Err(text));
                    Ok(text.len() as i32 + 1)
                }
                None => Err(Code::BAD_MESSAGE),
            }
        }
        fn bytes(&mut self, count: usize) -> Answer<Vec<u8>> {
            match self.0.pop_front() {
                Some(Err(text)) if count == text.len() + 1 => Ok(text.bytes().chain([0]).collect()),
                _ => Err(Code::BAD_MESSAGE),
            }
        }
    }

    fn given<const N: usize>(words: [Result<i32, &'static str>; N]) -> Given {
        Given(words.into())
    }

    #[test]
    fn an_event_is_described_once_and_known_then() {
        let mut reader = Reader::default();
        let meanings = given([Ok(MEANINGS), Ok(88), Err("TID"), Err("Task ID"), Ok(-4)]);
        assert_eq!(reader.read(&mut { meanings }), []);
        let unknown = given([Ok(RECORD), Ok(26), Ok(5), Ok(-8)]);
        assert_eq!(reader.read(&mut { unknown }), [], "nobody has described it");
        let described = [
            Ok(DESCRIPTION),
            Ok(26),
            Err("mytid"),
            Ok(88),
            Ok(INT),
            Ok(5),
        ];
        let list = [Ok(1), Ok(INT | ARRAY), Ok(2), Ok(7), Ok(8), Ok(-6)];
        let mut message = given(described);
        message.0.extend(list);
        let events = reader.read(&mut message);
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].name.as_str(), events[0].task()), ("mytid", 5));
        assert_eq!(events[0].parts[1].value, Value::Int(vec![7, 8]));
        let mut several = given([
            Ok(SEVERAL),
            Ok(RECORD),
            Ok(26),
            Ok(6),
            Ok(0),
            Ok(-8),
            Ok(-2),
        ]);
        assert_eq!(reader.read(&mut several)[0].task(), 6);
    }

    #[test]
    fn half_an_event_is_none() {
        let mut reader = Reader::default();
        let huge = given([Ok(DESCRIPTION), Ok(26), Ok(i32::MAX)]);
        assert_eq!(reader.read(&mut { huge }), []);
        let many = [
            Ok(DESCRIPTION),
            Ok(26),
            Err("x"),
            Ok(1),
            Ok(INT | ARRAY),
            Ok(-3),
        ];
        assert_eq!(reader.read(&mut given(many)), []);
    }
}
