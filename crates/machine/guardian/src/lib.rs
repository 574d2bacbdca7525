//! The guardian of one node's tasks that `srun`, or another launcher with steps, has started: a process that does for them what a launcher
//! of ours does for its tasks.
//!
//! The task that comes first makes the node socket, and starts the command `regatta guardian` with that socket as its standard input.
//! The command says which versions it speaks. If the task's library speaks the same it starts itself again, as the process that
//! stays, and ends: so the guardian is no child of the task, whose own waiting for children it would disturb.
//!
//! 1. Each task says hello at the node socket. When all of the node have, the guardian closes it (`node`).
//! 2. With several nodes, the guardians tell each other where everything is (`meet`), in the way of their launcher (`exchange`). Under Slurm
//!    that is by letters sealed by munge, which only processes of this user on nodes of this cluster can open. So `srun` needs no option, and
//!    nobody has to trust the ports. A caller that proves nothing is served within bounds (`callers`).
//!    Where there is no munge, the job ends with a sentence that names `regatta run`, which needs none.
//! 3. The guardian makes the node's segment with the table of all ranks, and answers each task with its descriptor.
//! 4. It stays until the last of its tasks has left or ended, watching them by their pidfds, and tells its own table and
//!    all other guardians at once (`mesh`). Every record between guardians is proved with the job's key. A guardian that is silent or
//!    gone takes its node's tasks with it, as a lost host does.
//!
//! The consequence of a failure is the launcher's affair (`srun --kill-on-bad-exit`, `--wait`): here it is only reported. Nobody here is the
//! parent of a task, so how it ended is not known, only that it has.

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

/// Why tasks do not become a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    /// Because versions differ.
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

/// The step whose tasks on this node are to be guarded.
fn step() -> Result<Step, String> {
    let step = regatta_foreign::step(&regatta_foreign::environment);
    let step = step.map_err(|(names, what)| {
        format!(
            "what {} says of this step cannot be used: {what}",
            names.launcher
        )
    })?;
    step.ok_or_else(|| "a guardian is for tasks that srun has started".to_owned())
}

/// Says on standard output which versions this command speaks, and starts the guardian if they are `versions`, those of
/// the tasks' library. The error is why there is none; other versions are none, because the library tells of them.
///
/// `words` are the arguments that have this program [`serve`] the node socket, which is its standard input.
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
    started.map_err(|error| format!("no process for the guardian: {error}"))?;
    say(guardian::STARTED)
}

/// Guards the tasks that say hello at the socket which is this process's standard input, until the last of them has
/// ended. The task in process `maker` has started this one, and all have to come within `patience`.
pub fn serve(maker: u32, patience: Duration) -> Result<(), String> {
    let step = step()?;
    // Signals for the tasks are not meant for this process.
    let _blocked = Blocked::all();
    let failed = |error: io::Error| format!("no guardian: {error}");
    let listener = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|errno| failed(errno.into()))?;
    // Neither is needed.
    let _ = rustix::thread::set_name(c"regatta-guard");
    let _ = std::env::set_current_dir("/");
    raise_files();
    node::serve(listener, maker, &step, patience);
    Ok(())
}

/// Allows a descriptor for each task here, and for each other node.
fn raise_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, most);
}
