//! The page: one self-contained file that fetches nothing from a network.

mod pictures;
mod timeline;

use crate::functions::Functions;
use crate::messages::Messages;
use crate::profile::Profile;
use crate::units::{count, html, script, time};

/// The policy by which the browser itself refuses any access outside of the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// Returns the whole page.
pub(crate) fn page(profile: &Profile, functions: &Functions, messages: &Messages) -> String {
    let (data, note) = timeline::data(profile, messages);
    let mut body = header(profile);
    body += &notes(profile);
    body += &section(
        "time",
        "Where the time goes",
        TIME,
        &pictures::times(profile),
    );
    body += &section("calls", "Calls", CALLS, &pictures::calls(profile));
    body += &section(
        "pairs",
        "Messages between tasks",
        PAIRS,
        &pictures::pairs(profile),
    );
    body += &section("sizes", "Messages by length", "", &pictures::sizes(profile));
    let functions = pictures::functions(functions);
    body += &section(
        "functions",
        "Where the processor time goes",
        FUNCTIONS,
        &functions,
    );
    body += &section("names", "Marks and toggles", "", &pictures::names(profile));
    if !note.is_empty() {
        let line = format!(
            "<p>{}</p>\n<div class=\"card\" id=\"line\"><canvas></canvas><div class=\"hint\">&nbsp;</div></div>\n\
             <noscript><p>The timeline needs JavaScript.</p></noscript>\n",
            html(&note)
        );
        body += &section("events", "Timeline", LINE, &line);
    }
    format!(
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n",
            "<title>Regatta profile</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
            "<main>\n{body}</main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n",
            "<script>\n{script}</script>\n</body>\n</html>\n"
        ),
        policy = POLICY,
        style = include_str!("page.css"),
        body = body,
        data = script(&data.to_string()),
        script = include_str!("page.js"),
    )
}

const TIME: &str = "Of each task's time, from its first moment to its last, the share outside of calls of Regatta (computing) and in calls of each kind. Receiving and waiting include the wait for other tasks. Idle is the time in which the task had no processor: it slept, or another process ran.";
const CALLS: &str = "The functions of libregatta.so, sums of all tasks. Interfaces such as PVM, NX and Express call these.";
const PAIRS: &str = "Bytes from the task of the row to the task of the column; darker means more. Collectives are not included.";
const FUNCTIONS: &str = "Samples of processor time: time in which a task sleeps is not included. Inlined functions count as their callers.";
const LINE: &str = "One row per task: calls in the colours above, the rest is computing. Lines are messages, from the start of the sending call to the end of the receiving call. Scroll to zoom, drag to move, double-click to reset, point at a call for its numbers.";

fn header(profile: &Profile) -> String {
    let Some(first) = profile.tasks.first() else {
        return "<header><p class=\"kicker\">Regatta profile</p><h1>No task was recorded</h1></header>\n"
            .to_owned();
    };
    let program = first
        .record
        .head
        .program
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let mut hosts: Vec<&str> = profile
        .tasks
        .iter()
        .map(|task| task.record.head.host.as_str())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    format!(
        "<header>\n<p class=\"kicker\">Regatta profile</p>\n<h1>{}: {} tasks, {}</h1>\n<p class=\"place\">on {}</p>\n</header>\n",
        html(program),
        count(profile.tasks.len() as u64),
        time(profile.span()),
        html(&hosts.join(", ")),
    )
}

fn notes(profile: &Profile) -> String {
    let notes = profile.problems.iter().map(|problem| {
        let problem = html(problem);
        format!("<p class=\"notice\">{problem}</p>\n")
    });
    notes.collect()
}

/// Returns a section with a heading and an explanation, or nothing if the body is empty.
fn section(id: &str, title: &str, about: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    let about = match about.is_empty() {
        true => String::new(),
        false => format!("<p>{about}</p>\n"),
    };
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{about}{body}</section>\n")
}
