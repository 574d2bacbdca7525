//! Variables in directories that another host has named, replaced by those of this host.

/// Returns the text with each `$NAME` and `${NAME}` replaced by the host's variable, or by nothing if it is not set. A
/// dollar sign without a name stays.
pub(crate) fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, remaining) = match after
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'))
        {
            Some((name, remaining)) if is_name(name) => (name, remaining),
            _ => after.split_at(length_of_name(after)),
        };
        if name.is_empty() {
            done.push('$');
        } else {
            done.push_str(&variable(name).unwrap_or_default());
        }
        rest = remaining;
    }
    done + rest
}

fn length_of_name(text: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c| !part(c)).unwrap_or(text.len())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && length_of_name(text) == text.len()
}

#[cfg(test)]
mod tests {
    use super::expand;
    use proptest::prelude::*;

    #[test]
    fn variables_of_this_host_are_replaced_and_other_dollars_stay() {
        let home = |name: &str| match name {
            "HOME" => Some("/home/joe".to_owned()),
            "ARCH" => Some("LINUX64".to_owned()),
            _ => None,
        };
        assert_eq!(
            expand("$HOME/bin/$ARCH:/opt", home),
            "/home/joe/bin/LINUX64:/opt"
        );
        assert_eq!(expand("${HOME}x $NONE. $ $", home), "/home/joex . $ $");
        assert_eq!(expand("${HOME", home), "${HOME");
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[ -~\n]{0,300}") {
            let _ = expand(&text, |_| None);
        }
    }
}
