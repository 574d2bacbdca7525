//! Aliases of the console.

use std::collections::BTreeMap;

/// Aliases by name.
#[derive(Debug, Default)]
pub struct Aliases {
    words: BTreeMap<String, Vec<String>>,
}

/// An alias that expands, possibly through others, to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop;

impl Aliases {
    /// Makes `name` an alias of `words`.
    pub fn define(&mut self, name: &str, words: &[String]) {
        self.words.insert(name.to_owned(), words.to_vec());
    }

    /// Removes the alias `name`.
    pub fn forget(&mut self, name: &str) {
        self.words.remove(name);
    }

    /// Returns all aliases, or the one of a name, as lines.
    pub fn list<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = String> + 'a {
        let wanted = move |other: &str| name.is_none_or(|name| name == other);
        self.words
            .iter()
            .filter(move |(name, _)| wanted(name))
            .map(|(name, words)| format!("{name}\t{}", words.join(" ")))
    }

    /// Replaces the first word while it is an alias. An alias that begins with its own name (`alias ps ps -a`) is
    /// replaced once.
    pub fn expand(&self, mut words: Vec<String>) -> Result<Vec<String>, Loop> {
        let mut seen = Vec::new();
        while let Some((name, meaning)) = words
            .first()
            .and_then(|first| self.words.get_key_value(first))
        {
            if seen.contains(&name) {
                return Err(Loop);
            }
            seen.push(name);
            words.splice(..1, meaning.iter().cloned());
            if meaning.first() == Some(name) {
                break;
            }
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn aliases(all: &[(&str, &str)]) -> Aliases {
        let mut aliases = Aliases::default();
        for (name, meaning) in all {
            aliases.define(name, &words(meaning));
        }
        aliases
    }

    #[test]
    fn an_alias_is_replaced_and_keeps_what_follows() {
        let aliases = aliases(&[("x", "echo hello"), ("y", "x")]);
        assert_eq!(
            aliases.expand(words("x there")).unwrap(),
            words("echo hello there")
        );
        assert_eq!(
            aliases.expand(words("y boo")).unwrap(),
            words("echo hello boo")
        );
        assert_eq!(aliases.expand(words("echo x")).unwrap(), words("echo x"));
    }

    #[test]
    fn aliases_that_lead_in_a_circle_are_an_error() {
        let aliases = aliases(&[("a", "b"), ("b", "a")]);
        assert_eq!(aliases.expand(words("a")), Err(Loop));
    }

    #[test]
    fn an_alias_may_be_a_command_with_more_words() {
        assert_eq!(
            aliases(&[("ps", "ps -a")]).expand(words("ps -x")).unwrap(),
            words("ps -a -x")
        );
    }

    #[test]
    fn they_are_listed_by_name_and_forgotten() {
        let mut aliases = aliases(&[("b", "jobs"), ("a", "help me")]);
        assert_eq!(
            aliases.list(None).collect::<Vec<_>>(),
            ["a\thelp me", "b\tjobs"]
        );
        assert_eq!(aliases.list(Some("b")).collect::<Vec<_>>(), ["b\tjobs"]);
        aliases.forget("a");
        assert_eq!(aliases.list(None).collect::<Vec<_>>(), ["b\tjobs"]);
    }
}
