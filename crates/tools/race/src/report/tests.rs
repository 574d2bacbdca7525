//! Tests of the whole page: it is complete, escapes its data, and loads nothing from outside.

use super::{render, sample};
use crate::reference::{Point, points};
use crate::results::{Results, Row};

fn own(results: &Results, reference: &[Point]) -> String {
    render(results, reference)
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

/// Returns the data that the page's script draws.
fn data(html: &str) -> serde_json::Value {
    let (_, rest) = html
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("data");
    let json = rest.split_once("</script>").expect("a whole element").0;
    serde_json::from_str(json).expect("JSON")
}

/// A race of every suite has about ten times the rows of a quick race of the default suites. Its page can still be sent
/// and opened on a phone.
#[test]
fn the_page_of_a_race_of_all_suites_stays_below_two_megabytes() {
    let mut results = sample::results();
    let rows = results.rows.clone();
    for number in 0..COPIES {
        results.rows.extend(rows.iter().map(|row| Row {
            suite: format!("suite-{number}"),
            operation: format!("{}-{number}", row.operation),
            ..row.clone()
        }));
    }
    assert!(results.rows.len() > 10_000, "{}", results.rows.len());
    let html = own(&results, &points());
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    let usual = own(&sample::results(), &points());
    assert!(usual.len() < 250_000, "{} bytes", usual.len());
}

/// Number of times that the sample's rows are repeated for a race of all suites.
const COPIES: usize = 24;

#[test]
fn the_first_screen_answers_the_reader_s_question() {
    let html = own(&sample::results(), &points());
    let (before, _) = html.split_once("<h2").expect("sections");
    let (_, title) = before.split_once("<h1>").expect("a title");
    let (title, after) = title.split_once("</h1>").expect("a whole title");
    assert!(
        title.starts_with("On this machine, use Regatta for short messages"),
        "{title}"
    );
    assert!(after.contains("This is sure for"), "{after}");
    assert!(title.len() < 300, "it is read in ten seconds: {title}");
    assert!(after.contains("a message of 8 B takes"), "{after}");
    let first = html.split("<h2>").nth(1).expect("a section");
    assert!(
        first.starts_with("Which library for which pattern"),
        "{first}"
    );
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
        data(&html)["rows"].as_array().map(Vec::len),
        Some(sample::results().rows.len()),
        "every row is in the data of the table"
    );
}

#[test]
fn each_plot_has_its_data_and_all_its_rows_are_there() {
    let html = own(&sample::results(), &points());
    let data = data(&html);
    let (figures, rows) = (&data["figures"], data["rows"].as_array().expect("rows"));
    let panels: Vec<&serde_json::Value> = figures
        .as_array()
        .expect("figures")
        .iter()
        .flat_map(|figure| figure["panels"].as_array().expect("panels"))
        .collect();
    assert!(panels.len() > 10, "{} panels", panels.len());
    assert_eq!(html.matches("data-from=\"").count(), panels.len());
    for panel in panels {
        let numbers = panel["rows"].as_array().expect("numbers of rows");
        assert!(!numbers.is_empty());
        for number in numbers {
            assert!(
                number
                    .as_u64()
                    .is_some_and(|number| (number as usize) < rows.len())
            );
        }
    }
}

/// The papers' points have an axis of their own, so they are not values of the panel.
#[test]
fn the_papers_points_stand_below_the_plots() {
    let then = |reference: &[Point]| -> usize {
        let html = own(&sample::results(), reference);
        let data = data(&html);
        let figures = data["figures"].as_array().expect("figures").clone();
        let panels = figures
            .iter()
            .flat_map(|figure| figure["panels"].as_array().expect("panels").clone());
        panels
            .filter(|panel| {
                panel["then"]
                    .as_array()
                    .is_some_and(|list| !list.is_empty())
            })
            .count()
    };
    assert!(then(&points()) >= 4);
    assert_eq!(then(&[]), 0);
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
    assert_eq!(
        html.matches("<script").count(),
        2,
        "data and the page's own"
    );
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(data(&html)["rows"].is_array());
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
