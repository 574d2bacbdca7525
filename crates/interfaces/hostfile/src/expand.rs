//! Variables in options, replaced on the host they are of.

/// The text with each `$NAME` and `${NAME}` replaced by what the host has under that name, or by nothing.
/// A dollar that no name follows stays.
pub fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
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
