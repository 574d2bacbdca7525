//! Slurm's compact lists.

/// Maximum number of entries to which a list expands, more than any machine has nodes.
const MAX_LIST_ENTRIES: usize = 1 << 17;

/// Expands `rack[0-1]node[08-10,12],login` to names: every bracket is a list of numbers, and leading zeros are kept.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{text}` is not a list of nodes in Slurm's format");
    let mut all = Vec::new();
    for part in split(text).ok_or_else(wrong)? {
        let mut grown = vec![String::new()];
        let mut rest = part;
        while let Some((before, inner)) = rest.split_once('[') {
            let (inside, after) = inner.split_once(']').ok_or_else(wrong)?;
            let endings = range_list(inside).ok_or_else(wrong)?;
            if grown.len().saturating_mul(endings.len()) > MAX_LIST_ENTRIES {
                return Err(wrong());
            }
            grown = grown
                .iter()
                .flat_map(|name| {
                    endings
                        .iter()
                        .map(move |ending| format!("{name}{before}{ending}"))
                })
                .collect();
            rest = after;
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        grown.iter_mut().for_each(|name| name.push_str(rest));
        if grown
            .iter()
            .any(|name| name.is_empty() || name.starts_with('-') || !name.chars().all(plain))
        {
            return Err(wrong());
        }
        all.append(&mut grown);
        if all.len() > MAX_LIST_ENTRIES {
            return Err(wrong());
        }
    }
    Ok(all)
}

/// Splits at the commas outside brackets. Returns `None` if brackets do not match.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return None,
            ',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (!inside).then_some(parts)
}

/// Expands `08-10,12` to numbers, with their leading zeros.
fn range_list(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| {
            (1..=9)
                .contains(&text.len())
                .then(|| text.bytes().all(|byte| byte.is_ascii_digit()))
                .filter(|&all| all)
                .and_then(|_| text.parse::<usize>().ok())
        };
        let (from, to) = (digits(first)?, digits(last)?);
        if from > to || all.len() + (to - from) >= MAX_LIST_ENTRIES {
            return None;
        }
        let width = first.len();
        all.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Some(all)
}

/// Expands `2(x3),1` to numbers, one for each node.
pub fn counts(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("`{text}` is not a list of counts in Slurm's format");
    let mut all: Vec<u32> = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, rest)) => (count, rest.strip_suffix(')').ok_or_else(wrong)?),
            None => (part, "1"),
        };
        let count: u32 = count.parse().map_err(|_| wrong())?;
        let times: usize = times.parse().map_err(|_| wrong())?;
        if times > MAX_LIST_ENTRIES - all.len() {
            return Err(wrong());
        }
        all.extend(std::iter::repeat_n(count, times));
    }
    Ok(all)
}

/// Parses `0,2,4`.
pub fn numbers(text: &str) -> Result<Vec<u32>, String> {
    text.split(',')
        .map(|number| {
            number
                .parse()
                .map_err(|_| format!("`{text}` is not a list of numbers"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_nodes_are_written_out() {
        let list = |text| names(text).unwrap_or_default().join(" ");
        assert_eq!(list("alpha"), "alpha");
        assert_eq!(list("n[1-3],m"), "n1 n2 n3 m");
        assert_eq!(list("n[08-10,12]"), "n08 n09 n10 n12");
        assert_eq!(list("r[0-1]n[1-2]-ib"), "r0n1-ib r0n2-ib r1n1-ib r1n2-ib");
        for wrong in [
            "",
            ",",
            "n[1-",
            "n[3-1]",
            "n[a]",
            "n]1[",
            "n[[1]]",
            "-n",
            "n;m",
            "n[1-99999999]",
            "n[0-9999]m[0-9999]",
        ] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_written_out() {
        assert_eq!(counts("2(x3),1"), Ok(vec![2, 2, 2, 1]));
        assert_eq!(counts("4"), Ok(vec![4]));
        for wrong in ["", "x", "2(x", "2(x)", "2(x99999999999)", "1,,2", "-1"] {
            assert!(counts(wrong).is_err(), "{wrong}");
        }
        assert_eq!(numbers("0,2,4"), Ok(vec![0, 2, 4]));
        assert!(numbers("0,,1").is_err());
    }

    proptest! {
        #[test]
        fn no_list_is_too_strange(text in "[a-c0-9\\[\\]\\-,(x)é]{0,40}") {
            if let Ok(names) = names(&text) {
                prop_assert!(names.len() <= MAX_LIST_ENTRIES);
            }
            let _ = counts(&text);
            let _ = numbers(&text);
        }
    }
}
