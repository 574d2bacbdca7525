//! Every subcommand with its options as a page in Markdown.

use std::fmt::Write;

use clap::{Arg, Command};

/// Returns the page.
pub fn page(command: &Command) -> String {
    let mut page = "# Commands and options\n\nAs printed by `--help`, generated from the definition of the command. `mpiexec` has [options of its own](mpi.md#mpiexec).\n".to_owned();
    describe(command, command.get_name(), &mut page);
    page
}

fn describe(command: &Command, path: &str, page: &mut String) {
    for command in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        let path = format!("{path} {}", command.get_name());
        let about = command.get_long_about().or(command.get_about());
        let _ = write!(page, "\n## `{path}`\n\n");
        if let Some(about) = about {
            let _ = write!(page, "{}\n\n", text(&about.to_string()));
        }
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim();
        let _ = write!(
            page,
            "```text\n{}\n```\n",
            usage.replacen(command.get_name(), &path, 1)
        );
        let shown: Vec<&Arg> = command
            .get_arguments()
            .filter(|it| !it.is_hide_set())
            .collect();
        if !shown.is_empty() {
            page.push_str("\n| option | meaning |\n|---|---|\n");
        }
        for argument in shown {
            let _ = writeln!(page, "| {} | {} |", names(argument), says(argument));
        }
        describe(command, &path, page);
    }
}

/// Returns how an option is written: `-n`, `--tasks` `N`.
fn names(argument: &Arg) -> String {
    let short = argument.get_short().map(|it| format!("-{it}"));
    let long = argument.get_long().map(|it| format!("--{it}"));
    let mut all: Vec<String> = short
        .into_iter()
        .chain(long)
        .map(|it| format!("`{it}`"))
        .collect();
    let takes = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes);
    if let Some(value) = value.and_then(|names| names.first()) {
        let last = all.pop().map(|it| it.trim_matches('`').to_owned() + " ");
        all.push(format!("`{}{value}`", last.unwrap_or_default()));
    }
    all.join(", ")
}

fn says(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut parts = vec![help.map(|it| text(&it.to_string())).unwrap_or_default()];
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let values = values.iter().filter(|it| !it.is_hide_set()).map(|it| {
            let help = it
                .get_help()
                .map(|help| format!(" ({})", text(&help.to_string())));
            format!("`{}`{}", it.get_name(), help.unwrap_or_default())
        });
        parts.push(format!("One of {}.", values.collect::<Vec<_>>().join(", ")));
    }
    let defaults = argument
        .get_default_values()
        .iter()
        .map(|it| it.to_string_lossy());
    let defaults: Vec<_> = defaults.filter(|it| !it.is_empty()).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        parts.push(format!("Default: `{}`.", defaults.join(" ")));
    }
    if let Some(variable) = argument.get_env() {
        parts.push(format!(
            "Also set by the variable `{}`.",
            variable.to_string_lossy()
        ));
    }
    parts.retain(|it| !it.is_empty());
    if parts.len() > 1 && !parts[0].ends_with(['.', ']']) {
        parts[0].push('.');
    }
    parts.join(" ")
}

/// Returns a help text as a table cell: one line, with Markdown escaped outside of code.
fn text(help: &str) -> String {
    let mut is_code = false;
    let mut out = String::new();
    for letter in help.chars() {
        is_code ^= letter == '`';
        match letter {
            '\n' => out.push(' '),
            '|' => out.push_str(r"\|"),
            '*' | '_' if !is_code => out.extend(['\\', letter]),
            '<' if !is_code => out.push_str("&lt;"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_option_that_is_not_hidden() {
        let command = super::super::for_users();
        let page = page(&command);
        let mut options = 0;
        for command in command.get_subcommands() {
            assert!(page.contains(&format!("## `regatta {}`", command.get_name())));
            for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
                if let Some(long) = argument.get_long() {
                    options += 1;
                    assert!(page.contains(&format!("`--{long}")), "{long}");
                }
            }
        }
        assert!(options > 50, "{options}");
        assert_eq!(text("A|B `<x_y>` <z>"), r"A\|B `<x_y>` &lt;z>");
    }
}
