//! `regatta guardian`: does for the tasks of a node that `srun` has started what a launcher does for its tasks.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

/// Guard the tasks of this node; started by the first of them that srun has started here.
#[derive(Args)]
pub struct Arguments {
    /// The versions that the tasks' library speaks
    #[arg(long)]
    versions: String,
    /// The process of the task that starts this
    #[arg(long)]
    maker: u32,
    /// Seconds within which all tasks of the step have to come
    #[arg(long)]
    patience: u64,
    /// Be the guardian, rather than start it
    #[arg(long)]
    stay: bool,
}

/// Returns when the guardian runs or, with `--stay`, when its last task has ended.
pub fn run(arguments: &Arguments) -> ExitCode {
    // It goes on when the task that has started it has ended, and has none of its files.
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
