//! The appearance of environments: one name, colour and mark, the same in every plot and every race.
//!
//! Colours have a contrast of 3:1 on white and on near-black, and can be told apart with the three common kinds of
//! colour blindness. Marks differ too, so that no reader depends on colour.

use crate::peers::{self, Mark};
use crate::results::Results;
use crate::table;

pub use crate::peers::limit::NAME as LIMIT;
pub use crate::peers::regatta::TRUSTED;
pub use crate::results::OURS;

/// How one environment is drawn.
#[derive(Debug, Clone)]
pub struct Look {
    /// Its name in result files.
    pub name: String,
    /// Its name for readers.
    pub label: String,
    /// `#rrggbb`.
    pub color: &'static str,
    /// Mark of its points.
    pub mark: Mark,
}

/// Label and colour of the second environment in a race of Regatta against itself.
const SECOND_REGATTA: (&str, &str) = ("Regatta again", "#c9477a");

/// Colours for environments without one of their own, in order of appearance.
const SPARE: [&str; 4] = ["#2aa3b8", "#a05fd0", "#b8860b", "#d0587a"];

/// Returns the looks of all environments in `results`: Regatta's first, then peers in the order of the race, `limit`
/// last.
pub fn looks(results: &Results) -> Vec<Look> {
    let mut names: Vec<&str> = Vec::new();
    let stated = results.environments.iter().map(|e| e.name.as_str());
    for name in stated.chain(results.rows.iter().map(|row| row.environment.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (*name == LIMIT, !name.starts_with(OURS), *name != OURS));
    let mut spare = SPARE.iter().cycle();
    names.iter().map(|name| look(name, &mut spare)).collect()
}

fn look<'a>(name: &str, spare: &mut impl Iterator<Item = &'a &'static str>) -> Look {
    let known = peers::look(name);
    let color = match is_second_regatta(name) {
        true => Some(SECOND_REGATTA.1),
        false => known.map(|known| known.color),
    };
    let otherwise = match name.starts_with(OURS) {
        true => Mark::Circle,
        false => Mark::Pentagon,
    };
    Look {
        name: name.to_owned(),
        label: label(name),
        color: color.or_else(|| spare.next().copied()).unwrap_or(SPARE[0]),
        mark: known.map_or(otherwise, |known| known.mark),
    }
}

/// Returns whether `name` is a peer of Regatta. In a race of Regatta against itself, its other entries are.
pub fn is_peer(results: &Results, name: &str) -> bool {
    let alone = || {
        !results
            .rows
            .iter()
            .any(|row| table::is_peer(&row.environment))
    };
    let is_variant = name == OURS || peers::is_between_hosts(name);
    table::is_peer(name) || (!is_variant && name.starts_with(OURS) && alone())
}

/// Returns the name of an environment with its version: `Open MPI 5.0.11`.
pub fn full_name(results: &Results, name: &str) -> String {
    let version = results
        .environments
        .iter()
        .find(|e| e.name == name)
        .and_then(|e| short(&e.version));
    match version {
        Some(version) if name != LIMIT => format!("{} {version}", label(name)),
        _ => label(name),
    }
}

/// Returns the version number in a library's version text, which may be a paragraph.
pub fn short(version: &str) -> Option<&str> {
    let mut words = version.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let number = |word: &str| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    words
        .find(|word| number(word))
        .map(|word| word.trim_start_matches('v').trim_end_matches('.'))
}

fn is_second_regatta(name: &str) -> bool {
    name.strip_suffix(peers::AA_SUFFIX) == Some(OURS)
}

/// Returns the name of an environment for readers.
pub fn label(name: &str) -> String {
    match peers::look(name) {
        _ if is_second_regatta(name) => SECOND_REGATTA.0.to_owned(),
        Some(known) => known.label.to_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_a_paragraph() {
        let long = "Open MPI v5.0.11, package: Open MPI user@localhost Distribution, ident: 5.0.11, repo rev: v5.0.11rc1";
        for (text, version) in [
            (long, Some("5.0.11")),
            ("MPICH Version:\t4.0.2", Some("4.0.2")),
            ("PVM 3.4.6", Some("3.4.6")),
            ("0.1.0", Some("0.1.0")),
            ("shared memory, no library.", None),
            ("", None),
        ] {
            assert_eq!(short(text), version, "{text}");
        }
    }
}
