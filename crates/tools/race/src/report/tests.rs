//! The promises of the whole page: complete, safe from its data, and alone in the world.

use super::{page, render, sample};
use crate::reference::{Point, points};
use crate::results::{Results, Row};

/// The page without the charting library's own text.
fn own(results: &Results, reference: &[Point]) -> String {
    let (html, library) = (render(results, reference), page::library());
    assert!(html.contains(&library), "the library is part of the page");
    html.replace(&library, "")
}

#[test]
fn the_page_fetches_nothing() {
    let html = own(&sample::results(), &points());
    for forbidden in [
        "http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "<img", "fetch(",
        "import(",
    ] {
        assert!(
            !html.contains(forbidden),
            "{forbidden:?} in {:?}",
            around(&html, forbidden)
        );
    }
    for (at, _) in html.match_indices("href=\"") {
        assert_eq!(&html[at + 6..at + 7], "#", "only links within the page");
    }
    assert!(
        html.contains("default-src 'none'"),
        "the browser is told to refuse the rest"
    );
}

fn around<'a>(text: &'a str, part: &str) -> &'a str {
    let at = text.find(part).unwrap_or(0);
    let end = text
        .char_indices()
        .map(|(i, _)| i)
        .find(|i| *i >= at + 80)
        .unwrap_or(text.len());
    &text[at..end]
}

#[test]
fn only_the_library_that_is_needed_is_embedded() {
    let library = page::library();
    assert!(library.starts_with("<script") && library.trim_end().ends_with("</script>"));
    assert!(
        library.contains("plotly.js v") && library.contains("MIT license"),
        "with its licence"
    );
    assert!(library.len() < 5_000_000, "{} bytes", library.len());
    assert_eq!(library.matches("</script>").count(), 1);
}

#[test]
fn every_part_is_there() {
    let html = own(&sample::results(), &points());
    for part in [
        "id=\"score\"",
        "id=\"plots\"",
        "id=\"rows\"",
        "id=\"environments\"",
        "id=\"machine\"",
        "id=\"method\"",
        "id=\"warnings\"",
        "Open MPI",
        "5.0.11",
        "--mca pml ob1",
        "Example CPU 9000",
        "time-out",
        "NX on Intel iPSC/860, 1997",
        "GB/s",
        "prefers-color-scheme",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(
        html.matches("<tr><td>").count(),
        sample::results().rows.len(),
        "every row is in the table"
    );
}

#[test]
fn each_chart_has_its_data_and_the_data_is_json() {
    let html = own(&sample::results(), &points());
    let charts = html.matches("data-from=\"").count();
    assert!(charts > 10, "{charts} charts");
    let data: Vec<&str> = html
        .split("<script type=\"application/json\"")
        .skip(1)
        .collect();
    assert_eq!(data.len(), charts);
    for script in data {
        let json = script
            .split_once('>')
            .and_then(|(_, rest)| rest.split_once("</script>"))
            .expect("a whole element")
            .0;
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert!(
            value["data"]
                .as_array()
                .is_some_and(|traces| !traces.is_empty())
        );
    }
}

#[test]
fn the_papers_points_stand_in_the_plots() {
    let with = own(&sample::results(), &points())
        .matches("\"meta\":\"then\"")
        .count();
    let without = own(&sample::results(), &[])
        .matches("\"meta\":\"then\"")
        .count();
    assert!(with >= 4 && without == 0, "{with} and {without}");
}

fn hostile_row(evil: &str) -> Row {
    Row {
        suite: evil.into(),
        operation: evil.into(),
        network: evil.into(),
        unit: evil.into(),
        path: evil.into(),
        flags: vec![evil.into()],
        ..sample::row("x", evil, 2, 8, 1.0)
    }
}

#[test]
fn hostile_data_stays_text() {
    let evil = "\"><script>alert('x')</script><img src=x onerror=y>&%{x}</style>";
    let mut results = sample::results();
    let machine = &mut results.machine;
    for text in [
        &mut machine.cpu,
        &mut machine.caches,
        &mut machine.system,
        &mut machine.kernel,
        &mut machine.virtual_machine,
        &mut machine.governor,
        &mut machine.compiler,
        &mut machine.command,
    ] {
        *text = evil.into();
    }
    for environment in &mut results.environments {
        environment.version = evil.into();
        environment.library = evil.into();
        environment.settings.push(crate::results::Setting {
            setting: evil.into(),
            when: evil.into(),
            reason: evil.into(),
        });
    }
    results.notes.push(evil.into());
    let hostile = hostile_row(evil);
    results.rows.push(Row {
        environment: "regatta".into(),
        suite: "start".into(),
        ..hostile.clone()
    });
    results.rows.push(Row {
        suite: "start".into(),
        ..hostile
    });
    let paper = Point {
        paper: evil.into(),
        table: evil.into(),
        operation: "one-to-one".into(),
        platform: evil.into(),
        network: "FDDI".into(),
        environment: evil.into(),
        processors: 2,
        bytes: 8,
        us: 1.0,
    };
    let html = own(&results, &[paper]);
    let scripts = html.matches("<script").count();
    assert_eq!(scripts, html.matches("</script>").count());
    assert_eq!(
        scripts,
        html.matches("<script type=\"application/json\"").count() + 1
    );
    assert!(!html.contains("<img") && html.matches("</style>").count() == 1);
}

#[test]
fn a_race_without_rows_is_still_a_page() {
    let mut results = sample::results();
    results.rows.clear();
    results.environments.clear();
    let html = own(&results, &points());
    assert!(html.contains("took no part") && html.contains("id=\"machine\""));
}

#[test]
fn odd_numbers_do_not_break_the_page() {
    let mut results = sample::results();
    for (row, value) in results.rows.iter_mut().zip(
        [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300]
            .into_iter()
            .cycle(),
    ) {
        (row.median, row.ci95, row.p99) = (value, [value, value], value);
    }
    render(&results, &points());
    super::picture(&results);
}
