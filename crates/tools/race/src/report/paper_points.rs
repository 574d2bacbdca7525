//! The papers' points beside a panel of today.

use super::panels::{Figure, Over, Panel, Quantity};
use super::text;
use crate::operations;
use crate::reference::Point;

/// Returns the papers' points for `panel`. If no paper used as many processors, those with the next larger number are
/// used, which the hover text shows.
pub fn beside<'a>(figure: &Figure, panel: &Panel, reference: &'a [Point]) -> Vec<&'a Point> {
    if figure.quantity != Quantity::Bandwidth && !times(figure) {
        return Vec::new();
    }
    let known = operations::find(figure.operation);
    let name = known.map_or(figure.operation, |one| one.in_papers());
    let same = reference
        .iter()
        .filter(|point| point.operation == name && crossed(point, figure.network));
    match figure.over {
        Over::Bytes => {
            let counts = same.clone().map(|point| u64::from(point.processors));
            let near = counts.filter(|count| *count >= panel.fixed).min();
            same.filter(|point| Some(u64::from(point.processors)) == near)
                .filter(|point| figure.quantity != Quantity::Bandwidth || point.bytes > 0)
                .collect()
        }
        Over::Tasks => {
            let raced = |point: &&Point| panel.rows.iter().any(|row| row.tasks == point.processors);
            same.filter(|point| point.bytes == panel.fixed)
                .filter(raced)
                .collect()
        }
    }
}

/// Returns whether a point may be shown beside a race over `network`. Beside a network like one of the papers', only
/// points of that kind are shown.
fn crossed(point: &Point, network: &str) -> bool {
    match network {
        "ethernet10" => point.network == "Ethernet",
        "fddi100" => point.network == "FDDI",
        "local" | "hosts" => true,
        _ => false,
    }
}

/// Returns the years of the papers: `1997`, or `1991 to 1997`.
pub fn years(points: &[&Point]) -> String {
    let years = || points.iter().map(|point| year(&point.paper));
    match (years().min(), years().max()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_owned(),
        _ => String::new(),
    }
}

fn times(figure: &Figure) -> bool {
    matches!(figure.quantity, Quantity::Measured(metric) if metric.unit() == "us")
}

/// Returns the year of a paper, with which its short name ends.
pub fn year(paper: &str) -> &str {
    paper.rsplit('-').next().unwrap_or(paper)
}

/// Returns the description of a point, in lines.
pub fn describe(point: &Point) -> String {
    let bandwidth = match point.bytes {
        0 => String::new(),
        bytes => format!(
            ", {} MB/s",
            text::digits(text::gigabytes(bytes, point.us) * 1e3)
        ),
    };
    let lines = [
        format!(
            "{} on {}, {}",
            point.environment,
            point.platform,
            year(&point.paper)
        ),
        format!(
            "{}, {}",
            text::bytes(point.bytes),
            text::count(point.processors.into(), "processor")
        ),
        format!("{} us{bandwidth}", text::digits(point.us)),
        format!("{}, {}", point.paper, point.table),
    ];
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::{panels, sample};
    use super::*;

    fn point(operation: &str, processors: u32, bytes: u64) -> Point {
        Point {
            paper: "ahmad-1997".into(),
            table: "Table 3".into(),
            operation: operation.into(),
            platform: "HP 735".into(),
            network: "FDDI".into(),
            environment: "PVM <3>".into(),
            processors,
            bytes,
            us: 189.0,
        }
    }

    #[test]
    fn points_stand_beside_the_operation_of_their_name() {
        let results = sample::results();
        let figures = panels::figures(&results);
        let reference = [
            point("one-to-one", 2, 0),
            point("broadcast", 4, 40),
            point("broadcast", 8, 40),
        ];
        let beside = |n: usize, panel: usize| {
            super::beside(&figures[n], &figures[n].panels[panel], &reference)
        };
        assert_eq!(beside(0, 0).len(), 1);
        assert!(
            beside(1, 0).is_empty(),
            "a message of no bytes has no bandwidth"
        );
        let broadcast = figures
            .iter()
            .position(|f| f.operation == "broadcast")
            .expect("in the sample");
        let then = beside(broadcast, 0);
        assert!(
            then.len() == 1 && then[0].processors == 4,
            "the nearest number above 2 is 4"
        );
    }

    #[test]
    fn a_slowed_network_has_only_the_points_of_its_kind() {
        let mut results = sample::results();
        let reference = [point("one-to-one", 2, 0)];
        for (network, number) in [
            ("fddi100", 1),
            ("ethernet10", 0),
            ("hosts", 1),
            ("gigabit", 0),
        ] {
            for row in &mut results.rows {
                row.network = network.into();
            }
            let figures = panels::figures(&results);
            let beside = super::beside(&figures[0], &figures[0].panels[0], &reference);
            assert_eq!(beside.len(), number, "{network}");
        }
    }

    #[test]
    fn years_are_a_range_only_if_they_differ() {
        let (old, new) = (
            Point {
                paper: "ahmad-wu-1991".into(),
                ..point("ring", 2, 8)
            },
            point("ring", 2, 8),
        );
        assert_eq!(years(&[&old, &new]), "1991 to 1997");
        assert_eq!(years(&[&new, &new]), "1997");
    }

    #[test]
    fn the_text_of_a_point_names_library_machine_year_and_table() {
        let text = describe(&point("one-to-one", 2, 1000));
        for part in [
            "PVM <3>",
            "HP 735",
            "1997",
            "189 us",
            "5.29 MB/s",
            "Table 3",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
