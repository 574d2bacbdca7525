//! Events as text, in the format of Pablo's trace files (SDDF), which PVM's tools read: each kind is described before the
//! first of it.

use std::collections::BTreeSet;

use crate::events::{Event, Part, Value};
use crate::machine::Host;

/// Which side of a call an event is, beside its number.
const ENTRY: i32 = 0x4000;
const EXIT: i32 = 0x8000;
/// Numbers of what tracers tell by themselves.
const HOST_ADDED: i32 = 401;
const OUTPUT: i32 = 404;

/// The output so far.
#[derive(Default)]
pub struct Writer {
    described: BTreeSet<i32>,
}

/// Whole numbers, texts.
fn int(name: &str, words: &str, value: i32) -> Part {
    part(name, words, Value::Int(vec![value]))
}

fn string(name: &str, words: &str, value: &str) -> Part {
    part(name, words, Value::Text(vec![value.to_owned()]))
}

fn part(name: &str, words: &str, value: Value) -> Part {
    Part {
        name: name.to_owned(),
        words: words.to_owned(),
        value,
        many: false,
    }
}

/// An event of the console's own: when, whose, and the rest.
fn own(number: i32, name: &str, now: (i32, i32), task: i32, rest: Vec<Part>) -> Event {
    let first = [
        int("TS", "Time Seconds", now.0),
        int("TU", "Time Microseconds", now.1),
        int("TID", "Task ID", task),
    ];
    Event {
        number,
        name: name.to_owned(),
        parts: first.into_iter().chain(rest).collect(),
    }
}

/// A host that is there.
pub fn host_added(host: &Host, now: (i32, i32)) -> Event {
    let rest = vec![
        string("HN", "Host Name", &host.name),
        string("HNA", "Host Name Alias", &host.name),
        string("HA", "Host Architecture", &host.arch),
        int("HSP", "Host Speed", host.speed),
    ];
    own(HOST_ADDED, "host_add", now, host.tid, rest)
}

/// The event of a task's output.
pub fn output(task: i32, text: &str, now: (i32, i32)) -> Event {
    let rest = vec![string("OS", "Output String", text)];
    own(OUTPUT, "output", now, task, rest)
}

/// How the file begins, with these words about the date and the console.
pub fn heading(date: &str, console: &str) -> String {
    format!("/*\n * \"Creation Date\" \"{date}\"\n * \"Machine\" \"{console}\"\n */ ;;\n\n")
}

impl Writer {
    /// An event, and its description if it is the first of its kind.
    pub fn write(&mut self, event: &Event) -> String {
        let plain = event.number & !(ENTRY | EXIT);
        let (tag, side) = match event.number & (ENTRY | EXIT) {
            EXIT => (2001 + 2 * plain, "(1.1)"),
            ENTRY => (1000 + 2 * plain, "(0.0)"),
            _ => (1000 + 2 * plain, "(0)"),
        };
        let name = format!("\"{}{side}\"", event.name);
        let mut text = String::new();
        if self.described.insert(event.number) {
            text += &format!("\n#{tag}: {name}\n{{\n");
            for part in &event.parts {
                let (kind, many) = (kind(&part.value), if part.many { "[]" } else { "" });
                let (short, words) = (&part.name, &part.words);
                text += &format!(
                    "\t// \"{short}\" \"{words}\"\n\t{} \"{short}\"{}{many};\n",
                    kind.0, kind.1
                );
            }
            text += "};;\n\n";
        }
        let values: Vec<String> = event.parts.iter().map(shown).collect();
        text + &format!("{name} {{ {} }};;\n", values.join(", "))
    }
}

/// The type of a value, and what follows the name of one.
fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Int(_) => ("int", ""),
        Value::Real(_) => ("double", ""),
        Value::Text(_) => ("char", "[]"),
    }
}

fn shown(part: &Part) -> String {
    let (values, longest): (Vec<String>, usize) = match &part.value {
        Value::Int(numbers) => (numbers.iter().map(i32::to_string).collect(), 0),
        Value::Real(numbers) => (numbers.iter().map(f64::to_string).collect(), 0),
        Value::Text(texts) => {
            let quoted = texts
                .iter()
                .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
            let longest = texts.iter().map(String::len).max().unwrap_or(0) + 1;
            (quoted.collect(), longest)
        }
    };
    let list = values.join(", ");
    match (part.many, longest) {
        (true, 0) => format!("[{}] {{ {list} }}", values.len()),
        (true, longest) => format!("[{}] [{longest}] {{ {list} }}", values.len()),
        (false, 0) => list,
        (false, longest) => format!("[{longest}] {{ {list} }}"),
    }
}

/// A time as C's `ctime` tells it, of seconds since 1970, in universal time.
pub fn date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ];
    let (day, second) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
    // Years that begin in March end with the day that is sometimes there.
    let since = day + 719_468;
    let (era, in_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let in_month = in_year - (153 * month + 2) / 5 + 1;
    let year = year + 400 * era + i64::from(month >= 10);
    let weekday = DAYS[day.rem_euclid(7) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let month = MONTHS[month as usize];
    format!("{weekday} {month} {in_month:2} {hour:02}:{minute:02}:{second:02} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_described_before_the_first_of_it() {
        let mut writer = Writer::default();
        let mut event = output(0x40002, "a \"b\"", (3, 4));
        assert_eq!(
            writer.write(&event),
            "\n#1808: \"output(0)\"\n{\n\t// \"TS\" \"Time Seconds\"\n\tint \"TS\";\n\
             \t// \"TU\" \"Time Microseconds\"\n\tint \"TU\";\n\t// \"TID\" \"Task ID\"\n\tint \"TID\";\n\
             \t// \"OS\" \"Output String\"\n\tchar \"OS\"[];\n};;\n\n\
             \"output(0)\" { 3, 4, 262146, [6] { \"a \\\"b\\\"\" } };;\n"
        );
        event.number = 26 | EXIT;
        event.parts.truncate(1);
        event.parts[0].value = Value::Text(vec!["ab".into(), "c".into()]);
        event.parts[0].many = true;
        let text = writer.write(&event);
        assert!(text.starts_with("\n#2053: \"output(1.1)\"\n"), "{text}");
        assert!(text.contains("char \"TS\"[][];"), "{text}");
        assert_eq!(
            writer.write(&event),
            "\"output(1.1)\" { [2] [3] { \"ab\", \"c\" } };;\n"
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(date(1_795_308_968), "Sun Nov 22 00:56:08 2026");
    }
}
