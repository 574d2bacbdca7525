//! The hosts that a job is to run on, as the user names them, and the distribution of ranks among them.

pub(crate) mod arrivals;
pub(crate) mod environment;
pub mod examine;
pub(crate) mod expand;
pub(crate) mod fleet;
pub(crate) mod gather;
pub mod host_starter;
pub(crate) mod reach;
pub(crate) mod rsh;
pub mod slurm;

use std::collections::HashSet;

/// How ranks are distributed to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Map {
    /// Neighbouring ranks share a host: it gets all its tasks before the next host gets its first.
    #[default]
    Block,
    /// Each host gets one task in turn.
    Round,
}

/// A host, as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name for ssh (or `--rsh`).
    pub name: String,
    /// Number of tasks that it gets before hosts get more than that. The number of its usable cores if not given.
    pub slots: Option<u32>,
    /// Number of its processors that belong to the job, if a cluster manager reports that: `{cpus}` in `--rsh`.
    pub processors: Option<u32>,
}

/// Parses `alpha,beta:4,[fe80::1]:2`.
pub fn parse_list(text: &str) -> Result<Vec<Host>, String> {
    text.split(',').map(|part| parse(part.trim())).collect()
}

/// Parses a file of hosts: one on each line, as `alpha`, `alpha:4` or `alpha slots=4`. `#` begins a comment.
pub fn parse_file(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let at = |error: String| format!("line {}: {error}", number + 1);
        let mut host = parse(name).map_err(at)?;
        for word in words {
            match word.split_once('=') {
                Some(("slots", count)) => host.slots = Some(slots(count).map_err(at)?),
                // Ignore further settings, such as max_slots, in files written for other launchers.
                Some(_) => {}
                None => {
                    return Err(at(format!("`{word}` is not valid; write `{name} slots=N`")));
                }
            }
        }
        hosts.push(host);
    }
    if hosts.is_empty() {
        return Err("the file names no host".to_owned());
    }
    Ok(hosts)
}

/// Fails if a host is named twice.
pub fn distinct(hosts: &[Host]) -> Result<(), String> {
    let mut seen = HashSet::new();
    match hosts.iter().find(|host| !seen.insert(&host.name)) {
        None => Ok(()),
        Some(Host { name, .. }) => Err(format!(
            "the host {name} is named twice; {name}:4 gives it four tasks"
        )),
    }
}

/// Fails if this host is named several times. `is_here` recognizes all its names.
pub fn once_here(hosts: &[Host], is_here: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut here = hosts.iter().filter(|host| is_here(&host.name));
    match (here.next(), here.next()) {
        (Some(first), Some(second)) => Err(format!(
            "{0} and {1} both name this host: leave one out, or write {0}:4 for four tasks here",
            first.name, second.name
        )),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Result<Host, String> {
    // In `fe80::1` no colon precedes a number of slots.
    let (name, count) = match (text.strip_prefix('['), text.matches(':').count()) {
        (Some(rest), _) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, rest)) if rest.starts_with(':') => (name, Some(&rest[1..])),
            _ => {
                return Err(format!(
                    "`{text}` is not a host; write [ADDRESS] or [ADDRESS]:SLOTS"
                ));
            }
        },
        (None, 1) => text
            .split_once(':')
            .map_or((text, None), |(name, count)| (name, Some(count))),
        (None, _) => (text, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:%".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
        return Err(format!(
            "`{name}` is not the name of a host; write names or addresses, as in --host alpha,beta:4"
        ));
    }
    Ok(Host {
        name: name.to_owned(),
        slots: count.map(slots).transpose()?,
        processors: None,
    })
}

fn slots(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|&slots| (1..=regatta_segment::job::MAX_TASKS).contains(&slots))
        .ok_or_else(|| {
            format!("`{text}` is not a number of tasks; write alpha:4 for four tasks on alpha")
        })
}

/// Returns the host of each rank for hosts with these slots.
///
/// If there are more tasks than slots, every host is filled again in the same proportion, as a single host is by `-n`.
pub(crate) fn deal(tasks: u32, slots: &[u32], map: Map) -> Vec<u32> {
    let counts = counts(tasks, slots);
    match map {
        Map::Block => counts
            .iter()
            .enumerate()
            .flat_map(|(host, &count)| std::iter::repeat_n(host as u32, count as usize))
            .collect(),
        Map::Round => {
            let most = counts.iter().copied().max().unwrap_or_default();
            (0..most)
                .flat_map(|round| {
                    counts
                        .iter()
                        .enumerate()
                        .filter(move |&(_, &count)| round < count)
                        .map(|(host, _)| host as u32)
                })
                .collect()
        }
    }
}

/// Returns how many tasks each host gets.
fn counts(tasks: u32, slots: &[u32]) -> Vec<u32> {
    let total = slots
        .iter()
        .map(|&slots| u64::from(slots))
        .sum::<u64>()
        .max(1);
    let (full, mut rest) = (u64::from(tasks) / total, u64::from(tasks) % total);
    let mut counts = Vec::with_capacity(slots.len());
    for &slots in slots {
        let more = rest.min(u64::from(slots));
        rest -= more;
        counts.push((full * u64::from(slots) + more) as u32);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, slots: Option<u32>) -> Host {
        Host {
            name: name.to_owned(),
            slots,
            processors: None,
        }
    }

    #[test]
    fn hosts_are_listed_with_and_without_slots() {
        assert_eq!(
            parse_list("alpha, me@beta:4,[fe80::1%eth0]:2,fe80::2"),
            Ok(vec![
                host("alpha", None),
                host("me@beta", Some(4)),
                host("fe80::1%eth0", Some(2)),
                host("fe80::2", None),
            ])
        );
        for wrong in [
            "",
            "a,,b",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "a:0",
            "a:x",
            "[a",
            "[a]2",
        ] {
            assert!(parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_names_a_host_on_each_line() {
        let text = "# ours\nalpha\n\nbeta:3   # big\ngamma slots=2 max_slots=4\n";
        assert_eq!(
            parse_file(text),
            Ok(vec![
                host("alpha", None),
                host("beta", Some(3)),
                host("gamma", Some(2))
            ])
        );
        assert!(parse_file("# nobody\n").is_err());
        let error = parse_file("alpha\nbeta four\n").expect_err("nonsense");
        assert!(error.starts_with("line 2: `four`"), "{error}");
    }

    #[test]
    fn a_host_twice_is_refused() {
        let hosts = parse_list("a,b,a:2").expect("hosts");
        assert!(
            distinct(&hosts)
                .expect_err("a twice")
                .contains("host a is named twice")
        );
        assert_eq!(distinct(&hosts[..2]), Ok(()));
    }

    #[test]
    fn two_names_of_this_host_are_refused() {
        let is_here = |name: &str| ["localhost", "b"].contains(&name);
        let hosts = parse_list("a,localhost,b:2").expect("hosts");
        let said = once_here(&hosts, is_here).expect_err("b is this host");
        assert!(
            said.contains("localhost and b both name this host"),
            "{said}"
        );
        assert_eq!(once_here(&hosts[..2], is_here), Ok(()));
    }

    #[test]
    fn ranks_are_dealt_in_blocks_or_in_turn() {
        assert_eq!(deal(4, &[2, 2], Map::Block), [0, 0, 1, 1]);
        assert_eq!(deal(4, &[2, 2], Map::Round), [0, 1, 0, 1]);
        assert_eq!(deal(5, &[1, 4], Map::Round), [0, 1, 1, 1, 1]);
        assert_eq!(deal(2, &[4, 4], Map::Block), [0, 0]);
        // More tasks than slots: each host gets its share again.
        assert_eq!(deal(7, &[1, 2], Map::Block), [0, 0, 0, 1, 1, 1, 1]);
    }
}
