//! The profile as tables on a terminal.

use std::path::Path;

use regatta_record::{Kind, longest};

use crate::functions::Functions;
use crate::messages::Messages;
use crate::profile::{Profile, Task};
use crate::units::{bytes, count, plain, share, time};

/// Maximum number of rows shown of a table. The page has all of them.
const MAX_ROWS: usize = 20;

/// A table: a title for each column, and rows of as many cells. The first `texts` columns are text, the others numbers.
struct Table {
    titles: Vec<&'static str>,
    texts: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(texts: usize, titles: &[&'static str]) -> Table {
        Table {
            titles: titles.to_vec(),
            texts,
            rows: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let mut widths: Vec<usize> = self.titles.iter().map(|title| title.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let titles: Vec<String> = self.titles.iter().map(|&title| title.to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = " ".repeat(width - cell.chars().count());
                line += "  ";
                line += &match at < self.texts {
                    true => format!("{cell}{gap}"),
                    false => format!("{gap}{cell}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Returns all tables.
pub(crate) fn text(
    profile: &Profile,
    functions: &Functions,
    messages: &Messages,
    report: Option<&Path>,
) -> String {
    let nothing = profile.tasks.is_empty() && functions.rows.is_empty();
    if nothing && profile.problems.is_empty() {
        return String::new();
    }
    let mut parts = vec![title(profile)];
    if !profile.tasks.is_empty() {
        parts.push(times(profile));
        parts.push(calls(profile));
        parts.push(pairs(profile));
        parts.push(sizes(profile));
    }
    parts.push(of_functions(functions));
    parts.push(names(profile));
    parts.push(events(profile, messages));
    let mut end = String::new();
    for problem in &profile.problems {
        end += &format!("note: {}\n", plain(problem));
    }
    if let Some(report) = report {
        end += &format!("HTML page: {}\n", report.display());
    }
    parts.push(end);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn title(profile: &Profile) -> String {
    let Some(first) = profile.tasks.first() else {
        return "Profile: no task was recorded\n".to_owned();
    };
    let name = first.record.head.program.rsplit('/').next();
    format!(
        "Profile of {}: {} task{}, {}\n",
        plain(name.unwrap_or_default()),
        profile.tasks.len(),
        if profile.tasks.len() == 1 { "" } else { "s" },
        time(profile.span())
    )
}

fn times(profile: &Profile) -> String {
    let mut titles = vec!["task", "time", "computing"];
    titles.extend(Kind::ALL.map(Kind::word));
    titles.extend(["idle", "sent", "", "received", ""]);
    let hosts = profile.several_hosts();
    if hosts {
        titles.insert(1, "host");
    }
    let mut table = Table::new(if hosts { 2 } else { 1 }, &titles);
    let shown = profile.tasks.iter().take(64);
    table.rows = shown.map(|task| row_of(task, hosts)).collect();
    let mut sum = sum(profile);
    if hosts {
        sum.insert(1, String::new());
    }
    table.rows.push(sum);
    format!(
        "Where the time goes (idle: part of it without a processor)\n{}",
        table.text()
    )
}

fn row_of(task: &Task, hosts: bool) -> Vec<String> {
    let mut row = vec![task.number.to_string()];
    if hosts {
        row.push(plain(&task.record.head.host));
    }
    row.push(time(task.time));
    let parts = std::iter::once(task.computing()).chain(task.kinds);
    row.extend(parts.map(|part| share(part as f64, task.time as f64)));
    row.push(
        task.idle
            .map_or("-".to_owned(), |idle| share(idle as f64, task.time as f64)),
    );
    for (number, of) in task.totals() {
        row.extend([count(number), bytes(of)]);
    }
    row
}

fn sum(profile: &Profile) -> Vec<String> {
    let add = |of: &dyn Fn(&Task) -> u64| {
        let all = profile.tasks.iter().map(of);
        all.fold(0, u64::saturating_add)
    };
    let whole = add(&|task| task.time);
    let mut row = vec!["all".to_owned(), time(whole)];
    row.push(share(add(&Task::computing) as f64, whole as f64));
    for kind in 0..Kind::ALL.len() {
        row.push(share(add(&|task| task.kinds[kind]) as f64, whole as f64));
    }
    let idle = add(&|task| task.idle.unwrap_or_default());
    row.push(share(idle as f64, whole as f64));
    for way in 0..2 {
        row.push(count(add(&|task| task.totals()[way].0)));
        row.push(bytes(add(&|task| task.totals()[way].1)));
    }
    row
}

fn calls(profile: &Profile) -> String {
    let calls = profile.calls();
    let titles = [
        "call", "goes to", "calls", "time", "mean", "longest", "bytes", "failed",
    ];
    let mut table = Table::new(2, &titles);
    table.rows = calls
        .iter()
        .take(MAX_ROWS)
        .map(|call| {
            vec![
                call.call.name().to_owned(),
                call.call.kind().word().to_owned(),
                count(call.count),
                time(call.time),
                time(call.time / call.count.max(1)),
                time(call.longest),
                bytes(call.bytes),
                count(call.failed),
            ]
        })
        .collect();
    format!("Calls of all tasks\n{}", table.text())
}

fn pairs(profile: &Profile) -> String {
    let mut pairs: Vec<_> = profile.pairs().into_iter().collect();
    if pairs.is_empty() {
        return String::new();
    }
    let all = pairs.len();
    pairs.sort_by_key(|(_, (number, bytes))| std::cmp::Reverse((*bytes, *number)));
    let mut table = Table::new(0, &["from", "to", "messages", "bytes"]);
    table.rows = pairs
        .iter()
        .take(MAX_ROWS)
        .map(|((from, to), (number, of))| {
            vec![from.to_string(), to.to_string(), count(*number), bytes(*of)]
        })
        .collect();
    let more = match all {
        0..=MAX_ROWS => String::new(),
        _ => format!(" (the {MAX_ROWS} with the most bytes of {all})"),
    };
    format!("Messages between tasks{more}\n{}", table.text())
}

fn sizes(profile: &Profile) -> String {
    let mut table = Table::new(0, &["up to", "sent", "bytes", "received", "bytes"]);
    for (class, [sent, received]) in profile.sizes().iter().enumerate() {
        if sent.0 == 0 && received.0 == 0 {
            continue;
        }
        table.rows.push(vec![
            bytes(longest(class)),
            count(sent.0),
            bytes(sent.1),
            count(received.0),
            bytes(received.1),
        ]);
    }
    match table.rows.is_empty() {
        true => String::new(),
        false => format!("Messages by length\n{}", table.text()),
    }
}

fn of_functions(functions: &Functions) -> String {
    if functions.rows.is_empty() {
        return String::new();
    }
    let whole: f64 = functions.rows.iter().map(|row| row.time()).sum();
    let mut table = Table::new(0, &["share", "time", "function"]);
    table.texts = 0;
    let mut lines = String::new();
    for row in functions.rows.iter().take(MAX_ROWS) {
        let file = match row.file.is_empty() {
            true => "  (a call of Regatta)".to_owned(),
            false => format!("  ({})", plain(&row.file)),
        };
        // The last column is text of any length.
        lines += &format!(
            "  {:>8}  {:>8}  {}{file}\n",
            share(row.time(), whole),
            time(row.time() as u64),
            plain(&row.name)
        );
    }
    let head = format!("  {:>8}  {:>8}  function\n", "share", "time");
    let samples = count(functions.samples);
    format!("Where the processor time goes ({samples} samples)\n{head}{lines}")
}

fn names(profile: &Profile) -> String {
    let mut sums = std::collections::BTreeMap::new();
    for name in profile.tasks.iter().flat_map(|task| &task.record.names) {
        let sum = sums.entry(&name.text).or_insert((0u64, 0u64, 0u64));
        *sum = (
            sum.0.saturating_add(name.marks),
            sum.1.saturating_add(name.times),
            sum.2.saturating_add(name.time),
        );
    }
    if sums.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, &["name", "marks", "times on", "time on", "mean"]);
    let cells = |(name, (marks, times, on)): (&String, (u64, u64, u64))| {
        vec![
            plain(name),
            count(marks),
            count(times),
            time(on),
            time(on / times.max(1)),
        ]
    };
    table.rows = sums.into_iter().map(cells).collect();
    format!("Marks and toggles of the program\n{}", table.text())
}

fn events(profile: &Profile, messages: &Messages) -> String {
    let there: usize = profile
        .tasks
        .iter()
        .map(|task| task.record.events.len())
        .sum();
    if there == 0 {
        return String::new();
    }
    let lost = profile
        .tasks
        .iter()
        .map(|task| task.record.head.events_lost);
    let lost = lost.fold(0, u64::saturating_add);
    let late = messages
        .late
        .values()
        .fold(0, |sum: u64, &late| sum.saturating_add(late));
    let older = match lost {
        0 => String::new(),
        _ => format!(", {} older ones were overwritten (--events)", count(lost)),
    };
    format!(
        "Events: {}{older}; {} messages recorded at both ends; receivers waited {} for senders that had not started\n",
        count(there as u64),
        count(messages.arrows.len() as u64),
        time(late)
    )
}
