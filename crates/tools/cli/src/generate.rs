//! `regatta generate`: manual pages, shell completions and a page of all options, generated from the definition of the
//! command line. `make install` calls it.

mod options;

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;
use regatta_launch::Refusal;

use crate::{Cli, say};

/// Write manual pages, completions of shells, or the page of all options; for packagers
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write a manual page for the command and one for each subcommand into this folder
    Man { folder: PathBuf },
    /// Print the completion of a shell
    Completion { shell: Shell },
    /// Print all options as a page in Markdown
    Options,
}

/// Writes what the arguments request.
pub fn run(arguments: &Arguments) -> Result<(), Refusal> {
    match &arguments.what {
        What::Man { folder } => manual(folder).map_err(|error| {
            let folder = folder.display();
            Refusal::of_regatta(format!(
                "the manual pages cannot be written to {folder} ({error}); name an existing folder that this user may write to"
            ))
        }),
        What::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut for_users(), NAME, &mut script);
            say::text(String::from_utf8_lossy(&script))
        }
        What::Options => say::text(options::page(&for_users())),
    }
}

const NAME: &str = "regatta";

/// Returns the command without the subcommands that only Regatta calls.
fn for_users() -> clap::Command {
    let all = Cli::command();
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let command = clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.cloned());
    match all.get_about() {
        Some(about) => command.about(about.clone()),
        None => command,
    }
}

fn manual(folder: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(for_users(), folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_subcommands_are_in_no_completion() {
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut for_users(), NAME, &mut script);
        let script = String::from_utf8(script).expect("a text");
        assert!(script.contains("regatta,run)"), "{script}");
        assert!(!script.contains("guardian"), "{script}");
    }
}
