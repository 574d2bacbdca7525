//! The verdict in one sentence, and the table of headlines.

use super::appearance::{full_name, label};
use super::headline::{Headline, word};
use super::page;
use super::panels::noun;
use super::text::{bytes, count, digits, gigabytes, heading, html, ratio as rounded, scale, size};
use super::warnings::doubtful;
use crate::peers;
use crate::results::{Metric, Results, Row};
use crate::stats::Verdict;

/// Returns a sentence with the verdict of the race, from the data.
pub fn verdict(results: &Results, headlines: &[Headline]) -> String {
    let verdicts: Vec<Verdict> = headlines.iter().filter_map(Headline::verdict).collect();
    let number = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
    let (better, tie, worse, open) = (
        number(Verdict::Ahead),
        number(Verdict::Tie),
        number(Verdict::Behind),
        number(Verdict::Undecided),
    );
    if verdicts.is_empty() {
        return match results
            .rows
            .iter()
            .any(|row| row.environment == results.ours())
        {
            true => {
                "Regatta was measured, but no peer was measured at the same points: there is nothing to compare."
                    .into()
            }
            false => "Regatta took no part in this race, so there is no standing to report.".into(),
        };
    }
    let peer = others(headlines);
    let standing = if tie == verdicts.len() {
        format!(
            "Regatta and {peer} tie in all {}",
            count(tie as u64, "headline")
        )
    } else if better == verdicts.len() {
        format!(
            "Regatta is ahead of {peer} in all {}",
            count(better as u64, "headline")
        )
    } else {
        let all = count(verdicts.len() as u64, "headline");
        format!(
            "Regatta is ahead of {peer} in {better} of {all}, ties in {tie} and is behind in {}{}",
            if worse == 0 {
                "none".to_owned()
            } else {
                worse.to_string()
            },
            match open {
                0 => String::new(),
                open => format!("; {open} could not be decided at this noise"),
            }
        )
    };
    standing + &example(results, headlines) + "."
}

/// Returns a name for the environments with which Regatta's own interface is compared.
fn others(headlines: &[Headline]) -> &'static str {
    let is_interface = |name: &str| peers::look(name).is_some_and(|look| look.interface);
    let mut best = headlines.iter().filter_map(|headline| headline.best);
    match best.all(|row| is_interface(&row.environment)) {
        true => "the best of its other interfaces",
        false => "the best peer",
    }
}

/// Returns a sentence with the figures of the first headline.
fn example(results: &Results, headlines: &[Headline]) -> String {
    let Some((ours, best)) = headlines
        .iter()
        .find_map(|h| h.verdict().and(h.best).map(|best| (h.ours, best)))
    else {
        return String::new();
    };
    if ours.metric != Metric::OneWay {
        return String::new();
    }
    let (factor, unit) = scale(ours.metric, ours.median);
    format!(
        "; a message of {} takes {} {unit} one way, against {} {unit} with {}",
        bytes(ours.bytes),
        digits(ours.median * factor),
        digits(best.median * factor),
        full_name(results, &best.environment),
    )
}

/// Returns the table of headlines.
pub fn section(headlines: &[Headline]) -> String {
    if headlines.is_empty() {
        let body = "<p>There is no headline: Regatta was not measured at any of the headline points.</p>\n";
        return page::section("score", "Scoreboard", body);
    }
    let lines: String = headlines.iter().map(line).collect();
    let head = "<p>Medians. <em>Ratio</em> is ours over the best peer's, in time or memory: below 1, ours is better; its 95\u{a0}% interval is below it. In a tie it lies between 1/1.05 and 1.05; rows with too much noise for a verdict are marked (see Method). <em>Limit</em> is what the hardware allows, measured in the same \
                race; the figure is ours over it.</p>\n";
    let table = format!(
        "<table class=\"score\"><thead><tr><th>Operation</th><th class=\"n\">Regatta</th><th class=\"n\">Best peer</th>\
         <th class=\"n\">Ratio</th><th>Verdict</th><th class=\"n\">Over limit</th></tr></thead><tbody>\n{lines}</tbody></table>\n"
    );
    page::section("score", "Scoreboard", &(head.to_owned() + &table))
}

fn line(headline: &Headline) -> String {
    let ours = headline.ours;
    // Both times have the same unit, which is chosen for the mean of the two.
    let middle = headline
        .best
        .map_or(ours.median, |best| (ours.median * best.median).sqrt());
    let (factor, unit) = scale(ours.metric, middle);
    let value = |row: &Row| format!("{} <small>{unit}</small>", digits(row.median * factor));
    let best = headline.best.map_or("–".into(), |best| {
        format!(
            "{}<span class=\"sub\">{}</span>",
            value(best),
            html(&label(&best.environment))
        )
    });
    let ratio = |other: Option<&Row>| headline.ratio(other).map_or("–".into(), rounded);
    format!(
        "<tr><th scope=\"row\">{what}<span class=\"sub\">{where_}</span></th><td class=\"n\" data-label=\"Regatta\">{mine}</td>\
         <td class=\"n\" data-label=\"Best peer\">{best}</td><td class=\"n\" data-label=\"Ratio\">{ratio}</td>\
         <td class=\"v\">{chip}</td><td class=\"n\" data-label=\"Over limit\">{limit}</td></tr>\n",
        what = html(&what(ours)),
        where_ = html(&place(ours)),
        mine = if ours.measured() {
            value(ours) + &bandwidth(ours)
        } else {
            "–".into()
        },
        ratio = ratio(headline.best) + &range(headline),
        chip = chip(headline),
        limit = ratio(headline.limit),
    )
}

fn range(headline: &Headline) -> String {
    let ends = headline
        .best
        .filter(|_| headline.ours.measured())
        .and_then(|best| headline.ratio_range(best));
    ends.map_or_else(String::new, |ends| {
        let [low, high] = ends.map(rounded);
        format!("<span class=\"sub\">{low}–{high}</span>")
    })
}

/// Returns the operation of a row, and its size.
pub fn what(row: &Row) -> String {
    let of_size = if row.bytes > 0 {
        format!(", {}", size(&row.operation, row.bytes))
    } else {
        String::new()
    };
    heading(&row.operation) + &of_size
}

fn place(row: &Row) -> String {
    let metric = match row.metric {
        Metric::Time => String::new(),
        metric => format!(", {}", noun(metric)),
    };
    let network = if row.network == "local" {
        String::new()
    } else {
        format!(", {}", row.network)
    };
    let network = match row.environment == super::appearance::TRUSTED {
        true => format!("{network}, trusted"),
        false => network,
    };
    format!("{}{metric}{network}", count(row.tasks.into(), "task"))
}

/// Returns the bandwidth of a large message, for which it is better known than the time.
fn bandwidth(row: &Row) -> String {
    if row.metric != Metric::OneWay || row.bytes < 64 << 10 {
        return String::new();
    }
    format!(
        "<span class=\"sub\">{} GB/s</span>",
        digits(gigabytes(row.bytes, row.median))
    )
}

fn chip(headline: &Headline) -> String {
    let flagged = headline
        .best
        .into_iter()
        .chain([headline.ours])
        .any(doubtful);
    let mark = if flagged {
        " <a class=\"flag\" href=\"#warnings\" title=\"in doubt, see Warnings\">!</a>"
    } else {
        ""
    };
    let (class, words) = match headline.verdict() {
        None if !headline.ours.measured() => ("none", "not measured".to_owned()),
        None => ("none", "no peer".to_owned()),
        Some(Verdict::Tie) => ("tie", "tie".to_owned()),
        Some(Verdict::Undecided) => ("none", "not decided".to_owned()),
        Some(verdict) => {
            let class = if verdict == Verdict::Ahead {
                "better"
            } else {
                "worse"
            };
            // A ratio to zero is not finite.
            let times = headline
                .ratio(headline.best)
                .map(|ratio| digits(ratio.max(1.0 / ratio)) + "× ");
            (
                class,
                times.unwrap_or_default() + word(verdict, headline.ours.metric),
            )
        }
    };
    format!("<span class=\"chip {class}\">{words}</span>{mark}")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn sentence(results: &Results) -> String {
        verdict(results, &Headline::all(results))
    }

    #[test]
    fn the_sentence_follows_the_data() {
        let mut results = sample::results();
        let first = sentence(&results);
        assert!(
            first.contains(
                "a message of 8 B takes 0.0622 us one way, against 0.102 us with Open MPI 5.0.11"
            ),
            "{first}"
        );
        for row in results
            .rows
            .iter_mut()
            .filter(|row| row.environment == "regatta")
        {
            (row.median, row.ci95) = (row.median * 1e4, row.ci95.map(|end| end * 1e4));
        }
        let worse = sentence(&results);
        assert!(
            worse.contains("is ahead of the best peer in 1 of"),
            "only the rate got better: {worse}"
        );
        results.rows.retain(|row| row.environment != "regatta");
        assert!(sentence(&results).contains("took no part"));
        results.rows.clear();
        assert!(sentence(&results).contains("took no part"));
    }

    #[test]
    fn a_race_of_interfaces_has_no_peer() {
        let results = sample::ours_again("regatta-nx");
        let sentence = sentence(&results);
        assert!(
            sentence.contains("Regatta and the best of its other interfaces tie"),
            "{sentence}"
        );
    }

    #[test]
    fn a_race_against_itself_ends_in_a_tie() {
        let results = sample::ours_again("regatta-again");
        assert!(
            sentence(&results).contains("tie in all"),
            "{}",
            sentence(&results)
        );
    }

    #[test]
    fn verdicts_and_flags_are_in_the_lines() {
        let mut results = sample::results();
        results.rows.iter_mut().for_each(|row| row.flags.clear());
        let lines = section(&Headline::all(&results));
        assert!(lines.contains("1.63× faster"), "{lines}");
        assert!(!lines.contains("class=\"flag\""));
        let pair = |row: &&mut Row| (row.environment.as_str(), row.bytes) == ("regatta", 8);
        results
            .rows
            .iter_mut()
            .find(pair)
            .expect("in the sample")
            .flags
            .push("not-pinned".into());
        assert!(section(&Headline::all(&results)).contains("class=\"flag\""));
    }
}
