//! The frame of the page: head, style, scripts, header and footer.

use super::text::{date, html};
use super::{advice, applications, cliffs, guidelines, paper_tables, portability};
use crate::results::Results;

/// Content security policy: the browser refuses to load anything from outside the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// Returns the page around `body`. `data` is the script element with the data that the page's script draws.
pub fn whole(results: &Results, body: &str, data: &str) -> String {
    format!(
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n",
            "<title>Regatta race, {date}</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
            "<main>\n{body}</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n{data}<script>\n{script}</script>\n</body>\n</html>\n"
        ),
        policy = POLICY,
        date = date(results.machine.started),
        style = include_str!("page.css"),
        body = body,
        data = data,
        script = include_str!("page.js"),
    )
}

/// Returns the title, the verdict, and what was raced, where and when.
pub fn header(results: &Results, verdict: &str) -> String {
    let machine = &results.machine;
    let place = [
        machine.cpu.clone(),
        cores(machine.cores),
        date(machine.started),
    ];
    let place: Vec<String> = place
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| html(part))
        .collect();
    // The recommendation comes first. Without one, the verdict takes its place.
    let (answer, standing) = match advice::sentences(results) {
        Some([answer, sure]) => {
            let [sure, verdict] = [sure.as_str(), verdict].map(html);
            (
                answer,
                format!("<p class=\"sure\">{sure}</p>\n<p class=\"standing\">{verdict}</p>\n"),
            )
        }
        None => (verdict.to_owned(), String::new()),
    };
    format!(
        "<header>\n<p class=\"kicker\">Regatta race</p>\n<h1>{}</h1>\n{standing}<p class=\"place\">{}</p>\n<nav aria-label=\"Sections\">{}</nav>\n</header>\n",
        html(&answer),
        place.join(" <span class=\"dot\">·</span> "),
        nav(results),
    )
}

fn nav(results: &Results) -> String {
    let is_there = |id: &str| match id {
        portability::ANCHOR => portability::is_there(results),
        cliffs::ANCHOR => cliffs::is_there(results),
        guidelines::ANCHOR => guidelines::is_there(results),
        paper_tables::ANCHOR => paper_tables::is_there(results),
        applications::ANCHOR => applications::is_there(results),
        _ => true,
    };
    let links = [
        ("advice", "Which library"),
        (applications::ANCHOR, "Applications"),
        ("glance", "At a glance"),
        ("score", "Scoreboard"),
        (portability::ANCHOR, "Portability"),
        (cliffs::ANCHOR, "Cliffs"),
        (guidelines::ANCHOR, "Guidelines"),
        (paper_tables::ANCHOR, "Then and now"),
        ("plots", "Plots"),
        ("rows", "All numbers"),
        ("environments", "Environments"),
        ("machine", "Machine"),
        ("method", "Method"),
        ("warnings", "Warnings"),
    ];
    links
        .into_iter()
        .filter(|(id, _)| is_there(id))
        .map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>"))
        .collect()
}

fn cores(cores: u32) -> String {
    super::text::count(cores.into(), "core")
}

/// Returns the explanation of units.
pub fn footer() -> String {
    "<footer><p>Units: 1 us = 10<sup>-6</sup> s; 1 GB/s = 10<sup>9</sup> bytes per second; 1 KiB = 1024 bytes. \
     This file contains the whole page and does not access the network.</p></footer>\n"
        .into()
}

/// Returns a section with a heading and an anchor.
pub fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")
}
