//! Splitting a command line into words.
//!
//! Words are separated by blanks. Single or double quotation marks keep everything up to the matching one, backslashes
//! too. Outside of them a backslash keeps the next character. A `#` at the beginning of a word starts a comment.

/// A quotation mark without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmatched(pub char);

/// Splits a line into words.
pub fn split(line: &str) -> Result<Vec<String>, Unmatched> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' | '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(Unmatched(character))? {
                        inside if inside == character => break,
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => {
                let kept = rest.next().ok_or(Unmatched('\\'))?;
                word.get_or_insert_default().push(kept);
            }
            '#' if word.is_none() => break,
            _ if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).unwrap()
    }

    #[test]
    fn blanks_part_words() {
        assert_eq!(words("  ps\t-a  x "), ["ps", "-a", "x"]);
        assert!(words(" \t").is_empty());
    }

    #[test]
    fn quotation_marks_keep_blanks_and_may_touch() {
        assert_eq!(
            words(r#"echo "a b" 'c d' x"y"z ''"#),
            ["echo", "a b", "c d", "xyz", ""]
        );
        assert_eq!(words(r#"'a\b' "c\d""#), [r"a\b", r"c\d"]);
    }

    #[test]
    fn a_backslash_keeps_the_next_character() {
        assert_eq!(
            words(r#"e\ f a\"b a\\b a\nb"#),
            ["e f", "a\"b", r"a\b", "anb"]
        );
    }

    #[test]
    fn a_splat_begins_a_comment_only_at_the_beginning_of_a_word() {
        assert_eq!(words("echo a#b # c"), ["echo", "a#b"]);
        assert_eq!(words(r##"echo "#" x"##), ["echo", "#", "x"]);
    }

    #[test]
    fn a_half_of_a_pair_is_named() {
        assert_eq!(split("echo \"x"), Err(Unmatched('"')));
        assert_eq!(split("echo 'x\""), Err(Unmatched('\'')));
        assert_eq!(split("echo x\\"), Err(Unmatched('\\')));
    }
}
