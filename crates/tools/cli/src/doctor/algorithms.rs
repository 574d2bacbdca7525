//! `regatta doctor --algorithms`: the algorithms of collectives, by kind, members and bytes.
//!
//! The table calls the engine's own selection, so it always shows what a job does.

use std::fmt::Write;

use regatta_engine::{Algorithm, Facts, Kind, choose};
use regatta_segment::collective_buffer;

/// Sizes of groups: the smallest, and those around each threshold.
const MEMBERS: [u32; 12] = [2, 3, 4, 8, 16, 32, 64, 65, 256, 1024, 1025, 4096];
/// Maximum size in the table, in bytes.
const MAX_BYTES: usize = 1 << 30;

/// An algorithm, and the largest size in bytes for which it is chosen.
type Span = (usize, &'static str);

/// Returns the table for one host and for two, for blocking and nonblocking calls.
pub fn table() -> String {
    let mut text = String::from(
        "Algorithms of collectives. BYTES is the size of the message, of one member's operands, or of the longest part.\n",
    );
    for (hosts, place) in [(1, "on one host"), (2, "on two hosts")] {
        for (waits, calls) in [
            (true, "blocking calls"),
            (false, "nonblocking calls (rg_i...)"),
        ] {
            let _ = writeln!(text, "\n{calls}, {place}\n");
            row(&mut text, ["KIND", "MEMBERS", "BYTES", "ALGORITHM"]);
            for kind in Kind::ALL {
                let any_order = facts(hosts, waits, true);
                let in_order = facts(hosts, waits, false);
                list(&mut text, kind.name(), kind, &any_order);
                if spans_of(kind, &any_order) != spans_of(kind, &in_order) {
                    list(&mut text, "  in rank order", kind, &in_order);
                }
            }
        }
    }
    text
}

fn row(text: &mut String, [kind, members, bytes, algorithm]: [&str; 4]) {
    let _ = writeln!(
        text,
        "  {kind:<16}  {members:<12}  {bytes:<12}  {algorithm}"
    );
}

/// Returns a function that gives the facts about a group of a size and a message length.
fn facts(hosts: usize, waits: bool, commutative: bool) -> impl Fn(u32, usize) -> Facts {
    move |members, bytes| Facts {
        bytes,
        members,
        hosts,
        most_on_a_host: (members as usize).div_ceil(hosts),
        fewest_on_a_host: members as usize / hosts,
        contribution: Some(collective_buffer::capacity(members)),
        waits,
        commutative,
        divisible: true,
    }
}

/// Returns the spans for each size of a group.
fn spans_of(kind: Kind, facts: &impl Fn(u32, usize) -> Facts) -> Vec<Vec<Span>> {
    let choice = |members, bytes| word(choose(kind, &facts(members, bytes)), bytes);
    let spans = |&members: &u32| match kind {
        Kind::Barrier => vec![(MAX_BYTES, choice(members, 0))],
        _ => spans(|bytes| choice(members, bytes)),
    };
    MEMBERS.iter().map(spans).collect()
}

fn word(algorithm: Algorithm, bytes: usize) -> &'static str {
    match algorithm {
        Algorithm::Rounds(each) if each < bytes => "several rounds of contributions",
        algorithm => algorithm.name(),
    }
}

/// Returns the sizes at which the word for the algorithm changes.
fn spans(word: impl Fn(usize) -> &'static str) -> Vec<Span> {
    let mut spans = vec![];
    let mut from = 0;
    while from <= MAX_BYTES {
        let same = word(from);
        let goes_on = |at: usize| at <= MAX_BYTES && word(at) == same;
        let (mut last, mut step) = (from, 1);
        while goes_on(last + step) {
            last += step;
            step *= 2;
        }
        while step > 0 {
            last += if goes_on(last + step) { step } else { 0 };
            step /= 2;
        }
        spans.push((last, same));
        from = last + 1;
    }
    spans
}

/// Appends the rows of a kind. Group sizes with equal spans share their rows.
fn list(text: &mut String, name: &str, kind: Kind, facts: &impl Fn(u32, usize) -> Facts) {
    let all: Vec<(u32, Vec<Span>)> = MEMBERS.into_iter().zip(spans_of(kind, facts)).collect();
    let mut name = name;
    for alike in all.chunk_by(|one, next| one.1 == next.1) {
        let [(first, spans), ..] = alike else {
            continue;
        };
        let (last, _) = alike[alike.len() - 1];
        let mut members = match (last == *first, last == MEMBERS[MEMBERS.len() - 1]) {
            (true, _) => first.to_string(),
            (_, true) => format!("from {first}"),
            _ => format!("{first} to {last}"),
        };
        for &(end, algorithm) in spans {
            let bytes = match end >= MAX_BYTES {
                true if kind == Kind::Barrier => String::new(),
                true => "any".to_owned(),
                false => format!("to {end}"),
            };
            row(text, [name, &members, &bytes, algorithm]);
            name = "";
            members.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_where_algorithms_change() {
        let table = table();
        for line in [
            "  allreduce         2             to 16384      one round of contributions",
            "                                  any           halves: each of the two members combines one half",
            "                    3 to 64       to 4096       one round of contributions",
        ] {
            assert!(table.contains(line), "{line}\n{table}");
        }
    }

    #[test]
    fn spans_end_where_words_change() {
        let spans = spans(|bytes| match bytes {
            ..3 => "few",
            3..1000 => "some",
            _ => "many",
        });
        assert_eq!(spans, [(2, "few"), (999, "some"), (MAX_BYTES, "many")]);
    }
}
