//! Bars and tables, drawn by the browser from boxes, without a script.

use std::collections::BTreeMap;

use regatta_record::{Kind, longest};

use crate::functions::Functions;
use crate::profile::{Profile, Task};
use crate::units::{bytes, count, html, share, time};

/// CSS classes: the colours of computing and of each kind of call.
pub(super) const COLOURS: [&str; 6] = [
    "computing",
    "send",
    "receive",
    "wait",
    "collective",
    "other",
];
/// Maximum number of tasks for which a matrix is readable.
const MAX_MATRIX_TASKS: usize = 64;
/// Maximum number of functions on the page.
const MAX_FUNCTIONS: usize = 100;

/// Returns a stacked bar of parts, each with its class, title and share.
fn stack(parts: &[(&str, String, f64)]) -> String {
    let parts = parts.iter().filter(|(_, _, share)| *share > 0.0005);
    let boxes = parts.map(|(class, title, share)| {
        let (title, width) = (html(title), share * 100.0);
        format!("<b class=\"{class}\" style=\"width:{width:.2}%\" title=\"{title}\"></b>")
    });
    format!("<div class=\"stack\">{}</div>", boxes.collect::<String>())
}

/// Returns a table whose first `texts` columns are text or bars, and whose others are numbers.
fn table(class: &str, texts: usize, titles: &[&str], rows: &str) -> String {
    let titles = titles.iter().enumerate().map(|(at, title)| {
        let side = if at < texts { "" } else { " class=\"n\"" };
        format!("<th{side}>{title}</th>")
    });
    let titles: String = titles.collect();
    format!(
        "<div class=\"wide\"><table class=\"{class}\"><thead><tr>{titles}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn cells(cells: &[String]) -> String {
    cells
        .iter()
        .map(|cell| format!("<td class=\"n\">{}</td>", html(cell)))
        .collect()
}

/// Returns a bar for each task.
pub(super) fn times(profile: &Profile) -> String {
    if profile.tasks.is_empty() {
        return String::new();
    }
    let words = std::iter::once("computing").chain(Kind::ALL.map(Kind::word));
    let key = words
        .zip(COLOURS)
        .map(|(word, class)| format!("<span><i class=\"{class}\"></i>{word}</span>"));
    let longest = profile
        .tasks
        .iter()
        .map(|task| task.time)
        .max()
        .unwrap_or(1)
        .max(1);
    let rows = profile.tasks.iter().map(|task| {
        let parts = std::iter::once(task.computing()).chain(task.kinds);
        let words = std::iter::once("computing").chain(Kind::ALL.map(Kind::word));
        let parts = words.zip(parts).zip(COLOURS);
        let parts: Vec<(&str, String, f64)> = parts
            .map(|((word, part), class)| {
                let title = format!(
                    "{word}: {} ({})",
                    time(part),
                    share(part as f64, task.time as f64)
                );
                (class, title, part as f64 / longest as f64)
            })
            .collect();
        row_of(task, &stack(&parts))
    });
    let rows: String = rows.collect();
    let titles = [
        "task",
        "host",
        "",
        "time",
        "computing",
        "in calls",
        "idle",
        "sent",
        "",
        "received",
        "",
    ];
    format!(
        "<p class=\"key\">{}</p>\n{}",
        key.collect::<String>(),
        table("tasks", 3, &titles, &rows)
    )
}

fn row_of(task: &Task, bar: &str) -> String {
    let whole = task.time as f64;
    let calls = task
        .kinds
        .iter()
        .fold(0, |sum: u64, &time| sum.saturating_add(time));
    let mut numbers = vec![
        time(task.time),
        share(task.computing() as f64, whole),
        share(calls as f64, whole),
        task.idle
            .map_or("-".to_owned(), |idle| share(idle as f64, whole)),
    ];
    for (number, of) in task.totals() {
        numbers.extend([count(number), bytes(of)]);
    }
    let cut = if task.cut_short() { " (cut short)" } else { "" };
    format!(
        "<tr><th>{}{cut}</th><td>{}</td><td class=\"bar\">{bar}</td>{}</tr>\n",
        task.number,
        html(&task.record.head.host),
        cells(&numbers)
    )
}

/// Returns a row for each call.
pub(super) fn calls(profile: &Profile) -> String {
    let calls = profile.calls();
    let Some(most) = calls.first().map(|call| call.time.max(1)) else {
        return String::new();
    };
    let rows = calls.iter().map(|call| {
        let class = COLOURS[call.call.kind() as usize + 1];
        let part = (class, time(call.time), call.time as f64 / most as f64);
        format!(
            "<tr><th><code>{}</code></th><td>{}</td><td class=\"bar\">{}</td>{}</tr>\n",
            call.call.name(),
            call.call.kind().word(),
            stack(&[part]),
            cells(&[
                count(call.count),
                time(call.time),
                time(call.time / call.count.max(1)),
                time(call.longest),
                bytes(call.bytes),
                count(call.failed),
            ])
        )
    });
    let titles = [
        "call", "goes to", "", "calls", "time", "mean", "longest", "bytes", "failed",
    ];
    table("calls", 3, &titles, &rows.collect::<String>())
}

/// Returns a matrix of tasks, or nothing if there are too many.
pub(super) fn pairs(profile: &Profile) -> String {
    let pairs = profile.pairs();
    let mut tasks: Vec<u32> = pairs.keys().flat_map(|&(from, to)| [from, to]).collect();
    tasks.sort_unstable();
    tasks.dedup();
    if tasks.is_empty() {
        return String::new();
    }
    if tasks.len() > MAX_MATRIX_TASKS {
        let (all, most) = (tasks.len(), MAX_MATRIX_TASKS);
        return format!(
            "<p>{all} tasks have messages; a matrix is drawn for up to {most}. --json prints all pairs.</p>\n"
        );
    }
    let most = pairs.values().map(|pair| pair.1).max().unwrap_or(1).max(1) as f64;
    let head: String = tasks
        .iter()
        .map(|task| format!("<th class=\"n\">{task}</th>"))
        .collect();
    let rows =
        tasks.iter().map(|from| {
            let cells = tasks.iter().map(|to| match pairs.get(&(*from, *to)) {
            None => "<td></td>".to_owned(),
            Some((number, of)) => {
                let title = format!("{from} to {to}: {} messages, {}", count(*number), bytes(*of));
                let strength = 15.0 + 75.0 * (*of as f64 / most);
                let short = if tasks.len() > 12 { String::new() } else { bytes(*of) };
                format!(
                    "<td class=\"cell\" style=\"--strength:{strength:.0}%\" title=\"{}\">{}</td>",
                    html(&title),
                    html(&short)
                )
            }
        });
            format!(
                "<tr><th class=\"n\">{from}</th>{}</tr>\n",
                cells.collect::<String>()
            )
        });
    let rows: String = rows.collect();
    format!(
        "<div class=\"wide\"><table class=\"matrix\"><thead><tr><th></th>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Returns a row for each class of message lengths.
pub(super) fn sizes(profile: &Profile) -> String {
    let sizes = profile.sizes();
    let most = sizes
        .iter()
        .map(|[sent, received]| sent.0.max(received.0))
        .max();
    let most = most.unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let rows = sizes
        .iter()
        .enumerate()
        .filter(|(_, [sent, received])| sent.0 > 0 || received.0 > 0);
    let rows = rows.map(|(class, [sent, received])| {
        let bar = |class: &str, number: u64| {
            stack(&[(class, count(number), number as f64 / most as f64)])
        };
        format!(
            "<tr><th>{}</th><td class=\"bar\">{}{}</td>{}</tr>\n",
            html(&bytes(longest(class))),
            bar("send", sent.0),
            bar("receive", received.0),
            cells(&[
                count(sent.0),
                bytes(sent.1),
                count(received.0),
                bytes(received.1)
            ])
        )
    });
    let titles = ["up to", "", "sent", "bytes", "received", "bytes"];
    table("sizes", 2, &titles, &rows.collect::<String>())
}

/// Returns a row for each function.
pub(super) fn functions(functions: &Functions) -> String {
    let whole: f64 = functions.rows.iter().map(|row| row.time()).sum();
    let Some(most) = functions.rows.first().map(|row| row.time().max(1.0)) else {
        return String::new();
    };
    let rows = functions.rows.iter().take(MAX_FUNCTIONS).map(|row| {
        let each = row.times.iter().zip(&functions.tasks);
        let each: Vec<String> = each
            .filter(|(of, _)| **of > 0.0)
            .take(64)
            .map(|(of, task)| {
                let task = task.map_or("process".to_owned(), |task| task.to_string());
                format!("{task}: {}", time(*of as u64))
            })
            .collect();
        let (class, file) = match row.file.is_empty() {
            true => ("wait", "a call of Regatta".to_owned()),
            false => ("computing", row.file.clone()),
        };
        format!(
            "<tr><th><code>{}</code></th><td>{}</td><td class=\"bar\">{}</td>{}</tr>\n",
            html(&row.name),
            html(&file),
            stack(&[(class, each.join(", "), row.time() / most)]),
            cells(&[time(row.time() as u64), share(row.time(), whole)])
        )
    });
    let rows: String = rows.collect();
    let titles = ["function", "in", "", "time", "share"];
    format!(
        "<p>{} samples. Point at a bar for the time of each task.</p>\n{}",
        count(functions.samples),
        table("functions", 3, &titles, &rows)
    )
}

/// Returns a row for each name.
pub(super) fn names(profile: &Profile) -> String {
    let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for name in profile.tasks.iter().flat_map(|task| &task.record.names) {
        let sum = sums.entry(&name.text).or_default();
        for (sum, more) in sum.iter_mut().zip([name.marks, name.times, name.time]) {
            *sum = sum.saturating_add(more);
        }
    }
    if sums.is_empty() {
        return String::new();
    }
    let rows = sums.iter().map(|(name, [marks, times, on])| {
        let numbers = [
            count(*marks),
            count(*times),
            time(*on),
            time(on / (*times).max(1)),
        ];
        format!("<tr><th>{}</th>{}</tr>\n", html(name), cells(&numbers))
    });
    let titles = ["name", "marks", "times on", "time on", "mean"];
    table("names", 1, &titles, &rows.collect::<String>())
}
