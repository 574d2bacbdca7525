//! `regatta guardian`: supervises the tasks of a node that `srun` has started, as a launcher does its tasks.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

/// Guard the tasks of this node; started by the first of them that srun has started here.
#[derive(Args)]
pub struct Arguments {
    /// The protocol versions of the tasks' library
    #[arg(long)]
    versions: String,
    /// The pid of the task that starts this
    #[arg(long)]
    maker: u32,
    /// Seconds within which all tasks of the step must register
    #[arg(long)]
    patience: u64,
    /// Be the guardian, rather than start it
    #[arg(long)]
    stay: bool,
}

/// Starts the guardian and returns when it runs. With `--stay`, returns when its last task has ended.
pub fn run(arguments: &Arguments) -> ExitCode {
    // The guardian outlives the task that has started it, and must hold none of its files.
    regatta_launch::close_inherited();
    let (maker, patience) = (arguments.maker, arguments.patience);
    let done = match arguments.stay {
        true => regatta_guardian::serve(maker, Duration::from_secs(patience)),
        false => {
            let (maker, patience) = (maker.to_string(), patience.to_string());
            let versions = ["--versions", &arguments.versions];
            let rest = ["--maker", &maker, "--patience", &patience, "--stay"];
            let words = [&["guardian"][..], &versions, &rest].concat();
            regatta_guardian::start(&arguments.versions, &words)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            regatta_launch::warn(&sentence);
            ExitCode::FAILURE
        }
    }
}
