//! `regatta console`, and the commands under PVM's names.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

/// Open a console of the virtual machine with PVM's commands; starts the machine if it does not run
#[derive(Args)]
pub struct Arguments {
    /// The name of this host
    #[arg(short, value_name = "NAME")]
    name: Option<String>,
    /// Which activities of the machine's process are logged
    #[arg(short, value_name = "MASK")]
    debug: Option<String>,
    /// A file with the hosts to begin with
    hostfile: Option<String>,
}

/// PVM's daemon, if the command is not called by that name
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Daemon {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Does what PVM's daemon does with these arguments.
pub fn daemon(arguments: &Daemon) -> ExitCode {
    regatta_console::pvmd(&arguments.words)
}

/// Runs a session, and returns when it is over.
pub fn run(arguments: &Arguments) -> ExitCode {
    let option = |letter: char, value: &Option<String>| {
        value.as_ref().map(|value| format!("-{letter}{value}"))
    };
    let words = [
        option('n', &arguments.name),
        option('d', &arguments.debug),
        arguments.hostfile.clone(),
    ];
    regatta_console::pvm(&words.into_iter().flatten().collect::<Vec<_>>())
}

/// If the command was called by one of PVM's names, does what PVM's program with that name does.
pub fn under_another_name() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    let words = || {
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    match Path::new(&called).file_name().and_then(OsStr::to_str)? {
        "pvm" => Some(regatta_console::pvm(&words())),
        "pvmd" | "pvmd3" => Some(regatta_console::pvmd(&words())),
        _ => None,
    }
}
