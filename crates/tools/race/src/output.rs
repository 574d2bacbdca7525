//! Parses the output of the race's programs: the lines of `programs/primitives/main.c`, the last line of an application
//! (`programs/applications/README.md`), and the JSON of `regatta profile`.

use crate::run::MAX_REASON_CHARS;

/// One measured point of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Name of the operation.
    pub operation: String,
    /// Bytes of a message.
    pub bytes: u64,
    /// Operations per batch.
    pub batch: u64,
    /// Microseconds of one operation, for each batch.
    pub us: Vec<f64>,
}

/// The output of one launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The version that the library states.
    pub version: String,
    /// The path of messages, if the library reports it.
    pub path: String,
    /// Time of reading the clock, in ns.
    pub clock_ns: f64,
    /// For each task, the number of processors that it may run on, and the first of them.
    pub processors: Vec<(i32, i32)>,
    /// The operations that it cannot run, and the reasons.
    pub cannot: Vec<(String, String)>,
    /// The points, in the order they were measured.
    pub points: Vec<Point>,
    /// Whether the program ran to its end.
    pub done: bool,
    /// The result of an application.
    pub answer: Option<Answer>,
    /// The counts of a profiled application.
    pub counts: Option<Counts>,
}

/// The counts of a profiled run, as `regatta profile --json` writes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Bytes that all tasks send to others.
    pub volume: f64,
    /// Messages of all tasks; a task's part in a collective counts as one.
    pub messages: f64,
    /// The longest time that a task spends in calls that wait for others, s.
    pub waiting: f64,
}

/// The result of an application's run, from the line whose form programs/applications/README.md defines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Whether the answer was verified.
    pub verified: bool,
    /// Time of the measured part, s.
    pub seconds: f64,
    /// Time of communications within `seconds`, s, or `None` if the program does not report it.
    pub communicating: Option<f64>,
}

/// Parses a program's standard output. Lines that are not the program's (a library's warnings) are skipped, as is a
/// truncated last line.
pub fn parse(text: &str) -> Output {
    let mut output = Output::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "version" => output.version = printable(rest.trim()),
            "path" => output.path = printable(rest.trim()),
            "clock" => output.clock_ns = rest.trim().parse().unwrap_or(0.0),
            "processors" => output.processors = pairs(rest),
            "point" => output.add(point(rest)),
            "cannot" => output.cannot.extend(refusal(rest)),
            "done" => output.done = true,
            _ => {
                output.answer = answer(line).or(output.answer);
                output.counts = counts(line).or(output.counts);
            }
        }
    }
    output
}

fn pairs(text: &str) -> Vec<(i32, i32)> {
    let numbers: Vec<i32> = text
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// Removes control characters from another program's text and shortens it, for tables and reports.
fn printable(text: &str) -> String {
    let shown = text.chars().filter(|letter| !letter.is_control());
    shown.take(MAX_REASON_CHARS).collect()
}

fn refusal(text: &str) -> Option<(String, String)> {
    let (operation, why) = text.split_once(' ')?;
    Some((operation.to_owned(), printable(why)))
}

/// Reads `...: verified, SECONDS s, ..., SECONDS s in communications`.
fn answer(line: &str) -> Option<Answer> {
    let (_, text) = line.split_once(": ")?;
    let mut parts = text.split(", ");
    let verified = match parts.next()? {
        "verified" => true,
        "NOT VERIFIED" => false,
        _ => return None,
    };
    let seconds = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    let whole = parts.next()?.strip_suffix(" s")?;
    let share = parts.find_map(|part| part.strip_suffix(" s in communications"));
    Some(Answer {
        verified,
        seconds: seconds(whole)?,
        communicating: share.and_then(seconds),
    })
}

/// Parses the profile of a run, a line of JSON.
fn counts(line: &str) -> Option<Counts> {
    let profile: serde_json::Value = match line.starts_with('{') {
        true => serde_json::from_str(line).ok()?,
        false => return None,
    };
    let tasks = profile.get("tasks")?.as_array()?;
    let number =
        |of: &serde_json::Value, name: &str| of.get(name).and_then(serde_json::Value::as_f64);
    let of_tasks = |name| -> f64 { tasks.iter().filter_map(|task| number(task, name)).sum() };
    let calls = profile.get("calls")?.as_array()?;
    let collective =
        |call: &&serde_json::Value| call.get("kind").is_some_and(|kind| kind == "collective");
    let of_calls = |name| -> f64 {
        let here = calls.iter().filter(collective);
        here.filter_map(|call| number(call, name)).sum()
    };
    let waits = |task: &serde_json::Value| {
        let kinds = task.get("kinds")?;
        let each = ["receiving", "waiting", "collective"].map(|kind| number(kinds, kind));
        Some(each.iter().flatten().sum::<f64>())
    };
    let counts = Counts {
        volume: of_tasks("sent_bytes") + of_calls("bytes"),
        messages: of_tasks("sent") + of_calls("calls"),
        waiting: tasks.iter().filter_map(waits).fold(0.0, f64::max),
    };
    let sane = [counts.volume, counts.messages, counts.waiting];
    (!tasks.is_empty() && sane.iter().all(|value| value.is_finite() && *value >= 0.0))
        .then_some(counts)
}

fn point(text: &str) -> Option<Point> {
    let mut words = text.split(' ');
    let point = Point {
        operation: words.next()?.to_owned(),
        bytes: words.next()?.parse().ok()?,
        batch: words.next()?.parse().ok()?,
        us: words.map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    let known = !point.us.is_empty() && point.us.iter().all(|us| us.is_finite());
    known.then_some(point)
}

impl Output {
    /// Adds a point. The samples of a point that is printed again are added to it, since they are of the same launch.
    fn add(&mut self, point: Option<Point>) {
        let Some(point) = point else {
            return;
        };
        let same =
            |kept: &&mut Point| kept.operation == point.operation && kept.bytes == point.bytes;
        match self.points.iter_mut().find(same) {
            Some(kept) => kept.us.extend(point.us),
            None => self.points.push(point),
        }
    }

    /// Returns whether each task has one processor of its own.
    pub fn pinned_apart(&self) -> bool {
        let firsts: std::collections::BTreeSet<i32> = self.processors.iter().map(|p| p.1).collect();
        self.processors.iter().all(|p| p.0 == 1) && firsts.len() == self.processors.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_read_and_noise_is_skipped() {
        let output = parse(
            "version Some MPI\u{1b} 1.2\npath \ntasks 2\nclock 19.50\nWarning: something\nprocessors 1 0 1 1\n\
             point one-to-one 8 100 0.1 0.11\npoint barrier 0 10 1 2 3\npoint ring 8 1 0.\u{1}",
        );
        assert_eq!(output.version, "Some MPI 1.2");
        assert_eq!(output.clock_ns, 19.5);
        assert!(output.pinned_apart());
        assert!(!output.done);
        assert_eq!(output.points.len(), 2);
        assert_eq!(output.points[0].us, [0.1, 0.11]);
    }

    #[test]
    fn an_operation_that_cannot_be_run_has_its_reason() {
        let output = parse("cannot ring it does not run\u{7} with 1 task\ncannot barrier\ndone\n");
        let expected = ("ring".to_owned(), "it does not run with 1 task".to_owned());
        assert_eq!(output.cannot, [expected]);
        assert!(output.done);
    }

    #[test]
    fn a_time_that_is_no_number_makes_its_point_worthless() {
        for us in ["inf", "1 nan 2", "-inf", ""] {
            let output = parse(&format!("point ring 8 1 {us}\n"));
            assert!(output.points.is_empty(), "{us}: {output:?}");
        }
    }

    #[test]
    fn a_point_that_is_printed_twice_is_one_point() {
        let output = parse("point ring 8 1 1 2\npoint ring 8 1 3\npoint ring 16 1 4\n");
        let samples: Vec<usize> = output.points.iter().map(|point| point.us.len()).collect();
        assert_eq!(samples, [3, 1]);
    }

    #[test]
    fn the_answer_of_an_application_is_read() {
        let read = |text: &str| parse(text).answer;
        let gauss = "warning: x\ngauss-row-block, 64 unknowns, 2 tasks: verified, 0.000210 s, 831.2 Mop/s, 0.0001 s in communications\n";
        let expected = Answer {
            verified: true,
            seconds: 0.00021,
            communicating: Some(0.0001),
        };
        assert_eq!(read(gauss), Some(expected));
        let wrong = read("npb-ep class S, 1 tasks: NOT VERIFIED, 1.5 s, 11 Mop/s\n").unwrap();
        assert_eq!((wrong.verified, wrong.communicating), (false, None));
        for other in [
            "x: verified",
            "x: verified, nan s, y",
            "x: verified, -1 s",
            "verified, 1 s",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn the_profile_of_an_application_is_summed_up() {
        let task = |sent: u32, waits: f64| {
            format!(
                r#"{{"sent":{sent},"sent_bytes":100,"kinds":{{"receiving":{waits},"waiting":0.5,"collective":0.25,"sending":9}}}}"#
            )
        };
        let line = format!(
            r#"{{"event":"profile","calls":[{{"kind":"collective","calls":4,"bytes":8}},{{"kind":"sending","calls":7,"bytes":70}}],"tasks":[{},{}]}}"#,
            task(3, 1.0),
            task(4, 2.0)
        );
        let expected = Counts {
            volume: 208.0,
            messages: 11.0,
            waiting: 2.75,
        };
        assert_eq!(parse(&line).counts, Some(expected));
        for other in ["{", "{}", r#"{"tasks":[],"calls":[]}"#] {
            assert_eq!(parse(other).counts, None, "{other}");
        }
    }

    #[test]
    fn tasks_that_share_a_processor_are_noticed() {
        assert!(!parse("processors 1 0 1 0\n").pinned_apart());
        assert!(!parse("processors 2 0 2 0\n").pinned_apart());
    }
}
