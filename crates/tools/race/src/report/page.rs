//! The frame of the page: head, style, scripts, header and footer.

use plotly::Plot;

use super::portability;
use super::text::{date, html};
use crate::results::Results;

/// The browser itself refuses whatever would leave the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// The page around `body`; `data` are the script elements that hold the plots' data.
pub fn whole(results: &Results, body: &str, data: &str) -> String {
    format!(
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n",
            "<title>Regatta race, {date}</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
            "<main>\n{body}</main>\n{data}{library}<script>\n{script}</script>\n</body>\n</html>\n"
        ),
        policy = POLICY,
        date = date(results.machine.started),
        style = include_str!("page.css"),
        body = body,
        data = data,
        library = library(),
        script = include_str!("page.js"),
    )
}

/// The charting library's own script, with its licence line. The crate embeds a second one that
/// sets formulae; it is as large as a third of the file and no plot of ours has a formula.
pub fn library() -> String {
    let scripts = Plot::offline_js_sources();
    let end = scripts
        .find("</script>")
        .map_or(scripts.len(), |at| at + "</script>".len());
    scripts[..end].to_owned() + "\n"
}

/// Title, verdict, and what was raced where and when.
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
    format!(
        "<header>\n<p class=\"kicker\">Regatta race</p>\n<h1>{}</h1>\n<p class=\"place\">{}</p>\n<nav>{}</nav>\n</header>\n",
        html(verdict),
        place.join(" <span class=\"dot\">·</span> "),
        nav(results),
    )
}

fn nav(results: &Results) -> String {
    let portability = portability::is_there(results);
    let links = [
        ("glance", "At a glance"),
        ("score", "Scoreboard"),
        (portability::ANCHOR, "Portability"),
        ("plots", "Plots"),
        ("rows", "All numbers"),
        ("environments", "Environments"),
        ("machine", "Machine"),
        ("method", "Method"),
        ("warnings", "Warnings"),
    ];
    links
        .into_iter()
        .filter(|(id, _)| portability || *id != portability::ANCHOR)
        .map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>"))
        .collect()
}

fn cores(cores: u32) -> String {
    super::text::count(cores.into(), "core")
}

/// Units, once and for all.
pub fn footer() -> String {
    "<footer><p>Units: 1 us = 10<sup>-6</sup> s; 1 GB/s = 10<sup>9</sup> bytes per second; 1 KiB = 1024 bytes. \
     The plots are drawn by plotly.js (MIT licence), which is part of this file.</p></footer>\n"
        .into()
}

/// A section with a heading and an anchor.
pub fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")
}
