//! PVM's patterns for names.

/// Returns whether a pattern occurs anywhere in a name. `*` matches any text; `\` escapes the next character.
pub fn occurs(pattern: &[u8], name: &[u8]) -> bool {
    let mut rest = name;
    parts(pattern).iter().all(|part| {
        let found = (0..=rest.len()).find(|&at| rest[at..].starts_with(part));
        found.map(|at| rest = &rest[at + part.len()..]).is_some()
    })
}

/// Returns the literal texts between the stars.
fn parts(pattern: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut letters = pattern.iter();
    while let Some(&letter) = letters.next() {
        let last = parts.len() - 1;
        match letter {
            b'*' => parts.push(Vec::new()),
            b'\\' => parts[last].push(*letters.next().unwrap_or(&letter)),
            letter => parts[last].push(letter),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::occurs;

    #[test]
    fn patterns_occur_as_on_pvm() {
        for (pattern, name, does) in [
            ("", "", true),
            ("", "any", true),
            ("*", "any", true),
            ("t*", "mbox_test", true),
            ("ra*ts", "rats", true),
            ("ra*ts", "arar_ts", true),
            ("ra*ts", "tsra", false),
            ("ab", "xaby", true),
            ("a*b", "a*b", true),
            (r"a\*b", "a*b", true),
            (r"a\*b", "ab", false),
            ("?", "ab", false),
            ("a**b", "ab", true),
            ("aa*a", "aa", false),
        ] {
            let found = occurs(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, does, "{pattern} {name}");
        }
        // At the end of a pattern `\` matches itself.
        assert!(!occurs(b"a\\", b"a"));
    }
}
