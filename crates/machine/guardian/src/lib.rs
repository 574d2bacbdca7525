//! The guardian of the tasks that `srun`, or another launcher with steps, has started on one node: a process that does
//! for them what a launcher of Regatta does for its tasks.
//!
//! The first task creates the node socket, and starts the command `regatta guardian` with that socket as its standard
//! input. The command prints its versions. If the task's library has the same, the command starts itself again as the
//! process that stays, and ends. So the guardian is not a child of the task, in which it would disturb waiting for
//! children.
//!
//! 1. Each task sends a hello to the node socket. When all tasks of the node have, the guardian closes the socket
//!    (`node`).
//! 2. With several nodes, the guardians exchange the addresses of everything (`meet`), in the way of their launcher
//!    (`exchange`). Under Slurm that is by credentials of munge, which only processes of this user on nodes of this
//!    cluster can open. So `srun` needs no option, and the ports do not have to be trusted. Callers that prove nothing are
//!    limited (`callers`). Without munge, the job ends with an error that names `regatta run`, which does not need it.
//! 3. The guardian creates the node's segment with the table of all ranks, and answers each task with its descriptor.
//! 4. It stays until the last of its tasks has left or ended. It watches them by their pidfds, and reports to its own
//!    table and at once to all other guardians (`mesh`). Every record between guardians is authenticated with the job's
//!    key. If a guardian is silent or gone, the tasks of its node count as lost, as on a lost host.
//!
//! The launcher decides what follows from a failure (`srun --kill-on-bad-exit`, `--wait`); the guardian only reports
//! it. The guardian is not the parent of the tasks, so it only knows that a task has ended, and not how.

#![forbid(unsafe_code)]

mod callers;
mod exchange;
mod meet;
mod mesh;
mod node;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use regatta_connection::signal_mask::Blocked;
use regatta_foreign::Step;
use regatta_segment::job::VERSION;
use regatta_wire::guardian::{self, Versions};
use rustix::process::{Resource, Rlimit};

/// The versions of this program.
const OURS: Versions = Versions {
    rendezvous: guardian::VERSION,
    job: VERSION,
};

/// Reason why tasks do not become a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    /// Whether the reason is that versions differ.
    versions: bool,
    sentence: String,
}

impl Refusal {
    fn new(sentence: impl Into<String>) -> Self {
        Self {
            versions: false,
            sentence: sentence.into(),
        }
    }
}

/// Returns the step whose tasks on this node are to be guarded.
fn step() -> Result<Step, String> {
    let step = regatta_foreign::step(&regatta_foreign::environment);
    let step = step.map_err(|(names, what)| {
        format!(
            "what {} reports about this step cannot be used: {what}",
            names.launcher
        )
    })?;
    step.ok_or_else(|| "a guardian is for tasks that srun has started".to_owned())
}

/// Prints the versions of this command to standard output, and starts the guardian if they equal `versions`, those of
/// the tasks' library. Fails if it cannot be started. Different versions are not an error, because the library reports
/// them.
///
/// `words` are the arguments with which this program calls [`serve`] for the node socket, which is its standard input.
pub fn start(versions: &str, words: &[&str]) -> Result<(), String> {
    let ours = OURS.to_string();
    let say = |word: &str| writeln!(io::stdout(), "{word}").map_err(|error| error.to_string());
    say(&ours)?;
    if versions != ours {
        return Ok(());
    }
    step()?;
    let listens = rustix::net::sockopt::socket_acceptconn(io::stdin());
    if listens != Ok(true) {
        return Err("a guardian is started by a task, with the socket of its node".to_owned());
    }
    let mut command = Command::new(regatta_trust::own_command());
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = command.spawn();
    started.map_err(|error| format!("no process can be started for the guardian: {error}"))?;
    say(guardian::STARTED)
}

/// Guards the tasks that send a hello to the socket on standard input, until the last of them has ended. `maker` is the
/// process of the task that has started this one. All tasks have to call within `patience`.
pub fn serve(maker: u32, patience: Duration) -> Result<(), String> {
    let step = step()?;
    // Signals for the tasks are not meant for this process.
    let _blocked = Blocked::all();
    let failed = |error: io::Error| format!("the guardian cannot be started: {error}");
    let listener = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|errno| failed(errno.into()))?;
    // Neither of these is essential.
    let _ = rustix::thread::set_name(c"regatta-guard");
    let _ = std::env::set_current_dir("/");
    raise_files();
    node::serve(listener, maker, &step, patience);
    Ok(())
}

/// Raises the limit of open files, for a descriptor per task here and per other node.
fn raise_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, most);
}
