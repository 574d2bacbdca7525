//! `-np N`, as in other launchers, for `-n N`.
//!
//! The option parser would read this as the letters n and p in one word. So the word is replaced before parsing, if it
//! is an option and not an argument of the program.

use std::ffi::OsString;

use clap::{ArgAction, Command, CommandFactory};

use crate::Cli;

/// Returns the command line with `-np` replaced.
pub fn as_ours(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let all = Cli::command();
    let named = words.get(1).and_then(|word| word.to_str());
    let command = named.filter(|name| matches!(*name, "run" | "profile"));
    let Some(command) = command.and_then(|name| all.find_subcommand(name)) else {
        return words;
    };
    let mut at = 2;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy().into_owned();
        if text == "--" || !text.starts_with('-') {
            break;
        }
        if text == "-np" {
            words[at] = "-n".into();
        }
        at += 1 + usize::from(text == "-np" || takes_next(command, &text));
    }
    words
}

/// Returns whether the word after this option is its value.
fn takes_next(command: &Command, option: &str) -> bool {
    let has_value = |action: &ArgAction| action.takes_values();
    if let Some(long) = option.strip_prefix("--") {
        let mut arguments = command.get_arguments();
        return arguments.any(|argument| {
            let names = argument.get_long_and_visible_aliases();
            let is_meant = names.is_some_and(|names| names.contains(&long));
            is_meant && has_value(argument.get_action())
        });
    }
    // Letters without a value may precede one with a value. The rest of the word, if there is one, is its value.
    let mut letters = option[1..].chars();
    while let Some(letter) = letters.next() {
        let mut arguments = command.get_arguments();
        let argument = arguments.find(|argument| argument.get_short() == Some(letter));
        if argument.is_some_and(|argument| has_value(argument.get_action())) {
            return letters.as_str().is_empty();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let words = as_ours(text.split(' ').map(OsString::from));
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ")
    }

    #[test]
    fn an_option_is_put_right_and_arguments_of_the_program_are_not() {
        for (text, expected) in [
            ("regatta run -np 2 a -np 3", "regatta run -n 2 a -np 3"),
            (
                "regatta run --bind core -np 2 a",
                "regatta run --bind core -n 2 a",
            ),
            ("regatta run --label -np 2 a", "regatta run --label -n 2 a"),
            (
                "regatta run --bind=core -l -np 2 a",
                "regatta run --bind=core -l -n 2 a",
            ),
            ("regatta run -n 2 -- -np 3", "regatta run -n 2 -- -np 3"),
            (
                "regatta profile --rate 0 -np 2 a",
                "regatta profile --rate 0 -n 2 a",
            ),
            ("regatta kill -np 2", "regatta kill -np 2"),
        ] {
            assert_eq!(read(text), expected);
        }
    }
}
